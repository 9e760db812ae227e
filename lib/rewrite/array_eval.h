// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "rewrite/node_map.h"
#include "uop/scalar.h"

namespace tgc {

/// Evaluates a scalar expression for `n` assignments of its leaves at once, by the interpreter's element functions.
/// Leaves are whatever nodes are bound; a Load without binding reads an unlimited buffer whose element is a fixed
/// function of its index. Values of inner nodes are kept until `clear`.
class ArrayEval {
public:
  explicit ArrayEval(int64_t n) : n_(n) {}
  /// `values`: n elements of leaf's dtype, dense; copied.
  void bind(Ref leaf, const void* values);
  /// n elements of root's dtype (one if root is a constant: see stride), alive until the next call.
  /// errors: CompileError TGC-E105 naming a node that is neither bound nor elementwise.
  Strided run(Ref root);
  Bits at(Ref root, int64_t i);
  void clear() { values_ = {}; } ///< bindings too

private:
  using Array = std::vector<std::byte>;
  Strided view(Ref node);
  Array compute(Ref node);
  Array load(Ref node);
  int64_t n_;
  NodeMap<Array> values_;
};

} // namespace tgc
