// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions, positions of extremes, normalisations and sums along an axis. All are arithmetic around `reduce`.
#include <cmath>

#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

Ref exp_of(Ref x) { return unary(Ops::Exp, x); }
Ref log_of(Ref x) { return unary(Ops::Log, x); }
Ref square(Ref x) { return mul(x, x); }

using Reduction = Ref (*)(Ref, const std::vector<int64_t>&, bool);

/// `since`: the opset from which axes is an input.
void reduce_with(OpContext& c, Reduction f, int since) {
  Ref x = c.in(0);
  bool keep = c.attr("keepdims", 1) != 0;
  bool noop = c.opset() >= since && c.attr("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> axes = c.axes("axes", since, 1).value_or(std::vector<int64_t>());
  if (axes.empty() && noop) return c.out(f(x, {}, keep));
  c.out(f(x, axes.empty() ? all_axes(x) : normalize_axes(axes, x->rank()), keep));
}
template <Reduction f, int since> void reduction(OpContext& c) { reduce_with(c, f, since); }

Ref sum_l1(Ref x, const std::vector<int64_t>& axes, bool keep) { return sum(unary(Ops::Abs, x), axes, keep); }

/// Integer inputs of float functions go through f64 and truncate, as numpy does and ONNX's reference says.
Ref through_float(Ref x, Ref (*f)(Ref, const std::vector<int64_t>&, bool), const std::vector<int64_t>& axes,
                  bool keep) {
  DType wide = is_float(x->dtype) ? accumulator(x->dtype) : DType::F64;
  return to(f(to(x, wide), axes, keep), x->dtype);
}
Ref l2(Ref x, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return unary(Ops::Abs, x); // the square may overflow
  return unary(Ops::Sqrt, sum(square(x), axes, keep));
}
Ref log_sum(Ref x, const std::vector<int64_t>& axes, bool keep) { return log_of(sum(x, axes, keep)); }

/// max + log(sum(exp(x - max))), where an infinite maximum is taken as 0 so that it does not cancel to NaN.
Ref log_sum_exp(Ref x, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return x;
  Ref best = max(x, axes, true);
  Ref infinite = compare(Ops::Eq, unary(Ops::Abs, best), HUGE_VAL);
  Ref shift = select(infinite, full_like(best, 0), best);
  Ref total = add(log_of(sum(exp_of(sub(x, shift)), axes, true)), shift);
  return keep ? total : squeeze(total, axes);
}

Ref reduce_l2(Ref x, const std::vector<int64_t>& axes, bool keep) { return through_float(x, l2, axes, keep); }
Ref reduce_log_sum(Ref x, const std::vector<int64_t>& axes, bool keep) { return through_float(x, log_sum, axes, keep); }
Ref reduce_log_sum_exp(Ref x, const std::vector<int64_t>& axes, bool keep) {
  return through_float(x, log_sum_exp, axes, keep);
}
Ref sum_square(Ref x, const std::vector<int64_t>& axes, bool keep) {
  Ref wide = to(x, accumulator(x->dtype));
  return to(sum(square(wide), axes, keep), x->dtype);
}

template <bool largest> void arg_extreme(OpContext& c) {
  Ref x = c.in(0);
  int64_t axis = normalize_axis(c.attr("axis", 0), x->rank());
  bool keep = c.attr("keepdims", 1) != 0, last = c.opset() >= 12 && c.attr("select_last_index", 0) != 0;
  if (!largest)
    x = is_float(x->dtype) ? unary(Ops::Neg, x) : unary(Ops::Not, x); // ~x reverses integers without overflow
  c.out(argmax(x, axis, keep, last));
}

// ---- normalisation --------------------------------------------------------------------------------------------------

/// (x - mean) * (scale / sqrt(var + epsilon)) + bias, per channel. In training mode (opset 14 on) mean and var are the
/// batch's, and the running ones move towards them.
void batch_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  double epsilon = c.attr_float("epsilon", 1e-5), momentum = c.attr_float("momentum", 0.9);
  if (c.opset() < 6) c.ignore("consumed_inputs");
  if (c.opset() < 7) c.require("is_test", 1, 0);
  if (c.opset() < 9) c.require("spatial", 1, 1);
  bool training = c.opset() >= 14 && c.attr("training_mode", 0) != 0;
  for (size_t i = 1; i < 5; ++i) c.check(c.in(i)->rank() == 1, "input " + std::to_string(i) + " is not rank 1");
  c.check(x->rank() >= 2 || !training, "input " + shape_text(x->shape) + " has no channels");
  DType wide = accumulator(x->dtype);
  auto per_channel = [&](Ref v) {
    return x->rank() == 1 ? reshape(to(v, wide), Dims{dim(v, 0)}) : channel(x, to(v, wide));
  };
  Ref average = to(c.in(3), wide), variance = to(c.in(4), wide);
  if (training) {
    std::vector<int64_t> axes = all_axes(x);
    axes.erase(axes.begin() + 1);
    Ref batch = mean(to(x, wide), axes, false), spread = mean(square(sub(to(x, wide), channel(x, batch))), axes, false);
    auto moved = [&](Ref running, Ref now) {
      return to(add(mul(running, momentum), mul(now, 1 - momentum)), c.in(3)->dtype);
    };
    c.out(1, moved(average, batch));
    c.out(2, moved(variance, spread));
    average = batch;
    variance = spread;
  }
  Ref scale = div(to(c.in(1), wide), unary(Ops::Sqrt, add(variance, epsilon)));
  Ref centred = sub(to(x, wide), per_channel(average));
  c.out(to(add(mul(centred, per_channel(scale)), per_channel(c.in(2))), x->dtype));
}

void instance_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.check(x->rank() >= 3, "input " + shape_text(x->shape) + " has no spatial dims");
  std::vector<int64_t> all = all_axes(x);
  Ref y = standardize(x, {all.begin() + 2, all.end()}, c.attr_float("epsilon", 1e-5));
  c.out(add(mul(y, channel(x, c.in(1))), channel(x, c.in(2))));
}

/// Groups of channels are standardised together; scale and bias are per group before opset 21, per channel since.
void group_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  int64_t groups = c.attr("num_groups");
  double epsilon = c.attr_float("epsilon", 1e-5);
  if (c.opset() >= 21) c.ignore("stash_type");
  c.check(x->rank() >= 2 && groups >= 1, "input " + shape_text(x->shape) + " has no groups");
  Ref g = c.ctx().index(groups), per_group = dim_floordiv(dim(x, 1), g);
  c.check(dims_equal(dim_mul(per_group, g), dim(x, 1)),
          "num_groups does not divide the channels of " + shape_text(x->shape));
  Ref grouped = split_axis(x, 1, Dims{g, per_group});
  std::vector<int64_t> all = all_axes(grouped);
  Ref y = standardize(grouped, {all.begin() + 2, all.end()}, epsilon);
  if (c.opset() < 21) return c.out(reshape(add(mul(y, channel(y, c.in(1))), channel(y, c.in(2))), x->shape));
  y = reshape(y, x->shape);
  c.out(add(mul(y, channel(x, c.in(1))), channel(x, c.in(2))));
}

/// Computes in f32 at least (stash_type); mean and 1/deviation are the optional outputs.
void layer_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  int64_t axis = normalize_axis(c.attr("axis", -1), x->rank());
  double epsilon = c.attr_float("epsilon", 1e-5);
  c.require("stash_type", 1, 1);
  DType wide = accumulator(x->dtype);
  std::vector<int64_t> all = all_axes(x), axes(all.begin() + axis, all.end());
  Ref v = to(x, wide), average = mean(v, axes, true), centred = sub(v, average);
  Ref scale = rdiv(1, unary(Ops::Sqrt, add(mean(square(centred), axes, true), epsilon)));
  Ref y = mul(to(mul(centred, scale), x->dtype), broadcast_to(c.in(1), x->shape));
  c.out(c.has(2) ? add(y, broadcast_to(c.in(2), x->shape)) : y);
  DType stash = DType::F32;
  c.out(1, to(average, stash));
  c.out(2, to(scale, stash));
}

void rms_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  int64_t axis = normalize_axis(c.attr("axis", -1), x->rank());
  double epsilon = c.attr_float("epsilon", 1e-5);
  c.require("stash_type", 1, 1);
  std::vector<int64_t> all = all_axes(x), axes(all.begin() + axis, all.end());
  Ref v = to(x, accumulator(x->dtype));
  Ref y = div(v, unary(Ops::Sqrt, add(mean(square(v), axes, true), epsilon)));
  c.out(mul(to(y, c.in(1)->dtype), broadcast_to(c.in(1), x->shape)));
}

/// x / |x|_p along one axis; a zero vector stays zero.
void lp_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  int64_t axis = normalize_axis(c.attr("axis", -1), x->rank()), p = c.attr("p", 2);
  c.check(p == 1 || p == 2, "p=" + std::to_string(p) + " is neither 1 nor 2");
  Ref wide = to(x, accumulator(x->dtype));
  Ref length = p == 1 ? sum_l1(wide, {axis}, true) : l2(wide, {axis}, true);
  Ref zero = compare(Ops::Eq, length, 0);
  c.out(to(select(zero, full_like(wide, 0), div(wide, select(zero, full_like(length, 1), length))), x->dtype));
}

void mean_variance_normalization(OpContext& c) {
  Ref x = c.in_float(0);
  std::vector<int64_t> axes = normalize_axes(c.attr_ints("axes", std::vector<int64_t>{0, 2, 3}), x->rank());
  Ref wide = to(x, accumulator(x->dtype)), centred = sub(wide, mean(wide, axes, true));
  Ref deviation = unary(Ops::Sqrt, mean(square(centred), axes, true));
  c.out(to(div(centred, add(deviation, 1e-9)), x->dtype));
}

/// x / (bias + alpha/size * sum of squares over `size` channels around) ^ beta.
void lrn(OpContext& c) {
  Ref x = c.in_float(0);
  int64_t size = c.attr("size");
  c.check(size >= 1 && size < (1 << 20) && x->rank() >= 2, "size=" + std::to_string(size));
  double alpha = c.attr_float("alpha", 1e-4), beta = c.attr_float("beta", 0.75), bias = c.attr_float("bias", 1);
  Ref wide = to(x, accumulator(x->dtype)), last = swap_axes(square(wide), 1, x->rank() - 1);
  std::vector<Window> window{{size, 1, 1, (size - 1) / 2, size - 1 - (size - 1) / 2}};
  Ref squares = swap_axes(sum(windows(pad_spatial(last, window), window), {x->rank()}, false), 1, x->rank() - 1);
  Ref base = add(mul(squares, alpha / static_cast<double>(size)), bias);
  c.out(to(div(wide, elementwise(Ops::Pow, base, beta)), x->dtype));
}

// ---- running sums and products --------------------------------------------------------------------------------------

/// out[i] = reduce over j <= i of x[j]: a masked reduce over all j.
template <bool product> void cumulative(OpContext& c) {
  Ref x = c.in(0);
  std::vector<int64_t> axis_operand = c.known_ints(1);
  c.check(axis_operand.size() == 1, "axis must be one number");
  int64_t axis = normalize_axis(axis_operand[0], x->rank());
  bool exclusive = c.attr("exclusive", 0) != 0, reverse = c.attr("reverse", 0) != 0;
  Ref wide = to(x, accumulator(x->dtype)), n = dim(x, axis);
  Dims square_dims = dims_of(x);
  square_dims.insert(square_dims.begin() + axis, n); // [.., i, j, ..]
  Ref i = iota(c.ctx(), square_dims, axis, DType::Index), j = iota(c.ctx(), square_dims, axis + 1, DType::Index);
  Ops op = exclusive ? Ops::Lt : Ops::Le;
  Ref inside = reverse ? elementwise(op, {i, j}) : elementwise(op, {j, i});
  Ref terms = expand(unsqueeze(wide, {axis}), square_dims);
  Ref masked = select(inside, terms, full_like(terms, product ? 1 : 0));
  c.out(to(reduce(product ? "mul" : "add", masked, {axis + 1}, false), x->dtype));
}

constexpr int kEnd = kLatestOpset;
// clang-format off
constexpr OpRow kRows[] = {
    {"ReduceSum", 1, kEnd, 1, 2, reduction<sum, 13>},              {"ReduceMean", 1, kEnd, 1, 2, reduction<mean, 18>},
    {"ReduceMax", 1, kEnd, 1, 2, reduction<max, 18>},              {"ReduceMin", 1, kEnd, 1, 2, reduction<min, 18>},
    {"ReduceProd", 1, kEnd, 1, 2, reduction<prod, 18>},            {"ReduceL1", 1, kEnd, 1, 2, reduction<sum_l1, 18>},
    {"ReduceL2", 1, kEnd, 1, 2, reduction<reduce_l2, 18>},         {"ReduceSumSquare", 1, kEnd, 1, 2, reduction<sum_square, 18>},
    {"ReduceLogSum", 1, kEnd, 1, 2, reduction<reduce_log_sum, 18>}, {"ReduceLogSumExp", 1, kEnd, 1, 2, reduction<reduce_log_sum_exp, 18>},
    {"ArgMax", 1, kEnd, 1, 1, arg_extreme<true>},                  {"ArgMin", 1, kEnd, 1, 1, arg_extreme<false>},
    {"BatchNormalization", 1, kEnd, 5, 5, batch_normalization},    {"InstanceNormalization", 1, kEnd, 3, 3, instance_normalization},
    {"GroupNormalization", 18, kEnd, 3, 3, group_normalization},   {"LayerNormalization", 17, kEnd, 2, 3, layer_normalization},
    {"RMSNormalization", 23, kEnd, 2, 2, rms_normalization},       {"LpNormalization", 1, kEnd, 1, 1, lp_normalization},
    {"MeanVarianceNormalization", 9, kEnd, 1, 1, mean_variance_normalization},
    {"LRN", 1, kEnd, 1, 1, lrn},                                   {"CumSum", 11, kEnd, 2, 2, cumulative<false>},
    {"CumProd", 26, kEnd, 2, 2, cumulative<true>},
};
// clang-format on

} // namespace

extern const OpTable kOnnxOps_reduce;
const OpTable kOnnxOps_reduce = {"reduce", kRows};

} // namespace tgc::onnx
