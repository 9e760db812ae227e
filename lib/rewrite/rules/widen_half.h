// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "rewrite/pattern.h"

namespace tgc {

/// f16 and bf16 arithmetic of a tensor graph done in f32, rounded only where a value is stored, compared or converted
/// to another type than f32. No rules under strict numerics.
const PatternMatcher& widen_half();
/// `root` rewritten by them.
Ref widen_half(Ref root, PassContext& context);

} // namespace tgc
