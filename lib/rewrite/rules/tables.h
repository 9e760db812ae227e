// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "rewrite/pattern.h"

// The tables that `symbolic()` is made of, one per file; a walker of all rules lists them.
namespace tgc {

const PatternMatcher& const_fold();   ///< elementwise ops of constants; integer nodes whose bounds leave one value
const PatternMatcher& identities();   ///< units, zeros, idempotence, selections, casts: valid for every dtype named
const PatternMatcher& boolean();      ///< and, or, not, comparisons as booleans
const PatternMatcher& index_linear(); ///< Index sums, products, comparisons, min and max in canonical form
const PatternMatcher& divmod();       ///< Index floor division and remainder
const PatternMatcher& gates();        ///< loads and stores whose gate is known

} // namespace tgc
