// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "schedule/kernelize.h"
#include "schedule/region.h"
#include "schedule/uses.h"

namespace tgc {

constexpr int64_t kMostAround = 8; ///< zeros, or another constant, that are stored on each side of an axis at most

/// Where realized values lie: in which buffer, in which order of dims, at which place of it.
class Storage {
public:
  /// states, is_live (not computed from weights alone): by node id.
  Storage(Context& ctx, std::vector<State>& states, const std::vector<bool>& is_live)
      : ctx_(ctx), states_(states), is_live_(is_live), places_(states.size()), words_(states.size(), -1) {}

  /// Decides for all realized nodes of `order` (sources first), whose uses are known.
  void choose(const std::vector<Ref>& order);

  /// The buffer or graph output that holds `node`, made when first asked for.
  Ref buffer(Ref node);
  /// The flat position of element `index` of `node` in its buffer, simplified.
  Ref position(Ref node, std::vector<Ref> index);
  /// A load of `node` as `use` reads it; 0 where that is gated off.
  Ref load(Ref node, const Use& use);
  /// The kernels that store zeros around the values of the buffers made since this was last called; a graph input is
  /// copied into such a buffer.
  std::vector<KernelDraft> take_fills();

private:
  /// Axis a of a node is axis `axis[a]` of `home`, from `offset[a]` on; an axis of one element may have none.
  struct Place {
    Ref home;
    std::vector<int64_t> axis;
    std::vector<Ref> offset;
    std::vector<int64_t> order = {}; ///< dims from outermost to innermost, of what has no home; empty: as they are
    std::vector<int64_t> lo = {}, hi = {}; ///< zeros before and after each axis, of what has no home; empty: none
    Ref around = {};                       ///< what is there in place of zeros, a constant; null: zeros
  };
  struct Access {
    Ref source;
    const Use* use;
  };
  struct Factors {
    std::vector<Access> constant, live;
  };

  bool is_buffer(Ref node) const;
  std::vector<Access> accesses(Ref node, const Use& use) const;
  int64_t last_axis(Ref node) const;
  Access product_in(Ref node) const;
  Factors factors_of(const Access& product) const;
  int64_t lanes_of_product(Ref node, const Factors& factors, int64_t least) const;
  std::set<const Use*> masked_uses(const std::vector<Ref>& order) const;
  int64_t inherited_lanes(Ref node) const;
  void find_words(const std::vector<Ref>& order);
  void find_words_of(Ref sum, const Use& use);
  void find_constants_around(const std::vector<Ref>& order);
  Use* read_by(Ref pad, const Use& use);
  void choose_order(Ref node);
  void put_last(Ref node, int64_t axis);
  void take_in(Ref home);
  std::optional<Place> box_in(Ref home, const Access& part) const;
  bool is_whole(Ref part, const Place& box, std::vector<Region> regions) const;
  Ref condition_at(Ref node, const Use* use) const;
  bool surround(Ref node, const Use& use);
  KernelDraft copy_of(Ref input);
  KernelDraft fill_of(Ref node, size_t axis, int64_t first, int64_t count);
  Ref with_zeros(Ref node, size_t axis) const;
  std::vector<Ref> ordered(Ref node, const std::vector<Ref>& by_axis) const;

  Context& ctx_;
  std::vector<State>& states_;
  const std::vector<bool>& is_live_;
  std::vector<Place> places_;  ///< by id
  std::vector<int64_t> words_; ///< by id: the axis along which four bytes are multiplied at once; -1: none
  std::vector<Ref> unfilled_;  ///< nodes
  int64_t buffers_ = 0;
};

} // namespace tgc
