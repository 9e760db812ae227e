// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Row code → C11, one statement per row. Rows are single assignments, so each becomes a const local; registers are
// plain locals; a gate is `?:` or `if`. Vectors are spelled as calls of the inline functions that CPrelude defines. A
// bool vector keeps the lane width of the comparison that made it, so that comparing and selecting f32 needs no
// conversion. The text depends on the kernel only, not on the CPU: flags choose the instruction set (see
// renderer_c.cpp).
#include "render/c_style.h"

#include <bit>
#include <cstdio>

#include "render/c_prelude.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr const char* kHead = R"(#include <stdint.h>
#ifdef __GNUC__
#define VECTOR(name, T, n) typedef T name __attribute__((vector_size(n * sizeof(T))))
#define LANE(v, i) (v)[i]
#define MAKE(T, ...) ((T){__VA_ARGS__})
#define COPY(to, from, n) __builtin_memcpy(to, from, n)
#define INLINE static inline __attribute__((always_inline))
#else
#define VECTOR(name, T, n) typedef struct { T lane[n]; } name
#define LANE(v, i) (v).lane[i]
#define MAKE(T, ...) ((T){{__VA_ARGS__}})
#define COPY(to, from, n) \
  for (unsigned at = 0; at < (unsigned)(n); ++at) ((unsigned char*)(to))[at] = ((const unsigned char*)(from))[at]
#define INLINE static inline
#define LIBRARY(name) float name##f(float); double name(double);
LIBRARY(fabs) LIBRARY(sqrt) LIBRARY(floor) LIBRARY(ceil) LIBRARY(trunc) LIBRARY(rint)
float fmaf(float, float, float);
double fma(double, double, double);
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_floorf floorf
#define __builtin_floor floor
#define __builtin_ceilf ceilf
#define __builtin_ceil ceil
#define __builtin_truncf truncf
#define __builtin_trunc trunc
#define __builtin_roundevenf rintf
#define __builtin_roundeven rint
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#endif
// gcc 12 turns a masked load into a blend where it knows the mask, and so reads what is masked off; of the mask of a
// masked store it makes choices among masks, which it has no instruction for and ends.
#ifdef __AVX512VL__
#define OPAQUE(mask) __asm__("" : "+v"(mask))
#else
#define OPAQUE(mask) (void)0
#endif
#ifdef __has_builtin
#define HAS(name) __has_builtin(name)
#else
#define HAS(name) 0
#endif
struct tgrt_kernel_args {
  void* const* bufs;
  const int64_t* vars;
  void* scratch;
};
)";

class CPrinter {
public:
  CPrinter(const RowCode& code, int register_lanes)
      : code_(code), masks_(code.insts.size(), 0), prelude_(register_lanes) {}
  std::string print();

private:
  const RowInst& inst(RowId id) const { return code_.insts[static_cast<size_t>(id)]; }
  CType type_of(RowId id) const {
    const RowInst& x = inst(id);
    return {x.dtype, x.lanes, masks_[static_cast<size_t>(id)]};
  }
  std::string operand(RowId id);
  std::string mask(RowId id, int mask_bytes);
  std::string literal(DType t, uint64_t bits);
  void line(const std::string& text) { body_ += indent_ + text + "\n"; }
  void define(RowId id, const std::string& value) {
    line("const " + prelude_.type(type_of(id)) + " v" + std::to_string(id) + " = " + value + ";");
  }
  int choose_mask(RowId id) const;

  void instruction(RowId id);
  void alu(RowId id);
  std::string scalar_alu(RowId id);
  void load(RowId id);
  void store(RowId id);
  void build(RowId id);
  void loop(RowId id);
  std::string locals();

  const RowCode& code_;
  std::vector<int> masks_; ///< by RowId: lane bytes of a bool vector, 0 for anything else
  CPrelude prelude_;
  std::string body_, indent_ = "  ";
};

std::string CPrinter::literal(DType t, uint64_t bits) {
  char text[40];
  if (t == DType::F32 || t == DType::F64) {
    const double value =
        t == DType::F64 ? std::bit_cast<double>(bits) : std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (value - value == 0) {
      std::snprintf(text, sizeof text, t == DType::F64 ? "%a" : "%af", value);
      return value < 0 || bits >> (byte_size(t) * 8 - 1) ? "(" + std::string(text) + ")" : text;
    }
    std::snprintf(text, sizeof text, t == DType::F64 ? "UINT64_C(0x%llx)" : "0x%llxu",
                  static_cast<unsigned long long>(bits));
    return prelude_.bits_to_float(t) + "(" + text + ")";
  }
  if (t == DType::U64) return "UINT64_C(" + std::to_string(bits) + ")";
  if (is_unsigned(t) || t == DType::Bool || is_float(t)) return std::to_string(bits) + (t == DType::U32 ? "u" : "");
  const int unused = 64 - byte_size(t) * 8;
  const int64_t value = static_cast<int64_t>(bits << unused) >> unused;
  const std::string open = byte_size(t) == 8 ? "INT64_C(" : "", close = byte_size(t) == 8 ? ")" : "";
  if (value == INT64_MIN || value == INT32_MIN) return "(-" + open + std::to_string(-(value + 1)) + close + " - 1)";
  if (value < 0) return "(-" + open + std::to_string(-value) + close + ")";
  return open + std::to_string(value) + close;
}

std::string CPrinter::operand(RowId id) {
  const RowInst& x = inst(id);
  if (x.kind == RowKind::Const && x.lanes == 1) return literal(x.dtype, x.bits);
  if (x.kind == RowKind::Const && x.dtype == DType::Bool) return mask(id, 1);
  if (x.kind == RowKind::Const) return prelude_.splat(type_of(id)) + "(" + literal(x.dtype, x.bits) + ")";
  if (x.kind == RowKind::Iota) {
    std::vector<std::string> lanes;
    for (int i = 0; i < x.lanes; ++i) lanes.push_back(std::to_string(i));
    return prelude_.make(type_of(id), lanes);
  }
  return "v" + std::to_string(id);
}

/// A bool vector with lanes of the given width.
std::string CPrinter::mask(RowId id, int mask_bytes) {
  const RowInst& x = inst(id);
  const CType wanted{DType::Bool, x.lanes, mask_bytes};
  if (x.kind == RowKind::Const) return prelude_.splat(wanted) + (x.bits != 0 ? "(-1)" : "(0)");
  const CType have = type_of(id);
  const std::string value = operand(id);
  return have.mask_bytes == mask_bytes ? value : prelude_.resize_mask(have, mask_bytes) + "(" + value + ")";
}

/// The lane width of a bool vector: that of what it was compared from, or of the first mask among its operands.
int CPrinter::choose_mask(RowId id) const {
  const RowInst& x = inst(id);
  if (x.dtype != DType::Bool || x.lanes == 1) return 0;
  if (x.kind == RowKind::Slice) return masks_[static_cast<size_t>(x.args[0])];
  if (x.kind != RowKind::Alu) return 1;
  for (size_t i = x.op == Ops::Where ? 1 : 0; i < x.args.size(); ++i) {
    const RowInst& a = inst(x.args[i]);
    if (a.dtype != DType::Bool) return byte_size(a.dtype);
    if (a.kind != RowKind::Const && a.lanes > 1) return masks_[static_cast<size_t>(x.args[i])];
  }
  return 1;
}

std::string CPrinter::scalar_alu(RowId id) {
  const RowInst& x = inst(id);
  const DType from = inst(x.args[0]).dtype;
  std::string args[3];
  for (size_t i = 0; i < x.args.size(); ++i) args[i] = operand(x.args[i]);
  if (x.op == Ops::Where) return args[0] + " ? " + args[1] + " : " + args[2];
  std::string plain = "(" + prelude_.scalar(x.dtype) + ")" + args[0];
  if (x.op == Ops::Cast) {
    return is_float(from) && is_int(x.dtype) && !x.no_wrap ? prelude_.scalar_cast(x.dtype, from) + "(" + args[0] + ")"
                                                           : plain;
  }
  if (x.op == Ops::Bitcast) {
    const auto is_c_float = [](DType t) { return t == DType::F32 || t == DType::F64; };
    if (!is_c_float(from) && !is_c_float(x.dtype)) return plain;
    return prelude_.scalar_bitcast(x.dtype, from) + "(" + args[0] + ")";
  }
  return prelude_.scalar_op(x.op, x.dtype, from, args);
}

void CPrinter::alu(RowId id) {
  const RowInst& x = inst(id);
  if (x.lanes == 1) return define(id, scalar_alu(id));
  const CType result = type_of(id);
  if (x.op == Ops::Where) {
    std::string value[2];
    for (size_t i = 0; i < 2; ++i)
      value[i] = result.is_mask() ? mask(x.args[i + 1], result.mask_bytes) : operand(x.args[i + 1]);
    if (inst(x.args[0]).lanes == 1) return define(id, operand(x.args[0]) + " ? " + value[0] + " : " + value[1]);
    const std::string cond = mask(x.args[0], prelude_.mask_for(result).mask_bytes);
    return define(id, prelude_.select(result) + "(" + cond + ", " + value[0] + ", " + value[1] + ")");
  }
  const bool from_mask = inst(x.args[0]).dtype == DType::Bool;
  CType from = type_of(x.args[0]);
  if (from_mask) from.mask_bytes = x.dtype == DType::Bool ? result.mask_bytes : masks_[static_cast<size_t>(x.args[0])];
  if (from_mask && from.mask_bytes == 0) from.mask_bytes = 1; // a constant
  std::vector<RowId> operands = x.args;
  // True is -1 in a mask, so that masks compare the other way round.
  if (from_mask && (x.op == Ops::Lt || x.op == Ops::Le)) std::swap(operands[0], operands[1]);
  std::string args;
  for (const RowId arg : operands)
    args += (args.empty() ? "" : ", ") + (from_mask ? mask(arg, from.mask_bytes) : operand(arg));
  const bool plain = x.op == Ops::Cast && x.no_wrap;
  define(id, (plain ? prelude_.convert(result, from) : prelude_.vector_op(x.op, result, from)) + "(" + args + ")");
}

void CPrinter::load(RowId id) {
  const RowInst& x = inst(id);
  const RowId gate = x.args[1], other = x.args[2];
  const CType type = type_of(id);
  const std::string buffer = "b" + std::to_string(x.imm), index = operand(x.args[0]);
  std::string zero = literal(x.dtype, 0);
  if (x.lanes > 1) zero = prelude_.splat(type) + "(0)";
  const std::string alternative = other < 0 ? zero : type.is_mask() ? mask(other, type.mask_bytes) : operand(other);
  if (gate >= 0 && inst(gate).lanes > 1) {
    const std::string g = mask(gate, prelude_.mask_for(type).mask_bytes);
    return define(id, prelude_.load_masked(type) + "(" + buffer + ", " + index + ", " + g + ", " + alternative + ")");
  }
  std::string value = buffer + "[" + index + "]";
  if (code_.buffers[static_cast<size_t>(x.imm)].dtype != x.dtype)
    value = prelude_.load_bytes(type) + "(" + buffer + " + " + index + ")";
  else if (x.lanes > 1)
    value = prelude_.load(type) + "(" + buffer + " + " + index + ")";
  else if (x.dtype == DType::Bool)
    value = "(" + value + " != 0)";
  define(id, gate < 0 ? value : operand(gate) + " ? " + value + " : " + alternative);
}

void CPrinter::store(RowId id) {
  const RowInst& x = inst(id);
  const RowId gate = x.args[2];
  CType type = type_of(x.args[1]);
  if (type.dtype == DType::Bool && type.lanes > 1 && !type.is_mask()) type.mask_bytes = 1; // a constant
  const std::string buffer = "b" + std::to_string(x.imm), index = operand(x.args[0]);
  const std::string value = type.is_mask() ? mask(x.args[1], type.mask_bytes) : operand(x.args[1]);
  if (gate >= 0 && inst(gate).lanes > 1) {
    const std::string g = mask(gate, prelude_.mask_for(type).mask_bytes);
    return line(prelude_.store_masked(type) + "(" + buffer + ", " + index + ", " + value + ", " + g + ");");
  }
  const std::string guard = gate < 0 ? "" : "if (" + operand(gate) + ") ";
  if (type.lanes > 1)
    line(guard + prelude_.store(type) + "(" + buffer + " + " + index + ", " + value + ");");
  else
    line(guard + buffer + "[" + index + "] = " + value + ";");
}

void CPrinter::build(RowId id) {
  const RowInst& x = inst(id);
  std::vector<std::string> lanes;
  for (const RowId arg : x.args) lanes.push_back((x.dtype == DType::Bool ? "-" : "") + operand(arg));
  define(id, prelude_.make(type_of(id), lanes));
}

void CPrinter::loop(RowId id) {
  const RowInst& x = inst(id);
  const std::string i = "v" + std::to_string(id);
  const std::string begin = x.args.empty() ? "chunk_begin" : "0",
                    end = x.args.empty() ? "chunk_end" : operand(x.args[0]);
  line("for (int64_t " + i + " = " + begin + "; " + i + " < " + end + "; ++" + i + ") {");
  indent_ += "  ";
}

void CPrinter::instruction(RowId id) {
  const RowInst& x = inst(id);
  masks_[static_cast<size_t>(id)] = choose_mask(id);
  switch (x.kind) {
  case RowKind::Const:
  case RowKind::Iota:
  case RowKind::Var: return; // operands and locals()
  case RowKind::Alu: return alu(id);
  case RowKind::Splat: {
    const std::string value = (x.dtype == DType::Bool ? "-" : "") + operand(x.args[0]);
    return define(id, prelude_.splat(type_of(id)) + "(" + value + ")");
  }
  case RowKind::Extract: {
    const std::string lane = prelude_.lane(type_of(x.args[0]), operand(x.args[0]), x.imm);
    return define(id, x.dtype == DType::Bool ? lane + " != 0" : lane);
  }
  case RowKind::Slice:
    return define(id,
                  prelude_.slice(type_of(x.args[0]), type_of(id), {x.imm, x.step}) + "(" + operand(x.args[0]) + ")");
  case RowKind::Build: return build(id);
  case RowKind::Zip:
    return define(id, prelude_.zip(type_of(id), x.imm) + "(" + operand(x.args[0]) + ", " + operand(x.args[1]) + ")");
  case RowKind::Base: {
    const std::string element = prelude_.scalar(code_.buffers[static_cast<size_t>(x.imm)].dtype);
    return line(element + "* restrict const b" + std::to_string(x.imm) + " = (" + element +
                "*)((char*)args->scratch + " + operand(x.args[0]) + ");");
  }
  case RowKind::Load: return load(id);
  case RowKind::Prefetch: // beyond an array's end there is an address only as a number
    return line("__builtin_prefetch((const void*)((__UINTPTR_TYPE__)(b" + std::to_string(x.imm) + " + " +
                operand(x.args[0]) + ") + " + std::to_string(x.bits) + " * sizeof *b" + std::to_string(x.imm) +
                "), 0, 2);");
  case RowKind::Store: return store(id);
  case RowKind::RegGet: return define(id, "r" + std::to_string(x.imm));
  case RowKind::RegSet: {
    const bool is_mask = inst(x.args[0]).dtype == DType::Bool && inst(x.args[0]).lanes > 1;
    return line("r" + std::to_string(x.imm) + " = " + (is_mask ? mask(x.args[0], 1) : operand(x.args[0])) + ";");
  }
  case RowKind::Loop: return loop(id);
  case RowKind::EndLoop: indent_.resize(indent_.size() - 2); return line("}");
  }
}

std::string CPrinter::locals() {
  std::string text;
  for (size_t k = 0; k < code_.buffers.size(); ++k) {
    const RowBuffer& b = code_.buffers[k];
    const std::string element = (b.stored ? "" : "const ") + prelude_.scalar(b.dtype);
    if (b.offset < 0) continue; // where Base stands
    text += "  ";
    text += element + "* restrict const b" + std::to_string(k) + " = (" + element + "*)";
    if (b.scratch)
      text += "((char*)args->scratch + " + std::to_string(b.offset) + ");\n";
    else
      text += "args->bufs[" + std::to_string(b.slot) + "];\n";
  }
  for (size_t id = 0; id < code_.insts.size(); ++id)
    if (code_.insts[id].kind == RowKind::Var)
      text +=
          "  const int64_t v" + std::to_string(id) + " = args->vars[" + std::to_string(code_.insts[id].imm) + "];\n";
  for (size_t k = 0; k < code_.registers.size(); ++k) {
    const RowRegister& r = code_.registers[k];
    const int mask_bytes = r.dtype == DType::Bool && r.lanes > 1 ? 1 : 0;
    text += "  " + prelude_.type({r.dtype, r.lanes, mask_bytes}) + " r" + std::to_string(k) + ";\n";
  }
  return text;
}

std::string CPrinter::print() {
  for (size_t id = 0; id < code_.insts.size(); ++id) instruction(static_cast<RowId>(id));
  const std::string declarations = locals();
  return kHead + prelude_.text() + "#ifdef __GNUC__\n__attribute__((visibility(\"default\")))\n#endif\nvoid " +
         code_.name + "(const struct tgrt_kernel_args* args, int64_t chunk_begin, int64_t chunk_end) {\n" +
         declarations + "  (void)args, (void)chunk_begin, (void)chunk_end;\n" + body_ + "}\n";
}

} // namespace

std::string print_c(const RowCode& code, int register_lanes) { return CPrinter(code, register_lanes).print(); }

} // namespace tgc
