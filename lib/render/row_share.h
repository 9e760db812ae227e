// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "render/rows.h"

namespace tgc {

/// Between two loops, what is loaded from one place under one gate is loaded once, if the kernel does not store to that
/// buffer; what only the loads left out needed is left out too.
void share_loads(RowCode& code);

} // namespace tgc
