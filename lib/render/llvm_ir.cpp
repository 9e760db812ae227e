// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Row code → LLVM IR text, one instruction per row. Text rather than the C++ API: this file needs no LLVM, the text is
// what goldens and --emit=source show, and parsing it costs well under a millisecond per kernel. Every op is a row of
// kForms. Registers are allocas, which SROA turns into SSA values. Each buffer has an alias scope, so that loads move
// over stores to other buffers. No fast-math flags anywhere, and fma only for the op Fma: what eval computes is what
// runs. A scalar gate selects the address (of the element, or of zeros) instead of branching; a vector gate is a masked
// access. Source: LLVM 19 Language Reference.
#include "render/llvm_ir.h"

#include <bit>
#include <cstdio>

#include "uop/diag.h"

namespace tgc {
namespace {

// clang-format off
/// The instruction of an op on floats, signed and unsigned integers (bool counts as unsigned); null where row code has
/// none. %T result type, %A type of operand a, %a %b %c operands, %S intrinsic suffix of the result type.
struct Form { Ops op; const char* floats; const char* ints; const char* unsigneds; };
constexpr Form kForms[] = {
    {Ops::Neg,   "fneg %T %a",                          "sub %T zeroinitializer, %a", "sub %T zeroinitializer, %a"},
    {Ops::Abs,   "call %T @llvm.fabs.%S(%T %a)",        nullptr,                      nullptr},
    {Ops::Not,   nullptr,                               "xor %T %a, %1",              "xor %T %a, %1"},
    {Ops::Sqrt,  "call %T @llvm.sqrt.%S(%T %a)",        nullptr,                      nullptr},
    {Ops::Floor, "call %T @llvm.floor.%S(%T %a)",       nullptr,                      nullptr},
    {Ops::Ceil,  "call %T @llvm.ceil.%S(%T %a)",        nullptr,                      nullptr},
    {Ops::Trunc, "call %T @llvm.trunc.%S(%T %a)",       nullptr,                      nullptr},
    {Ops::Round, "call %T @llvm.roundeven.%S(%T %a)",   nullptr,                      nullptr},
    {Ops::Add,   "fadd %T %a, %b",                      "add%W %T %a, %b",            "add%W %T %a, %b"},
    {Ops::Sub,   "fsub %T %a, %b",                      "sub%W %T %a, %b",            "sub%W %T %a, %b"},
    {Ops::Mul,   "fmul %T %a, %b",                      "mul%W %T %a, %b",            "mul%W %T %a, %b"},
    {Ops::Div,   "fdiv %T %a, %b",                      "sdiv %T %a, %b",             "udiv %T %a, %b"},
    {Ops::Mod,   nullptr,                               "srem %T %a, %b",             "urem %T %a, %b"},
    {Ops::And,   nullptr,                               "and %T %a, %b",              "and %T %a, %b"},
    {Ops::Or,    nullptr,                               "or %T %a, %b",               "or %T %a, %b"},
    {Ops::Xor,   nullptr,                               "xor %T %a, %b",              "xor %T %a, %b"},
    {Ops::Shl,   nullptr,                               "shl %T %a, %b",              "shl %T %a, %b"},
    {Ops::Shr,   nullptr,                               "ashr %T %a, %b",             "lshr %T %a, %b"},
    {Ops::Lt,    "fcmp olt %A %a, %b",                  "icmp slt %A %a, %b",         "icmp ult %A %a, %b"},
    {Ops::Le,    "fcmp ole %A %a, %b",                  "icmp sle %A %a, %b",         "icmp ule %A %a, %b"},
    {Ops::Eq,    "fcmp oeq %A %a, %b",                  "icmp eq %A %a, %b",          "icmp eq %A %a, %b"},
    {Ops::Ne,    "fcmp une %A %a, %b",                  "icmp ne %A %a, %b",          "icmp ne %A %a, %b"},
    {Ops::Fma,   "call %T @llvm.fma.%S(%T %a, %T %b, %T %c)", nullptr,                nullptr},
};
// clang-format on

const char* scalar_type(DType t) {
  switch (t) {
  case DType::Void: return "void";
  case DType::Bool: return "i1";
  case DType::I8:
  case DType::U8: return "i8";
  case DType::I16:
  case DType::U16:
  case DType::F16:
  case DType::BF16: return "i16";
  case DType::I32:
  case DType::U32: return "i32";
  case DType::I64:
  case DType::U64:
  case DType::Index: return "i64";
  case DType::F32: return "float";
  case DType::F64: return "double";
  }
  return "";
}
std::string with_lanes(const char* scalar, int lanes) {
  return lanes == 1 ? scalar : "<" + std::to_string(lanes) + " x " + scalar + ">";
}
std::string type_of(DType t, int lanes) { return with_lanes(scalar_type(t), lanes); }
std::string memory_type(DType t, int lanes) { return t == DType::Bool ? with_lanes("i8", lanes) : type_of(t, lanes); }
std::string suffix(DType t, int lanes) {
  const std::string s = t == DType::F32 ? "f32" : t == DType::F64 ? "f64" : t == DType::Bool ? "i8" : scalar_type(t);
  return lanes == 1 ? s : "v" + std::to_string(lanes) + s;
}

std::string literal(DType t, uint64_t bits) {
  if (t == DType::Bool) return bits != 0 ? "true" : "false";
  if (t == DType::F32 || t == DType::F64) { // a float is written as the double of equal value
    if (t == DType::F32) {
      const auto f = std::bit_cast<float>(static_cast<uint32_t>(bits));
      // Conversion would quieten a signalling NaN; all NaNs are one to us.
      bits = f == f ? std::bit_cast<uint64_t>(static_cast<double>(f)) : uint64_t{0x7ff8} << 48;
    }
    char text[24];
    std::snprintf(text, sizeof text, "0x%016llX", static_cast<unsigned long long>(bits));
    return text;
  }
  const int unused = 64 - byte_size(t) * 8;
  return std::to_string(static_cast<int64_t>(bits << unused) >> unused);
}

class LlvmPrinter {
public:
  LlvmPrinter(const RowCode& code, const LlvmStyle& style) : code_(code), style_(style) {}
  std::string print();

private:
  const RowInst& inst(RowId id) const { return code_.insts[static_cast<size_t>(id)]; }
  std::string operand(RowId id) const;
  std::string typed(RowId id) const { return type_of(inst(id).dtype, inst(id).lanes) + " " + operand(id); }
  std::string result(RowId id) const { return "  %v" + std::to_string(id) + " = "; }
  std::string fresh() { return "%t" + std::to_string(next_++); }
  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  void label(const std::string& name) {
    body_ += name + ":\n";
    block_ = name;
  }
  bool has(std::string_view feature) const;
  std::string loop_label(const char* what, RowId loop) const { return std::string(what) + std::to_string(loop); }

  void instruction(RowId id);
  void alu(RowId id);
  void cast(RowId id);
  void dot4(RowId id);
  std::string dot4_part(int lanes, const std::string* args);
  void splat(RowId id);
  void build(RowId id);
  std::string address(int64_t buffer, RowId index, bool inbounds);
  std::string scopes(int64_t buffer) const;
  void load(RowId id);
  void prefetch(RowId id);
  void store(RowId id);
  void open_loop(RowId id);
  void close_loop();
  std::string entry() const;
  std::string metadata() const;

  const RowCode& code_;
  const LlvmStyle& style_;
  std::string body_, block_ = "entry";
  std::vector<RowId> loops_;
  int next_ = 0;
  bool uses_zeros_ = false;
};

bool LlvmPrinter::has(std::string_view feature) const {
  return ("," + style_.features + ",").find(",+" + std::string(feature) + ",") != std::string::npos;
}

std::string LlvmPrinter::operand(RowId id) const {
  const RowInst& x = inst(id);
  if (x.kind == RowKind::Const) {
    std::string one = literal(x.dtype, x.bits);
    if (x.lanes == 1) return one;
    return x.bits == 0 ? "zeroinitializer" : std::string("splat (") + scalar_type(x.dtype) + " " + one + ")";
  }
  if (x.kind == RowKind::Iota) {
    std::string all = "<";
    for (int i = 0; i < x.lanes; ++i)
      all += (i > 0 ? ", " : "") + std::string(scalar_type(x.dtype)) + " " + std::to_string(i);
    return all + ">";
  }
  return "%v" + std::to_string(id);
}

void LlvmPrinter::alu(RowId id) {
  const RowInst& x = inst(id);
  const RowInst& a = inst(x.args[0]);
  if (x.op == Ops::Cast) return cast(id);
  if (x.op == Ops::Dot4) return dot4(id);
  if (x.op == Ops::Where) {
    body_ += result(id) + "select " + typed(x.args[0]) + ", " + typed(x.args[1]) + ", " + typed(x.args[2]) + "\n";
    return;
  }
  if (x.op == Ops::Bitcast) {
    body_ += result(id) + "bitcast " + typed(x.args[0]) + " to " + type_of(x.dtype, x.lanes) + "\n";
    return;
  }
  const Form* form = nullptr;
  for (const Form& f : kForms)
    if (f.op == x.op) form = &f;
  const bool as_unsigned = is_unsigned(a.dtype) || a.dtype == DType::Bool || x.positive;
  const char* text = !form ? nullptr : is_float(a.dtype) ? form->floats : as_unsigned ? form->unsigneds : form->ints;
  TGC_CHECK(text, std::string("LLVM has no form of ") + name(x.op) + " " + name(a.dtype));
  body_ += result(id);
  for (const char* p = text; *p; ++p) {
    if (*p != '%') {
      body_ += *p;
      continue;
    }
    switch (*++p) {
    case 'T': body_ += type_of(x.dtype, x.lanes); break;
    case 'A': body_ += type_of(a.dtype, a.lanes); break;
    case 'S': body_ += suffix(x.dtype, x.lanes); break;
    case 'W': body_ += x.no_wrap ? " nsw" : ""; break;
    case '1': {
      const std::string ones = x.dtype == DType::Bool ? "true" : "-1";
      body_ += x.lanes == 1 ? ones : std::string("splat (") + scalar_type(x.dtype) + " " + ones + ")";
      break;
    }
    default: body_ += operand(x.args[static_cast<size_t>(*p - 'a')]);
    }
  }
  body_ += "\n";
}

// ops.def's Cast: integers wrap or extend, floats round, float to integer truncates and saturates with NaN to 0.
void LlvmPrinter::cast(RowId id) {
  const RowInst& x = inst(id);
  const RowInst& a = inst(x.args[0]);
  const std::string to = type_of(x.dtype, x.lanes);
  const auto instruction = [&](const char* op) {
    body_ += result(id) + op + " " + typed(x.args[0]) + " to " + to + "\n";
  };
  const bool from_unsigned = is_unsigned(a.dtype) || a.dtype == DType::Bool;
  if (x.dtype == DType::F16 || a.dtype == DType::F16) { // to or from f32, in hardware
    const std::string half = with_lanes("half", x.lanes), t = fresh();
    if (a.dtype == DType::F16) {
      line(t + " = bitcast " + typed(x.args[0]) + " to " + half);
      body_ += result(id) + "fpext " + half + " " + t + " to " + to + "\n";
    } else {
      line(t + " = fptrunc " + typed(x.args[0]) + " to " + half);
      body_ += result(id) + "bitcast " + half + " " + t + " to " + to + "\n";
    }
    return;
  }
  if (is_float(x.dtype) && is_float(a.dtype))
    return instruction(byte_size(x.dtype) > byte_size(a.dtype) ? "fpext" : "fptrunc");
  if (is_float(x.dtype)) return instruction(from_unsigned ? "uitofp" : "sitofp");
  if (is_float(a.dtype) && x.no_wrap) return instruction(is_unsigned(x.dtype) ? "fptoui" : "fptosi");
  if (is_float(a.dtype)) {
    const char* op = is_unsigned(x.dtype) ? "@llvm.fptoui.sat." : "@llvm.fptosi.sat.";
    body_ += result(id) + "call " + to + " " + op + suffix(x.dtype, x.lanes) + "." + suffix(a.dtype, a.lanes) + "(" +
             typed(x.args[0]) + ")\n";
    return;
  }
  const int from_bits = a.dtype == DType::Bool ? 1 : byte_size(a.dtype) * 8, to_bits = byte_size(x.dtype) * 8;
  instruction(to_bits == from_bits ? "bitcast" : to_bits < from_bits ? "trunc" : from_unsigned ? "zext" : "sext");
}

/// c + a . b for `lanes` lanes, which a register holds. Without an instruction of its own the even bytes of a and b, as
/// 16-bit numbers, are multiplied and added in pairs, and so are the odd ones: no such sum exceeds 32 bits.
std::string LlvmPrinter::dot4_part(int lanes, const std::string* args) {
  const std::string type = type_of(DType::I32, lanes), pairs = type_of(DType::I16, 2 * lanes),
                    bits = std::to_string(lanes * 32);
  const auto make = [this](const std::string& text) {
    const std::string t = fresh();
    line(t + " = " + text);
    return t;
  };
  if (has("avx512vnni") && (lanes == 16 || has("avx512vl")))
    return make("call " + type + " @llvm.x86.avx512.vpdpbusd." + bits + "(" + type + " " + args[2] + ", " + type + " " +
                args[0] + ", " + type + " " + args[1] + ")");
  const auto by = [](int n) { return "splat (i16 " + std::to_string(n) + ")"; };
  const std::string a = make("bitcast " + type + " " + args[0] + " to " + pairs);
  const std::string b = make("bitcast " + type + " " + args[1] + " to " + pairs);
  const std::string even_a = make("and " + pairs + " " + a + ", " + by(255));
  const std::string odd_a = make("lshr " + pairs + " " + a + ", " + by(8));
  const std::string raised = make("shl " + pairs + " " + b + ", " + by(8));
  const std::string even_b = make("ashr " + pairs + " " + raised + ", " + by(8));
  const std::string odd_b = make("ashr " + pairs + " " + b + ", " + by(8));
  const char* name = lanes == 16 ? "avx512.pmaddw.d.512" : lanes == 8 ? "avx2.pmadd.wd" : "sse2.pmadd.wd";
  const auto products = [&](const std::string& x, const std::string& y) {
    return make("call " + type + " @llvm.x86." + name + "(" + pairs + " " + x + ", " + pairs + " " + y + ")");
  };
  const std::string sum = make("add " + type + " " + args[2] + ", " + products(even_a, even_b));
  return make("add " + type + " " + sum + ", " + products(odd_a, odd_b));
}

/// Register by register: intrinsics come in the widths that the target has.
void LlvmPrinter::dot4(RowId id) {
  const RowInst& x = inst(id);
  int part = 4;
  if (x.lanes % 8 == 0 && has("avx2")) part = 8;
  if (x.lanes % 16 == 0 && has("avx512bw")) part = 16;
  const std::string whole = type_of(DType::I32, x.lanes);
  const auto shuffle = [&](const std::string& to, const std::string& a, const std::string& b, int from, int n) {
    std::string mask;
    for (int i = 0; i < n; ++i) mask += (i > 0 ? ", i32 " : "i32 ") + std::to_string(from + i);
    line(to + " = shufflevector " + a + ", " + b + ", " + with_lanes("i32", n) + " <" + mask + ">");
  };
  std::string so_far;
  for (int first = 0; first < x.lanes; first += part) {
    std::string args[3];
    for (size_t i = 0; i < 3; ++i) {
      args[i] = part == x.lanes ? operand(x.args[i]) : fresh();
      if (part < x.lanes) shuffle(args[i], typed(x.args[i]), whole + " poison", first, part);
    }
    const std::string sum = dot4_part(part, args);
    if (first == 0) {
      so_far = sum;
      continue;
    }
    const std::string so_far_type = type_of(DType::I32, first), wide = fresh(), joined = fresh();
    std::string mask;
    for (int i = 0; i < first; ++i) mask += i < part ? (i > 0 ? ", i32 " : "i32 ") + std::to_string(i) : ", i32 poison";
    line(wide + " = shufflevector " + type_of(DType::I32, part) + " " + sum + ", " + type_of(DType::I32, part) +
         " poison, " + with_lanes("i32", first) + " <" + mask + ">");
    shuffle(joined, so_far_type + " " + so_far, so_far_type + " " + wide, 0, first + part);
    so_far = joined;
  }
  body_ += result(id) + "bitcast " + whole + " " + so_far + " to " + whole + "\n";
}

void LlvmPrinter::splat(RowId id) {
  const RowInst& x = inst(id);
  const std::string t = fresh(), vector = type_of(x.dtype, x.lanes);
  line(t + " = insertelement " + vector + " poison, " + typed(x.args[0]) + ", i64 0");
  body_ += result(id) + "shufflevector " + vector + " " + t + ", " + vector + " poison, " + with_lanes("i32", x.lanes) +
           " zeroinitializer\n";
}

void LlvmPrinter::build(RowId id) {
  const RowInst& x = inst(id);
  const std::string vector = type_of(x.dtype, x.lanes);
  std::string so_far = "poison";
  for (int lane = 0; lane < x.lanes; ++lane) {
    const bool last = lane + 1 == x.lanes;
    const std::string t = last ? "%v" + std::to_string(id) : fresh();
    const std::string element = typed(x.args[static_cast<size_t>(lane)]) + ", i64 " + std::to_string(lane);
    line(t + " = insertelement " + vector + " " + so_far + ", " + element);
    so_far = t;
  }
}

// ---- memory ---------------------------------------------------------------------------------------------------------

std::string LlvmPrinter::address(int64_t buffer, RowId index, bool inbounds) {
  const std::string t = fresh();
  line(t + " = getelementptr " + (inbounds ? "inbounds " : "") +
       memory_type(code_.buffers[static_cast<size_t>(buffer)].dtype, 1) + ", ptr %b" + std::to_string(buffer) +
       ", i64 " + operand(index));
  return t;
}

// Metadata !2k+2 is buffer k's scope, !2k+3 the scopes of all other buffers; see metadata().
std::string LlvmPrinter::scopes(int64_t buffer) const {
  if (code_.buffers.size() < 2) return "";
  return ", !alias.scope !" + std::to_string(2 * buffer + 2) + ", !noalias !" + std::to_string(2 * buffer + 3);
}

void LlvmPrinter::load(RowId id) {
  const RowInst& x = inst(id);
  const RowId gate = x.args[1], other = x.args[2];
  const std::string memory = memory_type(x.dtype, x.lanes),
                    align = std::to_string(byte_size(code_.buffers[static_cast<size_t>(x.imm)].dtype));
  const bool is_bool = x.dtype == DType::Bool;
  const bool masked = gate >= 0 && inst(gate).lanes > 1;
  const bool selects = other >= 0 && !masked && !(inst(other).kind == RowKind::Const && inst(other).bits == 0);
  std::string from = address(x.imm, x.args[0], gate < 0);
  if (gate >= 0 && !masked) {
    uses_zeros_ = true;
    const std::string t = fresh();
    line(t + " = select i1 " + operand(gate) + ", ptr " + from + ", ptr @zeros");
    from = t;
  }
  const std::string final_name = "%v" + std::to_string(id);
  const std::string raw = is_bool || selects ? fresh() : final_name;
  if (masked) {
    std::string alternative = other >= 0 ? operand(other) : "zeroinitializer";
    if (is_bool && other >= 0 && inst(other).kind != RowKind::Const) {
      const std::string t = fresh();
      line(t + " = zext " + typed(other) + " to " + memory);
      alternative = t;
    } else if (is_bool && other >= 0 && inst(other).bits != 0) {
      alternative = "splat (i8 1)";
    }
    line(raw + " = call " + memory + " @llvm.masked.load." + suffix(x.dtype, x.lanes) + ".p0(ptr " + from + ", i32 " +
         align + ", " + typed(gate) + ", " + memory + " " + alternative + ")" + scopes(x.imm));
  } else {
    line(raw + " = load " + memory + ", ptr " + from + ", align " + align + (gate < 0 ? scopes(x.imm) : ""));
  }
  std::string value = raw;
  if (is_bool) {
    value = selects ? fresh() : final_name;
    line(value + " = icmp ne " + memory + " " + raw + ", zeroinitializer");
  }
  if (selects)
    line(final_name + " = select " + typed(gate) + ", " + type_of(x.dtype, x.lanes) + " " + value + ", " +
         typed(other));
}

// Into the second level of caches (locality 2 of 3).
void LlvmPrinter::prefetch(RowId id) {
  const RowInst& x = inst(id);
  const std::string from = address(x.imm, x.args[0], true), at = fresh();
  line(at + " = getelementptr " + memory_type(code_.buffers[static_cast<size_t>(x.imm)].dtype, 1) + ", ptr " + from +
       ", i64 " + std::to_string(x.bits));
  line("call void @llvm.prefetch.p0(ptr " + at + ", i32 0, i32 2, i32 1)");
}

void LlvmPrinter::store(RowId id) {
  const RowInst& x = inst(id);
  const RowInst& value = inst(x.args[1]);
  const RowId gate = x.args[2];
  const std::string memory = memory_type(value.dtype, value.lanes), align = std::to_string(byte_size(value.dtype));
  const bool masked = gate >= 0 && inst(gate).lanes > 1, branches = gate >= 0 && !masked;
  const std::string n = std::to_string(id);
  if (branches) {
    line("br i1 " + operand(gate) + ", label %then" + n + ", label %fi" + n);
    label("then" + n);
  }
  std::string data = operand(x.args[1]);
  if (value.dtype == DType::Bool) {
    const std::string t = fresh();
    line(t + " = zext " + typed(x.args[1]) + " to " + memory);
    data = t;
  }
  const std::string to = address(x.imm, x.args[0], !masked);
  const int whole = static_cast<int>(std::bit_ceil(static_cast<unsigned>(value.lanes)));
  if (!masked && whole != value.lanes && has("avx512vl") && has("avx512bw")) { // else it is stored in pieces
    const std::string wide = memory_type(value.dtype, whole), t = fresh();
    std::string lanes, mask;
    for (int i = 0; i < whole; ++i) {
      lanes += (i > 0 ? ", i32 " : "i32 ") + (i < value.lanes ? std::to_string(i) : std::string("poison"));
      mask += std::string(i > 0 ? ", i1 " : "i1 ") + (i < value.lanes ? "true" : "false");
    }
    line(t + " = shufflevector " + memory + " " + data + ", " + memory + " poison, " + with_lanes("i32", whole) + " <" +
         lanes + ">");
    line("call void @llvm.masked.store." + suffix(value.dtype, whole) + ".p0(" + wide + " " + t + ", ptr " + to +
         ", i32 " + align + ", " + with_lanes("i1", whole) + " <" + mask + ">)" + scopes(x.imm));
  } else if (masked)
    line("call void @llvm.masked.store." + suffix(value.dtype, value.lanes) + ".p0(" + memory + " " + data + ", ptr " +
         to + ", i32 " + align + ", " + typed(gate) + ")" + scopes(x.imm));
  else
    line("store " + memory + " " + data + ", ptr " + to + ", align " + align + scopes(x.imm));
  if (branches) {
    line("br label %fi" + n);
    label("fi" + n);
  }
}

// ---- loops and the rest ---------------------------------------------------------------------------------------------

// Bottom-tested, so that what a body computes may move above it; a loop that might not run has a test in front.
void LlvmPrinter::open_loop(RowId id) {
  const RowInst& x = inst(id);
  const bool chunk = x.args.empty();
  const std::string begin = chunk ? "%chunk_begin" : "0", end = chunk ? "%chunk_end" : operand(x.args[0]);
  const std::string body = loop_label("loop", id), done = loop_label("done", id), before = block_;
  if (x.positive) {
    line("br label %" + body);
  } else {
    const std::string t = fresh();
    line(t + " = icmp slt i64 " + begin + ", " + end);
    line("br i1 " + t + ", label %" + body + ", label %" + done);
  }
  label(body);
  line("%v" + std::to_string(id) + " = phi i64 [ " + begin + ", %" + before + " ], [ %next" + std::to_string(id) +
       ", %latch" + std::to_string(id) + " ]");
  loops_.push_back(id);
}

void LlvmPrinter::close_loop() {
  const RowId id = loops_.back();
  loops_.pop_back();
  const RowInst& x = inst(id);
  const std::string n = std::to_string(id), end = x.args.empty() ? "%chunk_end" : operand(x.args[0]), t = fresh();
  line("br label %latch" + n);
  label("latch" + n);
  line("%next" + n + " = add nsw i64 %v" + n + ", 1");
  line(t + " = icmp slt i64 %next" + n + ", " + end);
  line("br i1 " + t + ", label %loop" + n + ", label %done" + n + ", !llvm.loop !0");
  label("done" + n);
}

void LlvmPrinter::instruction(RowId id) {
  const RowInst& x = inst(id);
  const std::string type = type_of(x.dtype, x.lanes);
  switch (x.kind) {
  case RowKind::Const:
  case RowKind::Iota:
  case RowKind::Var: return; // operands and entry()
  case RowKind::Alu: return alu(id);
  case RowKind::Splat: return splat(id);
  case RowKind::Build: return build(id);
  case RowKind::Extract:
    body_ += result(id) + "extractelement " + typed(x.args[0]) + ", i64 " + std::to_string(x.imm) + "\n";
    return;
  case RowKind::Slice: {
    body_ += result(id) + "shufflevector " + typed(x.args[0]) + ", " + type_of(x.dtype, inst(x.args[0]).lanes) +
             " poison, " + with_lanes("i32", x.lanes) + " <";
    for (int i = 0; i < x.lanes; ++i) body_ += (i > 0 ? ", i32 " : "i32 ") + std::to_string(x.imm + i * x.step);
    body_ += ">\n";
    return;
  }
  case RowKind::Zip: {
    body_ += result(id) + "shufflevector " + typed(x.args[0]) + ", " + typed(x.args[1]) + ", " +
             with_lanes("i32", x.lanes) + " <";
    for (int64_t i = 0; i < x.lanes; ++i)
      body_ += (i > 0 ? ", i32 " : "i32 ") + std::to_string((x.imm * x.lanes + i) / 2 + i % 2 * x.lanes);
    body_ += ">\n";
    return;
  }
  case RowKind::Base:
    return line("%b" + std::to_string(x.imm) + " = getelementptr inbounds i8, ptr %scratch, " + typed(x.args[0]));
  case RowKind::Load: return load(id);
  case RowKind::Prefetch: return prefetch(id);
  case RowKind::Store: return store(id);
  case RowKind::RegGet: body_ += result(id) + "load " + type + ", ptr %r" + std::to_string(x.imm) + "\n"; return;
  case RowKind::RegSet: return line("store " + typed(x.args[0]) + ", ptr %r" + std::to_string(x.imm));
  case RowKind::Loop: return open_loop(id);
  case RowKind::EndLoop: return close_loop();
  }
}

std::string LlvmPrinter::entry() const {
  std::string text = "entry:\n";
  const auto field = [&](const char* to, int64_t offset) {
    text += std::string("  %") + to + ".at = getelementptr inbounds i8, ptr %args, i64 " + std::to_string(offset) +
            "\n  %" + to + " = load ptr, ptr %" + to + ".at, align 8, !invariant.load !1\n";
  };
  bool params = false, scratch = false, vars = false;
  for (const RowBuffer& b : code_.buffers) (b.scratch ? scratch : params) = true;
  for (const RowInst& x : code_.insts) vars |= x.kind == RowKind::Var;
  if (params) field("bufs", 0);
  if (vars) field("vars", 8);
  if (scratch) field("scratch", 16);
  const auto element = [&](const std::string& to, const char* type, const char* array, int64_t i) {
    text += "  " + to + ".at = getelementptr inbounds " + type + ", ptr " + array + ", i64 " + std::to_string(i) +
            "\n  " + to + " = load " + type + ", ptr " + to + ".at, align 8, !invariant.load !1\n";
  };
  for (size_t k = 0; k < code_.buffers.size(); ++k) {
    const RowBuffer& b = code_.buffers[k];
    const std::string to = "%b" + std::to_string(k);
    if (b.offset < 0) continue; // where Base stands
    if (!b.scratch)
      element(to, "ptr", "%bufs", b.slot);
    else
      text += "  " + to + " = getelementptr inbounds i8, ptr %scratch, i64 " + std::to_string(b.offset) + "\n";
  }
  for (size_t id = 0; id < code_.insts.size(); ++id)
    if (code_.insts[id].kind == RowKind::Var) element("%v" + std::to_string(id), "i64", "%vars", code_.insts[id].imm);
  for (size_t k = 0; k < code_.registers.size(); ++k)
    text +=
        "  %r" + std::to_string(k) + " = alloca " + type_of(code_.registers[k].dtype, code_.registers[k].lanes) + "\n";
  return text;
}

// !0 loop, !1 empty, !2k+2 and !2k+3 as in scopes(); then what they refer to.
std::string LlvmPrinter::metadata() const {
  const size_t n = code_.buffers.size();
  const size_t loop = 2 * n + 2, domain = loop + 2, first = domain + 1;
  const auto node = [](size_t i) { return "!" + std::to_string(i); };
  std::string text = "\n!0 = distinct !{!0, " + node(loop) + ", " + node(loop + 1) + "}\n!1 = !{}\n";
  for (size_t k = 0; k < n && n > 1; ++k) {
    std::string others;
    for (size_t j = 0; j < n; ++j)
      if (j != k) others += (others.empty() ? "" : ", ") + node(first + j);
    text += node(2 * k + 2) + " = !{" + node(first + k) + "}\n" + node(2 * k + 3) + " = !{" + others + "}\n";
  }
  text += node(loop) + " = !{!\"llvm.loop.unroll.disable\"}\n";
  text += node(loop + 1) + " = !{!\"llvm.loop.vectorize.enable\", i1 false}\n";
  if (n < 2) return text;
  text += node(domain) + " = distinct !{" + node(domain) + "}\n";
  for (size_t k = 0; k < n; ++k)
    text += node(first + k) + " = distinct !{" + node(first + k) + ", " + node(domain) + "}\n";
  return text;
}

std::string LlvmPrinter::print() {
  for (size_t id = 0; id < code_.insts.size(); ++id) instruction(static_cast<RowId>(id));
  std::string text = "source_filename = \"" + code_.name + "\"\ntarget triple = \"" + style_.triple + "\"\n\n";
  if (uses_zeros_) text += "@zeros = private unnamed_addr constant [8192 x i8] zeroinitializer, align 64\n\n";
  text += "define void @" + code_.name +
          "(ptr noalias nocapture readonly %args, i64 %chunk_begin, i64 %chunk_end) #0 {\n" + entry() + body_ +
          "  ret void\n}\n\n";
  const std::string bits = std::to_string(style_.vector_bits);
  text += "attributes #0 = { nounwind \"no-builtins\" \"target-cpu\"=\"" + style_.cpu + "\" \"tune-cpu\"=\"" +
          style_.tune + "\" \"target-features\"=\"" + style_.features + "\" \"prefer-vector-width\"=\"" + bits +
          "\" \"min-legal-vector-width\"=\"" + bits + "\" }\n";
  return text + metadata();
}

} // namespace

std::string print_llvm(const RowCode& code, const LlvmStyle& style) { return LlvmPrinter(code, style).print(); }

} // namespace tgc
