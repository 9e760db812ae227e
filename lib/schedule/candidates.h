// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "uop/target.h"
#include "uop/uop.h"

namespace tgc {

/// A list of opts, as a kernel carries it.
struct Candidate {
  std::string opts;
  double cycles = 0;     ///< estimate_cycles of the kernel with these opts
  bool regroups = false; ///< sums are taken apart differently than by the first candidate's opts (winograd or not)
};

struct CandidateLimits {
  int most = 8;        ///< lists beside the heuristic's
  bool reorder = true; ///< as optimize_kernel's
};

/// Opt lists for `func` (lowered stages, no opts) that are worth timing: the heuristic's own, then others by expected
/// time. They differ in the register tile, the lane axis, the nesting of the loop over rows, unrolling, the rows of a
/// block of nests, and in winograd or not. All but those that regroup keep the order of every sum. Each applies to
/// `func`; which packings need constants, `constant` says as for optimize_kernel. Deterministic.
std::vector<Candidate> candidates(Ref func, const TargetInfo& target, const std::vector<bool>& constant,
                                  const CandidateLimits& limits);

} // namespace tgc
