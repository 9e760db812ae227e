// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <vector>

#include "schedule/opt.h"

namespace tgc {

inline int64_t extent(Ref axis) { return dim_int(axis->src[0]).value_or(0); } // 0: symbolic
inline double upper(Ref axis) { return static_cast<double>(std::max<int64_t>(axis->src[0]->hi, 1)); }

/// A kernel to which opts are tried one by one, and what those who choose the next one look at.
class OptTrial {
protected:
  explicit OptTrial(OptKernel kernel) : k_(std::move(kernel)) { look(); }

  /// Applies an opt; false, and nothing changed, if it does not apply.
  bool attempt(Opt::Kind kind, std::vector<int64_t> args);
  /// Puts the loop at position `at` outside of all others.
  bool move_outermost(int64_t at);
  /// Reads the kernel again: its axes, which of them are output axes, its accesses and the contraction.
  void look();

  bool is_output(Ref axis) const { return std::find(closed_.begin(), closed_.end(), axis) == closed_.end(); }
  bool is_plain(Ref axis) const { return axis->s(Attr::Axis) == "loop" || axis->s(Attr::Axis) == "reduce"; }
  bool is_loop(Ref axis) const { return is_output(axis) && axis->s(Attr::Axis) == "loop"; }
  int64_t position(Ref axis) const { return std::find(axes_.begin(), axes_.end(), axis) - axes_.begin(); }

  /// By nesting.
  std::vector<Ref> output_loops() const;
  /// Elements of the result between two steps of `axis`; 0 if unknown.
  int64_t stride(Ref axis) const;
  /// Whether all that is summed, staged or slow to compute depends on `axis`, so that nothing is done again when other
  /// output loops run inside of it.
  bool may_stand_inside(Ref axis) const;
  /// Nests the loops as the result lies in memory, if all of them may be.
  void follow_memory();

  OptKernel k_;
  std::vector<Opt> opts_;
  std::vector<Ref> axes_, loads_, stores_;
  std::vector<Ref> closed_; ///< ranges that a Reduce or End closes
  Ref contraction_;         ///< the last sum of products, if any
};

} // namespace tgc
