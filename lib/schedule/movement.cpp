// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Movement ops as index algebra: each op maps a position in its result to one in its source, so views need no objects
// and fuse by substitution. Reshape flattens and splits again, but only within the smallest groups of dims whose
// products agree ([n,4,6] -> [n,24] touches the last two only), which keeps symbolic dims out of most divisions.
// Source of the idea: tinygrad schedule/indexing.py.
#include "schedule/movement.h"

#include <algorithm>

#include "rewrite/rewrite.h"
#include "uop/diag.h"

namespace tgc {
namespace {

/// A run of source dims and a run of result dims with equal products.
struct Group {
  std::vector<size_t> source, result;
};

std::vector<size_t> wide_dims(Refs shape) {
  std::vector<size_t> out;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!is_const(shape[i], 1)) out.push_back(i);
  return out;
}

std::vector<Group> match_groups(Context& ctx, Refs source, Refs result) {
  std::vector<size_t> a = wide_dims(source), b = wide_dims(result);
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    Group g;
    Ref pa = ctx.index(1), pb = ctx.index(1);
    auto take_a = [&] { pa = dim_mul(pa, source[a[i]]), g.source.push_back(a[i++]); };
    auto take_b = [&] { pb = dim_mul(pb, result[b[j]]), g.result.push_back(b[j++]); };
    if (i < a.size()) take_a();
    if (j < b.size()) take_b();
    while (!dims_equal(pa, pb) && (i < a.size() || j < b.size())) {
      bool advance_a = j == b.size() || (i < a.size() && (pa->hi < pb->hi || (pa->hi == pb->hi && pa->lo < pb->lo)));
      if (advance_a)
        take_a();
      else
        take_b();
    }
    groups.push_back(std::move(g));
  }
  return groups;
}

std::vector<Ref> reshape_index(Ref reshape, Refs index) {
  Context& ctx = *reshape->ctx;
  Refs source = reshape->src[0]->shape;
  std::vector<Ref> out(source.size(), ctx.index(0));
  for (const Group& g : match_groups(ctx, source, reshape->shape)) {
    if (g.source.size() == 1 && g.result.size() == 1) {
      out[g.source[0]] = index[g.result[0]];
      continue;
    }
    std::vector<Ref> part, dims;
    for (size_t r : g.result) part.push_back(index[r]), dims.push_back(reshape->shape[r]);
    Ref flat = flat_index(ctx, part, dims), stride = ctx.index(1);
    for (size_t k = g.source.size(); k-- > 0;) {
      Ref dim = source[g.source[k]], at = floordiv(flat, stride);
      out[g.source[k]] = simplify(k == 0 ? at : floormod(at, dim));
      stride = dim_mul(stride, dim);
    }
  }
  return out;
}

Position pad_position(Ref pad, const Position& at) {
  size_t rank = at.index.size();
  Position out{{}, at.gate};
  for (size_t i = 0; i < rank; ++i) {
    Ref lo = pad->src[1 + i], hi = pad->src[1 + rank + i], dim = pad->src[0]->shape[i];
    if (is_const(lo, 0) && is_const(hi, 0)) {
      out.index.push_back(at.index[i]);
      continue;
    }
    Ref inside = simplify(at.index[i] - lo);
    if (!is_const(lo, 0)) out.gate = both(out.gate, simplify(lt(pad->ctx->index(-1), inside)));
    if (!is_const(hi, 0)) out.gate = both(out.gate, simplify(lt(inside, dim)));
    out.index.push_back(inside);
  }
  return out;
}

} // namespace

Ref both(Ref a, Ref b) {
  if (!a || is_const(a, 1)) return b && is_const(b, 1) ? Ref() : b;
  if (!b || is_const(b, 1) || a == b) return a;
  return simplify(logical_and(a, b));
}

Ref flat_index(Context& ctx, Refs index, Refs shape) {
  Ref flat = ctx.index(0), stride = ctx.index(1);
  for (size_t i = shape.size(); i-- > 0;) {
    flat = index[i] * stride + flat;
    stride = dim_mul(stride, shape[i]);
  }
  return simplify(flat);
}

Position source_position(Ref movement, const Position& at) {
  Context& ctx = *movement->ctx;
  Ref source = movement->src[0];
  std::vector<Ref> index = at.index;
  switch (movement->op) {
  case Ops::Permute: {
    const std::vector<int64_t>& axes = movement->ints(Attr::Axes);
    for (size_t i = 0; i < axes.size(); ++i) index[static_cast<size_t>(axes[i])] = at.index[i];
    return {index, at.gate};
  }
  case Ops::Expand:
    for (size_t i = 0; i < index.size(); ++i)
      if (is_const(source->shape[i], 1)) index[i] = ctx.index(0);
    return {index, at.gate};
  case Ops::Shrink:
    for (size_t i = 0; i < index.size(); ++i) index[i] = simplify(index[i] + movement->src[1 + i]);
    return {index, at.gate};
  case Ops::Flip:
    for (int64_t axis : movement->ints(Attr::Axes)) {
      Ref& i = index[static_cast<size_t>(axis)];
      i = simplify(dim_sub(source->shape[static_cast<size_t>(axis)], ctx.index(1)) - i);
    }
    return {index, at.gate};
  case Ops::Pad: return pad_position(movement, at);
  case Ops::Reshape: return {reshape_index(movement, at.index), at.gate};
  default: internal_error(__FILE__, __LINE__, std::string(name(movement->op)) + " is not a movement op");
  }
}

std::vector<Ref> conjuncts(Ref gate) {
  std::vector<Ref> out, todo = {gate};
  while (!todo.empty()) {
    Ref x = todo.back();
    todo.pop_back();
    if (x->is(Ops::And))
      todo.insert(todo.end(), {x->src[1], x->src[0]});
    else
      out.push_back(x);
  }
  return out;
}

} // namespace tgc
