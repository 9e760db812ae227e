// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "rewrite/node_map.h"
#include "uop/scalar.h"

namespace tgc {

/// Evaluates a scalar expression for `n` assignments of its leaves at once, by the interpreter's element functions.
/// Leaves are whatever nodes are bound; a Load without binding reads an unlimited buffer whose element is a fixed
/// function of its index. Values are kept until `clear`.
class ArrayEval {
public:
  explicit ArrayEval(int64_t n) : n_(n) {}
  /// `values`: n elements of leaf's dtype, dense; copied.
  void bind(Ref leaf, const void* values);
  /// n elements of root's dtype (one if root is a constant: see stride), alive until the next call.
  /// errors: CompileError TGC-E105 naming a node that is neither bound nor elementwise.
  Strided run(Ref root);
  Bits at(Ref root, int64_t i);
  /// Forgets all values, bindings too, but keeps their memory.
  void clear() { ++epoch_; }

private:
  struct Value {
    std::vector<std::byte> bytes;
    uint32_t epoch = 0; ///< valid if it is the current one
  };
  bool known(Ref node) {
    const Value* v = values_.find(node);
    return v && v->epoch == epoch_;
  }
  std::byte* space_for(Ref node, int64_t count);
  Strided view(Ref node);
  void compute(Ref node, std::byte* out);
  void load(Ref node, std::byte* out);
  int64_t n_;
  uint32_t epoch_ = 1;
  NodeMap<Value> values_;
};

} // namespace tgc
