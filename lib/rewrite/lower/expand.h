// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include "uop/uop.h"

namespace tgc {

/// Turns upcast and lane ranges into dims: width is shape. With u upcast ranges and any lane range the kernel's values
/// have rank u+1: upcast range i (in nesting order) is an Iota along dim i, every lane range an Iota along the last
/// dim. Reductions over such a range become reductions over its dim (kept, size 1). requires: static extents of those
/// ranges, and no value that depends on two lane ranges (the optimizer's duty).
Ref expand(Ref kernel);

/// Splits contiguous vector accesses from gathers: a load or store whose index grows by one per lane gets `lanes` and a
/// scalar-in-lane index, also one that grows so per row of registers (transpose.h); others keep their shaped index.
Ref lower_access(Ref kernel);

/// Comparisons of shaped Index values whose bounds fit 32 bits are done in 32-bit lanes: half the vector registers.
Ref narrow_masks(Ref kernel);

/// Whether the value of `x` depends on an open range.
bool depends(Ref x, Ref range);

/// Coefficient of `variable` (a Range or Iota) in the Index sum `index`: 0 when absent, nothing when it is not affine
/// in it or the coefficient is not a constant.
std::optional<int64_t> coefficient(Ref index, Ref variable);

/// Index sums re-associated so that terms of outer loops come first, so that each partial sum can be hoisted.
Ref order_sums(Ref kernel);

} // namespace tgc
