// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masks of tails and paddings compare lane positions, which are Index values and so 64 bits wide: a mask of sixteen
// lanes would cost two or four vector compares. Bounds are known, so the comparison moves to 32 bits, and the narrowing
// moves down to the leaves as long as every intermediate value fits; what is scalar stays 64-bit and is converted once.
#include <limits>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"

namespace tgc {
namespace {

bool fits(Ref x) {
  return x->lo >= std::numeric_limits<int32_t>::min() && x->hi <= std::numeric_limits<int32_t>::max();
}

bool shaped(Ref x) { return x->rank() > 0 && !is_const(x->shape.back(), 1); }

/// Does arithmetic on narrowed operands give this node's value?
bool distributes(Ref x) {
  return shaped(x) && (x->is(Ops::Add) || x->is(Ops::Sub) || x->is(Ops::Mul)) && fits(x->src[0]) && fits(x->src[1]);
}

bool compares_lanes(Ref x) {
  return x->cls() == OpClass::Compare && shaped(x) && x->src[0]->dtype == DType::Index && fits(x->src[0]) &&
         fits(x->src[1]);
}

} // namespace

Ref narrow_masks(Ref kernel) {
  Context& ctx = *kernel->ctx;
  std::vector<Ref> order = toposort(kernel), done(ctx.size()), narrow(ctx.size());
  auto narrowed = [&](Ref x) { return narrow[x->id] ? narrow[x->id] : cast(done[x->id], DType::I32); };
  for (Ref node : order) {
    if (node->dtype == DType::Index && fits(node)) {
      if (std::optional<int64_t> c = const_int(node))
        narrow[node->id] = ctx.constant_int(DType::I32, *c);
      else if (distributes(node))
        narrow[node->id] = ctx.make(node->op, DType::I32, {narrowed(node->src[0]), narrowed(node->src[1])});
    }
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(compares_lanes(node) ? narrowed(s) : done[s->id]);
    done[node->id] = ctx.with_src(node, src);
  }
  return done[kernel->id];
}

} // namespace tgc
