// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "schedule/opt.h"
#include "uop/target.h"

namespace tgc {

/// Applies opts to a kernel: those of its `opts` attribute if it has one, else what the target's heuristic chooses; the
/// result's func carries them as `opts`.
///   reorder: whether the order of floating-point reductions may change
///   constant: by param slot, whether every call passes a weight there (only those may be packed)
/// errors: CompileError E302 for an opt of the attribute that does not apply, naming the kernel.
OptKernel optimize_kernel(Ref func, const TargetInfo& target, const std::vector<bool>& constant, bool reorder = true);

/// optimize_kernel for every kernel of a plan. A packed weight becomes a Weight of its own, written by a call of its
/// packing kernel that precedes the first use; calls that write a Weight are done at compile time.
Ref optimize_plan(Ref plan, const TargetInfo& target, bool reorder = true);

} // namespace tgc
