// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// One kernel before it is cut out of the graph: `value`, over its open ranges, stored at flat `index` of `out`. Loads
/// in it name graph storage (Param, Weight, Buffer) directly.
struct KernelDraft {
  Ref out, index, value;
  std::string origin;   ///< the model's nodes that it computes, for reports; may be empty
  bool is_fill = false; ///< stores a constant to a part of `out`
};

/// The plan: each draft becomes a func over flat params (slot 0 the output, then inputs in first-use order) with ranges
/// renumbered by nesting, and a call of it on the storage. `root` supplies the name of the result.
Ref make_plan(Ref root, const std::vector<KernelDraft>& kernels);

} // namespace tgc
