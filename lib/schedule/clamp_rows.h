// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// `func` with the loads of rows that do not exist read again from the last row that does, ungated. `axis` is a
/// register range of `func`, the inner part of a split that need not divide. What is computed in such rows is not
/// stored.
Ref clamp_rows(Ref func, Ref axis);

} // namespace tgc
