// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: where the order of dims changes, at the edges of a graph, the lanes of a tile lie far apart in memory: each
// element is picked from its vector and stored alone, or loaded alone. But its rows often follow each other.
// Idea: exchange the two dims of index and gate, which are arithmetic on Iotas; then rows are the lanes of the access
// and it covers one vector per lane. The value is exchanged by a permute, which renderers do in registers.
// Not handled: words of bytes, indices and gates that are loaded. Source of the idea: Eklundh 1972, "A Fast Computer
// Method for Matrix Transposing".
#include "rewrite/lower/transpose.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"

namespace tgc {
namespace {

constexpr int64_t kLeast = 4; // rows, from which on shuffles are fewer than elements

Ref iota(Context& ctx, Ref extent, int64_t dim, int64_t rank) {
  return ctx.make(Ops::Iota, DType::Index, {extent}, {{Attr::Dim, dim}, {Attr::Rank, rank}});
}

/// Arithmetic on Iotas of `rank` and on scalars only.
bool is_arithmetic(Ref x, int64_t rank) {
  const std::vector<Ref> nodes = toposort(x);
  return std::all_of(nodes.begin(), nodes.end(), [&](Ref n) {
    if (n->is(Ops::Iota)) return n->i(Attr::Rank, 1) == rank;
    return n->rank() == 0 || n->cls() == OpClass::Unary || n->cls() == OpClass::Binary ||
           n->cls() == OpClass::Compare || n->cls() == OpClass::Ternary;
  });
}

/// Two dims, the second the last.
class Exchange {
public:
  Exchange(int64_t dim, int64_t rank) : dim_(dim), rank_(rank) {}

  Ref arithmetic(Ref x) const {
    std::vector<std::pair<Ref, Ref>> turned;
    for (Ref n : toposort(x)) {
      if (!n->is(Ops::Iota)) continue;
      const int64_t at = n->i(Attr::Dim, 0);
      if (at == dim_ || at == rank_ - 1)
        turned.emplace_back(n, iota(*x->ctx, n->src[0], at == dim_ ? rank_ - 1 : dim_, rank_));
    }
    return simplify(substitute(x, turned));
  }
  bool can_turn(Ref value) const { return value->rank() == 0 || value->rank() == rank_; }
  Ref value(Ref x) const {
    if (x->rank() == 0) return x;
    std::vector<int64_t> axes(static_cast<size_t>(rank_));
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[static_cast<size_t>(dim_)], axes.back());
    return x->ctx->make(Ops::Permute, x->dtype, {x}, {{Attr::Axes, axes}});
  }

private:
  int64_t dim_, rank_;
};

/// The register dim along which the elements of `index` follow each other; -1 if none.
int64_t adjacent_dim(Ref index) {
  for (int64_t dim = 0; dim + 1 < index->rank(); ++dim) {
    const Ref extent = index->shape[static_cast<size_t>(dim)];
    if (dim_int(extent).value_or(0) >= kLeast && coefficient(index, iota(*index->ctx, extent, dim, index->rank())) == 1)
      return dim;
  }
  return -1;
}

} // namespace

bool can_transpose(int64_t rows, int64_t lanes) {
  return rows > 1 && lanes % static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))) == 0;
}

Ref transposed_access(Ref access) {
  const Ref index = access->src[1];
  const bool is_load = access->is(Ops::Load);
  const Ref element = is_load ? access : access->src[2];
  const int64_t rank = index->rank(), dim = adjacent_dim(index);
  if (dim < 0 || element->dtype == DType::Bool || (is_load && elements_per_load(access) != 1)) return {};
  const int64_t rows = *dim_int(index->shape[static_cast<size_t>(dim)]),
                lanes = dim_int(index->shape.back()).value_or(0);
  if (lanes < kLeast || !(is_load ? can_transpose(lanes, rows) : can_transpose(rows, lanes))) return {};
  const size_t gate = is_load ? 2 : 3;
  const Exchange turn(dim, rank);
  std::vector<Ref> src(access->src.begin(), access->src.end());
  for (size_t i = 1; i < src.size(); ++i) {
    const bool is_value = i == (is_load ? 3U : 2U);
    if (is_value ? !turn.can_turn(src[i]) : !is_arithmetic(src[i], rank)) return {};
    src[i] = is_value ? turn.value(src[i]) : turn.arithmetic(src[i]);
  }
  const std::pair<Ref, Ref> first[] = {
      {iota(*index->ctx, index->ctx->index(rows), rank - 1, rank), index->ctx->index(0)}};
  src[1] = simplify(substitute(src[1], first));
  if (src[1]->rank() != rank || !is_const(src[1]->shape.back(), 1)) return {};
  if (src.size() > gate && is_const(src[gate], 1)) src.resize(gate);
  Attrs attrs = *access->attrs;
  attrs.push_back({Attr::Lanes, rows});
  const Ref turned = access->ctx->make(access->op, access->dtype, src, attrs);
  return is_load ? turn.value(turned) : turned;
}

} // namespace tgc
