// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that read or write at positions given as data. Each is brought to `take` or `put` over [batch, extent,
// rest]. Indices outside their extent read 0, write nothing and make the run an error; ones known at import are errors.
#include <algorithm>

#include "frontend/gather.h"
#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

void check_indices(OpContext& c, Ref indices) {
  c.check(is_int(indices->dtype), std::string("indices have type ") + name(indices->dtype));
}

/// The indices as numbers in [0, extent), when both are known.
std::optional<std::vector<int64_t>> known_positions(OpContext& c, size_t input, Ref extent) {
  std::optional<int64_t> n = dim_int(extent);
  std::optional<std::vector<int64_t>> index = c.try_known_ints(input);
  if (!n || !index) return std::nullopt;
  for (int64_t& i : *index) {
    c.check(i >= -*n && i < *n, "index " + std::to_string(i) + " is outside the extent " + std::to_string(*n));
    if (i < 0) i += *n;
  }
  return index;
}

Dims range_of(Refs dims, int64_t first, int64_t last) { return {dims.begin() + first, dims.begin() + last}; }

Dims join(std::initializer_list<Dims> parts) {
  Dims out;
  for (const Dims& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

void gather(OpContext& c) {
  Ref x = c.in(0), indices = c.in(1);
  check_indices(c, indices);
  int64_t axis = normalize_axis(c.attr("axis", 0), x->rank());
  Dims shape = join({range_of(x->shape, 0, axis), dims_of(indices), range_of(x->shape, axis + 1, x->rank())});
  std::optional<std::vector<int64_t>> known = known_positions(c, 1, dim(x, axis));
  if (known)
    if (Ref y = take_known(x, axis, *known)) return c.out(reshape(y, shape));
  Context& ctx = c.ctx();
  Ref batch = numel(ctx, range_of(x->shape, 0, axis)), rest = numel(ctx, range_of(x->shape, axis + 1, x->rank()));
  Ref data = reshape(x, Dims{batch, dim(x, axis), rest});
  Ref index = reshape(c.positions(indices, dim(x, axis)), Dims{ctx.index(1), numel(ctx, indices->shape)});
  c.out(reshape(take(data, index), shape));
}

/// x with `axis` last, as [all other dims, extent].
Ref rows_along(Ref x, int64_t axis) {
  std::vector<int64_t> order = all_axes(x);
  order.erase(order.begin() + axis);
  order.push_back(axis);
  return merge_axes(permute(x, order), 0, x->rank() - 1);
}

/// The inverse of rows_along for a result of shape `dims`.
Ref from_rows(Ref rows, const Dims& dims, int64_t axis) {
  Dims moved = dims;
  moved.erase(moved.begin() + axis);
  moved.push_back(dims[static_cast<size_t>(axis)]);
  std::vector<int64_t> order;
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(dims.size()); ++i) order.push_back(i);
  order.insert(order.begin() + axis, static_cast<int64_t>(dims.size()) - 1);
  return permute(reshape(rows, moved), order);
}

/// out[.., i, ..] = x[.., indices[.., i, ..], ..]
void gather_elements(OpContext& c) {
  Ref x = c.in(0), indices = c.in(1);
  check_indices(c, indices);
  int64_t axis = normalize_axis(c.attr("axis", 0), x->rank());
  c.check(indices->rank() == x->rank(),
          "data " + shape_text(x->shape) + " and indices " + shape_text(indices->shape) + " have different ranks");
  Dims used = dims_of(indices);
  for (int64_t i = 0; i < x->rank(); ++i)
    if (i != axis) require_at_most(dim(indices, i), dim(x, i), "indices reach outside the data");
  used[static_cast<size_t>(axis)] = dim(x, axis);
  Ref data = rows_along(shrink(x, Dims(used.size(), c.ctx().index(0)), used), axis);
  Ref y = take(unsqueeze(data, {2}), rows_along(c.positions(indices, dim(x, axis)), axis));
  c.out(from_rows(squeeze(y, {2}), dims_of(indices), axis));
}

/// Tuples of k positions in the last dim of `indices`, as one row-major position in `extents`. A component outside its
/// extent makes the position -1, which matches nothing.
Ref linear_positions(OpContext& c, Ref indices, const Dims& extents) {
  Context& ctx = c.ctx();
  int64_t last = indices->rank() - 1;
  Ref linear, valid;
  for (size_t k = 0; k < extents.size(); ++k) {
    Ref part = shrink_axis(indices, last, ctx.index(static_cast<int64_t>(k)), ctx.index(1));
    Ref p = c.positions(squeeze(part, {last}), extents[k]);
    Ref extent = broadcast_to(to(extents[k], DType::I64), p->shape);
    Ref inside = elementwise(Ops::And, {elementwise(Ops::Le, {full_like(p, 0), p}), elementwise(Ops::Lt, {p, extent})});
    linear = linear ? add(mul(linear, extent), p) : p;
    valid = valid ? elementwise(Ops::And, {valid, inside}) : inside;
  }
  return select(valid, linear, full_like(linear, -1));
}

int64_t tuple_size(OpContext& c, Ref indices, int64_t most) {
  c.check(indices->rank() >= 1, "indices are a scalar");
  std::optional<int64_t> k = dim_int(dim(indices, -1));
  if (!k) c.unsupported("the last dim of indices is symbolic");
  c.check(*k >= 1 && *k <= most,
          "indices have tuples of " + std::to_string(*k) + ", the data allows " + std::to_string(most));
  return *k;
}

void gather_nd(OpContext& c) {
  Ref x = c.in(0), indices = c.in(1);
  check_indices(c, indices);
  int64_t batch = c.opset() >= 12 ? c.attr("batch_dims", 0) : 0;
  c.check(batch >= 0 && batch < x->rank() && batch < indices->rank(), "batch_dims=" + std::to_string(batch));
  int64_t k = tuple_size(c, indices, x->rank() - batch), inner = indices->rank() - 1;
  Context& ctx = c.ctx();
  Dims batches = range_of(x->shape, 0, batch), extents = range_of(x->shape, batch, batch + k),
       rest = range_of(x->shape, batch + k, x->rank());
  Ref b = numel(ctx, batches);
  Ref index =
      reshape(linear_positions(c, indices, extents), Dims{b, numel(ctx, range_of(indices->shape, batch, inner))});
  Ref y = take(reshape(x, Dims{b, numel(ctx, extents), numel(ctx, rest)}), index);
  c.out(reshape(y, join({range_of(indices->shape, 0, inner), rest})));
}

Scatter scatter_kind(OpContext& c) {
  std::string kind = c.opset() >= 16 ? c.attr_string("reduction", "none") : "none";
  if (kind == "none") return Scatter::Replace;
  if (kind == "add") return Scatter::Add;
  if (kind == "mul") return Scatter::Mul;
  c.check(c.opset() >= 18 && (kind == "max" || kind == "min"), "reduction=\"" + kind + "\" is no reduction");
  return kind == "max" ? Scatter::Max : Scatter::Min;
}

void scatter_elements(OpContext& c) {
  Ref x = c.in(0), indices = c.in(1), updates = c.in(2);
  check_indices(c, indices);
  int64_t axis = normalize_axis(c.attr("axis", 0), x->rank());
  c.check(indices->rank() == x->rank() && shapes_equal(indices->shape, updates->shape),
          "indices " + shape_text(indices->shape) + " and updates " + shape_text(updates->shape) + " do not fit data " +
              shape_text(x->shape));
  c.check(updates->dtype == x->dtype, "updates have another type than data");
  Dims none(x->shape.size(), c.ctx().index(0)), more = none;
  for (int64_t i = 0; i < x->rank(); ++i)
    if (i != axis) {
      require_at_most(dim(indices, i), dim(x, i), "indices reach outside the data");
      more[static_cast<size_t>(i)] = dim_sub(dim(x, i), dim(indices, i));
    }
  Ref index = pad_with(c.positions(indices, dim(x, axis)), none, more, c.ctx().constant_int(DType::I64, -1));
  Ref rows = unsqueeze(rows_along(pad(updates, none, more), axis), {2});
  Ref y = put(unsqueeze(rows_along(x, axis), {2}), rows_along(index, axis), rows, scatter_kind(c));
  c.out(from_rows(squeeze(y, {2}), dims_of(x), axis));
}

void scatter_nd(OpContext& c) {
  Ref x = c.in(0), indices = c.in(1), updates = c.in(2);
  check_indices(c, indices);
  int64_t k = tuple_size(c, indices, x->rank()), inner = indices->rank() - 1;
  Context& ctx = c.ctx();
  Dims extents = range_of(x->shape, 0, k), rest = range_of(x->shape, k, x->rank());
  c.check(shapes_equal(updates->shape, join({range_of(indices->shape, 0, inner), rest})) && updates->dtype == x->dtype,
          "updates " + shape_text(updates->shape) + " do not fit indices " + shape_text(indices->shape) + " and data " +
              shape_text(x->shape));
  Ref one = ctx.index(1), count = numel(ctx, range_of(indices->shape, 0, inner)), r = numel(ctx, rest);
  Ref index = reshape(linear_positions(c, indices, extents), Dims{one, count});
  Ref y =
      put(reshape(x, Dims{one, numel(ctx, extents), r}), index, reshape(updates, Dims{one, count, r}), scatter_kind(c));
  c.out(reshape(y, x->shape));
}

/// values = [off, on]
void one_hot(OpContext& c) {
  Ref indices = c.in(0), values = c.in(2);
  Dims depth;
  if (is_float(c.in(1)->dtype)) {
    double n = c.known_number(1);
    c.check(n >= 0 && n < 1 << 30, "depth is out of range");
    depth.push_back(c.ctx().index(static_cast<int64_t>(n)));
  } else {
    depth = c.known_dims(1);
  }
  c.check(depth.size() == 1 && depth[0]->lo >= 0, "depth must be one number");
  c.check(values->rank() == 1 && dim_int(dim(values, 0)) == 2, "values must be [off, on]");
  int64_t axis = normalize_axis(c.attr("axis", -1), indices->rank() + 1);
  Context& ctx = c.ctx();
  Ref wanted = unsqueeze(positions(indices, depth[0]), {axis});
  Dims shape = dims_of(wanted);
  shape[static_cast<size_t>(axis)] = depth[0];
  Ref hot = elementwise(Ops::Eq, {broadcast_to(wanted, shape), iota(ctx, shape, axis, DType::I64)});
  auto value = [&](int64_t i) {
    return broadcast_to(reshape(shrink_axis(values, 0, ctx.index(i), ctx.index(1)), {}), shape);
  };
  c.out(select(hot, value(1), value(0)));
}

/// Element t of a sequence of length n is element n-1-t, while t < n.
void reverse_sequence(OpContext& c) {
  Ref x = c.in(0), lengths = c.in(1);
  int64_t batch = c.attr("batch_axis", 1), time = c.attr("time_axis", 0);
  c.check(x->rank() >= 2 && batch + time == 1 && batch >= 0 && time >= 0, "batch_axis and time_axis must be 0 and 1");
  check_indices(c, lengths);
  Ref data = time == 0 ? swap_axes(x, 0, 1) : x;
  Dims shape = dims_of(data), plane{shape[0], shape[1]};
  c.require_inside(to(lengths, DType::I64), dim_add(shape[1], c.ctx().index(1)));
  Ref t = iota(c.ctx(), plane, 1, DType::I64), n = broadcast_to(unsqueeze(to(lengths, DType::I64), {1}), plane);
  Ref source = select(elementwise(Ops::Lt, {t, n}), add(sub(n, t), full_like(t, -1)), t);
  Ref y = reshape(take(merge_axes(data, 2, data->rank()), source), shape);
  c.out(time == 0 ? swap_axes(y, 0, 1) : y);
}

/// Sorted by rank: element i goes to position #{j before it}, ties by position; NaN counts as largest.
void top_k(OpContext& c) {
  Ref x = c.in(0);
  int64_t axis = normalize_axis(c.attr("axis", -1), x->rank());
  int64_t k = 0;
  if (c.opset() < 10) {
    k = c.attr("k");
  } else {
    std::vector<int64_t> operand = c.known_ints(1);
    c.check(operand.size() == 1, "k must be one number");
    k = operand[0];
  }
  bool largest = c.opset() < 11 || c.attr("largest", 1) != 0;
  c.ignore("sorted"); // sorted is one of the orders that sorted=0 allows
  Context& ctx = c.ctx();
  const std::string message = "k=" + std::to_string(k) + " for an extent of " + dim_text(dim(x, axis));
  c.check(k >= 0, message);
  require_at_most(ctx.index(k), dim(x, axis), message);
  Ref rows = rows_along(x, axis), n = dim(x, axis);
  Dims square{dim(rows, 0), n, n};
  Ref a = expand(unsqueeze(rows, {2}), square), b = expand(unsqueeze(rows, {1}), square); // element i, rival j
  auto before = [&](Ref u, Ref v) {
    return elementwise(Ops::Lt, largest ? std::vector<Ref>{v, u} : std::vector<Ref>{u, v});
  };
  Ref wins = before(b, a), ties = elementwise(Ops::Eq, {a, b});
  if (is_float(x->dtype)) {
    Ref na = is_nan(a), nb = is_nan(b), not_a = unary(Ops::Not, na), not_b = unary(Ops::Not, nb);
    Ref only = largest ? elementwise(Ops::And, {nb, not_a}) : elementwise(Ops::And, {na, not_b});
    wins = elementwise(Ops::Or, {wins, only});
    ties = elementwise(Ops::Or, {ties, elementwise(Ops::And, {na, nb})});
  }
  Ref earlier = elementwise(Ops::Lt, {iota(ctx, square, 2, DType::I64), iota(ctx, square, 1, DType::I64)});
  Ref ahead = elementwise(Ops::Or, {wins, elementwise(Ops::And, {ties, earlier})});
  Ref rank = reduce("add", to(ahead, DType::I64), {2}, false); // [rows, i]
  Dims placed{dim(rows, 0), ctx.index(k), n};
  Ref here = elementwise(Ops::Eq, {broadcast_to(unsqueeze(rank, {1}), placed), iota(ctx, placed, 1, DType::I64)});
  auto gathered = [&](Ref v) { return reduce("add", select(here, v, full_like(v, 0)), {2}, false); };
  Dims shape = dims_of(x);
  shape[static_cast<size_t>(axis)] = ctx.index(k);
  c.out(0, from_rows(gathered(broadcast_to(unsqueeze(rows, {1}), placed)), shape, axis));
  c.out(1, from_rows(gathered(iota(ctx, placed, 2, DType::I64)), shape, axis));
}

// ---- losses ---------------------------------------------------------------------------------------------------------

/// -weight[target] * log_probability[target], reduced; ignored targets have weight 0.
Ref nll(OpContext& c, Ref x, Ref target, Ref weight) {
  check_indices(c, target);
  c.check(x->rank() >= 2 && target->rank() == x->rank() - 1,
          "input " + shape_text(x->shape) + " and target " + shape_text(target->shape) + " do not fit");
  std::string mode = c.attr_string("reduction", "mean");
  c.check(mode == "none" || mode == "sum" || mode == "mean", "reduction=\"" + mode + "\" is no reduction");
  bool ignores = c.has_attr("ignore_index");
  Ref wanted = to(target, DType::I64), classes = iota(c.ctx(), x->shape, 1, DType::I64);
  Ref skipped = elementwise(Ops::Eq, {wanted, c.ctx().constant_int(DType::I64, c.attr("ignore_index", 0))});
  c.require_inside(ignores ? select(skipped, full_like(wanted, 0), wanted) : wanted, dim(x, 1));
  Ref hit = elementwise(Ops::Eq, {broadcast_to(unsqueeze(wanted, {1}), x->shape), classes});
  Ref picked = reduce("add", select(hit, x, full_like(x, 0)), {1}, false);
  Ref per_class = weight ? broadcast_to(channel(x, weight), x->shape) : full_like(x, 1);
  Ref w = weight ? reduce("add", select(hit, per_class, full_like(x, 0)), {1}, false) : full_like(picked, 1);
  if (ignores) w = select(skipped, full_like(w, 0), w);
  Ref loss = unary(Ops::Neg, mul(picked, w));
  if (mode == "none") return loss;
  Ref total = sum(loss, all_axes(loss), false);
  return mode == "sum" ? total : div(total, sum(w, all_axes(w), false));
}

void nll_loss(OpContext& c) { c.out(nll(c, c.in_float(0), c.in(1), c.has(2) ? c.in(2) : Ref())); }

void softmax_cross_entropy(OpContext& c) {
  Ref scores = c.in_float(0);
  c.check(scores->rank() >= 2, "scores " + shape_text(scores->shape) + " have no class dim");
  Ref log_probability = log_softmax(scores, 1);
  c.out(nll(c, log_probability, c.in(1), c.has(2) ? c.in(2) : Ref()));
  c.out(1, log_probability);
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"Gather", 1, kEnd, 2, 2, gather},
    {"GatherElements", 11, kEnd, 2, 2, gather_elements},
    {"GatherND", 11, kEnd, 2, 2, gather_nd},
    {"Scatter", 9, 10, 3, 3, scatter_elements},
    {"ScatterElements", 11, kEnd, 3, 3, scatter_elements},
    {"ScatterND", 11, kEnd, 3, 3, scatter_nd},
    {"OneHot", 9, kEnd, 3, 3, one_hot},
    {"ReverseSequence", 10, kEnd, 2, 2, reverse_sequence},
    {"TopK", 1, kEnd, 1, 2, top_k},
    {"NegativeLogLikelihoodLoss", 12, kEnd, 2, 3, nll_loss},
    {"SoftmaxCrossEntropyLoss", 12, kEnd, 2, 3, softmax_cross_entropy},
};

} // namespace

extern const OpTable kOnnxOps_gather;
const OpTable kOnnxOps_gather = {"gather", kRows};

} // namespace tgc::onnx
