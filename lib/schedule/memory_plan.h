// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// Gives the global Buffers of a plan their places: `slot`, and `at` bytes from its start where that is not 0. A buffer
/// lives from the call that writes it to the last call that reads it; only buffers whose lives do not overlap share
/// memory. The arena holds the slots in order; a slot reaches to the end of the last of its buffers.
Ref plan_memory(Ref plan);

} // namespace tgc
