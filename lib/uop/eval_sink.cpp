// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluation of a kernel body before it is linear: expressions over ranges. A range is one more dimension: every value
// is a strided array whose first dims stand for all ranges of the body (size 1 where a value does not depend on one),
// followed by its own dims. So the arrays of the tensor interpreter do all the work, a reduce over ranges is a reduce
// over dims, and a matmul kernel costs one pass over its products.
//
// Ranges that another range's extent depends on, and the outermost ranges of bodies with very large values, are bound
// to one value at a time in an outer loop. Stores happen after all values of that iteration are computed.
// Scratch written by an End and read After it is such an array too: its dims are the ranges the End leaves open, then
// the buffer's own. Not handled: reg buffers, which only linear bodies have.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "uop/eval_kernel.h"

namespace tgc {
namespace {

constexpr int64_t kMaxValueElements = int64_t{1} << 24; // larger values are computed a slice at a time

class SinkEval {
public:
  SinkEval(Ref sink, const KernelEnv& env) : env_(env), dims_(*env.vars), nodes_(toposort(sink)) {
    for (Ref node : nodes_) {
      position_[node->id] = values_.size();
      values_.emplace_back();
      if (node->is(Ops::Range)) axis_[node->id] = axes_.size(), axes_.push_back(node);
      if (node->is(Ops::Buffer) && node->s(Attr::Space) != "scratch") fail(node, "is no storage of a sink body");
    }
    find_fused();
    is_bound_.assign(axes_.size(), false);
    for (Ref range : axes_)
      for (Ref outer : range->src[0]->ranges) is_bound_[axis_.at(outer->id)] = true;
    for (Ref node : nodes_)
      if (closes_bound(node)) fail(node, "the extent of one range depends on another range that is reduced or staged");
  }

  void run() {
    while (largest_value() > kMaxValueElements && bind_one_more()) {
    }
    run_from(0);
  }

private:
  [[noreturn]] void fail(Ref node, const std::string& why) const {
    eval_error("kernel " + env_.name, describe(node) + ": " + why);
  }

  // Products that only reductions read are never values.
  void find_fused() {
    is_fused_.assign(nodes_.size(), true);
    for (Ref node : nodes_) {
      if (!node->is(Ops::Mul)) is_fused_[position_.at(node->id)] = false;
      for (size_t i = 0; i < node->src.size(); ++i)
        if (i > 0 || !node->is(Ops::Reduce)) is_fused_[position_.at(node->src[i]->id)] = false;
    }
  }
  bool is_fused(Ref node) const { return is_fused_[position_.at(node->id)]; }

  // ---- ranges that are looped over ----------------------------------------------------------------------------------
  bool closes_bound(Ref node) const {
    if (!node->is(Ops::Reduce) && !node->is(Ops::Stage)) return false;
    return std::any_of(node->src.begin() + 1, node->src.end(), [&](Ref r) { return is_bound_[axis_.at(r->id)]; });
  }

  int64_t axis_size(size_t axis) {
    if (is_bound_[axis]) return 1;
    const int64_t extent = dims_(axes_[axis]->src[0]);
    return std::max<int64_t>(extent, 0);
  }

  // Elements of the largest value, with dependent extents at their bounds.
  int64_t largest_value() {
    int64_t largest = 0;
    for (Ref node : nodes_) {
      if (is_fused(node)) continue;
      double size = 1;
      for (Ref r : node->ranges)
        size *= is_bound_[axis_.at(r->id)] ? 1.0 : static_cast<double>(std::max<int64_t>(r->hi + 1, 1));
      largest = std::max(largest, static_cast<int64_t>(std::min(size, 1e18)));
    }
    return largest;
  }

  // Binds the first range that nothing closes; false when there is none.
  bool bind_one_more() {
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (is_bound_[axis]) continue;
      is_bound_[axis] = true;
      if (std::none_of(nodes_.begin(), nodes_.end(), [&](Ref node) { return closes_bound(node); })) return true;
      is_bound_[axis] = false;
    }
    return false;
  }

  // All combinations of the bound ranges from `axis` on; depth is the number of ranges.
  void run_from(size_t axis) {
    while (axis < axes_.size() && !is_bound_[axis]) ++axis;
    if (axis == axes_.size()) return run_once();
    const int64_t extent = dims_(axes_[axis]->src[0]);
    for (int64_t i = 0; i < extent; ++i) {
      dims_.bind(axes_[axis], i);
      bound_value_[axis] = i;
      run_from(axis + 1);
    }
  }

  void run_once() {
    for (Ref node : nodes_)
      if (node->is(Ops::After) && scratch_of(node))
        value(node) = scratch_value(node);
      else if (node->dtype != DType::Void && !is_storage(node) && !is_fused(node))
        value(node) = compute(node);
    for (Ref node : nodes_)
      if (node->is(Ops::Store) && !scratch_of(node->src[0])) store(node);
  }

  // ---- values -------------------------------------------------------------------------------------------------------
  static bool is_storage(Ref node) {
    while (node->is(Ops::After)) node = node->src[0];
    return node->is(Ops::Param) || node->is(Ops::Buffer);
  }
  /// The scratch Buffer under any Afters, or null.
  static Ref scratch_of(Ref node) {
    while (node->is(Ops::After)) node = node->src[0];
    return node->is(Ops::Buffer) ? node : Ref();
  }

  Dense& value(Ref node) { return values_[position_.at(node->id)]; }

  std::vector<int64_t> shape_of(Ref node, Refs extra_ranges = {}) {
    std::vector<int64_t> shape(axes_.size(), 1);
    for (Ref r : node->ranges) shape[axis_.at(r->id)] = axis_size(axis_.at(r->id));
    for (Ref r : extra_ranges) shape[axis_.at(r->id)] = axis_size(axis_.at(r->id));
    for (Ref dim : node->shape) shape.push_back(dims_(dim));
    return shape;
  }

  // The value with size-1 dims inserted after the range dims, so that it has `rank` own dims.
  Dense aligned(Ref node, size_t rank) { return with_rank(value(node), rank); }

  std::vector<Dense> aligned_sources(Ref node) {
    std::vector<Dense> out;
    for (Ref s : node->src) out.push_back(aligned(s, node->shape.size()));
    return out;
  }

  Dense permuted(Ref node) {
    std::vector<int64_t> axes(axes_.size());
    std::iota(axes.begin(), axes.end(), 0);
    for (const int64_t axis : node->ints(Attr::Axes)) axes.push_back(static_cast<int64_t>(axes_.size()) + axis);
    return dense_permute(aligned(node->src[0], node->shape.size()), axes);
  }

  Dense lifted(Dense x) const {
    x.shape.insert(x.shape.begin(), axes_.size(), 1);
    x.stride.insert(x.stride.begin(), axes_.size(), 0);
    return x;
  }

  Dense compute(Ref node) {
    switch (node->op) {
    case Ops::Range: return range_value(node);
    case Ops::Reduce: return reduce_value(node);
    case Ops::Load: return load_value(node);
    case Ops::Pick: return pick_value(node);
    case Ops::Stage: return dense_broadcast(value(node->src[0]), shape_of(node->src[0], node->src.subspan(1)));
    case Ops::After: return value(node->src[0]);
    case Ops::Permute: return permuted(node);
    default: break;
    }
    switch (node->cls()) {
    case OpClass::Leaf: return lifted(eval_op(node, {}, {}, dims_));
    case OpClass::Unary:
    case OpClass::Binary:
    case OpClass::Compare:
    case OpClass::Ternary: return eval_op(node, aligned_sources(node), shape_of(node), dims_);
    default: fail(node, "not an op of a kernel body");
    }
  }

  Dense range_value(Ref node) {
    const size_t axis = axis_.at(node->id);
    if (is_bound_[axis]) return lifted(dense_scalar(DType::Index, static_cast<Bits>(bound_value_[axis])));
    return dense_iota(axis_size(axis), static_cast<int>(axis), static_cast<int>(axes_.size()));
  }

  Dense reduce_value(Ref node) {
    const Ref body = node->src[0];
    const std::vector<int64_t> full = shape_of(body, node->src.subspan(1));
    std::vector<bool> reduced(axes_.size(), false);
    for (Ref r : node->src.subspan(1)) reduced[axis_.at(r->id)] = true;
    for (bool own : reduced_dims(node)) reduced.push_back(own);
    std::vector<Dense> in;
    if (reduces_product(node)) {
      for (Ref factor : body->src) in.push_back(dense_broadcast(aligned(factor, body->shape.size()), full));
    } else {
      in.push_back(dense_broadcast(value(body), full));
    }
    return dense_reshape(dense_reduce(reduce_op(node), in, reduced), shape_of(node));
  }

  /// Strides that number the elements of `whole` by its range dims, as an index array of `rank` own dims.
  Dense range_offset(const Dense& whole, size_t rank) {
    std::vector<int64_t> shape(axes_.size() + rank, 1);
    Dense sum = lifted(dense_scalar(DType::Index, 0));
    sum = with_rank(sum, rank);
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (whole.shape[axis] == 1) continue;
      shape[axis] = whole.shape[axis];
      const Dense term[] = {
          with_rank(dense_iota(whole.shape[axis], static_cast<int>(axis), static_cast<int>(axes_.size())), rank),
          with_rank(lifted(dense_scalar(DType::Index, static_cast<Bits>(whole.stride[axis]))), rank)};
      std::vector<int64_t> one(shape.size(), 1);
      one[axis] = whole.shape[axis];
      const Dense pair[] = {sum, dense_apply(Ops::Mul, one, term)};
      sum = dense_apply(Ops::Add, shape, pair);
    }
    return sum;
  }

  /// What a scratch buffer holds after the stores of the Ends that `after` waits for, NaN where nothing was stored.
  Dense scratch_value(Ref after) {
    const Ref buffer = scratch_of(after);
    std::vector<int64_t> shape = shape_of(after);
    std::byte* data = nullptr;
    Dense whole = dense_new(buffer->dtype, shape, &data);
    std::memset(data, 0xff, static_cast<size_t>(whole.numel() * byte_size(buffer->dtype)));
    for (Ref effect : after->src.subspan(1)) {
      const Ref store = effect->is(Ops::End) ? effect->src[0] : effect;
      if (!store->is(Ops::Store) || !(scratch_of(store->src[0]) == buffer))
        fail(after, "waits for something else than a store to its buffer");
      write_scratch(store, whole, data);
    }
    return whole;
  }

  /// Those of a vector store whose operands have `given`.
  int64_t lanes_of(Ref store, int64_t given) const {
    const int64_t lanes = store->i(Attr::Lanes);
    if (given != 1 && given != lanes)
      fail(store, "stores " + std::to_string(lanes) + " lanes of " + std::to_string(given));
    return lanes;
  }

  void write_scratch(Ref store, const Dense& whole, std::byte* data) {
    size_t rank = store->has(Attr::Lanes) ? 1 : 0; // index, value and gate may all be one for all lanes
    for (Ref s : store->src.subspan(1)) rank = std::max(rank, s->shape.size());
    Dense outer = range_offset(whole, rank);
    std::vector<int64_t> full(axes_.size() + rank, 1);
    auto widen = [&](const Dense& x) {
      for (size_t i = 0; i < full.size(); ++i)
        if (x.shape[i] != 1) full[i] = x.shape[i];
    };
    widen(outer);
    for (Ref s : store->src.subspan(1)) widen(aligned(s, rank));
    const int64_t lanes = std::max<int64_t>(store->i(Attr::Lanes, 1), 1), n = whole.shape.back();
    if (store->has(Attr::Lanes)) full.back() = lanes_of(store, full.back());
    const HostTensor base = to_host(dense_broadcast(outer, full)),
                     what = to_host(dense_broadcast(aligned(store->src[2], rank), full));
    std::vector<int64_t> index_shape = full;
    if (store->has(Attr::Lanes)) index_shape.back() = 1;
    const HostTensor index = to_host(dense_broadcast(aligned(store->src[1], rank), index_shape));
    const bool gated = store->src.size() > 3;
    const HostTensor gate = gated ? to_host(dense_broadcast(aligned(store->src[3], rank), full)) : HostTensor{};
    const int64_t size = byte_size(whole.dtype);
    for (int64_t i = 0; i < what.numel(); ++i) {
      if (gated && gate.data[static_cast<size_t>(i)] == std::byte{0}) continue;
      const int64_t at = index.int_at(i / lanes) + i % lanes;
      if (at < 0 || at >= n) fail(store, "index " + std::to_string(at) + " of " + std::to_string(n) + " elements");
      std::memcpy(data + (base.int_at(i) + at) * size, what.data.data() + i * size, static_cast<size_t>(size));
    }
  }

  Dense scratch_load(Ref node) {
    const Dense& whole = value(node->src[0]);
    const size_t rank = node->shape.size();
    const Dense at = aligned(node->src[1], rank);
    std::vector<int64_t> shape = at.shape;
    const Dense outer = range_offset(whole, rank);
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], outer.shape[i]);
    const Dense sum[] = {outer, at};
    GatherArgs args;
    args.buffer = dense_reshape(whole, {whole.numel()});
    args.index = dense_apply(Ops::Add, shape, sum);
    if (node->src.size() > 2) args.gate = aligned(node->src[2], rank);
    if (node->src.size() > 3) args.alt = aligned(node->src[3], rank);
    args.lanes = node->i(Attr::Lanes, 0);
    args.dtype = node->dtype;
    args.where = "kernel " + env_.name + ", " + describe(node);
    return eval_gather(args, shape_of(node));
  }

  Dense load_value(Ref node) {
    if (scratch_of(node->src[0])) return scratch_load(node);
    const BufferArg& buffer = kernel_buffer(env_, node->src[0]);
    GatherArgs args;
    args.buffer = dense_over(buffer.dtype, {buffer.numel}, buffer.data);
    args.index = aligned(node->src[1], node->shape.size());
    if (node->src.size() > 2) args.gate = aligned(node->src[2], node->shape.size());
    if (node->src.size() > 3) args.alt = aligned(node->src[3], node->shape.size());
    args.lanes = node->i(Attr::Lanes, 0);
    args.dtype = node->dtype;
    args.where = "kernel " + env_.name + ", slot " + std::to_string(slot_of(node->src[0]));
    return eval_gather(args, shape_of(node));
  }

  static int64_t slot_of(Ref param) {
    while (param->is(Ops::After)) param = param->src[0];
    return param->i(Attr::Slot);
  }

  // pick(stage, i...) = the stage's value with its k-th range at i[k]: a gather at sum(i[k] * stride[k]) relative to
  // the position given by the ranges that the stage leaves open.
  Dense pick_value(Ref node) {
    Ref stage = node->src[0];
    while (stage->is(Ops::After)) stage = stage->src[0];
    if (!stage->is(Ops::Stage) || stage->src.size() != node->src.size())
      fail(node, "needs a stage and one index per staged range");
    const Dense whole = dense_contiguous(value(stage));
    const std::vector<int64_t> shape = shape_of(node);
    // Element numbers of the stage with the staged dims fixed at 0.
    Dense position = dense_reshape(dense_iota(whole.numel(), 0, 1), whole.shape);
    for (size_t k = 1; k < stage->src.size(); ++k) position.shape[axis_.at(stage->src[k]->id)] = 1;
    position = with_rank(position, node->shape.size());
    for (size_t k = 1; k < stage->src.size(); ++k) {
      const size_t axis = axis_.at(stage->src[k]->id);
      const Dense index = dense_broadcast(aligned(node->src[k], node->shape.size()), shape);
      check_pick(node, index, whole.shape[axis]);
      const Dense step[] = {index, lifted(dense_scalar(DType::Index, static_cast<Bits>(whole.stride[axis])))};
      const Dense sum[] = {position, dense_apply(Ops::Mul, shape, step)};
      position = dense_apply(Ops::Add, shape, sum);
    }
    GatherArgs args;
    args.buffer = whole;
    args.index = position;
    args.where = "kernel " + env_.name + ", " + describe(node);
    return eval_gather(args, shape);
  }

  Dense with_rank(Dense x, size_t rank) const {
    const size_t missing = axes_.size() + rank - x.shape.size();
    x.shape.insert(x.shape.begin() + static_cast<std::ptrdiff_t>(axes_.size()), missing, 1);
    x.stride.insert(x.stride.begin() + static_cast<std::ptrdiff_t>(axes_.size()), missing, 0);
    return x;
  }

  void check_pick(Ref node, const Dense& index, int64_t size) const {
    const HostTensor all = to_host(index);
    for (int64_t i = 0; i < all.numel(); ++i)
      if (all.int_at(i) < 0 || all.int_at(i) >= size)
        fail(node, "index " + std::to_string(all.int_at(i)) + " of " + std::to_string(size));
  }

  // ---- stores -------------------------------------------------------------------------------------------------------
  void store(Ref node) {
    if (node->src.size() < 3) fail(node, "a kernel's store has a buffer, an index and a value");
    const BufferArg& buffer = kernel_buffer(env_, node->src[0]);
    size_t rank = node->has(Attr::Lanes) ? 1 : 0; // index, value and gate may all be one for all lanes
    for (Ref s : node->src.subspan(1)) rank = std::max(rank, s->shape.size());
    std::vector<int64_t> shape(axes_.size() + rank, 1);
    std::vector<Dense> in;
    for (Ref s : node->src.subspan(1)) {
      in.push_back(aligned(s, rank));
      for (size_t i = 0; i < shape.size(); ++i)
        if (in.back().shape[i] != 1) shape[i] = in.back().shape[i];
    }
    const int64_t lanes = std::max<int64_t>(node->i(Attr::Lanes, 1), 1);
    if (node->has(Attr::Lanes)) shape.back() = lanes_of(node, shape.back());
    std::vector<int64_t> index_shape = shape;
    if (node->has(Attr::Lanes)) index_shape.back() = 1;
    const HostTensor index = to_host(dense_broadcast(in[0], index_shape)),
                     value_of = to_host(dense_broadcast(in[1], shape));
    const bool gated = in.size() > 2;
    const HostTensor gate = gated ? to_host(dense_broadcast(in[2], shape)) : HostTensor{};
    const int size = byte_size(buffer.dtype);
    if (value_of.dtype != buffer.dtype)
      fail(node, std::string("stores ") + tgc::name(value_of.dtype) + " to a buffer of " + tgc::name(buffer.dtype));
    for (int64_t i = 0, n = value_of.numel(); i < n; ++i) {
      if (gated && gate.data[static_cast<size_t>(i)] == std::byte{0}) continue;
      const int64_t at = index.int_at(i / lanes);
      if (at + i % lanes < 0 || at + i % lanes >= buffer.numel)
        eval_error("kernel " + env_.name + ", slot " + std::to_string(slot_of(node->src[0])),
                   "store at index " + std::to_string(at + i % lanes) + " of " + std::to_string(buffer.numel) +
                       " elements");
      std::memcpy(buffer.data + (at + i % lanes) * size, value_of.data.data() + i * size, static_cast<size_t>(size));
    }
  }

  const KernelEnv& env_;
  DimValues dims_;
  std::vector<Ref> nodes_, axes_;
  std::vector<Dense> values_; // by position in nodes_
  std::unordered_map<uint32_t, size_t> position_, axis_;
  std::vector<bool> is_bound_; // by axis
  std::vector<bool> is_fused_; // by position in nodes_
  std::map<size_t, int64_t> bound_value_;
};

} // namespace

const BufferArg& kernel_buffer(const KernelEnv& env, Ref param) {
  while (param->is(Ops::After)) param = param->src[0];
  if (!param->is(Ops::Param)) eval_error("kernel " + env.name, describe(param) + " is no argument of the kernel");
  const int64_t slot = param->i(Attr::Slot);
  if (slot < 0 || slot >= static_cast<int64_t>(env.buffers.size()))
    eval_error("kernel " + env.name,
               "slot " + std::to_string(slot) + " of " + std::to_string(env.buffers.size()) + " arguments");
  const BufferArg& buffer = env.buffers[static_cast<size_t>(slot)];
  if (buffer.dtype != param->dtype)
    eval_error("kernel " + env.name,
               "slot " + std::to_string(slot) + " is " + name(param->dtype) + ", the argument " + name(buffer.dtype));
  return buffer;
}

void eval_sink_body(Ref sink, const KernelEnv& env) { SinkEval(sink, env).run(); }

void eval_kernel(Ref func, std::span<const BufferArg> buffers, const VarValues& vars) {
  if (!func->is(Ops::Func)) eval_error("", describe(func) + " is no kernel");
  const KernelEnv env{func->s(Attr::Name), buffers, &vars};
  if (func->src[0]->is(Ops::Linear)) return eval_linear_body(func->src[0], env);
  if (func->src[0]->is(Ops::Sink)) return eval_sink_body(func->src[0], env);
  eval_error("kernel " + env.name, "the body is " + describe(func->src[0]) + ", not sink or linear");
}

} // namespace tgc
