// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// Renumbers the global Buffers of a plan so that buffers whose lives do not overlap share a slot. A buffer lives from
/// the call that writes it to the last call that reads it. The arena holds the slots in order; a slot is as large as
/// its largest buffer.
Ref plan_memory(Ref plan);

} // namespace tgc
