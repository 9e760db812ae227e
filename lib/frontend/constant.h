// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "frontend/bytes.h"
#include "uop/module.h"

namespace tgc {

/// A dense tensor in memory or in a file: row-major, little-endian.
struct ConstantData {
  DType dtype;
  std::vector<int64_t> dims;
  FileBytes data;
  uint64_t hash = 0; ///< of data, as hash_bytes gives it; 0: not known
};

/// `tensor` as a node: a scalar constant broadcast to its dims when it has one element or few and equal ones, else a
/// Weight whose entry in the module's table refers to the bytes. The key is `name` and a content hash, so equal keys
/// mean equal bytes. requires: data.bytes.size() is that of dims and dtype.
Ref add_constant(Module& module, const std::string& name, const ConstantData& tensor);

} // namespace tgc
