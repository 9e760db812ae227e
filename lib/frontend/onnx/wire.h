// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tgc::onnx {

enum class Message : unsigned char { Model, Tensor };

/// `bytes`, a serialised ModelProto or TensorProto, with every raw_data replaced by 16 bytes: offset and length of the
/// original field within `bytes`, both little-endian u64. Training information is left out.
/// errors: CompileError TGC-E201 with the byte offset of the first thing that is not wire format; E207 for messages
/// nested deeper than 96 levels. Never reads outside `bytes`; the result is at most as long plus 16 bytes per tensor.
std::string strip_raw_data(std::span<const std::byte> bytes, Message root);

/// The contents of each length-delimited field `field` among `fields`, in order. errors: E201 as above.
std::vector<std::string> length_delimited_fields(const std::string& fields, uint32_t field);

} // namespace tgc::onnx
