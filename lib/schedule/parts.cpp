// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A concatenation is `where(i < n, a[i], b[i - n])` over the loop i of its own kernel. Cut at n, the loop becomes two,
// each with one side and no choice: no gates, and both sides are written where they belong. Mostly a side is then a
// plain copy of a buffer that lies in the result already (storage.h): nothing is left to do.
#include "schedule/parts.h"

#include <algorithm>
#include <set>

#include "rewrite/rewrite.h"
#include "schedule/movement.h"

namespace tgc {
namespace {

constexpr size_t kMostParts = 64;
constexpr int64_t kLeastElements = 1024; // below, one more launch costs more than the choices

struct ById {
  bool operator()(Ref a, Ref b) const { return a->id < b->id; }
};
using Storages = std::set<Ref, ById>;

/// Whether `value` is computed from weights and `constant` buffers alone.
bool is_constant(Ref value, const Storages& constant) {
  for (Ref x : toposort(value)) {
    if (x->is(Ops::Param) || x->is(Ops::Var)) return false;
    if (x->is(Ops::Buffer) && !constant.contains(x)) return false;
  }
  return true;
}

/// The condition `loop < bound` of a choice in `draft`, for one of the loops of its store and a bound outside of all.
Ref find_cut(const KernelDraft& draft) {
  for (Ref x : toposort(draft.value)) {
    if (!x->is(Ops::Where) || !x->src[0]->is(Ops::Lt)) continue;
    const Ref loop = x->src[0]->src[0], bound = x->src[0]->src[1];
    const Refs own = draft.index->ranges;
    if (loop->is(Ops::Range) && bound->ranges.empty() && bound->lo >= 0 && dim_sub(loop->src[0], bound)->lo >= 0 &&
        std::find(own.begin(), own.end(), loop) != own.end())
      return x->src[0];
  }
  return {};
}

/// The part of `draft` in which `condition` is `holds`: its loop runs over [first, first + extent).
KernelDraft part_of(const KernelDraft& draft, Ref condition, bool holds) {
  Context& ctx = *condition->ctx;
  const Ref loop = condition->src[0], bound = condition->src[1];
  const Ref extent = holds ? bound : dim_sub(loop->src[0], bound);
  const Ref step = is_const(extent, 1) ? ctx.index(0) : ctx.range(extent, loop->i(Attr::Id), loop->s(Attr::Axis));
  const std::pair<Ref, Ref> decided[] = {{condition, ctx.constant(DType::Bool, holds ? 1 : 0)}};
  const std::pair<Ref, Ref> moved[] = {{loop, holds ? step : step + bound}};
  return {draft.out, simplify(substitute(draft.index, moved)),
          simplify(substitute(substitute(draft.value, decided), moved)), draft.origin};
}

std::vector<KernelDraft> parts_of(const KernelDraft& whole) {
  if (!is_cut_into_parts(numel(*whole.out->ctx, whole.out->shape))) return {whole};
  std::vector<KernelDraft> open = {whole}, parts;
  while (!open.empty()) {
    const KernelDraft draft = open.back();
    open.pop_back();
    const Ref cut = parts.size() + open.size() < kMostParts ? find_cut(draft) : Ref();
    if (!cut) {
      parts.push_back(draft);
      continue;
    }
    open.push_back(part_of(draft, cut, false));
    open.push_back(part_of(draft, cut, true));
  }
  return parts;
}

/// Whether `part` copies elements of a buffer to where they are: the buffer lies in the result (storage.h).
bool is_in_place(const KernelDraft& part) {
  const Ref load = part.value;
  return load->is(Ops::Load) && load->src.size() == 2 && load->src[0] == part.out &&
         load->src[1] == simplify(part.index);
}

} // namespace

bool is_cut_into_parts(Ref elements) { return !dim_int(elements) || *dim_int(elements) >= kLeastElements; }

std::vector<KernelDraft> make_in_place(const std::vector<KernelDraft>& kernels) {
  Storages constant;
  std::vector<KernelDraft> parts;
  for (const KernelDraft& draft : kernels) {
    if (!draft.is_fill && is_constant(draft.value, constant)) {
      constant.insert(draft.out);
      parts.push_back(draft);
      continue;
    }
    for (const KernelDraft& part : parts_of(draft))
      if (!is_in_place(part)) parts.push_back(part);
  }
  return parts;
}

} // namespace tgc
