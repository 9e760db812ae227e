// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/heuristic.h"
#include "schedule/opt.h"
#include "uop/target.h"

namespace tgc {

/// Applies opts to a kernel: those of its `opts` attribute if it has one, else what the target's heuristic chooses; the
/// result's func carries them as `opts`.
///   reorder: whether the order of floating-point reductions may change
///   constant: by param slot, whether every call passes a weight there (only those may be packed)
/// errors: CompileError E302 for an opt of the attribute that does not apply, naming the kernel.
OptKernel optimize_kernel(Ref func, const TargetInfo& target, const std::vector<bool>& constant, bool reorder = true);

/// The same for a kernel without opts whose nests are opened by the first of `how` (none: it stays one nest), by the
/// heuristic held to the second. errors: CompileError E302 if these opts do not apply.
OptKernel optimize_as(Ref func, const TargetInfo& target, const std::vector<bool>& constant,
                      const std::pair<std::vector<Opt>, Wishes>& how);

/// The opts that make `func` a kernel of several nests, if that is expected to suit it.
std::vector<Opt> choose_opening(Ref func, const std::vector<bool>& constant, bool reorder);

/// Opts found earlier for a kernel, and where they stand ("tuned.txt:3"), for messages.
struct FoundOpts {
  std::string opts, where;
};
/// What to ask before the heuristic is: the opts of a kernel without any, or none.
using FindOpts = std::function<std::optional<FoundOpts>(Ref func, const std::vector<bool>& constant)>;

/// optimize_kernel for every kernel of a plan. A packed weight becomes a Weight of its own, written by a call of its
/// packing kernel that precedes the first use; calls that write a Weight are done at compile time.
/// errors: also CompileError E504 for found opts that do not apply, or make values of more than kMaxWidth elements.
Ref optimize_plan(Ref plan, const TargetInfo& target, bool reorder = true, const FindOpts& find = {});

/// Elements, at most, that found opts may make of one: what a file says must not take hours to compile.
constexpr int64_t kMaxWidth = 1 << 14;

} // namespace tgc
