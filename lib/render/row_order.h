// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "render/rows.h"

namespace tgc {

/// Reorders straight stretches of row code that end in stores to memory, so that each store follows what it alone
/// needs: what is computed from an accumulator is computed row by row. Values, loops and the order of stores stay.
void order_rows(RowCode& code);

} // namespace tgc
