// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Activations, softmax and its kin, and the functions composed from exp, log, sqrt, sin and cos. Formulas are arranged
// so that neither overflow nor cancellation spoils them where ONNX's tests and trained models go; inverse trigonometric
// functions use a minimax-free reduction to one odd series on [-tan(pi/12), tan(pi/12)].
#include <cmath>
#include <functional>
#include <numbers>

#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

Ref exp_of(Ref x) { return unary(Ops::Exp, x); }
Ref log_of(Ref x) { return unary(Ops::Log, x); }
Ref neg(Ref x) { return unary(Ops::Neg, x); }
Ref abs_of(Ref x) { return unary(Ops::Abs, x); }
Ref below(Ref x, double limit) { return compare(Ops::Lt, x, limit); }
Ref clamp(Ref x, double lo, double hi) { return minimum(maximum(x, lo), hi); }

Ref operand(OpContext& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  return c.in_float(0);
}

/// A handler for a function of one float operand, computed in f32 at least.
template <Ref (*f)(OpContext&, Ref)> void function(OpContext& c) {
  Ref x = operand(c);
  c.out(to(f(c, to(x, accumulator(x->dtype))), x->dtype));
}

void relu_op(OpContext& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.check(c.in(0)->dtype != DType::Bool, "input 0 is bool");
  c.out(relu(c.in(0)));
}

Ref sigmoid_of(OpContext&, Ref x) { return sigmoid(x); }
Ref softplus_of(OpContext&, Ref x) { return softplus(x); }
Ref softsign(OpContext&, Ref x) { return div(x, add(abs_of(x), 1)); }
Ref mish(OpContext&, Ref x) { return mul(x, unary(Ops::Tanh, softplus(x))); }
Ref swish(OpContext& c, Ref x) { return mul(x, sigmoid(mul(x, c.attr_float("alpha", 1)))); }

Ref gelu_of(OpContext& c, Ref x) {
  std::string mode = c.attr_string("approximate", "none");
  c.check(mode == "none" || mode == "tanh", "approximate=\"" + mode + "\" is neither none nor tanh");
  return gelu(x, mode == "tanh");
}

/// Where x < 0, alpha*(e^x - 1).
Ref exponential_tail(Ref x, double alpha) { return mul(add(exp_of(minimum(x, 0)), -1), alpha); }

Ref elu(OpContext& c, Ref x) { return select(below(x, 0), exponential_tail(x, c.attr_float("alpha", 1)), x); }

Ref celu(OpContext& c, Ref x) {
  double alpha = c.attr_float("alpha", 1);
  return add(maximum(x, 0), minimum(mul(add(exp_of(div(x, alpha)), -1), alpha), 0));
}

Ref selu(OpContext& c, Ref x) {
  bool old = c.opset() < 6; // coarser constants
  double alpha = c.attr_float("alpha", old ? 1.6732 : 1.67326319217681884765625);
  double gamma = c.attr_float("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return mul(select(elementwise(Ops::Lt, {full_like(x, 0), x}), x, exponential_tail(x, alpha)), gamma);
}

Ref leaky_relu(OpContext& c, Ref x) { return select(below(x, 0), mul(x, c.attr_float("alpha", 0.01)), x); }

Ref thresholded_relu(OpContext& c, Ref x) {
  Ref alpha = full_like(x, c.attr_float("alpha", 1));
  return select(elementwise(Ops::Lt, {alpha, x}), x, full_like(x, 0));
}

Ref hard_sigmoid(OpContext& c, Ref x) {
  double alpha = c.attr_float("alpha", 0.2), beta = c.attr_float("beta", 0.5);
  return clamp(add(mul(x, alpha), beta), 0, 1);
}

Ref hard_swish(OpContext&, Ref x) { return mul(x, clamp(add(mul(x, 1.0 / 6), 0.5), 0, 1)); }

void shrink_op(OpContext& c) {
  Ref x = c.in(0);
  double bias = c.attr_float("bias", 0), lambda = c.attr_float("lambd", 0.5);
  Ref wide = to(x, is_float(x->dtype) ? x->dtype : DType::F64);
  Ref zero = full_like(wide, 0);
  Ref high = elementwise(Ops::Lt, {full_like(wide, lambda), wide});
  Ref y = select(below(wide, -lambda), add(wide, bias), select(high, add(wide, -bias), zero));
  c.out(to(y, x->dtype));
}

// ---- trigonometric and hyperbolic -----------------------------------------------------------------------------------

Ref tan_of(OpContext&, Ref x) { return div(unary(Ops::Sin, x), unary(Ops::Cos, x)); }

/// e^a/2 for a >= 0 as (e^(a/2))^2/2, which overflows only where the result does.
Ref half_exp(Ref a) {
  Ref root = exp_of(mul(a, 0.5));
  return mul(mul(root, 0.5), root);
}
constexpr double kTailIsNothing = 20; ///< e^-20 is less than half a unit in the last place of e^20, in f64 too

/// (e^a - e^-a)/2 with the sign of x; below 1/2 the odd series x + x^3/3! + x^5/5! + …, where the difference would
/// cancel.
Ref sinh_of(OpContext&, Ref x) {
  Ref s = mul(x, x), a = abs_of(x), series = full_like(x, 1);
  for (int k = x->dtype == DType::F64 ? 8 : 4; k > 0; --k)
    series = add(mul(mul(series, s), 1.0 / (2 * k * (2 * k + 1))), 1);
  series = mul(series, x);
  Ref e = exp_of(minimum(a, kTailIsNothing));
  Ref y = select(below(a, kTailIsNothing), mul(sub(e, rdiv(1, e)), 0.5), half_exp(a));
  return select(below(a, 0.5), series, select(below(x, 0), neg(y), y));
}

Ref cosh_of(OpContext&, Ref x) {
  Ref a = abs_of(x), e = exp_of(minimum(a, kTailIsNothing));
  return select(below(a, kTailIsNothing), mul(add(e, rdiv(1, e)), 0.5), half_exp(a));
}

/// f on |x| with the sign of x, -0 included; f(0) = 0.
Ref odd(Ref x, const std::function<Ref(Ref)>& f) {
  Ref y = f(abs_of(x));
  return select(below(x, 0), neg(y), select(compare(Ops::Eq, x, 0), x, y));
}

/// log(1 + y) for y >= 0 without losing small y: log(u)*y/(u-1) with u = 1 + y (Kahan).
Ref log1p(Ref y) {
  Ref u = add(y, 1), d = add(u, -1);
  Ref exact = elementwise(Ops::Eq, {d, full_like(d, 0)});
  Ref ratio = div(y, select(exact, full_like(d, 1), d));
  Ref infinite = compare(Ops::Eq, y, HUGE_VAL);
  return select(exact, y, select(infinite, y, mul(log_of(u), ratio)));
}

/// log(2a) for a whose square makes 1 vanish beside it, in f64 too, and may overflow; else `near`.
Ref log_of_double_beyond(Ref a, Ref near) {
  constexpr double kBeyond = 1 << 28;
  return select(elementwise(Ops::Lt, {full_like(a, kBeyond), a}), add(log_of(a), std::numbers::ln2), near);
}

Ref asinh_of(OpContext&, Ref x) {
  return odd(x, [](Ref a) { // log(a + sqrt(a^2+1)) = log1p(a + a^2/(1 + sqrt(a^2+1)))
    Ref s = mul(a, a);
    return log_of_double_beyond(a, log1p(add(a, div(s, add(unary(Ops::Sqrt, add(s, 1)), 1)))));
  });
}

Ref acosh_of(OpContext&, Ref x) { // t = x - 1: log1p(t + sqrt(2t + t^2))
  Ref t = add(x, -1);
  return log_of_double_beyond(x, log1p(add(t, unary(Ops::Sqrt, add(mul(t, 2), mul(t, t))))));
}

Ref atanh_of(OpContext&, Ref x) { // log1p(2a/(1-a))/2
  return odd(x, [](Ref a) { return mul(log1p(div(mul(a, 2), rsub(1, a))), 0.5); });
}

/// atan on a >= 0: above 1 by pi/2 - atan(1/a), then above tan(pi/12) by pi/6 + atan((a*sqrt3-1)/(a+sqrt3)), then the
/// series.
Ref atan_positive(Ref a) {
  double root3 = std::sqrt(3.0);
  Ref big = elementwise(Ops::Lt, {full_like(a, 1), a});
  Ref r = select(big, rdiv(1, a), a);
  Ref mid = elementwise(Ops::Lt, {full_like(r, 2 - root3), r});
  Ref z = select(mid, div(add(mul(r, root3), -1), add(r, root3)), r);
  Ref s = mul(z, z), series = full_like(z, 0);
  int terms = a->dtype == DType::F64 ? 14 : 7; // (2-sqrt3)^(2*14) < 2^-53
  for (int k = terms; k >= 0; --k) series = add(mul(series, s), (k % 2 ? -1.0 : 1.0) / (2 * k + 1));
  Ref y = mul(series, z);
  y = select(mid, add(y, std::numbers::pi / 6), y);
  return select(big, rsub(std::numbers::pi / 2, y), y);
}

Ref atan_of(OpContext&, Ref x) { return odd(x, atan_positive); }

Ref asin_of(OpContext&, Ref x) { // atan(a/sqrt((1-a)(1+a)))
  return odd(x, [](Ref a) { return atan_positive(div(a, unary(Ops::Sqrt, mul(rsub(1, a), add(a, 1))))); });
}

Ref acos_of(OpContext&, Ref x) { // 2*atan(sqrt((1-x)/(1+x)))
  return mul(atan_positive(unary(Ops::Sqrt, div(rsub(1, x), add(x, 1)))), 2);
}

// ---- softmax --------------------------------------------------------------------------------------------------------

/// Before opset 13 the input is coerced to a matrix at `axis` (default 1); since then one axis (default -1).
void along_axis(OpContext& c, Ref (*f)(Ref, int64_t)) {
  Ref x = operand(c);
  int64_t axis = c.attr("axis", c.opset() < 13 ? 1 : -1);
  if (c.opset() >= 13) {
    c.check(x->rank() > 0, "input 0 is a scalar");
    return c.out(f(x, normalize_axis(axis, x->rank())));
  }
  axis = axis == x->rank() ? axis : normalize_axis(axis, x->rank());
  c.out(reshape(f(merge_axes(merge_axes(x, axis, x->rank()), 0, axis), 1), x->shape));
}

Ref hardmax(Ref x, int64_t axis) {
  Ref best = argmax(x, axis, true, false);
  Ref position = iota(*x->ctx, x->shape, axis, DType::I64);
  return to(elementwise(Ops::Eq, {position, best}), x->dtype);
}

void softmax_op(OpContext& c) { along_axis(c, softmax); }
void log_softmax_op(OpContext& c) { along_axis(c, log_softmax); }
void hardmax_op(OpContext& c) { along_axis(c, hardmax); }

constexpr int kEnd = kLatestOpset;
// clang-format off
constexpr OpRow kRows[] = {
    {"Relu", 1, kEnd, 1, 1, relu_op},                          {"Sigmoid", 1, kEnd, 1, 1, function<sigmoid_of>},
    {"Softplus", 1, kEnd, 1, 1, function<softplus_of>},        {"Softsign", 1, kEnd, 1, 1, function<softsign>},
    {"Mish", 18, kEnd, 1, 1, function<mish>},                  {"Swish", 24, kEnd, 1, 1, function<swish>},
    {"Gelu", 20, kEnd, 1, 1, function<gelu_of>},               {"Elu", 1, kEnd, 1, 1, function<elu>},
    {"Celu", 12, kEnd, 1, 1, function<celu>},                  {"Selu", 1, kEnd, 1, 1, function<selu>},
    {"LeakyRelu", 1, kEnd, 1, 1, function<leaky_relu>},        {"ThresholdedRelu", 10, kEnd, 1, 1, function<thresholded_relu>},
    {"HardSigmoid", 1, kEnd, 1, 1, function<hard_sigmoid>},    {"HardSwish", 14, kEnd, 1, 1, function<hard_swish>},
    {"Shrink", 9, kEnd, 1, 1, shrink_op},                      {"Tan", 7, kEnd, 1, 1, function<tan_of>},
    {"Sinh", 9, kEnd, 1, 1, function<sinh_of>},                {"Cosh", 9, kEnd, 1, 1, function<cosh_of>},
    {"Asinh", 9, kEnd, 1, 1, function<asinh_of>},              {"Acosh", 9, kEnd, 1, 1, function<acosh_of>},
    {"Atanh", 9, kEnd, 1, 1, function<atanh_of>},              {"Asin", 7, kEnd, 1, 1, function<asin_of>},
    {"Acos", 7, kEnd, 1, 1, function<acos_of>},                {"Atan", 7, kEnd, 1, 1, function<atan_of>},
    {"Softmax", 1, kEnd, 1, 1, softmax_op},                    {"LogSoftmax", 1, kEnd, 1, 1, log_softmax_op},
    {"Hardmax", 1, kEnd, 1, 1, hardmax_op},
};
// clang-format on

} // namespace

extern const OpTable kOnnxOps_activation;
const OpTable kOnnxOps_activation = {"activation", kRows};

} // namespace tgc::onnx
