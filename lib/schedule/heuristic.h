// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "schedule/opt.h"
#include "uop/target.h"

namespace tgc {

/// A kernel and the opts that made it.
struct Chosen {
  OptKernel kernel;
  std::vector<Opt> opts;
};

/// What the heuristic is held to; the defaults leave all else to its judgement. Only `reorder` concerns the order of
/// sums. A wish that a kernel cannot have is ignored.
struct Wishes {
  bool reorder = true;           ///< the order of floating-point reductions may change
  int64_t rows = 0, vectors = 0; ///< of the register tile; vectors also of kernels without sums
  int64_t lane = -1;             ///< position of the lane axis of a sum of products, once axes are merged
  int64_t unrolled = 0;          ///< reduction steps repeated in the code, at most; 1: none
  enum class Rows : uint8_t { Judged, Outermost, Innermost } row_loop = Rows::Judged;
};

/// Opts for a kernel. constant: as optimize_kernel's.
Chosen choose_opts(Ref func, const TargetInfo& target, const std::vector<bool>& constant, const Wishes& wishes);

/// Opts for one nest of a kernel (schedule/nests.h): no threads, and no packing, since other nests may read an operand
/// too.
Chosen choose_nest_opts(Ref nest, const TargetInfo& target, const Wishes& wishes);

/// Opts for the kernel that optimised nests were joined to.
Chosen choose_joint_opts(Ref func, const TargetInfo& target);

} // namespace tgc
