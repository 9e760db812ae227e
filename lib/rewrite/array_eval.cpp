// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many assignments of one expression: what rule checking and accuracy measurements spend their time in. Each node is
// one pass over n elements; constants are one element with stride 0. Shapes are ignored: every node counts as a scalar.
#include "rewrite/array_eval.h"

#include "rewrite/node_text.h"
#include "uop/diag.h"

namespace tgc {
namespace {
[[noreturn]] void cannot_evaluate(Ref node) {
  throw CompileError(Diagnostic{ErrorCode::E105, "", "no value for " + node_text(node, 2), "bind it or its sources"});
}
/// Element i of a strided array.
Bits element(DType dtype, Strided s, int64_t i) { return load_bits(dtype, s.data + i * s.stride * byte_size(dtype)); }
} // namespace

void ArrayEval::bind(Ref leaf, const void* values) {
  const auto* bytes = static_cast<const std::byte*>(values);
  values_[leaf] = Array(bytes, bytes + n_ * byte_size(leaf->dtype));
}

Strided ArrayEval::view(Ref node) {
  Array& a = values_[node];
  return {a.data(), node->is(Ops::Const) ? 0 : 1};
}

ArrayEval::Array ArrayEval::load(Ref node) {
  const int bytes = byte_size(node->dtype);
  Array out(static_cast<size_t>(n_ * bytes));
  for (int64_t i = 0; i < n_; ++i) {
    const bool off = node->src.size() > 2 && element(DType::Bool, view(node->src[2]), i) == 0;
    const uint64_t index = element(DType::Index, view(node->src[1]), i);
    Bits value = from_int(node->dtype, static_cast<int64_t>((index * 2654435761u >> 3) & 127));
    if (off) value = node->src.size() == 4 ? element(node->dtype, view(node->src[3]), i) : Bits{0};
    store_bits(node->dtype, out.data() + i * bytes, value);
  }
  return out;
}

ArrayEval::Array ArrayEval::compute(Ref node) {
  const int bytes = byte_size(node->dtype);
  if (node->is(Ops::Const)) {
    Array one(static_cast<size_t>(bytes));
    store_bits(node->dtype, one.data(), const_bits(node));
    return one;
  }
  if (node->is(Ops::Load)) return load(node);
  Array out(static_cast<size_t>(n_ * bytes));
  if (node->is(Ops::Cast)) {
    cast_array(node->dtype, node->src[0]->dtype, n_, view(node->src[0]), out.data());
    return out;
  }
  if (node->is(Ops::Bitcast)) {
    const Strided in = view(node->src[0]);
    for (int64_t i = 0; i < n_; ++i) store_bits(node->dtype, out.data() + i * bytes, element(node->dtype, in, i));
    return out;
  }
  if (node->src.empty() || node->src.size() > 3) cannot_evaluate(node);
  Strided in[3];
  for (size_t i = 0; i < node->src.size(); ++i) in[i] = view(node->src[i]);
  const DType type = node->is(Ops::Where) ? node->dtype : node->src[0]->dtype;
  if (!apply_array(node->op, type, n_, in, out.data())) cannot_evaluate(node);
  return out;
}

Strided ArrayEval::run(Ref root) {
  std::vector<Ref> stack = {root};
  while (!stack.empty()) {
    const Ref node = stack.back();
    if (const Array* done = values_.find(node); done && !done->empty()) {
      stack.pop_back();
      continue;
    }
    const size_t waiting = stack.size();
    for (size_t i = node->is(Ops::Load) ? 1 : 0; i < node->src.size(); ++i) {
      const Array* done = values_.find(node->src[i]);
      if (!done || done->empty()) stack.push_back(node->src[i]);
    }
    if (stack.size() > waiting) continue;
    stack.pop_back();
    Array value = compute(node);
    values_[node] = std::move(value);
  }
  return view(root);
}

Bits ArrayEval::at(Ref root, int64_t i) {
  const Strided v = run(root);
  return element(root->dtype, v, i);
}

} // namespace tgc
