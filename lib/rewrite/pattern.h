// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {
class PassContext;
class PatternMatcher;
}  // namespace tgc
