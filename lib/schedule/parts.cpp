// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A concatenation is `where(i < n, a[i], b[i - n])` over the loop i of its own kernel. Cut at n, the loop becomes two,
// each with one side and no choice: no gates, and both sides are written where they belong. Mostly a side is then a
// plain copy of a buffer to a run of the result's elements, and that buffer may as well be that run: its kernel stores
// there, its readers read there, and the copy is gone. Chains (a block that appends to its input again and again) end
// up in one buffer. Not here: parts that are not one run of elements (a concatenation along an inner dim, or along
// channels of several images), which stay copies, and parts in graph inputs and outputs.
#include "schedule/parts.h"

#include <algorithm>
#include <map>
#include <optional>
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
  const std::optional<int64_t> elements = dim_int(numel(*whole.out->ctx, whole.out->shape));
  if (elements && *elements < kLeastElements) return {whole};
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

/// Where element 0 of a buffer lies in another.
struct Place {
  Ref home, offset;
};

/// If `part` does no more than copy a buffer to a run of its result: where that buffer could lie.
std::optional<Place> place_of(const KernelDraft& part) {
  const Ref load = part.value;
  if (!load->is(Ops::Load) || load->src.size() != 2 || !load->src[0]->is(Ops::Buffer) || !part.out->is(Ops::Buffer))
    return std::nullopt;
  Context& ctx = *load->ctx;
  std::vector<Ref> loops(load->src[1]->ranges.begin(), load->src[1]->ranges.end()), extents;
  std::sort(loops.begin(), loops.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
  for (Ref loop : loops) extents.push_back(loop->src[0]);
  const Ref offset = simplify(part.index - load->src[1]);
  const bool is_whole = dims_equal(numel(ctx, extents), numel(ctx, load->src[0]->shape)) &&
                        load->src[1] == flat_index(ctx, loops, extents);
  if (!is_whole || !offset->ranges.empty() || load->src[0] == part.out) return std::nullopt;
  return Place{part.out, offset};
}

class Moves {
public:
  void add(Ref buffer, const Place& place) { places_[buffer] = place; }
  bool has(Ref buffer) const { return places_.contains(buffer); }
  bool empty() const { return places_.empty(); }

  KernelDraft apply(const KernelDraft& draft) const {
    std::map<Ref, Ref, ById> done;
    for (Ref x : toposort(draft.value)) {
      std::vector<Ref> src;
      for (Ref s : x->src) src.push_back(done.at(s));
      if (x->is(Ops::Load) && has(x->src[0])) {
        const Place at = resolve(x->src[0]);
        src[0] = at.home;
        src[1] = simplify(src[1] + at.offset);
      }
      done[x] = x->src.empty() ? x : x->ctx->with_src(x, src);
    }
    if (!has(draft.out)) return {draft.out, draft.index, done.at(draft.value), draft.origin};
    const Place at = resolve(draft.out);
    return {at.home, simplify(draft.index + at.offset), done.at(draft.value), draft.origin};
  }

private:
  Place resolve(Ref buffer) const {
    Place at = places_.at(buffer);
    while (has(at.home)) {
      const Place& next = places_.at(at.home);
      at = {next.home, dim_add(at.offset, next.offset)};
    }
    return at;
  }
  std::map<Ref, Place, ById> places_;
};

} // namespace

std::vector<KernelDraft> make_in_place(const std::vector<KernelDraft>& kernels) {
  Storages constant;
  Moves moves;
  std::vector<KernelDraft> parts;
  for (const KernelDraft& draft : kernels) {
    if (is_constant(draft.value, constant)) {
      constant.insert(draft.out);
      parts.push_back(draft);
      continue;
    }
    for (const KernelDraft& part : parts_of(draft)) {
      const std::optional<Place> place = place_of(part);
      const bool moves_in = place && !moves.has(part.value->src[0]) && !constant.contains(part.value->src[0]);
      if (moves_in) moves.add(part.value->src[0], *place);
      if (!moves_in) parts.push_back(part);
    }
  }
  if (!moves.empty())
    for (KernelDraft& part : parts) part = moves.apply(part);
  return parts;
}

} // namespace tgc
