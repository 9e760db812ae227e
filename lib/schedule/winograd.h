// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <vector>

#include "schedule/opt.h"

namespace tgc {

/// How a convolution of 3x3 taps is computed by products of transformed tiles (winograd.cpp): the result in blocks of
/// `rows` tiles of 2x2 pixels, its channels in `parts`, which threads can share.
struct WinogradBlocks {
  int64_t rows = 1, parts = 1;
};

/// The blocks for `func` (lowered stages, ranges numbered by nesting), if it is such a convolution with known picture
/// size, its weights are constant and it is expected to gain. `constant`: which params are. The choice does not depend
/// on the batch.
std::optional<WinogradBlocks> choose_winograd(Ref func, const std::vector<bool>& constant);

/// Makes `kernel` three nests, as with_nests (nests.h) would: transformed tiles, their products, and the result. The
/// weights are transformed by a packing. Returns false, and changes nothing, if the kernel is no such convolution or
/// the blocks do not fit it.
bool apply_winograd(OptKernel& kernel, const WinogradBlocks& blocks);

} // namespace tgc
