// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluation of tensor graphs: every node once, sources first, as a strided array; a value is freed after its last use.
// A reduction of a product reads the two factors directly, so a matmul or a convolution never stores M*N*K products.
// Dims are evaluated separately: they are expressions over Vars and not always sources of the node that has them.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "uop/eval_node.h"

namespace tgc {

void eval_error(const std::string& where, const std::string& message) {
  throw CompileError(Diagnostic{.code = ErrorCode::E105, .where = where, .message = message, .note = ""});
}

std::string describe(Ref node) {
  return std::string(name(node->op)) +
         (node->dtype == DType::Void ? "" : std::string(" ") + name(node->dtype) + shape_text(node->shape));
}

// ---- dims -----------------------------------------------------------------------------------------------------------
void DimValues::bind(Ref range, int64_t value) {
  bound_[range->id] = value;
  memo_.clear();
}

int64_t DimValues::compute(Ref node) {
  if (auto bound = bound_.find(node->id); bound != bound_.end()) return bound->second;
  if (std::optional<int64_t> c = const_int(node)) return *c;
  if (node->is(Ops::Const)) return 0; // a float inside a comparison; not a dim
  if (node->is(Ops::Var)) {
    const std::string& var = node->s(Attr::Name);
    const auto value = vars_.find(var);
    if (value == vars_.end()) eval_error("", "no value is given for dimension \"" + var + "\"");
    if (value->second < node->i(Attr::Min) || value->second > node->i(Attr::Max))
      eval_error("", "dimension \"" + var + "\" = " + std::to_string(value->second) + " is outside " +
                         std::to_string(node->i(Attr::Min)) + ".." + std::to_string(node->i(Attr::Max)));
    return value->second;
  }
  Bits in[3] = {};
  if (node->src.empty() || node->src.size() > 3) eval_error("", describe(node) + " in a dim cannot be evaluated");
  for (size_t i = 0; i < node->src.size(); ++i) in[i] = from_int(node->src[i]->dtype, memo_.at(node->src[i]->id));
  if (node->is(Ops::Cast)) return to_int(node->dtype, cast_bits(node->dtype, node->src[0]->dtype, in[0]));
  const ScalarFn fn = scalar_fn(node->op, node->src.back()->dtype);
  if (fn == nullptr) eval_error("", describe(node) + " in a dim cannot be evaluated");
  return to_int(node->dtype, fn(in[0], in[1], in[2]));
}

int64_t DimValues::operator()(Ref dim) {
  if (std::optional<int64_t> c = const_int(dim)) return *c;
  if (auto known = memo_.find(dim->id); known != memo_.end()) return known->second;
  for (Ref range : dim->ranges)
    if (!bound_.contains(range->id)) eval_error("", describe(dim) + " depends on a range that has no value here");
  for (Ref node : toposort(dim))
    if (!memo_.contains(node->id))
      memo_[node->id] = node->is(Ops::Range) && !bound_.contains(node->id) ? 0 : compute(node);
  return memo_.at(dim->id);
}

std::vector<int64_t> DimValues::operator()(Refs dims) {
  std::vector<int64_t> out;
  for (Ref dim : dims) out.push_back((*this)(dim));
  return out;
}

// ---- one op ---------------------------------------------------------------------------------------------------------
std::vector<bool> reduced_dims(Ref reduce) {
  std::vector<bool> out(static_cast<size_t>(reduce->src[0]->rank()));
  if (reduce->has(Attr::Axes))
    for (int64_t axis : reduce->ints(Attr::Axes)) out[static_cast<size_t>(axis)] = true;
  return out;
}

bool reduces_product(Ref reduce) { return reduce->is(Ops::Reduce) && reduce->src[0]->is(Ops::Mul); }

namespace {

Dense eval_movement(Ref node, const Dense& x, const std::vector<int64_t>& shape, DimValues& dims) {
  const Refs args = node->src.subspan(1);
  const size_t rank = args.size() / 2;
  switch (node->op) {
  case Ops::Reshape: return dense_reshape(x, shape);
  case Ops::Expand: return dense_broadcast(x, shape);
  case Ops::Permute: return dense_permute(x, node->ints(Attr::Axes));
  case Ops::Flip: return dense_flip(x, node->ints(Attr::Axes));
  case Ops::Pad: return dense_pad(x, dims(args.first(rank)), dims(args.subspan(rank)));
  default: return dense_shrink(x, dims(args.first(rank)), dims(args.subspan(rank)));
  }
}

} // namespace

Dense eval_op(Ref node, std::span<const Dense> src, const std::vector<int64_t>& shape, DimValues& dims) {
  switch (node->cls()) {
  case OpClass::Leaf:
    if (node->is(Ops::Const)) return dense_scalar(node->dtype, const_bits(node));
    if (node->is(Ops::Var)) return dense_scalar(node->dtype, static_cast<Bits>(dims(node)));
    if (node->is(Ops::Iota))
      return dense_iota(dims(node->src[0]), static_cast<int>(node->i(Attr::Dim, 0)),
                        static_cast<int>(node->i(Attr::Rank, 1)));
    break;
  case OpClass::Movement: return eval_movement(node, src[0], shape, dims);
  case OpClass::Unary:
    if (node->is(Ops::Cast)) return dense_cast(node->dtype, src[0]);
    if (node->is(Ops::Bitcast)) return dense_bitcast(node->dtype, src[0]);
    return dense_apply(node->op, shape, src);
  case OpClass::Binary:
  case OpClass::Compare:
  case OpClass::Ternary: return dense_apply(node->op, shape, src);
  case OpClass::Reduce: {
    Dense out = dense_reduce(reduce_op(node), src, reduced_dims(node));
    return dense_reshape(out, shape);
  }
  case OpClass::Memory:
    if (node->is(Ops::Gather)) return dense_gather(src[0], src[1], static_cast<size_t>(node->i(Attr::Dim)));
    break;
  case OpClass::Control:
    if (node->is(Ops::After)) return src[0];
    break;
  }
  eval_error("", describe(node) + " cannot be evaluated here");
}

Dense eval_gather(const GatherArgs& args, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index_shape = shape;
  if (args.lanes > 0) index_shape.back() = 1;
  const Dense index = dense_contiguous(dense_broadcast(args.index, index_shape));
  const Dense buffer = dense_contiguous(args.buffer);
  const bool has_gate = args.gate.dtype != DType::Void, has_alt = args.alt.dtype != DType::Void;
  const Dense gate = has_gate ? dense_contiguous(dense_broadcast(args.gate, shape)) : Dense{};
  const Dense alt = has_alt ? dense_contiguous(dense_broadcast(args.alt, shape)) : Dense{};
  std::byte* bytes = nullptr;
  const DType dtype = args.dtype == DType::Void ? buffer.dtype : args.dtype;
  Dense out = dense_new(dtype, shape, &bytes);
  const int size = byte_size(dtype), unit = byte_size(buffer.dtype);
  const int64_t lanes = std::max<int64_t>(args.lanes, 1), total = buffer.numel(), step = size / unit;
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    if (has_gate && gate.first()[i] == std::byte{0}) {
      store_bits(dtype, bytes + i * size, has_alt ? load_bits(dtype, alt.first() + i * size) : 0);
      continue;
    }
    const int64_t at = static_cast<int64_t>(load_bits(DType::I64, index.first() + i / lanes * 8));
    const int64_t element = at + i % lanes * step;
    if (element < 0 || element > total - step)
      eval_error(args.where, "load at index " + std::to_string(element) + " of " + std::to_string(total) + " elements");
    std::memcpy(bytes + i * size, buffer.first() + element * unit, static_cast<size_t>(size));
  }
  return out;
}

Dense weight_value(const Module& module, Ref weight, const std::vector<int64_t>& shape) {
  const std::string& key = weight->s(Attr::Key);
  const auto entry = module.weights.find(key);
  if (entry == module.weights.end()) eval_error("", "the module has no weight \"" + key + "\"");
  const WeightData& data = entry->second;
  if (data.data == nullptr) eval_error("", "the bytes of weight \"" + key + "\" are not loaded");
  Dense out = dense_over(weight->dtype, shape, data.data);
  out.data = data.data;
  const uint64_t bytes = static_cast<uint64_t>(byte_size(weight->dtype));
  if (data.kind == WeightData::Kind::Splat) std::fill(out.stride.begin(), out.stride.end(), 0);
  const uint64_t need = data.kind == WeightData::Kind::Splat ? bytes : bytes * static_cast<uint64_t>(out.numel());
  if (data.length < need)
    eval_error("", "weight \"" + key + "\" has " + std::to_string(data.length) + " bytes; " + describe(weight) +
                       " needs " + std::to_string(need));
  if (reinterpret_cast<uintptr_t>(data.data) % bytes == 0) return out;
  std::byte* aligned = nullptr; // a file aligns nothing, and elements are read as what they are
  out.owner = dense_new(weight->dtype, {static_cast<int64_t>(need / bytes)}, &aligned).owner;
  std::memcpy(aligned, data.data, need);
  out.data = aligned;
  return out;
}

// ---- the graph ------------------------------------------------------------------------------------------------------
Dense leaf_value(Ref leaf, const GraphInputs& inputs, DimValues& dims) {
  if (leaf->is(Ops::Weight) && inputs.module != nullptr) return weight_value(*inputs.module, leaf, dims(leaf->shape));
  if (leaf->is(Ops::Param) && inputs.params != nullptr) {
    const int64_t slot = leaf->i(Attr::Slot);
    const std::string label = leaf->s(Attr::Name, "slot " + std::to_string(slot));
    if (slot < 0 || slot >= static_cast<int64_t>(inputs.params->size()))
      eval_error("", "no value is given for input \"" + label + "\"");
    const HostTensor& value = (*inputs.params)[static_cast<size_t>(slot)];
    if (value.dtype != leaf->dtype || value.shape != dims(leaf->shape))
      eval_error("", "input \"" + label + "\" needs " + name(leaf->dtype) + shape_text(leaf->shape) + ", got " +
                         name(value.dtype) + " of rank " + std::to_string(value.shape.size()));
    return from_host(value);
  }
  return eval_op(leaf, {}, {}, dims);
}

namespace {

class GraphEval {
public:
  GraphEval(Refs roots, const GraphInputs& inputs, DimValues& dims) : inputs_(inputs), dims_(dims), roots_(roots) {
    order_ = toposort(roots);
    size_t nodes = 0;
    for (Ref node : order_) nodes = std::max(nodes, static_cast<size_t>(node->id) + 1);
    values_.resize(nodes);
    uses_.assign(nodes, 0);
    for (Ref root : roots) ++uses_[root->id];
    for (size_t i = order_.size(); i-- > 0;)
      if (uses_[order_[i]->id] != 0)
        for (Ref s : operands(order_[i])) ++uses_[s->id];
  }

  std::vector<Dense> run() {
    for (Ref node : order_)
      if (uses_[node->id] != 0) evaluate(node);
    std::vector<Dense> out;
    for (Ref root : roots_) out.push_back(values_[root->id]);
    return out;
  }

private:
  bool is_given(Ref node) const { return inputs_.leaves != nullptr && inputs_.leaves->contains(node->id); }

  // The sources whose values a node reads: movement arguments and dims are evaluated by DimValues, factors of a fused
  // product stand for the product.
  std::vector<Ref> operands(Ref node) const {
    if (is_given(node) || node->cls() == OpClass::Leaf) return {};
    if (reduces_product(node) && !is_given(node->src[0])) return {node->src[0]->src[0], node->src[0]->src[1]};
    if (node->cls() == OpClass::Movement || node->is(Ops::After)) return {node->src[0]};
    return {node->src.begin(), node->src.end()};
  }

  void evaluate(Ref node) {
    if (is_given(node)) {
      values_[node->id] = from_host(inputs_.leaves->at(node->id));
      return;
    }
    const std::vector<Ref> refs = operands(node);
    std::vector<Dense> src;
    for (Ref s : refs) src.push_back(values_[s->id]);
    values_[node->id] = compute(node, src);
    for (Ref s : refs)
      if (--uses_[s->id] == 0) values_[s->id] = Dense{};
  }

  Dense compute(Ref node, std::vector<Dense>& src) {
    if (node->cls() == OpClass::Leaf) return leaf_value(node, inputs_, dims_);
    const std::vector<int64_t> shape = dims_(node->shape);
    if (node->is(Ops::Load)) {
      GatherArgs args{src[0], src[1], {}, {}, node->i(Attr::Lanes, 0), describe(node), node->dtype};
      if (src.size() > 2) args.gate = src[2];
      if (src.size() > 3) args.alt = src[3];
      return eval_gather(args, shape);
    }
    if (reduces_product(node) && src.size() == 2 && !is_given(node->src[0])) {
      const std::vector<int64_t> full = dims_(node->src[0]->shape);
      for (Dense& factor : src) factor = dense_broadcast(factor, full);
    }
    if (node->is(Ops::Reduce) && node->src.size() > 1) eval_error("", "reduce over ranges outside a kernel");
    return eval_op(node, src, shape, dims_);
  }

  const GraphInputs& inputs_;
  DimValues& dims_;
  Refs roots_;
  std::vector<Ref> order_;
  std::vector<Dense> values_; // by UOp::id
  std::vector<uint32_t> uses_;
};

} // namespace

std::vector<Dense> eval_graph(Refs roots, const GraphInputs& inputs, DimValues& dims) {
  return GraphEval(roots, inputs, dims).run();
}

HostTensor eval_expr(Ref root, const LeafValues& leaves, const VarValues& vars) {
  DimValues dims(vars);
  GraphInputs inputs;
  inputs.leaves = &leaves;
  return to_host(eval_graph(Refs(&root, 1), inputs, dims)[0]);
}

int64_t eval_index(Ref dim, const VarValues& vars) {
  DimValues dims(vars);
  return dims(dim);
}

} // namespace tgc
