// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rewrite/pass.h"
#include "uop/module.h"
#include "uop/target.h"

namespace tgc {

/// The whole pipeline between import and render, in order: passes over the graph's func, then passes over each
/// kernel's. Adding a pass is adding a row.
std::span<const Pass> graph_passes();
std::span<const Pass> kernel_passes();

/// Names for --print-after and the like, and "table/rule" names for --disable-rule, as used for `target`.
std::vector<std::string> pass_names();
std::vector<std::string> rule_names(const TargetInfo& target);

/// `plan` with every kernel replaced by `change` of it; each distinct kernel is changed once.
Ref map_kernels(Ref plan, const std::function<Ref(Ref)>& change);

/// Distinct kernels of a plan in order of first call.
std::vector<Ref> kernels_of(Ref plan);

} // namespace tgc
