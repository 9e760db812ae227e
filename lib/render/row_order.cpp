// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: row code comes op by op, each op for all rows. What follows a tile of sums (a bias, an activation) then
// keeps a whole tile of values alive between any two ops, next to the tile itself: twice the register file, and every
// op spills. The compiler's scheduler does not look that far. Idea: between loops, go from store to store and put
// before each what it needs and is not there yet: depth first, a row at a time. Loads of memory that the stretch also
// stores to would pass those stores, so such a stretch is left as it is; so is one that sets registers, as the bodies
// of sums do: there all rows share the vectors that were loaded.
#include "render/row_order.h"

#include <algorithm>

namespace tgc {
namespace {

bool ends_stretch(RowKind kind) { return kind == RowKind::Loop || kind == RowKind::EndLoop || kind == RowKind::Base; }

class Stretch {
public:
  Stretch(const RowCode& code, size_t begin, size_t end)
      : code_(code), begin_(begin), end_(end), placed_(end - begin, false) {}

  bool gains() const {
    std::vector<bool> stored(code_.buffers.size(), false);
    int64_t stores = 0;
    for (size_t i = begin_; i < end_; ++i) {
      const RowInst& inst = code_.insts[i];
      if (inst.kind == RowKind::RegSet) return false;
      if (inst.kind != RowKind::Store) continue;
      ++stores;
      stored[static_cast<size_t>(inst.imm)] = true;
    }
    return stores > 1 && std::none_of(code_.insts.begin() + static_cast<int64_t>(begin_),
                                      code_.insts.begin() + static_cast<int64_t>(end_), [&](const RowInst& inst) {
                                        return inst.kind == RowKind::Load && stored[static_cast<size_t>(inst.imm)];
                                      });
  }

  /// Appends the new order, as old positions.
  void append(std::vector<size_t>& order) {
    for (size_t i = begin_; i < end_; ++i)
      if (code_.insts[i].kind == RowKind::Store) place(i, order);
    for (size_t i = begin_; i < end_; ++i) place(i, order); // what later loops read
  }

private:
  /// `root` and what it needs, operands first.
  void place(size_t root, std::vector<size_t>& order) {
    stack_.push_back({root, 0});
    while (!stack_.empty()) {
      auto& [at, next] = stack_.back();
      const std::vector<RowId>& args = code_.insts[at].args;
      if (placed_[at - begin_]) {
        stack_.pop_back();
      } else if (next == args.size()) {
        placed_[at - begin_] = true;
        order.push_back(at);
        stack_.pop_back();
      } else {
        const RowId arg = args[next++];
        if (arg >= 0 && static_cast<size_t>(arg) >= begin_) stack_.push_back({static_cast<size_t>(arg), 0});
      }
    }
  }

  const RowCode& code_;
  size_t begin_, end_;
  std::vector<bool> placed_;
  std::vector<std::pair<size_t, size_t>> stack_; ///< instruction, its next operand
};

} // namespace

void order_rows(RowCode& code) {
  std::vector<size_t> order;
  order.reserve(code.insts.size());
  for (size_t begin = 0; begin < code.insts.size();) {
    size_t end = begin;
    while (end < code.insts.size() && !ends_stretch(code.insts[end].kind)) ++end;
    Stretch stretch(code, begin, end);
    if (stretch.gains())
      stretch.append(order);
    else
      for (size_t i = begin; i < end; ++i) order.push_back(i);
    if (end < code.insts.size()) order.push_back(end);
    begin = end + 1;
  }
  std::vector<RowId> moved(code.insts.size());
  for (size_t i = 0; i < order.size(); ++i) moved[order[i]] = static_cast<RowId>(i);
  std::vector<RowInst> insts;
  insts.reserve(order.size());
  for (const size_t i : order) {
    RowInst& inst = insts.emplace_back(std::move(code.insts[i]));
    for (RowId& arg : inst.args)
      if (arg >= 0) arg = moved[static_cast<size_t>(arg)];
  }
  code.insts = std::move(insts);
}

} // namespace tgc
