// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Width as shape. Substituting an Iota of its own dim for a range makes everything that depends on it a shaped value by
// implicit broadcasting; nothing is unrolled or scalarised. What a reduction over such a dim means is then explicit: it
// folds the dim. Lane accesses are recognised afterwards by the coefficient of the lane Iota in the index.
// Source of the idea: tinygrad codegen expander; there the result is devectorized again, here it stays shaped.
#include "rewrite/lower/expand.h"

#include <algorithm>

#include "rewrite/lower/transpose.h"
#include "rewrite/rewrite.h"
#include "uop/diag.h"

namespace tgc {
namespace {

/// Terms of an Index sum, with Sub as a negated second term left whole (it then counts as not affine).
std::vector<Ref> sum_terms(Ref index) {
  std::vector<Ref> terms, stack = {index};
  while (!stack.empty()) {
    Ref x = stack.back();
    stack.pop_back();
    if (x->is(Ops::Add)) {
      stack.push_back(x->src[1]);
      stack.push_back(x->src[0]);
    } else {
      terms.push_back(x);
    }
  }
  return terms;
}

bool reaches(Ref from, Ref target) {
  if (target->is(Ops::Range)) return std::find(from->ranges.begin(), from->ranges.end(), target) != from->ranges.end();
  std::vector<Ref> order = toposort(from);
  return std::find(order.begin(), order.end(), target) != order.end();
}

/// Reduce with ranges turned into dims: those leave the closed list and become axes.
Ref expanded_reduce(Ref node, const std::vector<Ref>& src, const std::vector<Ref>& dims) {
  Context& ctx = *node->ctx;
  std::vector<Ref> kept = {src[0]};
  std::vector<int64_t> axes;
  for (size_t i = 1; i < src.size(); ++i) {
    if (src[i]->is(Ops::Range))
      kept.push_back(src[i]);
    else
      axes.push_back(src[i]->i(Attr::Dim));
  }
  if (axes.empty()) return ctx.make(Ops::Reduce, node->dtype, src, *node->attrs);
  std::vector<Ref> shape(dims.size(), ctx.index(1)); // full rank, so that dims are counted from the left
  std::copy(src[0]->shape.begin(), src[0]->shape.end(), shape.end() - src[0]->rank());
  for (int64_t axis : axes)
    TGC_CHECK(!is_const(shape[static_cast<size_t>(axis)], 1), "a reduced range does not occur in its value");
  int64_t offset = static_cast<int64_t>(dims.size()) - src[0]->rank();
  for (int64_t& axis : axes) axis -= offset;
  std::sort(axes.begin(), axes.end());
  return ctx.make(Ops::Reduce, node->dtype, kept,
                  {{Attr::Kind, node->s(Attr::Kind)}, {Attr::Axes, axes}, {Attr::Keep, int64_t{1}}});
}

} // namespace

Ref expand(Ref kernel) {
  Context& ctx = *kernel->ctx;
  std::vector<Ref> order = toposort(kernel), upcast, lane;
  for (Ref node : order) {
    if (!node->is(Ops::Range)) continue;
    if (node->s(Attr::Axis) == "upcast") upcast.push_back(node);
    if (node->s(Attr::Axis) == "lane") lane.push_back(node);
  }
  if (upcast.empty() && lane.empty()) return kernel;
  std::sort(upcast.begin(), upcast.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
  int64_t rank = static_cast<int64_t>(upcast.size()) + 1;
  std::vector<Ref> dims(static_cast<size_t>(rank)), expanded(ctx.size());
  for (Ref node : order) {
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(expanded[s->id]);
    bool is_lane = node->is(Ops::Range) && node->s(Attr::Axis) == "lane";
    auto at = std::find(upcast.begin(), upcast.end(), node);
    if (is_lane || at != upcast.end()) {
      int64_t dim = is_lane ? rank - 1 : at - upcast.begin();
      expanded[node->id] = ctx.make(Ops::Iota, DType::Index, {node->src[0]}, {{Attr::Dim, dim}, {Attr::Rank, rank}});
    } else if (node->is(Ops::Reduce)) {
      expanded[node->id] = expanded_reduce(node, src, dims);
    } else if (node->is(Ops::End)) {
      std::erase_if(src, [](Ref s) { return s->is(Ops::Iota); });
      expanded[node->id] = src.size() == 1 ? src[0] : ctx.with_src(node, src);
    } else {
      expanded[node->id] = ctx.with_src(node, src);
    }
  }
  return expanded[kernel->id];
}

bool depends(Ref x, Ref range) { return std::find(x->ranges.begin(), x->ranges.end(), range) != x->ranges.end(); }

std::optional<int64_t> coefficient(Ref index, Ref variable) {
  int64_t sum = 0;
  for (Ref term : sum_terms(index)) {
    if (term == variable) {
      ++sum;
    } else if (term->is(Ops::Mul) && term->src[0] == variable && const_int(term->src[1])) {
      sum += *const_int(term->src[1]);
    } else if (reaches(term, variable)) {
      return std::nullopt;
    }
  }
  return sum;
}

namespace {

/// `reduce` over `value` of lower rank than it had: leading dims of extent 1 are gone, axes count from the last dim.
void move_axes(Attrs& attrs, Ref reduce, Ref value) {
  const int64_t lost = reduce->src[0]->rank() - value->rank();
  for (AttrItem& a : attrs)
    if (a.key == Attr::Axes)
      for (int64_t& axis : std::get<std::vector<int64_t>>(a.value)) axis -= lost;
}

} // namespace

Ref lower_access(Ref kernel) {
  Context& ctx = *kernel->ctx;
  std::vector<Ref> order = toposort(kernel), lowered(ctx.size());
  for (Ref node : order) {
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(lowered[s->id]);
    Attrs attrs = *node->attrs;
    bool access = (node->is(Ops::Load) || node->is(Ops::Store)) && src.size() >= 2 && src[1]->rank() > 0;
    if (access && !is_const(src[1]->shape.back(), 1)) {
      int64_t rank = src[1]->rank();
      Ref iota = ctx.make(Ops::Iota, DType::Index, {src[1]->shape.back()}, {{Attr::Dim, rank - 1}, {Attr::Rank, rank}});
      std::pair<Ref, Ref> first_lane[] = {{iota, ctx.index(0)}};
      const int64_t step = node->is(Ops::Load) ? elements_per_load(node) : 1;
      // Bytes loaded as words have no masked form: where lanes differ, each is loaded by itself.
      const bool by_lane = step > 1 && src.size() > 2 && src[2]->rank() > 0 && !is_const(src[2]->shape.back(), 1);
      Ref first = coefficient(src[1], iota) == step ? simplify(substitute(src[1], first_lane)) : src[1];
      if (!by_lane &&
          (first->rank() == 0 || is_const(first->shape.back(), 1))) { // else a loaded position differs between lanes
        attrs.push_back({Attr::Lanes, *dim_int(src[1]->shape.back())});
        src[1] = first;
      } else if (const Ref turned = transposed_access(ctx.with_src(node, src))) {
        lowered[node->id] = turned;
        continue;
      }
    }
    if (node->is(Ops::Reduce) && node->has(Attr::Axes)) move_axes(attrs, node, src[0]);
    lowered[node->id] =
        access || node->is(Ops::Reduce) ? ctx.make(node->op, node->dtype, src, attrs) : ctx.with_src(node, src);
  }
  return lowered[kernel->id];
}

Ref order_sums(Ref kernel) {
  Context& ctx = *kernel->ctx;
  auto depth = [](Ref x) { return is_const(x) ? INT64_MAX : x->ranges.empty() ? -1 : x->ranges.back()->i(Attr::Id); };
  std::vector<Ref> order = toposort(kernel), done(ctx.size());
  std::vector<bool> whole(ctx.size()); // sums read by something other than a larger sum
  for (Ref node : order)
    for (Ref s : node->src)
      if (!node->is(Ops::Add) || node->dtype != DType::Index || !s->is(Ops::Add)) whole[s->id] = true;
  for (Ref node : order) {
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(done[s->id]);
    if (!node->is(Ops::Add) || node->dtype != DType::Index || !whole[node->id]) {
      done[node->id] = ctx.with_src(node, src);
      continue;
    }
    std::vector<Ref> terms = sum_terms(node);
    for (Ref& t : terms) t = done[t->id];
    std::stable_sort(terms.begin(), terms.end(), [&](Ref a, Ref b) { return depth(a) < depth(b); });
    Ref sum = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
    done[node->id] = sum;
  }
  return done[kernel->id];
}

} // namespace tgc
