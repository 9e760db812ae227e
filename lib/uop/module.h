// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// Where the bytes of one weight come from. `Mapped` is a range of a file (never copied before the bundle is written),
/// `Splat` one repeated value, `Inline` bytes made by the compiler (folded or packed weights) or given in a JSON graph.
struct WeightData {
  enum class Kind : uint8_t { Mapped, Splat, Inline };
  Kind kind = Kind::Inline;
  std::string file;                  ///< Mapped: path as opened
  uint64_t offset = 0, length = 0;   ///< Mapped: bytes; Splat: length is one element's bytes
  const std::byte* data = nullptr;   ///< length bytes, little-endian, row-major; lives as long as `owner`
  std::shared_ptr<const void> owner; ///< keeps `data` alive (a mapping or a vector)
  uint64_t hash = 0;                 ///< content hash; part of the key of an imported weight. 0: not known
};

/// What every stage up to the render stage works on: one root and the tables that its nodes name by key.
///   after import:   root = func{name=main}(sink(store(param_out, value)…)); params carry slot and name; inputs are the
///                   params that are only read, outputs those stored to; output slots follow the input slots
///   after schedule: root = func{name=main}(linear(call(func kernel, buffers…)…))
/// Weights are keyed by a name unique in the module. Node origins (ONNX node names) are in `origin`, by UOp::id.
struct Module {
  std::unique_ptr<Context> ctx = std::make_unique<Context>();
  Ref root;
  std::map<std::string, WeightData> weights;
  std::map<uint32_t, std::string> origin; ///< never affects identity or output bytes other than comments
  std::string source;                     ///< the model's path, for messages
};

} // namespace tgc
