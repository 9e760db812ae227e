// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// Whether registers turn `rows` vectors of `lanes` elements around by few shuffles.
bool can_transpose(int64_t rows, int64_t lanes);

/// A load or store whose index moves by far per lane, but by one per step of a register dim, as vector accesses along
/// that dim, one per lane, and a permute of the value. Null where that does not apply.
///   access: of shaped values, its sources lowered; only Param and scratch storage.
Ref transposed_access(Ref access);

} // namespace tgc
