// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uop/module.h"
#include "uop/tensor_value.h"

namespace tgc {

/// The data of the weight `key`, whose tensor has `bytes` bytes (a splat's data are one element).
/// errors: CompileError E206 when the module has no such weight, its bytes cannot be read or do not fit.
const WeightData& weight_data(const Module& module, const std::string& key, uint64_t bytes);
/// Fills `to`: mapped bytes are read, a splat is repeated. requires: data from weight_data for to.size() bytes.
void copy_weight(const WeightData& data, std::span<std::byte> to);
/// The values of a Weight node as a dense tensor: mapped bytes are read, a splat is repeated.
/// errors: as weight_data.
HostTensor weight_tensor(const Module& module, Ref weight, const std::vector<int64_t>& shape);

/// Zeroed memory for the bytes of many tensors, 64-byte aligned, in large pages where the system has them: touching a
/// small page for the first time takes as long as filling it.
std::shared_ptr<std::byte> make_block(size_t bytes);

/// A weight whose bytes `owner` keeps; its hash is not known (0).
WeightData inline_weight(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
WeightData inline_weight(std::vector<std::byte> bytes);

/// Opens the files of mapped weights whose bytes are not in memory (a module read from text).
/// errors: CompileError E206 naming the weight and the file.
void open_weights(Module& module);

} // namespace tgc
