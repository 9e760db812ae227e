// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A staged value is written by a loop nest of its own and read back by flat index. Ordering is an edge (After), not a
// position: the linearizer places the nest in the innermost loop that its value still depends on.
#include "rewrite/lower/stage.h"

#include "rewrite/rewrite.h"

namespace tgc {
namespace {

Ref flat(Context& ctx, Refs index, Refs ranges) {
  Ref sum = ctx.index(0), stride = ctx.index(1);
  for (size_t i = ranges.size(); i-- > 0;) {
    sum = index[i] * stride + sum;
    stride = dim_mul(stride, ranges[i]->src[0]);
  }
  return simplify(sum);
}

} // namespace

Ref lower_stage(Ref kernel) {
  Context& ctx = *kernel->ctx;
  std::vector<Ref> order = toposort(kernel), lowered(ctx.size());
  int64_t slots = 0;
  for (Ref node : order) {
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(lowered[s->id]);
    if (node->is(Ops::Stage)) {
      Refs ranges = Refs(src).subspan(1);
      Ref size = ctx.index(1);
      for (Ref r : ranges) size = dim_mul(size, r->src[0]);
      Ref buffer =
          ctx.make(Ops::Buffer, node->dtype, {size}, {{Attr::Slot, slots++}, {Attr::Space, node->s(Attr::Space)}});
      std::vector<Ref> end = {ctx.make(Ops::Store, DType::Void, {buffer, flat(ctx, ranges, ranges), src[0]})};
      end.insert(end.end(), ranges.begin(), ranges.end());
      lowered[node->id] = ctx.make(Ops::After, DType::Void, {buffer, ctx.make(Ops::End, DType::Void, end)});
    } else if (node->is(Ops::Pick)) {
      Refs ranges = node->src[0]->src.subspan(1);
      lowered[node->id] = ctx.make(Ops::Load, node->dtype, {src[0], flat(ctx, Refs(src).subspan(1), ranges)});
    } else {
      lowered[node->id] = ctx.with_src(node, src);
    }
  }
  return lowered[kernel->id];
}

} // namespace tgc
