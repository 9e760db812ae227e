// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "uop/module.h"
#include "uop/tensor_value.h"

namespace tgc {

/// The values of a Weight node as a dense tensor: mapped bytes are read, a splat is repeated.
/// errors: CompileError E206 when the module has no such weight, its bytes cannot be read or do not fit `shape`.
HostTensor weight_tensor(const Module& module, Ref weight, const std::vector<int64_t>& shape);

/// A weight that owns its bytes.
WeightData inline_weight(std::vector<std::byte> bytes);

/// Opens the files of mapped weights whose bytes are not in memory (a module read from text).
/// errors: CompileError E206 naming the weight and the file.
void open_weights(Module& module);

} // namespace tgc
