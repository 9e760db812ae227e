// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>

#include "frontend/onnx/model.h"

namespace tgc::onnx {

/// A serialised ModelProto as plain data; weights stay in `bytes` and are named by range.
/// errors: CompileError TGC-E201 when the bytes are not a ModelProto with a graph, E207 for excessive nesting.
Model read_model(std::span<const std::byte> bytes);
/// A serialised TensorProto (the .pb files of test data sets).
Tensor read_tensor(std::span<const std::byte> bytes);

} // namespace tgc::onnx
