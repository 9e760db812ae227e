// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many assignments of one expression: what rule checking and accuracy measurements spend their time in. Each node is
// one pass over n elements; constants are one element with stride 0. Shapes are ignored: every node counts as a scalar.
#include "rewrite/array_eval.h"

#include <cstring>

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

std::byte* ArrayEval::space_for(Ref node, int64_t count) {
  Value& v = values_[node];
  v.epoch = epoch_;
  v.bytes.resize(static_cast<size_t>(count * byte_size(node->dtype)));
  return v.bytes.data();
}

void ArrayEval::bind(Ref leaf, const void* values) {
  std::memcpy(space_for(leaf, n_), values, static_cast<size_t>(n_ * byte_size(leaf->dtype)));
}

Strided ArrayEval::view(Ref node) { return {values_[node].bytes.data(), node->is(Ops::Const) ? 0 : 1}; }

void ArrayEval::load(Ref node, std::byte* out) {
  const int bytes = byte_size(node->dtype);
  for (int64_t i = 0; i < n_; ++i) {
    const bool off = node->src.size() > 2 && element(DType::Bool, view(node->src[2]), i) == 0;
    const uint64_t index = element(DType::Index, view(node->src[1]), i);
    Bits value = index * 0x9E3779B97F4A7C15u;
    value = node->dtype == DType::Bool ? value >> 63 : value >> (64 - 8 * bytes); // the same bits whatever the type
    if (off) value = node->src.size() == 4 ? element(node->dtype, view(node->src[3]), i) : Bits{0};
    store_bits(node->dtype, out + i * bytes, value);
  }
}

void ArrayEval::compute(Ref node, std::byte* out) {
  const int bytes = byte_size(node->dtype);
  if (node->is(Ops::Const)) return store_bits(node->dtype, out, const_bits(node));
  if (node->is(Ops::Load)) return load(node, out);
  if (node->is(Ops::Cast)) return cast_array(node->dtype, node->src[0]->dtype, n_, view(node->src[0]), out);
  if (node->is(Ops::Bitcast)) {
    const Strided in = view(node->src[0]);
    if (in.stride == 1) std::memcpy(out, in.data, static_cast<size_t>(n_ * bytes));
    for (int64_t i = 0; in.stride == 0 && i < n_; ++i)
      std::memcpy(out + i * bytes, in.data, static_cast<size_t>(bytes));
    return;
  }
  if (node->src.empty() || node->src.size() > 3) cannot_evaluate(node);
  Strided in[3];
  for (size_t i = 0; i < node->src.size(); ++i) in[i] = view(node->src[i]);
  const DType type = node->is(Ops::Where) ? node->dtype : node->src[0]->dtype;
  if (!apply_array(node->op, type, n_, in, out)) cannot_evaluate(node);
}

Strided ArrayEval::run(Ref root) {
  std::vector<Ref> stack = {root};
  while (!stack.empty()) {
    const Ref node = stack.back();
    const size_t waiting = stack.size();
    if (!known(node))
      for (size_t i = node->is(Ops::Load) ? 1 : 0; i < node->src.size(); ++i)
        if (!known(node->src[i])) stack.push_back(node->src[i]);
    if (stack.size() > waiting) continue;
    stack.pop_back();
    if (!known(node)) compute(node, space_for(node, node->is(Ops::Const) ? 1 : n_));
  }
  return view(root);
}

Bits ArrayEval::at(Ref root, int64_t i) {
  const Strided v = run(root);
  return element(root->dtype, v, i);
}

} // namespace tgc
