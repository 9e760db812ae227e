// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "frontend/tensor.h"

// Indexed reads and writes. No access can leave its tensor, whatever the indices are.
namespace tgc::tensor {

/// Integer positions along an extent as i64, negative ones counted from the end.
Ref positions(Ref indices, Ref extent);

/// Whether any of the positions is outside [0, extent): bool [].
Ref outside(Ref positions, Ref extent);

/// data [B, n, R], index [B or 1, I] → [B, I, R] with element (b, i, r) = data[b, index[b, i], r]; 0 where an index is
/// outside [0, n).
Ref take(Ref data, Ref index);

enum class Scatter : unsigned char { Replace, Add, Mul, Max, Min };
/// data [B, n, R], index [B, I], updates [B, I, R] → data with updates combined into the rows that index names. Indices
/// outside [0, n) do nothing; of several replacements the last wins.
Ref put(Ref data, Ref index, Ref updates, Scatter how);

/// Along `axis` of x: its elements at known positions (all within the extent), as few slices; null if they are many.
Ref take_known(Ref x, int64_t axis, const std::vector<int64_t>& index);

} // namespace tgc::tensor
