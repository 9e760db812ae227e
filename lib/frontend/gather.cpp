// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Indexed reads are the op `gather`, positions known at import slices. Indexed writes are masked reductions: element j
// is the update i for which index[i] == j, if any; right and free of order, at the cost of a look at every update.
#include "frontend/gather.h"

#include <algorithm>

namespace tgc::tensor {
namespace {

constexpr int64_t kMostWork = int64_t{1} << 34; // elements of the masked product
constexpr size_t kMostSlices = 8;               // each is one more choice per element

void check_work(Context& ctx, const Dims& dims) {
  std::optional<int64_t> work = dim_int(numel(ctx, dims));
  if (work && *work > kMostWork)
    fail(ErrorCode::E207, "an indexed access over " + shape_text(dims) + " is too large",
         "use smaller tables or fewer indices");
}

/// index [B, I] == j, as a mask of `dims`, whose axes `at` and `j` are those of I and of the compared extent.
Ref matches(Ref index, const Dims& dims, int64_t at, int64_t j) {
  Dims aligned(dims.size(), index->ctx->index(1));
  aligned[0] = dim(index, 0);
  aligned[static_cast<size_t>(at)] = dim(index, 1);
  Ref wanted = broadcast_to(reshape(to(index, DType::I64), aligned), dims);
  return elementwise(Ops::Eq, {wanted, iota(*index->ctx, dims, j, DType::I64)});
}

Ref sum_of_one(Ref masked, int64_t axis) {
  return reduce(masked->dtype == DType::Bool ? "max" : "add", masked, {axis}, false);
}

} // namespace

Ref positions(Ref indices, Ref extent) {
  Ref i = to(indices, DType::I64);
  return select(compare(Ops::Lt, i, 0), add(i, broadcast_to(to(extent, DType::I64), i->shape)), i);
}

Ref take(Ref data, Ref index) {
  Dims dims{dim(data, 0), dim(index, 1), dim(data, 2)}; // [B, I, R]
  Ref at = expand(unsqueeze(expand(index, Dims{dims[0], dims[1]}), {2}), dims);
  return data->ctx->make(Ops::Gather, data->dtype, {data, at}, {{Attr::Dim, int64_t{1}}});
}

Ref outside(Ref positions, Ref extent) {
  Ref n = broadcast_to(to(extent, DType::I64), positions->shape);
  Ref bad = elementwise(Ops::Or, {compare(Ops::Lt, positions, 0), elementwise(Ops::Le, {n, positions})});
  return reduce("max", bad, all_axes(bad), false);
}

Ref put(Ref data, Ref index, Ref updates, Scatter how) {
  Context& ctx = *data->ctx;
  Dims dims{dim(data, 0), dim(data, 1), dim(index, 1), dim(data, 2)}; // [B, n, I, R]
  check_work(ctx, dims);
  Ref hit = matches(index, dims, 2, 1), rows = expand(unsqueeze(updates, {1}), dims);
  auto masked = [&](double neutral) { return select(hit, rows, full_like(rows, neutral)); };
  switch (how) {
  case Scatter::Add: return add(data, sum(masked(0), {2}, false));
  case Scatter::Mul: return mul(data, prod(masked(1), {2}, false));
  case Scatter::Max: return maximum(data, max(select(hit, rows, expand(unsqueeze(data, {2}), dims)), {2}, false));
  case Scatter::Min: return minimum(data, min(select(hit, rows, expand(unsqueeze(data, {2}), dims)), {2}, false));
  case Scatter::Replace: break;
  }
  Ref order = iota(ctx, dims, 2, DType::I64);
  Ref last = max(select(hit, order, full_like(order, -1)), {2}, true);
  Ref winner = elementwise(Ops::Eq, {order, last});
  Ref written = sum_of_one(select(winner, rows, full_like(rows, 0)), 2);
  return select(compare(Ops::Lt, squeeze(last, {2}), 0), data, written);
}

Ref take_known(Ref x, int64_t axis, const std::vector<int64_t>& index) {
  Context& ctx = *x->ctx;
  if (index.empty()) return shrink_axis(x, axis, ctx.index(0), ctx.index(0));
  std::vector<Ref> parts;
  for (size_t first = 0, last; first < index.size(); first = last) { // a run of equal steps, none of them back
    if (parts.size() == kMostSlices) return Ref();
    const int64_t step = first + 1 < index.size() ? std::max<int64_t>(index[first + 1] - index[first], 0) : 1;
    for (last = first + 1; last < index.size() && index[last] - index[last - 1] == step;) ++last;
    Ref count = ctx.index(static_cast<int64_t>(last - first)), start = ctx.index(index[first]);
    if (step > 0) {
      parts.push_back(stride_axis(x, {axis, start, count, step}));
      continue;
    }
    Dims shape = dims_of(x);
    shape[static_cast<size_t>(axis)] = count;
    parts.push_back(broadcast_to(shrink_axis(x, axis, start, ctx.index(1)), shape));
  }
  return concat(parts, axis);
}

} // namespace tgc::tensor
