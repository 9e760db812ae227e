// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "rewrite/pattern.h"

namespace tgc {

/// Exact identities of every type, constant folding, boolean and index algebra with bounds: what `simplify` applies.
/// Every rule keeps the value of every element, NaN and -0 included, unless it carries the tag kFast.
const PatternMatcher& symbolic();

} // namespace tgc
