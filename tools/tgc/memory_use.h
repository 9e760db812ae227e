// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "tgc/bundle_writer.h"

namespace tgc {

/// Bytes that a run needs, for the least values of the variables; scratch of threads not counted.
struct MemoryUse {
  int64_t weights = 0;
  int64_t arena = 0; ///< of intermediate buffers, as the runtime lays them out
  int64_t live = 0;  ///< the most that is in use during one step: no arena can be smaller
};
MemoryUse memory_use(const BundleContents& contents);

} // namespace tgc
