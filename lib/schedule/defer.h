// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// `func` (lowered stages) with each sum of products of which one factor is a staged softmax, a quotient x / s, turned
/// into the sum of products with x, divided by s: what a softmax multiplies is divided once per result instead of once
/// per probability. Rounding differs, and what is summed may be larger by s, the number of terms at most: a result
/// within that factor of the largest float may become infinite. Returns null if there is no such sum.
Ref with_deferred_division(Ref func);

} // namespace tgc
