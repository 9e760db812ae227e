// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors that are a value seen otherwise: repeated, moved, padded. Rules on tensor graphs look through the views to
// what is computed, and work on the small value under them. Not handled: zeros of a pad as the one value of all.
#include "schedule/views.h"

#include "rewrite/rewrite.h"

namespace tgc {

Ref reshaped(Ref x, Refs dims) {
  std::vector<Ref> src = {x};
  src.insert(src.end(), dims.begin(), dims.end());
  return x->ctx->make(Ops::Reshape, x->dtype, src);
}

Ref filled(Ref scalar, Refs dims) {
  Context& ctx = *scalar->ctx;
  if (dims.empty()) return scalar;
  std::vector<Ref> src = {reshaped(scalar, std::vector<Ref>(dims.size(), ctx.index(1)))};
  src.insert(src.end(), dims.begin(), dims.end());
  return ctx.make(Ops::Expand, scalar->dtype, src);
}

Ref uniform(Ref x) {
  if (x->is(Ops::Cast)) {
    const Ref inner = uniform(x->src[0]);
    return inner ? simplify(cast(inner, x->dtype)) : Ref();
  }
  while (is_movement(x) && !x->is(Ops::Pad) && !is_const(numel(*x->ctx, x->shape), 1)) x = x->src[0];
  if (x->is(Ops::Cast)) return uniform(x);
  while (is_movement(x) && !x->is(Ops::Pad) && x->src[0]->rank() == 0) x = x->src[0];
  if (x->rank() == 0) return simplify(x);
  return is_const(numel(*x->ctx, x->shape), 1) ? reshaped(x, {}) : Ref();
}

Ref scaled_view(Ref x, Ref number, Ops op) {
  std::vector<Ref> views;
  while (is_movement(x)) views.push_back(x), x = x->src[0];
  x = x->rank() == 0 ? simplify(binary(op, x, number)) : binary(op, x, filled(number, x->shape));
  for (size_t i = views.size(); i-- > 0;) {
    std::vector<Ref> src(views[i]->src.begin(), views[i]->src.end());
    src[0] = x;
    x = x->ctx->with_src(views[i], src);
  }
  return x;
}

} // namespace tgc
