// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// The order of execution: func(sink(stores…)) over ranges → func(linear(instructions…)) with explicit loops.
///  - every value stands in the innermost loop among those its ranges name, before whatever reads it;
///  - a Reduce becomes an accumulator (a reg Buffer): identity before its loops, update inside, one read after them; a
///    product feeding a sum becomes one Fma if `contract` says so; lane and register dims it folds are folded after
///    the loops, by a Reduce without ranges;
///  - unroll ranges are repeated in order with constants;
///  - an End is a loop nest around its store, placed where its After is first needed.
/// errors: InternalError if a value depends on a range that no enclosing loop opens.
Ref linearize(Ref kernel, bool contract);

/// The value that leaves a reduction of `kind` (add, mul, max, min) unchanged, as a constant of `dtype`.
Ref neutral_element(Context& ctx, DType dtype, const std::string& kind);

} // namespace tgc
