// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a convolution over packed weights wants its channels in the lanes of a vector, ONNX wants them outside of
// the picture; and a concatenation wants its parts to be made where they end up.
// Idea: the order of a buffer's dims is nobody's business but the scheduler's. The axis along which only the constant
// operand of a product moves is the one to have innermost: that operand is packed along the lanes, the other one is
// broadcast, whatever its order. Values without such a product take the order of what they read most of. No buffer is
// copied for it: graph inputs and outputs keep their order, and are read and written across. Then a buffer that a
// choice by position only copies lies in the result from the start, as a box of it; the copying kernel is left with
// the other parts (parts.h).
// And a window that reads beyond the edge reads zeros that are stored there, once, rather than asking at every load;
// but not if a graph input had to be copied for it whose loads are masked at no cost.
// Not handled: dims cut into blocks.
#include "schedule/storage.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "rewrite/lower/expand.h"
#include "rewrite/poly.h"
#include "rewrite/rewrite.h"
#include "schedule/byte_products.h"
#include "schedule/parts.h"
#include "schedule/region.h"

namespace tgc {
namespace {

constexpr int64_t kLanes = 16; // a shorter axis would leave lanes empty

bool depends(const Position& at, Ref range) {
  return (at.gate && depends(at.gate, range)) ||
         std::any_of(at.index.begin(), at.index.end(), [&](Ref i) { return depends(i, range); });
}

/// The least number, of those up to kMostAround, that added to `x` makes it surely >= 0; one more if none does.
int64_t shortfall(Ref x) {
  if (x->lo >= -kMostAround) return std::max<int64_t>(0, -x->lo);
  std::optional<Poly> sum = Poly::of(x);
  int64_t number = 0;
  while (number <= kMostAround && !(sum && sum->is_non_negative())) {
    ++number;
    if (sum && !sum->add(Poly(1))) sum.reset();
  }
  return number;
}

} // namespace

bool Storage::is_buffer(Ref node) const {
  const State& s = states_[node->id];
  return s.fusion == Fusion::Realize && !s.storage && is_live_[node->id];
}

/// What is read from memory to compute `node` at `use`.
std::vector<Storage::Access> Storage::accesses(Ref node, const Use& use) const {
  std::vector<Access> out, todo = {{node, &use}};
  std::set<const Use*> seen;
  while (!todo.empty()) {
    const Access at = todo.back();
    todo.pop_back();
    for (size_t i = 0; i < at.use->source_use.size(); ++i) {
      const Ref source = at.source->src[i];
      const State& s = states_[source->id];
      const Access next = {source, &s.uses[at.use->source_use[i]]};
      if (!seen.insert(next.use).second) continue;
      if (source->cls() == OpClass::Leaf || s.fusion == Fusion::Realize)
        out.push_back(next);
      else
        todo.push_back(s.fusion == Fusion::Stage ? Access{source, &s.inner} : next);
    }
  }
  return out;
}

/// The axis of `node` along which the elements of its buffer follow each other; -1 if it has none.
int64_t Storage::last_axis(Ref node) const {
  const std::vector<int64_t>& order = places_[node->id].order;
  for (size_t i = node->shape.size(); i-- > 0;) {
    const int64_t axis = order.empty() ? static_cast<int64_t>(i) : order[i];
    if (!is_const(node->shape[static_cast<size_t>(axis)], 1)) return axis;
  }
  return -1;
}

/// The sum of products that is computed with `node`; no source if there is none.
Storage::Access Storage::product_in(Ref node) const {
  std::set<const Use*> seen;
  std::vector<Access> todo = {{node, &states_[node->id].inner}};
  while (!todo.empty()) {
    const Access product = todo.back();
    todo.pop_back();
    if (is_contraction(product.source)) return product;
    for (size_t i = 0; i < product.use->source_use.size(); ++i) {
      const Ref source = product.source->src[i];
      if (states_[source->id].fusion != Fusion::Inline || source->cls() == OpClass::Leaf) continue;
      const Use* use = &states_[source->id].uses[product.use->source_use[i]];
      if (seen.insert(use).second) todo.push_back({source, use});
    }
  }
  return {};
}

/// What the product of `node` multiplies.
Storage::Factors Storage::factors_of(const Access& product) const {
  Factors out;
  if (!product.source || product.use->source_use.empty()) return out; // a sum of nothing
  const Ref factors = product.source->src[0];
  const Use& at = states_[factors->id].uses[product.use->source_use[0]];
  for (size_t i = 0; i < at.source_use.size(); ++i) {
    const Ref factor = factors->src[i];
    std::vector<Access>& side = is_live_[factor->id] ? out.live : out.constant;
    const State& f = states_[factor->id];
    const Use& use = f.uses[at.source_use[i]];
    if (factor->cls() == OpClass::Leaf || f.fusion == Fusion::Realize)
      side.push_back({factor, &use});
    else
      for (const Access& a : accesses(factor, use)) side.push_back(a);
  }
  return out;
}

/// The axis of `node`, of at least `least` elements, along which the constant operand of its product moves and the
/// other one does not; -1 if none.
int64_t Storage::lanes_of_product(Ref node, const Factors& factors, int64_t least) const {
  const State& s = states_[node->id];
  if (factors.constant.empty() || factors.live.empty()) return -1;
  for (size_t i = s.fresh.size(); i-- > 0;) {
    const Ref range = s.inner.at.index[s.fresh[i]];
    const auto moves = [&](const Access& a) { return depends(a.use->at, range); };
    if (range->is(Ops::Range) && range->src[0]->lo >= least &&
        std::any_of(factors.constant.begin(), factors.constant.end(), moves) &&
        std::none_of(factors.live.begin(), factors.live.end(), moves))
      return static_cast<int64_t>(s.fresh[i]);
  }
  return -1;
}

/// Uses of graph inputs by products without such an axis, depthwise convolutions: lanes run along the picture, where a
/// mask costs less than a copy between zeros.
std::set<const Use*> Storage::masked_uses(const std::vector<Ref>& order) const {
  std::set<const Use*> out;
  for (Ref node : order) {
    if (states_[node->id].fusion != Fusion::Realize || !is_live_[node->id]) continue;
    const Factors factors = factors_of(product_in(node));
    if (factors.constant.empty() || lanes_of_product(node, factors, 2) >= 0) continue;
    for (const Access& a : factors.live)
      if (a.source->is(Ops::Param)) out.insert(a.use);
  }
  return out;
}

/// The axis of `node` that runs along the elements of most of what it reads; -1 if none does.
int64_t Storage::inherited_lanes(Ref node) const {
  const State& s = states_[node->id];
  std::vector<double> weight(node->shape.size(), 0);
  for (const Access& a : accesses(node, s.inner)) {
    if (a.use->at.index.empty()) continue;
    const int64_t last = last_axis(a.source);
    if (last < 0) continue;
    for (size_t axis : s.fresh)
      if (depends(a.use->at.index[static_cast<size_t>(last)], s.inner.at.index[axis]))
        weight[axis] += static_cast<double>(std::min(numel(ctx_, a.source->shape)->hi, numel(ctx_, node->shape)->hi));
  }
  const auto best = std::max_element(weight.rbegin(), weight.rend()); // of parts of an axis, the inner one
  return best == weight.rend() || *best == 0 ? -1 : weight.rend() - best - 1;
}

void Storage::choose_order(Ref node) {
  int64_t lanes = words_[node->id];
  if (lanes < 0) {
    const Access product = product_in(node);
    if (product.source && is_live_[product.source->src[0]->src[0]->id] && is_live_[product.source->src[0]->src[1]->id])
      return; // its factors' order is as good as any
    lanes = product.source ? lanes_of_product(node, factors_of(product), kLanes) : -1;
    if (lanes < 0) lanes = inherited_lanes(node);
  }
  if (lanes < 0 || lanes == last_axis(node)) return;
  put_last(node, lanes);
}

void Storage::put_last(Ref node, int64_t lanes) {
  std::vector<int64_t>& order = places_[node->id].order;
  order.resize(node->shape.size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + lanes);
  order.push_back(lanes);
}

/// The box of `home` that `part`, which `home` copies, would lie in.
std::optional<Storage::Place> Storage::box_in(Ref home, const Access& part) const {
  const State& h = states_[home->id];
  Place box{.home = home, .axis = {}, .offset = {}};
  std::vector<bool> used(home->shape.size(), false);
  for (size_t a = 0; a < part.source->shape.size(); ++a) {
    const Ref index = part.use->at.index[a];
    box.axis.push_back(-1);
    box.offset.push_back(ctx_.index(0));
    if (is_const(part.source->shape[a], 1)) continue;
    for (size_t axis : h.fresh) {
      const Ref range = h.inner.at.index[axis], offset = simplify(range - index);
      if (!range->is(Ops::Range) || used[axis] || !depends(index, range) || !offset->ranges.empty()) continue;
      used[axis] = true;
      box.axis.back() = static_cast<int64_t>(axis);
      box.offset.back() = offset;
    }
    if (box.axis.back() < 0) return {};
  }
  for (size_t axis = 0; axis < used.size(); ++axis)
    if (!used[axis] && !is_const(home->shape[axis], 1)) return {};
  return box;
}

/// Whether `regions`, those of its home that read `part`, are its box: no less, or an element of it would lie where
/// another value does, and each once. They may be pieces along one axis.
bool Storage::is_whole(Ref part, const Place& box, std::vector<Region> regions) const {
  size_t cuts = 0;
  for (size_t a = 0; a < part->shape.size(); ++a) {
    if (box.axis[a] < 0) continue;
    const auto axis = static_cast<size_t>(box.axis[a]);
    const Ref begin = box.offset[a], end = simplify(begin + part->shape[a]);
    const auto is_full = [&](const Region& r) { return equals(r.lo(axis), begin) && equals(r.hi(axis), end); };
    if (std::all_of(regions.begin(), regions.end(), is_full)) continue;
    Ref at = begin;
    for (size_t n = 0; n < regions.size(); ++n) {
      const auto next = std::find_if(regions.begin() + static_cast<std::ptrdiff_t>(n), regions.end(),
                                     [&](const Region& r) { return equals(r.lo(axis), at); });
      if (next == regions.end()) return false;
      at = next->hi(axis);
      std::iter_swap(regions.begin() + static_cast<std::ptrdiff_t>(n), next);
    }
    if (++cuts > 1 || !equals(at, end)) return false;
  }
  return cuts == 1 || regions.size() == 1;
}

/// A choice of the graph at `use`, as a condition on ranges; null if it is not between a position and a dim.
Ref Storage::condition_at(Ref node, const Use* use) const {
  const auto follow = [&](Ref& x, const Use*& at) {
    for (; x->cls() == OpClass::Movement && !x->is(Ops::Pad); x = x->src[0])
      at = &states_[x->src[0]->id].uses[at->source_use[0]];
  };
  follow(node, use);
  if (!node->is(Ops::Lt) || use->source_use.empty()) return {};
  Ref sides[2];
  for (size_t i = 0; i < 2; ++i) {
    Ref side = node->src[i];
    const Use* at = &states_[side->id].uses[use->source_use[i]];
    follow(side, at);
    const bool is_dim = side->rank() == 0 && side->dtype == DType::Index && !is_live_[side->id];
    if (!side->is(Ops::Iota) && !is_dim) return {};
    sides[i] = is_dim ? side : at->at.index[static_cast<size_t>(side->i(Attr::Dim, 0))];
  }
  return simplify(lt(sides[0], sides[1]));
}

/// Places what `home` only copies, by a chain of choices between views: what it copies the whole of, once.
void Storage::take_in(Ref home) {
  if (!is_cut_into_parts(numel(ctx_, home->shape))) return;
  struct Path {
    Access at;
    std::optional<Region> region; ///< none: not a box
  };
  struct Part {
    Ref source;
    std::optional<Place> box; ///< none: it cannot be placed
    std::vector<Region> regions;
  };
  std::vector<Part> parts;
  const auto copies = [&](Access access, std::optional<Region> region) {
    const std::optional<Place> box = box_in(home, access);
    if (region && access.use->at.gate && !region->narrow(access.use->at.gate, true)) region.reset();
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.source == access.source; });
    if (part == parts.end()) part = parts.insert(part, {access.source, box, {}});
    const bool is_same = box && part->box && box->axis == part->box->axis &&
                         std::equal(box->offset.begin(), box->offset.end(), part->box->offset.begin(), equals);
    if (!is_same || !region) return part->box.reset();
    part->regions.push_back(*region);
  };
  std::vector<Path> todo = {{{home, &states_[home->id].inner}, Region(states_[home->id].inner.at.index)}};
  while (!todo.empty()) {
    const auto [at, region] = todo.back();
    todo.pop_back();
    const bool is_view = at.source->cls() == OpClass::Movement;
    if (!at.source->is(Ops::Where) && !is_view) continue;
    const auto use_of = [&](size_t i) { return &states_[at.source->src[i]->id].uses[at.use->source_use[i]]; };
    const Ref condition = is_view ? Ref() : condition_at(at.source->src[0], use_of(0));
    for (size_t i = at.use->source_use.size(); i-- > (is_view ? 0U : 1U);) {
      const Ref source = at.source->src[i];
      std::optional<Region> taken = region;
      if (!is_view && taken && (!condition || !taken->narrow(condition, i == 1))) taken.reset();
      if (states_[source->id].fusion == Fusion::Realize)
        copies({source, use_of(i)}, taken);
      else if (states_[source->id].fusion == Fusion::Inline && source->cls() != OpClass::Leaf)
        todo.push_back({{source, use_of(i)}, taken});
    }
  }
  for (const Part& part : parts) {
    Place& place = places_[part.source->id];
    if (!part.box || !is_buffer(part.source) || place.home || part.source->dtype != home->dtype) continue;
    bool is_around = false;
    for (Ref at = home; at; at = places_[at->id].home) is_around |= at == part.source;
    if (!is_around && is_whole(part.source, *part.box, part.regions)) place = *part.box;
  }
}

/// The use of storage by which a Pad is read at `use`; null if what it pads is computed.
Use* Storage::read_by(Ref pad, const Use& use) {
  Ref node = pad;
  const Use* at = &use;
  while (states_[node->id].fusion == Fusion::Inline && !at->source_use.empty()) {
    const size_t data = constant_around(node) ? 1 : 0;
    if (data == 0 && node->cls() != OpClass::Movement) return nullptr;
    at = &states_[node->src[data]->id].uses[at->source_use[data]];
    node = node->src[data];
  }
  const bool is_storage = states_[node->id].fusion == Fusion::Realize || node->is(Ops::Param);
  return is_storage ? const_cast<Use*>(at) : nullptr;
}

/// Which uses want another constant than zero outside: those that are read only through Pads whose zeros are replaced
/// by it, all by the same.
void Storage::find_constants_around(const std::vector<Ref>& order) {
  std::vector<int> readers(states_.size());
  std::vector<Ref> wanted(states_.size()); // by Pad
  for (Ref node : order) {
    if (node->cls() != OpClass::Leaf)
      for (Ref s : data_sources(node)) ++readers[s->id];
    const Ref around = states_[node->id].fusion == Fusion::Inline ? constant_around(node) : Ref();
    if (around) wanted[node->src[1]->id] = around;
  }
  std::vector<Use*> others;
  for (Ref node : order)
    for (const Use& use : states_[node->id].uses) {
      if (!node->is(Ops::Pad)) break;
      Use* of = read_by(node, use);
      if (!of) continue;
      const Ref around = readers[node->id] == 1 ? wanted[node->id] : Ref();
      if (!around || (of->around && !(of->around == around)))
        others.push_back(of);
      else
        of->around = around;
    }
  for (Use* use : others) use->around = Ref();
}

/// Along which axes bytes are multiplied four at a time: those that a range of the sum walks by itself.
void Storage::find_words(const std::vector<Ref>& order) {
  for (Ref node : order) {
    if (!is_contraction(node) || node->dtype != DType::I32) continue;
    const State& s = states_[node->id];
    if (s.fusion == Fusion::Inline)
      for (const Use& use : s.uses) find_words_of(node, use);
    else
      find_words_of(node, s.inner);
  }
}

void Storage::find_words_of(Ref sum, const Use& use) {
  if (use.source_use.empty()) return;
  const Ref product = sum->src[0];
  const Use& at = states_[product->id].uses[use.source_use[0]];
  for (size_t i = 0; i < at.source_use.size(); ++i) {
    const Ref factor = product->src[i];
    if (!factor->is(Ops::Cast) || factor->src[0]->dtype != DType::U8) continue;
    for (const Access& a : accesses(factor, states_[factor->id].uses[at.source_use[i]]))
      for (size_t axis = 0; axis < a.use->at.index.size(); ++axis) {
        const Ref index = a.use->at.index[axis];
        const bool walks = index->is(Ops::Range) && index->s(Attr::Axis) == "reduce" && a.source->dtype == DType::U8;
        if (walks && dim_int(index->src[0]).value_or(1) % 4 == 0) words_[a.source->id] = static_cast<int64_t>(axis);
      }
  }
}

void Storage::choose(const std::vector<Ref>& order) {
  find_words(order);
  find_constants_around(order);
  for (Ref node : order)
    if (is_buffer(node)) choose_order(node);
  for (Ref node : order)
    if (is_buffer(node)) take_in(node);
  const std::set<const Use*> masked = masked_uses(order);
  for (Ref node : order) {
    const bool is_input = node->is(Ops::Param) && node->rank() > 0;
    if (!is_input && !is_buffer(node)) continue;
    for (Use& use : states_[node->id].uses)
      use.zero_outside = use.at.gate && masked.count(&use) == 0 && surround(node, use);
    const int64_t words = is_input ? words_[node->id] : -1;
    if (words < 0 || words == last_axis(node)) continue;
    put_last(node, words); // it is copied
    for (Use& use : states_[node->id].uses) use.zero_outside |= !use.at.gate;
  }
}

/// Stores zeros where a sum reads beyond `node` if that is near it, so that the gate of `use` need not be asked. A
/// graph input is copied for that.
bool Storage::surround(Ref node, const Use& use) {
  const size_t rank = node->shape.size();
  std::vector<int64_t> lo(rank, 0), hi(rank, 0);
  std::vector<Ref> inside;
  bool sums = false;
  for (size_t a = 0; a < rank; ++a) {
    const Ref index = use.at.index[a];
    for (Ref r : index->ranges) sums |= r->s(Attr::Axis) == "reduce";
    inside.push_back(simplify(index));
    inside.push_back(simplify(node->shape[a] - index - 1));
    if (inside[2 * a]->lo >= 0 && inside[2 * a + 1]->lo >= 0) continue;
    lo[a] = shortfall(inside[2 * a]);
    hi[a] = shortfall(inside[2 * a + 1]);
    if (lo[a] > kMostAround || hi[a] > kMostAround) return false;
  }
  for (Ref condition : conjuncts(use.at.gate)) { // all of it must say no more than that each index is inside
    if (!condition->is(Ops::Lt)) return false;
    if (std::find(inside.begin(), inside.end(), simplify(condition->src[1] - condition->src[0] - 1)) == inside.end())
      return false;
  }
  if (!sums) return false;
  while (places_[node->id].home) {
    const Place& place = places_[node->id];
    std::vector<int64_t> outer_lo(place.home->shape.size(), 0), outer_hi = outer_lo;
    for (size_t a = 0; a < lo.size(); ++a) {
      if (lo[a] == 0 && hi[a] == 0) continue;
      const size_t axis = static_cast<size_t>(place.axis[a]);
      if (place.axis[a] < 0 || !dims_equal(node->shape[a], place.home->shape[axis])) return false;
      outer_lo[axis] = lo[a], outer_hi[axis] = hi[a];
    }
    lo = outer_lo, hi = outer_hi;
    node = place.home;
  }
  Place& place = places_[node->id];
  if (!place.lo.empty() && !(place.around == use.around)) return false;
  place.around = use.around;
  place.lo.resize(lo.size()), place.hi.resize(lo.size());
  for (size_t a = 0; a < lo.size(); ++a) {
    place.lo[a] = std::max(place.lo[a], lo[a]);
    place.hi[a] = std::max(place.hi[a], hi[a]);
  }
  return true;
}

/// The extent of an axis of a buffer.
Ref Storage::with_zeros(Ref node, size_t axis) const {
  const Place& place = places_[node->id];
  return place.lo.empty() ? node->shape[axis] : dim_add(node->shape[axis], ctx_.index(place.lo[axis] + place.hi[axis]));
}

/// What is given for each axis, from the outermost dim of the buffer to the innermost.
std::vector<Ref> Storage::ordered(Ref node, const std::vector<Ref>& by_axis) const {
  const std::vector<int64_t>& order = places_[node->id].order;
  std::vector<Ref> out = by_axis;
  for (size_t i = 0; i < order.size(); ++i) out[i] = by_axis[static_cast<size_t>(order[i])];
  return out;
}

Ref Storage::buffer(Ref node) {
  while (places_[node->id].home) node = places_[node->id].home;
  State& s = states_[node->id];
  if (s.storage) return s.storage;
  const Place& place = places_[node->id];
  Attrs attrs = {{Attr::Slot, buffers_++}, {Attr::Space, std::string("global")}};
  if (!place.order.empty()) attrs.push_back({Attr::Layout, place.order});
  if (!place.lo.empty() || node->is(Ops::Param)) unfilled_.push_back(node);
  std::vector<Ref> shape;
  for (size_t a = 0; a < node->shape.size(); ++a) shape.push_back(with_zeros(node, a));
  return s.storage = ctx_.make(Ops::Buffer, node->dtype, ordered(node, shape), attrs);
}

/// The kernel that copies a graph input to where there are zeros around it.
KernelDraft Storage::copy_of(Ref input) {
  std::vector<Ref> at;
  for (size_t a = 0; a < input->shape.size(); ++a) {
    const Ref extent = simplify(input->shape[a]);
    at.push_back(is_const(extent, 1) ? ctx_.index(0) : ctx_.range(extent, static_cast<int64_t>(a)));
  }
  const Ref value = ctx_.make(Ops::Load, input->dtype, {input, flat_index(ctx_, at, input->shape)});
  return {.out = buffer(input), .index = position(input, at), .value = value, .origin = {}};
}

std::vector<KernelDraft> Storage::take_fills() {
  std::vector<KernelDraft> out;
  for (Ref node : std::exchange(unfilled_, {})) {
    const Place& place = places_[node->id];
    const size_t rank = node->shape.size();
    if (node->is(Ops::Param)) out.push_back(copy_of(node));
    for (size_t a = 0; a < rank && !place.lo.empty(); ++a) {
      if (place.lo[a] == place.hi[a]) {
        if (place.lo[a] > 0) out.push_back(fill_of(node, a, 0, 2 * place.lo[a])); // both sides at once
        continue;
      }
      if (place.lo[a] > 0) out.push_back(fill_of(node, a, 0, place.lo[a]));
      if (place.hi[a] > 0) out.push_back(fill_of(node, a, place.lo[a], place.hi[a]));
    }
  }
  return out;
}

/// The kernel that stores the zeros around axis `a` of `node`: `count` of them, from number `first` on, of those before
/// and after its values. Axes before a are taken without their zeros and axes after it with them: no element twice.
KernelDraft Storage::fill_of(Ref node, size_t a, int64_t first, int64_t count) {
  const Place& place = places_[node->id];
  std::vector<Ref> index, extent;
  for (size_t b = 0; b < node->shape.size(); ++b) {
    const Ref steps = simplify(b == a ? ctx_.index(count) : b < a ? node->shape[b] : with_zeros(node, b));
    const auto dim = std::find(place.order.begin(), place.order.end(), static_cast<int64_t>(b));
    const int64_t id = place.order.empty() ? static_cast<int64_t>(b) : dim - place.order.begin();
    Ref step = is_const(steps, 1) ? ctx_.index(0) : ctx_.range(steps, id);
    if (b < a) step = step + ctx_.index(place.lo[b]);
    if (b == a) step = step + ctx_.index(first);
    if (b == a && first >= place.lo[a])
      step = step + node->shape[a];
    else if (b == a && first + count > place.lo[a]) // as many after the values as before them
      step = step + floordiv(step, ctx_.index(place.lo[a])) * node->shape[a];
    index.push_back(simplify(step));
    extent.push_back(with_zeros(node, b));
  }
  return {.out = buffer(node),
          .index = flat_index(ctx_, ordered(node, index), ordered(node, extent)),
          .value = place.around ? place.around : ctx_.constant(node->dtype, 0),
          .origin = {},
          .is_fill = true};
}

Ref Storage::position(Ref node, std::vector<Ref> index) {
  while (places_[node->id].home) {
    const Place& place = places_[node->id];
    std::vector<Ref> outer(place.home->shape.size(), ctx_.index(0));
    for (size_t a = 0; a < index.size(); ++a)
      if (place.axis[a] >= 0) outer[static_cast<size_t>(place.axis[a])] = simplify(index[a] + place.offset[a]);
    index = std::move(outer);
    node = place.home;
  }
  std::vector<Ref> shape;
  for (size_t a = 0; a < node->shape.size(); ++a) {
    shape.push_back(with_zeros(node, a));
    if (!places_[node->id].lo.empty()) index[a] = index[a] + ctx_.index(places_[node->id].lo[a]);
  }
  return flat_index(ctx_, ordered(node, index), ordered(node, shape));
}

Ref Storage::load(Ref node, const Use& use) {
  const Ref from = buffer(node), index = position(node, use.at.index);
  if (!use.at.gate || use.zero_outside) return ctx_.make(Ops::Load, from->dtype, {from, index});
  return ctx_.make(Ops::Load, from->dtype, {from, index, use.at.gate, ctx_.constant(from->dtype, 0)});
}

} // namespace tgc
