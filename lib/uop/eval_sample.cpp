// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluation of chosen output elements only. Backwards from the outputs, every node gets the sorted list of elements
// that are needed of it; forwards, exactly those are computed, as short one-dimensional arrays. A node of which half or
// more is needed, and everything below it, is computed whole by the tensor interpreter instead. So the cost is bounded
// by that of a full evaluation (plus the lists), and for the last layers of a large model it is far below.

#include <algorithm>
#include <cstring>

#include "uop/eval_node.h"

namespace tgc {
namespace {

using Positions = std::vector<int64_t>; // flat row-major element numbers
constexpr int64_t kOutside = -1;        // a position in padding

int64_t count(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

class SampleEval {
public:
  SampleEval(Ref root, const GraphInputs& inputs, DimValues& dims) : inputs_(inputs), dims_(dims), root_(root) {
    for (Ref node : toposort(root)) order_.push_back(node);
  }

  Dense run(Positions at) {
    need_[root_->id] = at;
    std::sort(need_[root_->id].begin(), need_[root_->id].end());
    for (size_t i = order_.size(); i-- > 0;) spread(order_[i]);
    evaluate_whole_nodes();
    for (Ref node : order_)
      if (need_.contains(node->id)) values_[node->id] = compute(node);
    return fetch(root_, at);
  }

private:
  static std::span<const Ref> operands(Ref node) {
    const bool has_arguments = node->cls() == OpClass::Movement || node->is(Ops::After) || node->is(Ops::Reduce);
    return has_arguments ? node->src.first(1) : node->src;
  }

  static bool reads_anywhere(Ref node) { return node->is(Ops::Load) || node->is(Ops::Gather); }

  // Decides how `node` is computed and adds to the needs of its operands.
  void spread(Ref node) {
    const auto entry = need_.find(node->id);
    if (entry == need_.end() || is_whole_[node->id]) return;
    Positions& need = entry->second;
    std::sort(need.begin(), need.end());
    need.erase(std::unique(need.begin(), need.end()), need.end());
    const int64_t size = count(dims_(node->shape)), wanted = static_cast<int64_t>(need.size());
    const bool is_gather = node->is(Ops::Load) && node->has(Attr::Lanes);
    if (node->cls() == OpClass::Leaf || 2 * wanted > size || is_gather || node->src.empty()) {
      make_whole(node);
      return;
    }
    for (size_t k = 0; k < operands(node).size(); ++k) {
      const Ref s = operands(node)[k];
      if (reads_anywhere(node) && k == 0) {
        make_whole(s); // which elements is known only later
        continue;
      }
      if (is_whole_[s->id]) continue;
      Positions positions = operand_positions(node, k, need);
      std::erase(positions, kOutside);
      Positions& of = need_[s->id];
      of.insert(of.end(), positions.begin(), positions.end());
    }
  }

  void make_whole(Ref node) {
    if (is_whole_[node->id]) return;
    is_whole_[node->id] = true;
    whole_.push_back(node);
    need_.erase(node->id);
  }

  void evaluate_whole_nodes() {
    const std::vector<Dense> values = eval_graph(whole_, inputs_, dims_);
    for (size_t i = 0; i < whole_.size(); ++i) values_[whole_[i]->id] = dense_contiguous(values[i]);
  }

  // For each element of `node` in `at`, the element of operand `k` that it reads; for a Reduce, all of them in order.
  Positions operand_positions(Ref node, size_t k, const Positions& at) {
    const std::vector<int64_t> out = dims_(node->shape), in = dims_(node->src[k]->shape);
    if (node->is(Ops::Reduce)) return reduced_positions(node, in, at);
    if (node->is(Ops::Reshape) || node->is(Ops::After) || out == in) {
      if (node->cls() != OpClass::Movement || node->is(Ops::Reshape)) return at;
    }
    const size_t rank = in.size();
    std::vector<int64_t> shift(rank, 0);
    if (node->is(Ops::Pad) || node->is(Ops::Shrink)) shift = dims_(node->src.subspan(1, rank));
    Positions result;
    result.reserve(at.size());
    std::vector<int64_t> coordinate(out.size());
    for (int64_t flat : at) {
      for (size_t i = out.size(); i-- > 0; flat /= out[i]) coordinate[i] = flat % out[i];
      int64_t position = 0;
      for (size_t i = 0; i < rank && position != kOutside; ++i) {
        const int64_t c = source_coordinate(node, i, coordinate, in, shift);
        position = c < 0 || c >= in[i] ? kOutside : position * in[i] + c;
      }
      result.push_back(position);
    }
    return result;
  }

  // Coordinate of operand dim `i`; outside of [0, in[i]) in padding.
  static int64_t source_coordinate(Ref node, size_t i, const std::vector<int64_t>& out, const std::vector<int64_t>& in,
                                   const std::vector<int64_t>& shift) {
    const size_t offset = out.size() - in.size();
    const auto axes = [&]() -> const std::vector<int64_t>& { return node->ints(Attr::Axes); };
    switch (node->op) {
    case Ops::Permute:
      return out[static_cast<size_t>(std::find(axes().begin(), axes().end(), static_cast<int64_t>(i)) -
                                     axes().begin())];
    case Ops::Flip:
      return std::find(axes().begin(), axes().end(), static_cast<int64_t>(i)) != axes().end() ? in[i] - 1 - out[i]
                                                                                              : out[i];
    case Ops::Pad: return out[i] - shift[i];
    case Ops::Shrink: return out[i] + shift[i];
    default: return in[i] == 1 ? 0 : out[i + offset];
    }
  }

  Positions reduced_positions(Ref node, const std::vector<int64_t>& in, const Positions& at) {
    const std::vector<bool> reduced = reduced_dims(node);
    std::vector<int64_t> stride(in.size()), kept_size, kept_stride, reduced_size, reduced_stride;
    int64_t step = 1, terms = 1;
    for (size_t i = in.size(); i-- > 0; step *= in[i]) stride[i] = step;
    for (size_t i = 0; i < in.size(); ++i) {
      (reduced[i] ? reduced_size : kept_size).push_back(in[i]);
      (reduced[i] ? reduced_stride : kept_stride).push_back(stride[i]);
      if (reduced[i]) terms *= in[i];
    }
    const auto position = [](int64_t flat, const std::vector<int64_t>& size, const std::vector<int64_t>& of) {
      int64_t p = 0;
      for (size_t i = size.size(); i-- > 0; flat /= size[i]) p += flat % size[i] * of[i];
      return p;
    };
    Positions term(static_cast<size_t>(terms)), result;
    for (int64_t i = 0; i < terms; ++i) term[static_cast<size_t>(i)] = position(i, reduced_size, reduced_stride);
    result.reserve(at.size() * term.size());
    for (int64_t flat : at) {
      const int64_t base = position(flat, kept_size, kept_stride);
      for (int64_t t : term) result.push_back(base + t);
    }
    return result;
  }

  // The element of a gather's data for each one needed of the result.
  Positions gathered_positions(Ref node, const Dense& index) {
    const size_t dim = static_cast<size_t>(node->i(Attr::Dim));
    const std::vector<int64_t> out = dims_(node->shape);
    const int64_t extent = dims_(node->src[0]->shape)[dim];
    int64_t inner = 1;
    for (size_t i = dim + 1; i < out.size(); ++i) inner *= out[i];
    Positions result;
    for (int64_t flat : need_.at(node->id)) {
      const std::byte* from = index.first() + static_cast<int64_t>(result.size()) * byte_size(index.dtype);
      const int64_t at = to_int(index.dtype, load_bits(index.dtype, from));
      const bool inside = at >= 0 && at < extent;
      result.push_back(inside ? (flat / (out[dim] * inner) * extent + at) * inner + flat % inner : kOutside);
    }
    return result;
  }

  // The elements of `node` at `positions`; zero outside.
  Dense fetch(Ref node, const Positions& positions) {
    const Dense& from = values_.at(node->id);
    const int size = byte_size(node->dtype);
    std::byte* bytes = nullptr;
    Dense out = dense_new(node->dtype, {static_cast<int64_t>(positions.size())}, &bytes);
    const bool whole = is_whole_[node->id];
    const Positions* known = whole ? nullptr : &need_.at(node->id);
    for (size_t i = 0; i < positions.size(); ++i) {
      std::byte* to = bytes + static_cast<int64_t>(i) * size;
      if (positions[i] == kOutside) {
        store_bits(node->dtype, to, 0);
        continue;
      }
      const int64_t at =
          whole ? positions[i] : std::lower_bound(known->begin(), known->end(), positions[i]) - known->begin();
      std::memcpy(to, from.first() + at * size, static_cast<size_t>(size));
    }
    return out;
  }

  Dense compute(Ref node) {
    const Positions& need = need_.at(node->id);
    const std::vector<int64_t> shape{static_cast<int64_t>(need.size())};
    std::vector<Dense> src;
    for (size_t k = 0; k < operands(node).size(); ++k)
      src.push_back(reads_anywhere(node) && k == 0 ? values_.at(node->src[0]->id)
                                                   : fetch(node->src[k], operand_positions(node, k, need)));
    if (node->cls() == OpClass::Movement || node->is(Ops::After)) return src[0];
    if (node->is(Ops::Load)) {
      GatherArgs args{src[0], src[1], {}, {}, 0, describe(node), node->dtype};
      if (src.size() > 2) args.gate = src[2];
      if (src.size() > 3) args.alt = src[3];
      return eval_gather(args, shape);
    }
    if (node->is(Ops::Gather)) return fetch(node->src[0], gathered_positions(node, src[1]));
    if (node->is(Ops::Reduce)) {
      const Dense terms = dense_reshape(src[0], {shape[0], src[0].numel() / std::max<int64_t>(shape[0], 1)});
      return dense_reshape(dense_reduce(reduce_op(node), std::span(&terms, 1), {false, true}), shape);
    }
    return eval_op(node, src, shape, dims_);
  }

  const GraphInputs& inputs_;
  DimValues& dims_;
  Ref root_;
  std::vector<Ref> order_, whole_;
  std::unordered_map<uint32_t, Positions> need_;
  std::unordered_map<uint32_t, bool> is_whole_;
  std::unordered_map<uint32_t, Dense> values_;
};

} // namespace

Dense eval_elements(Ref value, std::span<const int64_t> at, const GraphInputs& inputs, DimValues& dims) {
  const int64_t size = count(dims(value->shape));
  for (int64_t i : at)
    if (i < 0 || i >= size) eval_error("", "element " + std::to_string(i) + " of " + std::to_string(size));
  return SampleEval(value, inputs, dims).run(Positions(at.begin(), at.end()));
}

} // namespace tgc
