// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors that are a value seen otherwise: repeated, moved, padded. Rules on tensor graphs look through the views to
// what is computed, and work on the small value under them. Not handled: zeros of a pad as the one value of all.
#include "schedule/views.h"

#include <vector>

#include "rewrite/rewrite.h"

namespace tgc {
namespace {

/// Whether all elements of `x` are elements of what it views.
bool is_view(Ref x) { return is_movement(x) && !x->is(Ops::Pad); }

} // namespace

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
  std::vector<DType> casts; // the outermost first; chains may be long
  for (; x->is(Ops::Cast) || (is_view(x) && !is_const(numel(*x->ctx, x->shape), 1)); x = x->src[0])
    if (x->is(Ops::Cast)) casts.push_back(x->dtype);
  while (is_view(x) && x->src[0]->rank() == 0) x = x->src[0];
  if (x->rank() > 0 && !is_const(numel(*x->ctx, x->shape), 1)) return {};
  Ref value = x->rank() == 0 ? simplify(x) : reshaped(x, {});
  for (size_t i = casts.size(); i-- > 0;) value = cast(value, casts[i]);
  return casts.empty() ? value : simplify(value);
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
