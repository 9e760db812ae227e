// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "schedule/fusion.h"
#include "schedule/movement.h"
#include "uop/uop.h"

namespace tgc {

/// One way a node of the tensor graph is read: where, inside which loops (outermost first), and which use of each
/// source that makes.
struct Use {
  Position at;
  std::vector<Ref> ambient;
  bool hoisted = false; ///< it is read in more loops than it, or what it is for, depends on
  std::vector<size_t> source_use = {};
  std::vector<Ref> reduce_ranges = {};
  Ref gathered = {}; ///< Gather: the range that stands for the position in its data
  Ref value = {};
  Ref around = {};           ///< a constant that is wanted where the gate of `at` is false, in place of zero
  bool zero_outside = false; ///< what the gate of `at` turns off is stored as zeros, or `around`: it need not be asked
};

/// What rangeify knows of a node.
struct State {
  std::vector<Use> uses = {}; ///< by consumers
  Fusion fusion = Fusion::Inline;
  Use inner = {};                 ///< Stage, Realize: the one position at which it is computed
  std::vector<size_t> fresh = {}; ///< Stage, Realize: axes that got a range of their own
  Ref storage = {};               ///< Realize: the Buffer, or the graph output it is stored to
};

/// A sum of products of two values: a matmul or a convolution, and not the statistics of one.
bool is_contraction(Ref node);

/// The sources of `node` that are data; the rest of a movement op are dims.
Refs data_sources(Ref node);

/// The loops a use really runs in: those down to the innermost one it depends on; the linearizer hoists it out of the
/// rest.
std::vector<Ref> home_loops(const Use& use);
/// How often the body of `loops` runs, with open dims at their bounds.
double trips(const std::vector<Ref>& loops);
/// The longest loop prefix that all uses share; of a factor of the product over `inner`, the loops it depends on.
std::vector<Ref> common_ambient(const std::vector<Use>& uses, const std::vector<Ref>& inner);
/// Axes that are not the same loop of `outer` (or the same constant) in all uses.
std::vector<size_t> private_axes(const std::vector<Use>& uses, const std::vector<Ref>& outer);

} // namespace tgc
