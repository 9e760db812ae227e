// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// `func` (lowered stages) with each sum of products of which one factor is a staged quotient x / s, where s is the sum
/// of all x, turned into the sum of products with x, divided by s: what a softmax multiplies is divided once per result
/// instead of once per probability. Rounding differs, and a sum may be infinite whose quotients are not. Returns null
/// if there is no such sum.
Ref with_deferred_division(Ref func);

} // namespace tgc
