// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// A map from nodes to T by open addressing: cheap to make for ten nodes, fast for a million. No iteration, so that no
/// order can leak from it. References die at the next insertion.
template <typename T> class NodeMap {
public:
  T* find(Ref node) {
    if (slots_.empty()) return nullptr;
    Slot& slot = slots_[probe(node)];
    return slot.node ? &slot.value : nullptr;
  }
  /// The value of `node`, made by T() when absent.
  T& operator[](Ref node) {
    if (used_ * 2 >= slots_.size()) grow();
    Slot& slot = slots_[probe(node)];
    if (!slot.node) {
      slot.node = node;
      ++used_;
    }
    return slot.value;
  }
  size_t size() const { return used_; }

private:
  struct Slot {
    Ref node;
    T value{};
  };
  size_t probe(Ref node) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (node->id * size_t{0x9E3779B97F4A7C15}) >> shift_;
    while (slots_[at].node && !(slots_[at].node == node)) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? 32 : old.size() * 2);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (Slot& slot : old)
      if (slot.node) slots_[probe(slot.node)] = std::move(slot);
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
  int shift_ = 63;
};

} // namespace tgc
