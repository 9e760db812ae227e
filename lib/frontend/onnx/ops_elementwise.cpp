// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic, comparison, logic, bit and variadic operators: one or two UOps each, with numpy broadcasting from opset 7
// on and the `broadcast`/`axis` attributes before. Meaning per ONNX Operators.md; NaN and overflow rules are those of
// ops.def.
#include <cmath>
#include <limits>

#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

void ignore_legacy(OpContext& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
}

template <Ops op> void float_unary(OpContext& c) {
  ignore_legacy(c);
  c.out(unary(op, c.in_float(0)));
}

template <Ops op> void number_unary(OpContext& c) {
  ignore_legacy(c);
  c.check(c.in(0)->dtype != DType::Bool, "input 0 is bool");
  c.out(unary(op, c.in(0)));
}

/// The second operand as opsets before 7 place it: equal shapes, or with broadcast=1 from dim `axis` (default: the
/// end).
Ref legacy_operand(OpContext& c, Ref a, Ref b) {
  if (c.opset() >= 7) return b;
  ignore_legacy(c);
  bool broadcast = c.attr("broadcast", 0) != 0;
  bool has_axis = c.has_attr("axis");
  int64_t axis = c.attr("axis", 0);
  if (!broadcast) {
    c.check(shapes_equal(a->shape, b->shape),
            "shapes " + shape_text(a->shape) + " and " + shape_text(b->shape) + " differ, and broadcast is not 1");
    return b;
  }
  if (!has_axis || b->rank() == 0) return b;
  axis = normalize_axis(axis, a->rank());
  c.check(axis + b->rank() <= a->rank(),
          "axis=" + std::to_string(axis) + " leaves no room for " + shape_text(b->shape));
  Dims dims = dims_of(b);
  dims.resize(static_cast<size_t>(a->rank() - axis), c.ctx().index(1));
  return reshape(b, dims);
}

struct Pair {
  Ref a, b;
};
Pair operands(OpContext& c) {
  Ref a = c.in(0), b = c.in(1);
  c.check(a->dtype == b->dtype, std::string("inputs have types ") + name(a->dtype) + " and " + name(b->dtype));
  return {a, legacy_operand(c, a, b)};
}

template <Ops op> void number_binary(OpContext& c) {
  auto [a, b] = operands(c);
  c.check(a->dtype != DType::Bool, "inputs are bool");
  c.out(elementwise(op, {a, b}));
}

template <Ops op> void any_binary(OpContext& c) {
  auto [a, b] = operands(c);
  c.out(elementwise(op, {a, b}));
}

template <Ops op> void swapped_binary(OpContext& c) {
  auto [a, b] = operands(c);
  c.check(a->dtype != DType::Bool, "inputs are bool");
  c.out(elementwise(op, {b, a}));
}

template <Ops op> void bool_binary(OpContext& c) {
  auto [a, b] = operands(c);
  c.check(a->dtype == DType::Bool, std::string("inputs are ") + name(a->dtype) + ", not bool");
  c.out(elementwise(op, {a, b}));
}

template <Ops op> void bit_binary(OpContext& c) {
  auto [a, b] = operands(c);
  c.check(is_int(a->dtype), std::string("inputs are ") + name(a->dtype) + ", not integers");
  c.out(elementwise(op, {a, b}));
}

void logical_not(OpContext& c) {
  c.check(c.in(0)->dtype == DType::Bool, "input 0 is not bool");
  c.out(unary(Ops::Not, c.in(0)));
}

void bitwise_not(OpContext& c) {
  c.check(is_int(c.in(0)->dtype), "input 0 is not an integer");
  c.out(unary(Ops::Not, c.in(0)));
}

void bit_shift(OpContext& c) {
  auto [a, b] = operands(c);
  std::string direction = c.attr_string("direction");
  c.check(direction == "LEFT" || direction == "RIGHT", "direction=\"" + direction + "\" is neither LEFT nor RIGHT");
  c.check(is_int(a->dtype), "inputs are not integers");
  c.out(elementwise(direction == "LEFT" ? Ops::Shl : Ops::Shr, {a, b}));
}

// fmod=1: C's fmod, sign of the dividend; else the sign of the divisor (integers only).
void mod(OpContext& c) {
  auto [a, b] = operands(c);
  bool fmod = c.attr("fmod", 0) != 0;
  c.check(fmod || !is_float(a->dtype), "float inputs need fmod=1");
  c.out(elementwise(fmod ? Ops::Mod : Ops::FloorMod, {a, b}));
}

// Exponents of another type are brought to the base's; integer bases compute in f64 and truncate.
void pow(OpContext& c) {
  Ref a = c.in(0), b = c.in(1);
  if (c.opset() < 7) b = legacy_operand(c, a, b);
  c.check(c.opset() >= 12 || a->dtype == b->dtype, "inputs have different types");
  if (b->dtype == a->dtype && is_float(a->dtype)) return c.out(elementwise(Ops::Pow, {a, b}));
  bool narrow = is_float(a->dtype) && byte_size(a->dtype) < 8 && (is_float(b->dtype) || byte_size(b->dtype) < 4);
  DType wide = narrow ? DType::F32 : DType::F64;
  c.out(to(elementwise(Ops::Pow, {to(a, wide), to(b, wide)}), a->dtype));
}

void prelu(OpContext& c) {
  ignore_legacy(c);
  Ref x = c.in(0), slope = c.in(1);
  if (c.opset() < 7 && slope->rank() == 1 && x->rank() > 1 && dim_int(dim(slope, 0)) != 1) slope = channel(x, slope);
  c.out(select(compare(Ops::Lt, x, 0), mul(x, broadcast_to(slope, x->shape)), x));
}

// ---- variadic -------------------------------------------------------------------------------------------------------

template <Ops op> Ref fold(OpContext& c) {
  Ref total = c.in(0);
  for (size_t i = 1; i < c.input_count(); ++i) {
    c.check(c.in(i)->dtype == total->dtype, "inputs have different types");
    c.check(c.opset() >= 8 || shapes_equal(c.in(i)->shape, total->shape), "inputs have different shapes");
    total = elementwise(op, {total, c.in(i)});
  }
  return total;
}

template <Ops op> void variadic(OpContext& c) {
  ignore_legacy(c);
  c.out(fold<op>(c));
}

void mean_of(OpContext& c) {
  ignore_legacy(c);
  c.out(div(fold<Ops::Add>(c), static_cast<double>(c.input_count())));
}

void where_op(OpContext& c) {
  c.check(c.in(0)->dtype == DType::Bool, "the condition is not bool");
  c.check(c.in(1)->dtype == c.in(2)->dtype, "both sides must have one type");
  c.out(select(c.in(0), c.in(1), c.in(2)));
}

// ---- clip, sign and predicates --------------------------------------------------------------------------------------

/// A bound that is NaN bounds nothing; an input that is NaN stays NaN.
void clip(OpContext& c) {
  ignore_legacy(c);
  Ref x = c.in(0);
  if (c.opset() < 11) {
    bool low = c.has_attr("min"), high = c.has_attr("max");
    double lo = c.attr_float("min", 0), hi = c.attr_float("max", 0);
    if (low) x = maximum(x, lo);
    if (high) x = minimum(x, hi);
    return c.out(x);
  }
  for (size_t i : {1, 2}) {
    if (!c.has(i)) continue;
    c.check(dim_int(numel(c.ctx(), c.in(i)->shape)) == 1, "bounds must be scalars");
    c.check(c.in(i)->dtype == x->dtype, "bounds have another type than the input");
    Ref bound = broadcast_to(reshape(c.in(i), {}), x->shape);
    std::optional<std::vector<double>> known = c.try_known_floats(i);
    if (known && std::isnan((*known)[0])) continue;
    if (known || !is_float(x->dtype))
      x = elementwise(i == 1 ? Ops::Max : Ops::Min, {x, bound});
    else
      x = select(elementwise(Ops::Lt, i == 1 ? std::vector<Ref>{x, bound} : std::vector<Ref>{bound, x}), bound, x);
  }
  c.out(x);
}

void sign(OpContext& c) {
  Ref x = c.in(0);
  Ref down = is_unsigned(x->dtype) ? x : select(compare(Ops::Lt, x, 0), full_like(x, -1), x);
  c.out(select(elementwise(Ops::Lt, {full_like(x, 0), x}), full_like(x, 1), down));
}

void is_inf(OpContext& c) {
  Ref x = c.in_float(0);
  bool positive = c.attr("detect_positive", 1) != 0, negative = c.attr("detect_negative", 1) != 0;
  double inf = std::numeric_limits<double>::infinity();
  Ref none = full(c.ctx(), x->shape, DType::Bool, 0);
  Ref up = positive ? compare(Ops::Eq, x, inf) : none, down = negative ? compare(Ops::Eq, x, -inf) : none;
  c.out(elementwise(Ops::Or, {up, down}));
}

void is_nan_op(OpContext& c) { c.out(is_nan(c.in_float(0))); }

void reciprocal(OpContext& c) {
  ignore_legacy(c);
  c.out(rdiv(1, c.in_float(0)));
}

// ---- casts ----------------------------------------------------------------------------------------------------------

Ref convert(OpContext& c, Ref x, DType to_type) {
  c.ignore("saturate"); // concerns 8-bit floats only
  c.ignore("round_mode");
  return to(x, to_type);
}

void cast_op(OpContext& c) {
  if (c.opset() < 6) {
    std::string to_name = c.attr_string("to");
    for (int32_t type = 1; type <= kBfloat16; ++type) {
      std::string upper = type_name(type);
      for (char& ch : upper) ch = static_cast<char>(ch >= 'a' && ch <= 'z' ? ch - 32 : ch);
      if (upper == to_name) return c.out(convert(c, c.in(0), dtype_of(type)));
    }
    c.fail("to=\"" + to_name + "\" is no element type");
  }
  c.out(convert(c, c.in(0), dtype_of(static_cast<int32_t>(c.attr("to")))));
}

void cast_like(OpContext& c) { c.out(convert(c, c.in(0), c.in(1)->dtype)); }

/// A bool is a byte of 0 or 1.
void bit_cast(OpContext& c) {
  Ref x = c.in(0);
  DType type = dtype_of(static_cast<int32_t>(c.attr("to")));
  c.check(byte_size(type) == byte_size(x->dtype), "the types have different sizes");
  if (x->dtype == DType::Bool) x = to(x, DType::U8);
  DType through = type == DType::Bool ? DType::U8 : type;
  c.out(to(x->dtype == through ? x : bitcast(x, through), type));
}

constexpr int kEnd = kLatestOpset;
// clang-format off
constexpr OpRow kRows[] = {
    {"Abs", 1, kEnd, 1, 1, number_unary<Ops::Abs>},        {"Neg", 1, kEnd, 1, 1, number_unary<Ops::Neg>},
    {"Ceil", 1, kEnd, 1, 1, float_unary<Ops::Ceil>},       {"Floor", 1, kEnd, 1, 1, float_unary<Ops::Floor>},
    {"Round", 11, kEnd, 1, 1, float_unary<Ops::Round>},    {"Sqrt", 1, kEnd, 1, 1, float_unary<Ops::Sqrt>},
    {"Exp", 1, kEnd, 1, 1, float_unary<Ops::Exp>},         {"Log", 1, kEnd, 1, 1, float_unary<Ops::Log>},
    {"Sin", 7, kEnd, 1, 1, float_unary<Ops::Sin>},         {"Cos", 7, kEnd, 1, 1, float_unary<Ops::Cos>},
    {"Tanh", 1, kEnd, 1, 1, float_unary<Ops::Tanh>},       {"Erf", 9, kEnd, 1, 1, float_unary<Ops::Erf>},
    {"Reciprocal", 1, kEnd, 1, 1, reciprocal},             {"Sign", 9, kEnd, 1, 1, sign},
    {"Add", 1, kEnd, 2, 2, number_binary<Ops::Add>},       {"Sub", 1, kEnd, 2, 2, number_binary<Ops::Sub>},
    {"Mul", 1, kEnd, 2, 2, number_binary<Ops::Mul>},       {"Div", 1, kEnd, 2, 2, number_binary<Ops::Div>},
    {"Mod", 10, kEnd, 2, 2, mod},                          {"Pow", 1, kEnd, 2, 2, pow},
    {"Less", 1, kEnd, 2, 2, number_binary<Ops::Lt>},       {"LessOrEqual", 12, kEnd, 2, 2, number_binary<Ops::Le>},
    {"Greater", 1, kEnd, 2, 2, swapped_binary<Ops::Lt>},   {"GreaterOrEqual", 12, kEnd, 2, 2, swapped_binary<Ops::Le>},
    {"Equal", 1, kEnd, 2, 2, any_binary<Ops::Eq>},
    {"And", 1, kEnd, 2, 2, bool_binary<Ops::And>},         {"Or", 1, kEnd, 2, 2, bool_binary<Ops::Or>},
    {"Xor", 1, kEnd, 2, 2, bool_binary<Ops::Xor>},         {"Not", 1, kEnd, 1, 1, logical_not},
    {"BitwiseAnd", 18, kEnd, 2, 2, bit_binary<Ops::And>},  {"BitwiseOr", 18, kEnd, 2, 2, bit_binary<Ops::Or>},
    {"BitwiseXor", 18, kEnd, 2, 2, bit_binary<Ops::Xor>},  {"BitwiseNot", 18, kEnd, 1, 1, bitwise_not},
    {"BitShift", 11, kEnd, 2, 2, bit_shift},               {"PRelu", 1, kEnd, 2, 2, prelu},
    {"Max", 1, kEnd, 1, -1, variadic<Ops::Max>},           {"Min", 1, kEnd, 1, -1, variadic<Ops::Min>},
    {"Sum", 1, kEnd, 1, -1, variadic<Ops::Add>},           {"Mean", 1, kEnd, 1, -1, mean_of},
    {"Where", 9, kEnd, 3, 3, where_op},                    {"Clip", 1, kEnd, 1, 3, clip},
    {"IsInf", 10, kEnd, 1, 1, is_inf},                     {"IsNaN", 9, kEnd, 1, 1, is_nan_op},
    {"Cast", 1, kEnd, 1, 1, cast_op},                      {"CastLike", 15, kEnd, 2, 2, cast_like},
    {"BitCast", 26, kEnd, 1, 1, bit_cast},
};
// clang-format on

} // namespace

extern const OpTable kOnnxOps_elementwise;
const OpTable kOnnxOps_elementwise = {"elementwise", kRows};

} // namespace tgc::onnx
