// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "schedule/heuristic.h"

namespace tgc {

/// `chosen` with the opts added that divide its outermost loop among threads, if it has work enough.
Chosen divide_among_threads(Chosen chosen, const TargetInfo& target);

} // namespace tgc
