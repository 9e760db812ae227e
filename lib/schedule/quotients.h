// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// `root` with constants divided where sums of bytes, scaled by constants, were: rounded once where it was twice.
Ref divide_constants(Ref root);

} // namespace tgc
