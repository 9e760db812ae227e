// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: lanes along a picture of which a convolution or a pooling reads each second pixel are no vector in memory.
// Idea: read all pixels and keep each second lane: for sixteen lanes two loads and a shuffle rather than sixteen loads.
// Where positions are known modulo the stride, loads begin at a multiple of it, and so do whole groups of pixels: what
// reads the other pixels of the groups reads the same vectors. A group is in the buffer if one of its pixels is, since
// the buffer is a whole number of groups. Else only the pixels that are wanted are read, under a mask.
// Not handled: bytes and 16-bit types, which have no masked loads on many machines.
#include "render/stride.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "rewrite/poly.h"
#include "rewrite/rewrite.h"
#include "rewrite/rules/tables.h"

namespace tgc {
namespace {

constexpr int64_t kMaxStep = 4;

/// `x` with `to` for `from`; what that makes constant is folded.
Ref replaced(Ref x, Ref from, Ref to) {
  PassContext context;
  static const PatternMatcher rules = const_fold() + identities();
  const std::pair<Ref, Ref> pair[] = {{from, to}};
  return graph_rewrite(substitute(x, pair), rules, context, {.name = "stride"});
}

/// Is x - offset a multiple of `step`?
bool is_multiple(Ref x, int64_t step, int64_t& offset) {
  const std::optional<Poly> p = Poly::of(x);
  if (!p) return false;
  offset = floor_mod(p->constant(), step);
  return std::all_of(p->terms().begin(), p->terms().end(),
                     [&](const Term& t) { return t.atoms.empty() || t.coefficient % step == 0; });
}

} // namespace

std::optional<StridedLoad> strided(Ref load) {
  const Ref index = load->src[1];
  Context& ctx = *load->ctx;
  if (load->dtype == DType::Bool || byte_size(load->dtype) < 4 || elements_per_load(load) > 1 || index->rank() == 0)
    return std::nullopt;
  const int64_t rank = index->rank(), lanes = dim_int(index->shape.back()).value_or(1);
  const auto iota = [&](int64_t n) {
    return ctx.make(Ops::Iota, DType::Index, {ctx.index(n)}, {{Attr::Dim, rank - 1}, {Attr::Rank, rank}});
  };
  const Ref lane = iota(lanes);
  const int64_t step = coefficient(index, lane).value_or(0);
  if (step < 2 || step > kMaxStep) return std::nullopt;
  StridedLoad out{step, 0, replaced(index, lane, ctx.index(0)), {}};
  if (out.index->rank() > 0 && !is_const(out.index->shape.back(), 1)) return std::nullopt;
  const Ref wide = iota(lanes * step);
  if (load->src.size() > 2) {
    for (Ref x : toposort(load->src[2]))
      if (x->is(Ops::Iota) && x->i(Attr::Dim) + 1 == x->i(Attr::Rank) && !(x == lane)) return std::nullopt;
    out.gate = replaced(load->src[2], lane, floordiv(wide, ctx.index(step)));
  }
  Ref buffer = load->src[0];
  while (buffer->is(Ops::After)) buffer = buffer->src[0];
  int64_t rest = 0;
  const bool in_groups = is_multiple(buffer->is(Ops::Param) ? buffer->shape[0] : buffer->src[0], step, rest);
  if (in_groups && rest == 0 && is_multiple(out.index, step, out.first)) {
    if (out.first > 0) out.index = out.index - ctx.index(out.first);
    return out;
  }
  out.first = 0;
  const Ref wanted = binary(Ops::Eq, floormod(wide, ctx.index(step)), ctx.index(0));
  out.gate = out.gate ? binary(Ops::And, out.gate, wanted) : wanted;
  return out;
}

} // namespace tgc
