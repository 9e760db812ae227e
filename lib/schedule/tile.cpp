// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How large a tile of registers is. Problem: neighbouring outputs of a convolution along a row of the picture read
// overlapping windows of it. Once their loops are repeated in the code, equal loads become one, whose value lives as
// long as any window needs it; too many of those, and the sums no longer have registers. Idea: count the elements that
// rows and taps read together; the caller bounds the tile, or what is repeated, by it. Not handled: windows over two
// axes of a tile at once.
#include "schedule/tile.h"

#include <algorithm>
#include <bit>
#include <set>

#include "rewrite/lower/expand.h"
#include "schedule/movement.h"

namespace tgc {

std::vector<Ref> product_loads(Ref product) {
  std::vector<Ref> out;
  for (Ref node : toposort(product->src[0]))
    if (node->is(Ops::Load)) out.push_back(node);
  return out;
}

int64_t shared_reads(Ref product, Ref row, int64_t rows, Ref axis) {
  int64_t most = 0;
  const std::optional<int64_t> taps = dim_int(axis->src[0]);
  if (!taps || *taps > 256) return 0;
  for (Ref load : product_loads(product)) {
    const std::optional<int64_t> step = coefficient(load->src[1], row), tap = coefficient(load->src[1], axis);
    if (!step || !tap || *step == 0 || *tap == 0) continue;
    std::set<int64_t> read;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < *taps; ++j) read.insert(i * *step + j * *tap);
    const int64_t count = static_cast<int64_t>(read.size());
    if (count < rows * *taps) most = std::max(most, count);
  }
  return most;
}

namespace {

constexpr int64_t kManyRows = 512; // enough to repeat some of them

int64_t most_shared(Ref product, Ref row, int64_t rows) {
  int64_t most = 0;
  for (Ref axis : product->src.subspan(1)) most = std::max(most, shared_reads(product, row, rows, axis));
  return most;
}

} // namespace

bool overlaps(Ref product, Ref row) { return most_shared(product, row, 8) > 0; }

bool slides(Ref product, Ref lane, Ref row) {
  const std::vector<Ref> loads = product_loads(product);
  return std::all_of(loads.begin(), loads.end(), [&](Ref l) { return depends(l->src[1], lane); }) &&
         overlaps(product, row);
}

int64_t sliding_rows(Ref product, Ref row, int64_t most, int64_t registers) {
  int64_t rows = most;
  while (rows > 1 && rows + most_shared(product, row, rows) > registers) --rows;
  return rows;
}

int64_t row_count(int64_t n, int64_t most) {
  if (n == 0) return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))); // the last tile is masked
  if (n <= most) return n;
  // Of many rows a hundredth may be repeated: taller tiles read what the rows share less often.
  const int64_t repeats = n >= kManyRows ? n / 100 : 0;
  for (int64_t rows = most; rows >= std::max<int64_t>(4, most / 2); --rows)
    if ((n + rows - 1) / rows * rows - n <= repeats) return rows;
  const int64_t tiles = (n + most - 1) / most;
  return (n + tiles - 1) / tiles;
}

int64_t lane_chains(Ref func, Ref lane, int64_t vector) {
  constexpr int64_t kPieces = 16;
  const std::vector<Ref> nodes = toposort(func);
  const int64_t extent = dim_int(lane->src[0]).value_or(0), results = func->src[0]->src[0]->src[0]->shape[0]->lo;
  const auto is_chain = [&](Ref node) { return node->is(Ops::Reduce) && depends(node, lane); };
  const auto is_tile = [](Ref node) { return node->is(Ops::Buffer) && node->s(Attr::Space) == "tile"; };
  if (extent == 0 || std::none_of(nodes.begin(), nodes.end(), is_chain) ||
      std::any_of(nodes.begin(), nodes.end(), is_tile)) // sums over staged rows get chains by rows
    return 1;
  for (const int64_t chains : {4, 2})
    if (extent % (chains * vector) == 0 && results >= kPieces * chains * vector) return chains;
  return 1;
}

double touched_bytes(Ref func) {
  double bytes = 0;
  for (Ref node : toposort(func))
    if (node->is(Ops::Param)) bytes += static_cast<double>(node->shape[0]->hi) * byte_size(node->dtype);
  return bytes;
}

} // namespace tgc
