// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/target.h"
#include "uop/uop.h"

namespace tgc {

/// Cycles that one thread is expected to take for a kernel with its opts applied (ranges numbered by nesting, open dims
/// as long as is likely). Only good for comparing opts of one kernel: what they do not change is counted roughly.
double estimate_cycles(Ref func, const TargetInfo& target);

} // namespace tgc
