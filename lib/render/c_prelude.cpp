// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The vector vocabulary of C kernels. C has no vectors: g++ and clang add arithmetic on `vector_size` types (but no
// select, no lanes that are no power of two, and undefined signed overflow), other compilers have nothing. So every
// operation is an inline function with a name; inside, the GNU form where there is one and a loop over lanes elsewhere.
// Lane loops run over plain arrays, which compilers vectorise and then keep in registers. A vector of 6 lanes is stored
// in 8, and its loops run over 8 too, because only loops of whole registers become one instruction; what touches memory
// or can trap checks the lane. Signed arithmetic is done on unsigned types, where wrapping is defined. Source: GCC
// manual, "Using Vector Instructions through Built-in Functions".
#include "render/c_prelude.h"

#include <algorithm>
#include <bit>

#include "uop/diag.h"

namespace tgc {
namespace {

// clang-format off
/// An op on scalars, and on GNU vectors `a`, `b` (null: loop over lanes). %T result type, %W unsigned type of at least
/// int's width, %U unsigned vector type, %f suffix of a float built-in, %a %b %c operands.
struct Form { Ops op; bool floats; const char* scalar; const char* vector; };
constexpr Form kForms[] = {
    {Ops::Neg,   true,  "-%a",                          "-a"},
    {Ops::Neg,   false, "(%T)(0 - (%W)%a)",             "(%T)(-(%U)a)"},
    {Ops::Abs,   true,  "__builtin_fabs%f(%a)",         "(%T)((%U)a & (~(%U){0} >> 1))"},
    {Ops::Not,   false, "(%T)~%a",                      "~a"},
    {Ops::Sqrt,  true,  "__builtin_sqrt%f(%a)",         nullptr},
    {Ops::Floor, true,  "__builtin_floor%f(%a)",        nullptr},
    {Ops::Ceil,  true,  "__builtin_ceil%f(%a)",         nullptr},
    {Ops::Trunc, true,  "__builtin_trunc%f(%a)",        nullptr},
    {Ops::Round, true,  "__builtin_roundeven%f(%a)",    nullptr},
    {Ops::Add,   true,  "%a + %b",                      "a + b"},
    {Ops::Add,   false, "(%T)((%W)%a + (%W)%b)",        "(%T)((%U)a + (%U)b)"},
    {Ops::Sub,   true,  "%a - %b",                      "a - b"},
    {Ops::Sub,   false, "(%T)((%W)%a - (%W)%b)",        "(%T)((%U)a - (%U)b)"},
    {Ops::Mul,   true,  "%a * %b",                      "a * b"},
    {Ops::Mul,   false, "(%T)((%W)%a * (%W)%b)",        "(%T)((%U)a * (%U)b)"},
    {Ops::Div,   true,  "%a / %b",                      "a / b"},
    {Ops::Div,   false, "(%T)(%a / %b)",                nullptr},
    {Ops::Mod,   false, "(%T)(%a %% %b)",               nullptr},
    {Ops::And,   false, "(%T)(%a & %b)",                "a & b"},
    {Ops::Or,    false, "(%T)(%a | %b)",                "a | b"},
    {Ops::Xor,   false, "(%T)(%a ^ %b)",                "a ^ b"},
    {Ops::Shl,   false, "(%T)((%W)%a << %b)",           "(%T)((%U)a << (%U)b)"},
    {Ops::Shr,   false, "(%T)(%a >> %b)",               "a >> b"},
    {Ops::Lt,    true,  "%a < %b",                      "(%T)(a < b)"},
    {Ops::Lt,    false, "%a < %b",                      "(%T)(a < b)"},
    {Ops::Le,    true,  "%a <= %b",                     "(%T)(a <= b)"},
    {Ops::Le,    false, "%a <= %b",                     "(%T)(a <= b)"},
    {Ops::Eq,    true,  "%a == %b",                     "(%T)(a == b)"},
    {Ops::Eq,    false, "%a == %b",                     "(%T)(a == b)"},
    {Ops::Ne,    true,  "%a != %b",                     "(%T)(a != b)"},
    {Ops::Ne,    false, "%a != %b",                     "(%T)(a != b)"},
    {Ops::Fma,   true,  "__builtin_fma%f(%a, %b, %c)",  nullptr},
    {Ops::Dot4,  false, "(%T)((%W)%c + (%W)((%a & 255) * (int8_t)%b + (%a >> 8 & 255) * (int8_t)(%b >> 8) + "
                        "(%a >> 16 & 255) * (int8_t)(%b >> 16) + (%a >> 24 & 255) * (int8_t)(%b >> 24)))", nullptr},
};
constexpr const char* kScalarTypes[] = {
    "void", "uint8_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t",
    "uint16_t", "uint16_t", "float", "double", "int64_t",
};
// clang-format on
static_assert(sizeof(kScalarTypes) / sizeof(kScalarTypes[0]) == kNumDTypes);

const Form& form_of(Ops op, DType operand) {
  for (const Form& form : kForms)
    if (form.op == op && form.floats == is_float(operand)) return form;
  internal_error(__FILE__, __LINE__, std::string("C has no form of ") + name(op) + " " + name(operand));
}

bool is_compare(Ops op) { return op == Ops::Lt || op == Ops::Le || op == Ops::Eq || op == Ops::Ne; }
std::string token(DType t) { return t == DType::Index ? "i64" : t == DType::Bool ? "bool" : name(t); }
DType signed_of(int bytes) {
  return bytes == 1 ? DType::I8 : bytes == 2 ? DType::I16 : bytes == 4 ? DType::I32 : DType::I64;
}
DType unsigned_of(int bytes) {
  return bytes == 1 ? DType::U8 : bytes == 2 ? DType::U16 : bytes == 4 ? DType::U32 : DType::U64;
}
int stored_lanes(int lanes) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(lanes))); }
int element_bytes(const CType& t) { return t.is_mask() ? t.mask_bytes : byte_size(t.dtype); }
CType unsigned_like(const CType& t) { return {unsigned_of(element_bytes(t)), t.lanes, 0}; }
std::string number(int64_t n) { return std::to_string(n); }
std::string for_lanes(int n) { return "  for (int i = 0; i < " + number(n) + "; ++i) "; }
/// The instruction behind a vector fma where the CPU has it, for compilers that offer it by name: they would find it in
/// the loop too, but the matmul of a kernel is a hundred such loops.
std::string native_fma(const CType& t) {
  struct Native {
    int bytes;
    const char *cpu, *name, *rest;
  };
  constexpr Native kNative[] = {
      {64, "__AVX512F__", "512_mask", ", -1, 4"}, {32, "__FMA__", "256", ""}, {16, "__FMA__", "", ""}};
  for (const Native& form : kNative) {
    if (form.bytes != stored_lanes(t.lanes) * byte_size(t.dtype)) continue;
    const std::string name = std::string("__builtin_ia32_vfmadd") + (t.dtype == DType::F64 ? "pd" : "ps") + form.name;
    std::string text = std::string("#if defined ") + form.cpu + " && HAS(" + name + ")\n";
    text += "  return " + name + "(a, b, c" + form.rest + ");\n#endif\n";
    return text;
  }
  return "";
}

std::string native_dot4(const CType& t) {
  const std::string lanes = number(stored_lanes(t.lanes)), bits = number(stored_lanes(t.lanes) * 32);
  const std::string cpu = bits == "512" ? "defined __AVX512VNNI__" : "defined __AVX512VNNI__ && defined __AVX512VL__";
  const std::string gcc = "__builtin_ia32_vpdpbusd_v" + lanes + "si", clang = "__builtin_ia32_vpdpbusd" + bits;
  return "#if " + cpu + " && HAS(" + gcc + ")\n  return " + gcc + "(c, a, b);\n#elif " + cpu + " && HAS(" + clang +
         ")\n  return " + clang + "(c, a, b);\n#endif\n";
}

std::string fill(const char* format, const std::string* args, const std::string& result, const std::string& wide,
                 const std::string& unsigneds, bool is_double) {
  std::string text;
  for (const char* p = format; *p; ++p) {
    if (*p != '%') {
      text += *p;
      continue;
    }
    switch (*++p) {
    case '%': text += '%'; break;
    case 'T': text += result; break;
    case 'W': text += wide; break;
    case 'U': text += unsigneds; break;
    case 'f': text += is_double ? "" : "f"; break;
    default: text += args[*p - 'a'];
    }
  }
  return text;
}

} // namespace

std::string CPrelude::scalar(DType t) const { return kScalarTypes[static_cast<int>(t)]; }

/// The C type of one lane.
std::string CPrelude::lane_type(const CType& t) const {
  return scalar(t.is_mask() ? signed_of(t.mask_bytes) : t.dtype);
}

CType CPrelude::mask_for(const CType& t) const { return {DType::Bool, t.lanes, element_bytes(t)}; }

/// Lanes of the parts of a vector: all of them, or as many as divide it and fit a register.
int CPrelude::part_lanes(int lanes) const {
  const int even = lanes & -lanes; // the greatest power of two that divides it
  return lanes <= register_lanes_ || even == 1 ? lanes : std::min(even, register_lanes_);
}

std::string CPrelude::type(const CType& t) {
  if (t.lanes == 1) return scalar(t.dtype);
  const std::string element = t.is_mask() ? "m" + number(t.mask_bytes * 8) : token(t.dtype);
  const std::string name = element + "x" + number(t.lanes);
  if (!define(name)) return name;
  if (is_wide(t)) {
    const std::string of = type(part(t));
    text_ += "typedef struct { " + of + " part[" + number(t.lanes / part(t).lanes) + "]; } " + name + ";\n";
  } else {
    text_ += "VECTOR(" + name + ", " + lane_type(t) + ", " + number(stored_lanes(t.lanes)) + ");\n";
  }
  return name;
}

std::string CPrelude::lane(const CType& t, const std::string& value, int64_t i) const {
  const int n = part_lanes(t.lanes);
  return is_wide(t) ? "LANE(" + value + ".part[" + number(i / n) + "], " + number(i % n) + ")"
                    : "LANE(" + value + ", " + number(i) + ")";
}

std::string CPrelude::make(const CType& t, const std::vector<std::string>& lanes) {
  const std::string name = type(t);
  const CType piece = part(t);
  std::string parts;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (i % static_cast<size_t>(piece.lanes) == 0) parts += (i > 0 ? "), MAKE(" : "MAKE(") + type(piece);
    parts += ", " + lanes[i];
  }
  return is_wide(t) ? "(" + name + "){{" + parts + ")}}" : parts + ")";
}

/// A function on wide vectors that does `call` for each part; in it, # stands for the part's number and @ for its first
/// lane. Returns `result`: "r" is a new vector, another name a parameter, "" nothing.
void CPrelude::by_parts(const std::string& signature, const CType& t, const std::string& call, const char* result) {
  const std::string returned = result;
  text_ += "INLINE " + signature + " {\n" + (returned == "r" ? "  " + type(t) + " r;\n" : "");
  for (int k = 0; k < t.lanes / part(t).lanes; ++k) {
    text_ += "  ";
    for (const char c : call) text_ += c == '#' ? number(k) : c == '@' ? number(k * part(t).lanes) : std::string(1, c);
    text_ += ";\n";
  }
  text_ += (returned.empty() ? "" : "  return " + returned + ";\n") + "}\n";
}

std::string CPrelude::splat(const CType& t) {
  const std::string T = type(t), name = T + "_splat";
  if (!define(name)) return name;
  if (is_wide(t)) {
    by_parts(T + " " + name + "(" + lane_type(t) + " x)", t, "r.part[#] = " + splat(part(t)) + "(x)", "r");
    return name;
  }
  std::string all; // padding too: one value in every lane is one instruction
  for (int i = 0; i < stored_lanes(t.lanes); ++i) all += ", x";
  text_ += "INLINE " + T + " " + name + "(" + lane_type(t) + " x) { return MAKE(" + T + all + "); }\n";
  return name;
}

/// The mask of a vector's own lanes: it has padding, whose lanes are not.
std::string CPrelude::own_lanes(const CType& mask) {
  return make(mask, std::vector<std::string>(static_cast<size_t>(mask.lanes), "-1"));
}

std::string CPrelude::load(const CType& t) {
  const std::string T = type(t), name = T + "_load";
  if (!define(name)) return name;
  const std::string signature = T + " " + name + "(const " + scalar(t.dtype) + "* p)";
  if (is_wide(t)) {
    by_parts(signature, t, "r.part[#] = " + load(part(t)) + "(p + @)", "r");
    return name;
  }
  const std::string zero = "MAKE(" + T + ", 0)";
  if (stored_lanes(t.lanes) > t.lanes) {
    const std::string masked = load_masked(t) + "(p, 0, " + own_lanes(mask_for(t)) + ", " + zero + ")";
    text_ += "INLINE " + signature + " { return " + masked + "; }\n";
    return name;
  }
  text_ += "INLINE " + signature + " {\n  " + T + " v = " + zero + ";\n";
  if (t.is_mask())
    text_ += for_lanes(t.lanes) + "LANE(v, i) = (" + lane_type(t) + ")-(p[i] != 0);\n";
  else
    text_ += "  COPY(&v, p, " + number(t.lanes) + " * sizeof *p);\n";
  text_ += "  return v;\n}\n";
  return name;
}

std::string CPrelude::load_bytes(const CType& t) {
  const std::string T = type(t), name = T + "_load_bytes";
  if (!define(name)) return name;
  const std::string signature = T + " " + name + "(const void* p)";
  if (is_wide(t)) {
    const std::string step = number(byte_size(t.dtype));
    by_parts(signature, t, "r.part[#] = " + load_bytes(part(t)) + "((const unsigned char*)p + @ * " + step + ")", "r");
    return name;
  }
  const std::string bytes = number(t.lanes * byte_size(t.dtype)), zero = t.lanes > 1 ? "MAKE(" + T + ", 0)" : "0";
  text_ += "INLINE " + signature + " {\n  " + T + " v = " + zero + ";\n  COPY(&v, p, " + bytes + ");\n  return v;\n}\n";
  return name;
}

std::string CPrelude::store(const CType& t) {
  const std::string T = type(t), name = T + "_store";
  if (!define(name)) return name;
  const std::string signature = "void " + name + "(" + scalar(t.dtype) + "* p, " + T + " v)";
  if (is_wide(t)) {
    by_parts(signature, t, store(part(t)) + "(p + @, v.part[#])", "");
    return name;
  }
  if (stored_lanes(t.lanes) > t.lanes) {
    const std::string masked = store_masked(t) + "(p, 0, v, " + own_lanes(mask_for(t)) + ")";
    text_ += "INLINE " + signature + " { " + masked + "; }\n";
    return name;
  }
  text_ += "INLINE " + signature + " {\n";
  if (t.is_mask())
    text_ += for_lanes(t.lanes) + "p[i] = LANE(v, i) != 0;\n}\n";
  else
    text_ += "  COPY(p, &v, " + number(t.lanes) + " * sizeof *p);\n}\n";
  return name;
}

/// The statement that clears the padding of mask `g`, or nothing when there is none. Padding is masked rather than
/// left out of the loop, because only a loop over all stored lanes becomes one masked instruction.
std::string CPrelude::clear_padding(const CType& mask) {
  if (stored_lanes(mask.lanes) == mask.lanes) return "";
  return "  g = " + vector_op(Ops::And, mask, mask) + "(g, " + own_lanes(mask) + ");\n";
}

/// The statement that hides mask `g` from the compiler (OPAQUE in c_style.cpp), where it is one register.
std::string CPrelude::opaque(const CType& mask) {
  return stored_lanes(mask.lanes) * mask.mask_bytes <= 64 ? "  OPAQUE(g);\n" : "";
}

std::string CPrelude::load_masked(const CType& t) {
  const CType mask = mask_for(t);
  const std::string T = type(t), M = type(mask), name = T + "_load_masked", n = number(stored_lanes(t.lanes));
  if (!define(name)) return name;
  const std::string signature =
      T + " " + name + "(const " + scalar(t.dtype) + "* p, int64_t at, " + M + " g, " + T + " v)";
  if (is_wide(t)) {
    by_parts(signature, t, "v.part[#] = " + load_masked(part(t)) + "(p, at + @, g.part[#], v.part[#])", "v");
    return name;
  }
  const std::string value = t.is_mask() ? "-(p[at + i] != 0)" : "p[at + i]";
  const std::string clear = clear_padding(mask) + opaque(mask);
  text_ += "INLINE " + signature + " {\n" + clear + "  " + lane_type(mask) + " m[" + n + "];\n  " + lane_type(t) +
           " r[" + n + "];\n  COPY(m, &g, sizeof m);\n  COPY(r, &v, sizeof r);\n" + for_lanes(stored_lanes(t.lanes)) +
           "r[i] = m[i] ? (" + lane_type(t) + ")" + value + " : r[i];\n  COPY(&v, r, sizeof r);\n  return v;\n}\n";
  return name;
}

std::string CPrelude::store_masked(const CType& t) {
  const CType mask = mask_for(t);
  const std::string T = type(t), M = type(mask), name = T + "_store_masked", n = number(stored_lanes(t.lanes));
  if (!define(name)) return name;
  const std::string signature = "void " + name + "(" + scalar(t.dtype) + "* p, int64_t at, " + T + " v, " + M + " g)";
  if (is_wide(t)) {
    by_parts(signature, t, store_masked(part(t)) + "(p, at + @, v.part[#], g.part[#])", "");
    return name;
  }
  const std::string clear = clear_padding(mask) + opaque(mask);
  text_ += "INLINE " + signature + " {\n" + clear + "  " + lane_type(mask) + " m[" + n + "];\n  " + lane_type(t) +
           " x[" + n + "];\n  COPY(m, &g, sizeof m);\n  COPY(x, &v, sizeof x);\n" + for_lanes(stored_lanes(t.lanes)) +
           "if (m[i]) p[at + i] = " + (t.is_mask() ? "x[i] != 0" : "x[i]") + ";\n}\n";
  return name;
}

std::string CPrelude::slice(const CType& from, const CType& to, Lanes lanes) {
  const std::string F = type(from), T = type(to), by = lanes.step > 1 ? "_by_" + number(lanes.step) : "",
                    name = T + "_of_" + F + "_at_" + number(lanes.first) + by;
  if (!define(name)) return name;
  std::vector<std::string> chosen;
  for (int i = 0; i < to.lanes; ++i) chosen.push_back(lane(from, "v", lanes.first + i * lanes.step));
  std::string value = make(to, chosen);
  if (is_wide(from) && part(from).lanes == to.lanes && lanes.step == 1 && lanes.first % to.lanes == 0)
    value = "v.part[" + number(lanes.first / to.lanes) + "]";
  text_ += "INLINE " + T + " " + name + "(" + F + " v) { return " + value + "; }\n";
  return name;
}

std::string CPrelude::zip(const CType& t, int64_t half) {
  const std::string T = type(t), name = T + (half == 0 ? "_zip_first" : "_zip_second");
  if (!define(name)) return name;
  std::vector<std::string> lanes;
  std::string numbers;
  for (int64_t i = 0; i < t.lanes; ++i) {
    const int64_t at = (half * t.lanes + i) / 2;
    lanes.push_back(lane(t, i % 2 == 0 ? "a" : "b", at));
    numbers += ", " + number(at + i % 2 * t.lanes);
  }
  const std::string plain = "  return " + make(t, lanes) + ";\n";
  text_ += "INLINE " + T + " " + name + "(" + T + " a, " + T + " b) {\n";
  if (is_wide(t) || stored_lanes(t.lanes) > t.lanes)
    text_ += plain + "}\n";
  else
    text_ += "#if HAS(__builtin_shufflevector)\n  return __builtin_shufflevector(a, b" + numbers + ");\n#else\n" +
             plain + "#endif\n}\n";
  return name;
}

/// A conversion that C does itself on each lane.
std::string CPrelude::convert(const CType& to, const CType& from) {
  const std::string F = type(from), T = type(to), name = T + "_from_" + F;
  if (!define(name)) return name;
  if (is_wide(to)) {
    by_parts(T + " " + name + "(" + F + " a)", to, "r.part[#] = " + convert(part(to), part(from)) + "(a.part[#])", "r");
    return name;
  }
  text_ += "INLINE " + T + " " + name + "(" + F + " a) {\n#ifdef __GNUC__\n  return __builtin_convertvector(a, " + T +
           ");\n#else\n  " + T + " v = MAKE(" + T + ", 0);\n" + for_lanes(to.lanes) + "LANE(v, i) = (" + lane_type(to) +
           ")LANE(a, i);\n  return v;\n#endif\n}\n";
  return name;
}

std::string CPrelude::resize_mask(const CType& from, int mask_bytes) {
  return convert({DType::Bool, from.lanes, mask_bytes}, from);
}

std::string CPrelude::select(const CType& t) {
  const std::string T = type(t), M = type(mask_for(t)), U = type(unsigned_like(t)), name = T + "_select";
  if (!define(name)) return name;
  if (is_wide(t)) {
    by_parts(T + " " + name + "(" + M + " c, " + T + " a, " + T + " b)", t,
             "a.part[#] = " + select(part(t)) + "(c.part[#], a.part[#], b.part[#])", "a");
    return name;
  }
  text_ += "INLINE " + T + " " + name + "(" + M + " c, " + T + " a, " + T + " b) {\n#ifdef __GNUC__\n  return (" + T +
           ")(((" + U + ")a & (" + U + ")c) | ((" + U + ")b & ~(" + U + ")c));\n#else\n" + for_lanes(t.lanes) +
           "if (!LANE(c, i)) LANE(a, i) = LANE(b, i);\n  return a;\n#endif\n}\n";
  return name;
}

/// Body of a function of `count` operands that computes `expression` of x[i], y[i], z[i] lane by lane.
std::string CPrelude::lane_loop(const CType& result, const CType& operand, int count, const std::string& expression) {
  const std::string T = type(result), n = number(stored_lanes(result.lanes));
  const std::string element = lane_type(operand);
  std::string body = "  " + element;
  for (int k = 0; k < count; ++k) body += std::string(k > 0 ? ", " : " ") + "xyz"[k] + "[" + n + "]";
  body += ";\n  " + lane_type(result) + " r[" + n + "];\n";
  for (int k = 0; k < count; ++k) body += std::string("  COPY(") + "xyz"[k] + ", &" + "abc"[k] + ", sizeof x);\n";
  body += for_lanes(stored_lanes(result.lanes)) + "r[i] = " + expression + ";\n";
  return body + "  " + T + " v = MAKE(" + T + ", 0);\n  COPY(&v, r, sizeof r);\n  return v;\n";
}

std::string CPrelude::vector_op(Ops op, const CType& result, const CType& operand) {
  const std::string T = type(result), V = type(operand), U = type(unsigned_like(operand));
  const DType element = operand.is_mask() ? signed_of(operand.mask_bytes) : operand.dtype;
  const DType to = result.is_mask() ? signed_of(result.mask_bytes) : result.dtype;
  if (is_wide(result)) {
    const std::string of_part = vector_op(op, part(result), part(operand));
    const std::string wide = T + "_" + of_part;
    if (!define(wide)) return wide;
    std::string signature, args;
    for (int k = 0; k < info(op).max_src; ++k) {
      signature += (k > 0 ? ", " : "") + V + " " + "abc"[k];
      args += std::string(k > 0 ? ", " : "") + "abc"[k] + ".part[#]";
    }
    by_parts(T + " " + wide + "(" + signature + ")", result, "r.part[#] = " + of_part + "(" + args + ")", "r");
    return wide;
  }
  if (op == Ops::Cast) {
    if (!(is_float(operand.dtype) && is_int(result.dtype)) && !operand.is_mask()) return convert(result, operand);
    const std::string name = T + "_cast_from_" + V; // not `convert`, whose values are known to fit
    const std::string one = operand.is_mask() ? "(" + lane_type(result) + ")(x[i] != 0)"
                                              : scalar_cast(result.dtype, operand.dtype) + "(x[i])";
    if (define(name))
      text_ += "INLINE " + T + " " + name + "(" + V + " a) {\n" + lane_loop(result, operand, 1, one) + "}\n";
    return name;
  }
  if (op == Ops::Bitcast) {
    const std::string name = T + "_as_" + V;
    if (define(name))
      text_ += "INLINE " + T + " " + name + "(" + V + " a) { union { " + V + " from; " + T +
               " to; } u = {a}; return u.to; }\n";
    return name;
  }
  const std::string name = V + "_" + tgc::name(op);
  const Form& form = form_of(op, element);
  const int count = info(op).max_src;
  const std::string lanes[3] = {"x[i]", "y[i]", "z[i]"};
  std::string expression;
  if (is_compare(op))
    expression = "(" + lane_type(result) + ")-(" + scalar_op(op, to, element, lanes) + ")";
  else
    expression = scalar_op(op, to, element, lanes);
  if (is_int(element) && (op == Ops::Div || op == Ops::Mod) &&
      stored_lanes(result.lanes) > result.lanes) // other lanes may divide by zero
    expression = "i < " + number(result.lanes) + " ? " + expression + " : 0";
  const std::string loop = lane_loop(result, operand, count, expression);
  if (!define(name)) return name;
  std::string signature = "INLINE " + T + " " + name + "(";
  for (int k = 0; k < count; ++k) signature += (k > 0 ? ", " : "") + V + " " + "abc"[k];
  text_ += signature + ") {\n";
  if (op == Ops::Fma) text_ += native_fma(operand);
  if (op == Ops::Dot4) text_ += native_dot4(operand);
  if (form.vector) {
    text_ += "#ifdef __GNUC__\n  return " + fill(form.vector, nullptr, T, "", U, false) + ";\n#else\n" + loop +
             "#endif\n}\n";
  } else {
    text_ += loop + "}\n";
  }
  return name;
}

std::string CPrelude::scalar_op(Ops op, DType result, DType operand, const std::string* args) const {
  if (op == Ops::Not && operand == DType::Bool) return "!" + args[0];
  const std::string wide = byte_size(operand) == 8 ? "uint64_t" : "uint32_t";
  return fill(form_of(op, operand).scalar, args, scalar(result), wide, "", operand == DType::F64);
}

std::string CPrelude::bits_to_float(DType t) { return scalar_bitcast(t, unsigned_of(byte_size(t))); }

std::string CPrelude::scalar_bitcast(DType to, DType from) {
  const std::string name = token(to) + "_as_" + token(from);
  if (define(name))
    text_ += "INLINE " + scalar(to) + " " + name + "(" + scalar(from) + " a) { union { " + scalar(from) + " from; " +
             scalar(to) + " to; } u = {a}; return u.to; }\n";
  return name;
}

std::string CPrelude::scalar_cast(DType to, DType from) {
  const std::string name = token(to) + "_from_" + token(from), T = scalar(to), F = scalar(from);
  if (!define(name)) return name;
  // Both limits are powers of two, hence exact: low is the least value, high one more than the greatest.
  const int bits = byte_size(to) * 8 - (is_signed(to) ? 1 : 0);
  const std::string suffix = from == DType::F32 ? "f" : "";
  const std::string high = "0x1p" + number(bits) + suffix, low = is_signed(to) ? "-" + high : "0.0" + suffix;
  const std::string max = bits == 64 ? "UINT64_MAX" : bits == 63 ? "INT64_MAX" : number((int64_t{1} << bits) - 1);
  const std::string min = is_signed(to) ? "(-" + max + " - 1)" : "0";
  text_ += "INLINE " + T + " " + name + "(" + F + " x) {\n  " + T + " v = (" + T + ")(x >= " + low + " && x < " + high +
           " ? x : 0);\n  v = x < " + low + " ? (" + T + ")" + min + " : v;\n  return x >= " + high + " ? (" + T + ")" +
           max + " : v;\n}\n";
  return name;
}

} // namespace tgc
