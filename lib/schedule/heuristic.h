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

/// Opts for a kernel. constant, reorder: as optimize_kernel's.
Chosen choose_opts(Ref func, const TargetInfo& target, const std::vector<bool>& constant, bool reorder);

/// Opts for one nest of a kernel (schedule/nests.h): no threads, and no packing, since other nests may read an operand
/// too.
Chosen choose_nest_opts(Ref nest, const TargetInfo& target, bool reorder);

/// Opts for the kernel that optimised nests were joined to.
Chosen choose_joint_opts(Ref func, const TargetInfo& target);

} // namespace tgc
