// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a convolution of 3x3 taps and stride 1 multiplies each pixel by nine weights per pair of channels.
// Idea (Winograd's F(2x2, 3x3)): 2x2 pixels of the result need 4x4 of the input, and after a fixed transform of both
// (sums of elements, halves for the weights) only 16 products per pair of channels, instead of 36. Over all tiles, each
// of the 16 is a matrix product. Here the whole is one kernel of three nests over blocks of tiles: transformed tiles to
// scratch, products to scratch, the result transformed back with all that the kernel does to it; each nest is tiled
// like a kernel of its own. Transformed weights are constants. A tile past the last one repeats it, a pixel past the
// edge is computed and not stored.
// Rounding differs from the direct sum's by little: along each axis a transform sums at most three terms. But an Inf,
// or values near the largest, may give NaN to all pixels of a tile that reads them. Not handled: larger tiles (their
// transforms lose digits), strides, pictures of open size. Source: Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, 2015.
#include "schedule/winograd.h"

#include <algorithm>
#include <array>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "schedule/movement.h"
#include "schedule/opt.h"

namespace tgc {
namespace {

constexpr int64_t kTaps = 3, kTile = 4, kOut = 2;
constexpr int64_t kLanes = 16;        // channels come in whole vectors; fewer would not pay for the transforms
constexpr int64_t kScratch = 5 << 18; // bytes of transformed tiles and products of a block, to stay in L2
constexpr int64_t kMaxRows = 64;      // of a block
constexpr int64_t kMinChunks = 4;     // blocks times parts, for threads
// Per pair of channels, in cycles: the time of a product, and that of the 16 - 9 more weights to come from memory.
constexpr double kProduct = 1.0 / 28, kMoreWeights = 28.0 / 6;
constexpr double kWorth = 0.8; // of the direct sum's time

struct Conv {
  Ref root, reduce, live, weight;
  Ref y, x, m;            ///< output axes: rows, columns, channels
  Ref ky, kx, c;          ///< reduction axes
  std::vector<Ref> outer; ///< other output axes
  Ref sy, sx, sample;     ///< the live factor over sy = y + ky, sx = x + kx
  int64_t height, width, channels, outputs;
};

int64_t extent(Ref axis) { return dim_int(axis->src[0]).value_or(0); }
bool holds(Refs list, Ref x) { return std::find(list.begin(), list.end(), x) != list.end(); }

/// The live factor with `axis` + `tap` replaced by one range, if it depends on that sum alone.
bool join_axes(Ref& value, Ref axis, Ref tap, Ref& sum) {
  Context& ctx = *value->ctx;
  sum = ctx.range(ctx.index(extent(axis) + kTaps - 1), 1 << 20 | axis->i(Attr::Id), "loop");
  const std::pair<Ref, Ref> shift[] = {{axis, sum - tap}};
  Ref joined = simplify(substitute(value, shift));
  if (depends(joined, tap) || depends(joined, axis)) return false;
  value = joined;
  return true;
}

/// The axis pairs (y, ky) and (x, kx) of a convolution whose sum, weight and live factor are set.
bool find_axes(Conv& s) {
  std::vector<Ref> taps(s.reduce->src.begin() + 1, s.reduce->src.end());
  s.sample = s.live;
  for (Ref axis : s.root->ranges) {
    if (axis == s.m || extent(axis) < kOut || !depends(s.live, axis)) continue;
    for (Ref tap : taps) {
      Ref sum;
      if (extent(tap) != kTaps || s.kx || !join_axes(s.sample, axis, tap, sum)) continue;
      (s.y ? s.x : s.y) = axis;
      (s.ky ? s.kx : s.ky) = tap;
      (s.sy ? s.sx : s.sy) = sum;
      std::erase(taps, tap);
      break;
    }
  }
  if (!s.kx) return false;
  s.c = taps[0];
  for (Ref axis : s.root->ranges)
    if (!(axis == s.y) && !(axis == s.x) && !(axis == s.m)) s.outer.push_back(axis);
  return true;
}

/// `func` as a convolution of 3x3 taps, stride 1 and channels innermost, whose weights are param `slot` of those for
/// which `is_constant` holds.
template <typename IsConstant> std::optional<Conv> conv_of(Ref func, IsConstant is_constant, size_t factor) {
  Conv s;
  s.root = func->src[0]->src[0];
  if (func->src[0]->src.size() != 1 || !s.root->is(Ops::Store) || s.root->src.size() > 3) return {};
  for (Ref node : toposort(func)) {
    if (node->is(Ops::After) || (node->is(Ops::Reduce) && s.reduce)) return {};
    if (node->is(Ops::Reduce)) s.reduce = node;
  }
  if (!s.reduce || s.reduce->s(Attr::Kind) != "add" || s.reduce->dtype != DType::F32 || s.reduce->src.size() != 4)
    return {};
  Ref product = s.reduce->src[0];
  if (!product->is(Ops::Mul)) return {};
  s.weight = product->src[factor], s.live = product->src[1 - factor];
  if (!s.weight->is(Ops::Load) || s.weight->src.size() != 2 || !s.weight->src[0]->is(Ops::Param) ||
      !is_constant(s.weight->src[0]))
    return {};
  for (Ref axis : s.weight->ranges)
    if (!holds(s.reduce->src, axis)) {
      if (s.m) return {};
      s.m = axis;
    }
  if (!s.m || depends(s.live, s.m) || !holds(s.root->ranges, s.m) || !find_axes(s)) return {};
  s.height = extent(s.y), s.width = extent(s.x), s.channels = extent(s.c), s.outputs = extent(s.m);
  for (Ref node : toposort(func)) // what else reads the weights would read transformed ones
    if (node->is(Ops::Load) && node->src[0] == s.weight->src[0] && !(node == s.weight)) return {};
  bool contiguous = coefficient(s.root->src[1], s.m) == 1;
  for (Ref node : toposort(s.sample))
    if (node->is(Ops::Load) && depends(node->src[1], s.c)) contiguous &= coefficient(node->src[1], s.c) == 1;
  if (!contiguous || s.channels == 0 || s.outputs == 0 || s.channels % kLanes != 0 || s.outputs % kLanes != 0)
    return {};
  return s;
}

template <typename IsConstant> std::optional<Conv> conv_of(Ref func, IsConstant is_constant) {
  const std::optional<Conv> first = conv_of(func, is_constant, 0);
  return first ? first : conv_of(func, is_constant, 1);
}

int64_t tiles_along(int64_t n) { return (n + kOut - 1) / kOut; }

/// values[0] where i is 0, and so on.
template <size_t N> Ref pick(Ref i, const std::array<Ref, N>& values) {
  Ref out = values[N - 1];
  for (size_t k = N - 1; k-- > 0;) out = where(lt(i, i->ctx->index(static_cast<int64_t>(k) + 1)), values[k], out);
  return out;
}

/// Row i of the input transform: of four elements.
Ref input_row(Ref i, const std::array<Ref, 4>& d) {
  return pick<4>(i, {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]});
}
/// Row i of the weight transform: of three.
Ref weight_row(Ref i, const std::array<Ref, 3>& g) {
  Ref ends = g[0] + g[2];
  return pick<4>(i, {g[0], (ends + g[1]) * 0.5, (ends - g[1]) * 0.5, g[2]});
}
/// Row p of the output transform: of four.
Ref output_row(Ref p, const std::array<Ref, 4>& m) { return pick<2>(p, {(m[0] + m[1]) + m[2], (m[1] - m[2]) - m[3]}); }

class Nests {
public:
  Nests(OptKernel& kernel, const Conv& conv, const WinogradBlocks& blocks)
      : ctx_(*kernel.func->ctx), kernel_(kernel), s_(conv), rows_(blocks.rows), local_(conv.outputs / blocks.parts),
        panel_(local_ % 32 == 0 ? 32 : 16), across_(tiles_along(conv.width)),
        tiles_(across_ * tiles_along(conv.height)) {
    part_ = axis(blocks.parts, "block");
    for (Ref old : s_.outer) outer_.emplace_back(old, ctx_.range(old->src[0], next_id_++, "block"));
    block_ = axis((tiles_ + rows_ - 1) / rows_, "block");
  }

  void run() {
    Ref inputs = input_nest();
    Ref products = product_nest(inputs);
    pack_weights();
    std::vector<Ref> params; // all but the weights, which have another size now
    for (Ref node : toposort(kernel_.func))
      if (node->is(Ops::Param) && !(node == s_.weight->src[0])) params.push_back(node);
    Ref sink = ctx_.make(Ops::Sink, DType::Void, {result(products)});
    kernel_.func = simplify(make_func(kernel_.func->s(Attr::Name), sink, params));
  }

private:
  Ref axis(int64_t n, const char* kind) { return n == 1 ? ctx_.index(0) : ctx_.range(ctx_.index(n), next_id_++, kind); }
  /// a * n + b
  Ref joined(Ref a, int64_t n, Ref b) { return a * ctx_.index(n) + b; }
  Ref clamped(Ref i, int64_t n) { return i->hi < n ? i : binary(Ops::Min, i, ctx_.index(n - 1)); }
  Ref tile_of(Ref row) { return simplify(clamped(simplify(joined(block_, rows_, row)), tiles_)); }
  Ref down(Ref tile) { return floordiv(tile, ctx_.index(across_)); }
  Ref right(Ref tile) { return floormod(tile, ctx_.index(across_)); }

  Ref nest(int64_t slot, int64_t size, Ref index, Ref value) {
    Ref buffer = ctx_.make(Ops::Buffer, DType::F32, {ctx_.index(size)},
                           {{Attr::Slot, slot}, {Attr::Space, std::string("tile")}});
    Ref store = ctx_.make(Ops::Store, DType::Void, {buffer, index, value});
    std::vector<Ref> end = {store};
    for (Ref r : store->ranges)
      if (r->s(Attr::Axis) != "block") end.push_back(r);
    std::sort(end.begin() + 1, end.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
    return ctx_.make(Ops::After, DType::Void, {buffer, ctx_.make(Ops::End, DType::Void, end)});
  }

  /// [4, 4, rows, channels]: element (i, j) of each tile's transform.
  Ref input_nest() {
    Ref row = axis(rows_, "loop"), c = axis(s_.channels, "loop"), i = axis(kTile, "upcast"), j = axis(kTile, "upcast");
    Ref tile = tile_of(row), y = down(tile) * ctx_.index(kOut), x = right(tile) * ctx_.index(kOut);
    std::array<Ref, 4> columns;
    for (int64_t b = 0; b < kTile; ++b) {
      std::array<Ref, 4> d;
      for (int64_t a = 0; a < kTile; ++a) {
        std::vector<std::pair<Ref, Ref>> at = outer_;
        at.emplace_back(s_.sy, clamped(simplify(y + ctx_.index(a)), s_.height + kTaps - 1));
        at.emplace_back(s_.sx, clamped(simplify(x + ctx_.index(b)), s_.width + kTaps - 1));
        at.emplace_back(s_.c, c);
        d[static_cast<size_t>(a)] = substitute(s_.sample, at);
      }
      columns[static_cast<size_t>(b)] = input_row(i, d);
    }
    Ref index = joined(joined(joined(i, kTile, j), rows_, row), s_.channels, c);
    return nest(0, kTile * kTile * rows_ * s_.channels, index, input_row(j, columns));
  }

  /// [4 * 4, rows, channels of the part]
  Ref product_nest(Ref inputs) {
    Ref ij = axis(kTile * kTile, "loop"), panel = axis(local_ / panel_, "loop"), row = axis(rows_, "loop"),
        lane = axis(panel_, "loop"), c = axis(s_.channels, "reduce");
    Ref weights = ctx_.make(Ops::Param, DType::F32, {ctx_.index(kTile * kTile * s_.channels * s_.outputs)},
                            {{Attr::Slot, slot()}});
    Ref a = ctx_.make(Ops::Load, DType::F32, {inputs, joined(joined(ij, rows_, row), s_.channels, c)});
    Ref b = ctx_.make(Ops::Load, DType::F32, {weights, weight_index(part_, panel, ij, c, lane)},
                      read_ahead(DType::F32, kTile * kTile * s_.channels * s_.outputs));
    Ref sum = ctx_.make(Ops::Reduce, DType::F32, {a * b, c}, {{Attr::Kind, std::string("add")}});
    Ref index = joined(joined(ij, rows_, row), local_, joined(panel, panel_, lane));
    return nest(1, kTile * kTile * rows_ * local_, index, sum);
  }

  Ref result(Ref products) {
    Ref row = axis(rows_, "loop"), m = axis(local_, "loop"), p = axis(kOut, "upcast"), q = axis(kOut, "upcast");
    std::array<Ref, 4> columns;
    for (int64_t j = 0; j < kTile; ++j) {
      std::array<Ref, 4> z;
      for (int64_t i = 0; i < kTile; ++i)
        z[static_cast<size_t>(i)] = ctx_.make(
            Ops::Load, DType::F32, {products, joined(joined(ctx_.index(i * kTile + j), rows_, row), local_, m)});
      columns[static_cast<size_t>(j)] = output_row(p, z);
    }
    Ref tile = tile_of(row);
    Ref y = joined(down(tile), kOut, p), x = joined(right(tile), kOut, q);
    std::vector<std::pair<Ref, Ref>> at = outer_;
    at.emplace_back(s_.m, joined(part_, local_, m));
    at.emplace_back(s_.reduce, output_row(q, columns));
    at.emplace_back(s_.y, clamped(simplify(y), s_.height));
    at.emplace_back(s_.x, clamped(simplify(x), s_.width));
    std::vector<Ref> store = {s_.root->src[0], substitute(s_.root->src[1], at), substitute(s_.root->src[2], at)};
    Ref inside;
    const auto require_below = [&](Ref i, int64_t n) {
      if (i->hi >= n) inside = both(inside, lt(i, ctx_.index(n)));
    };
    require_below(simplify(joined(block_, rows_, row)), tiles_);
    require_below(simplify(y), s_.height);
    require_below(simplify(x), s_.width);
    if (inside) store.push_back(inside);
    return ctx_.make(Ops::Store, DType::Void, store);
  }

  int64_t slot() const { return s_.weight->src[0]->i(Attr::Slot); }
  /// Of weights [parts, panels, 16, channels, lanes of a panel].
  Ref weight_index(Ref part, Ref panel, Ref ij, Ref c, Ref lane) {
    return joined(joined(joined(joined(part, local_ / panel_, panel), kTile * kTile, ij), s_.channels, c), panel_,
                  lane);
  }

  void pack_weights() {
    next_id_ = 0;
    Ref panel = axis(s_.outputs / panel_, "loop"), i = axis(kTile, "loop"), j = axis(kTile, "loop"),
        c = axis(s_.channels, "loop"), lane = axis(panel_, "loop");
    Ref source = ctx_.make(Ops::Param, DType::F32, {s_.weight->src[0]->src[0]}, {{Attr::Slot, int64_t{1}}});
    std::array<Ref, 3> columns;
    for (int64_t b = 0; b < kTaps; ++b) {
      std::array<Ref, 3> g;
      for (int64_t a = 0; a < kTaps; ++a) {
        const std::pair<Ref, Ref> at[] = {{s_.weight->src[0], source},
                                          {s_.ky, ctx_.index(a)},
                                          {s_.kx, ctx_.index(b)},
                                          {s_.c, c},
                                          {s_.m, joined(panel, panel_, lane)}};
        g[static_cast<size_t>(a)] = substitute(s_.weight, at);
      }
      columns[static_cast<size_t>(b)] = weight_row(i, g);
    }
    Ref index = weight_index(ctx_.index(0), panel, joined(i, kTile, j), c, lane);
    Ref target = ctx_.make(Ops::Param, DType::F32, {ctx_.index(kTile * kTile * s_.channels * s_.outputs)},
                           {{Attr::Slot, int64_t{0}}});
    Ref store = simplify(ctx_.make(Ops::Store, DType::Void, {target, index, weight_row(j, columns)}));
    const std::string name = "pack_" + kernel_.func->s(Attr::Name) + "_" + std::to_string(slot());
    kernel_.packings.push_back({slot(), make_func(name, ctx_.make(Ops::Sink, DType::Void, {store}))});
  }

  Context& ctx_;
  OptKernel& kernel_;
  const Conv& s_;
  int64_t rows_, local_, panel_, across_, tiles_, next_id_ = 0;
  std::vector<std::pair<Ref, Ref>> outer_;
  Ref part_, block_;
};

/// Tiles of a block: near what scratch holds, a number that register rows divide, with few repeats at the end.
int64_t rows_for(int64_t tiles, int64_t most) {
  int64_t best = 0, least = 0;
  for (int64_t rows = std::min<int64_t>(most, tiles + 13); rows >= std::max<int64_t>(8, most / 2); --rows) {
    bool fits = false;
    for (int64_t d = 8; d <= 14; ++d) fits |= rows % d == 0;
    const int64_t computed = (tiles + rows - 1) / rows * rows;
    if (fits && (best == 0 || computed < least)) best = rows, least = computed;
  }
  return best;
}

} // namespace

std::optional<WinogradBlocks> choose_winograd(Ref func, const std::vector<bool>& constant) {
  const std::optional<Conv> s = conv_of(func, [&](Ref param) {
    const auto slot = static_cast<size_t>(param->i(Attr::Slot));
    return slot < constant.size() && constant[slot];
  });
  if (!s) return {};
  const int64_t tiles = tiles_along(s->height) * tiles_along(s->width);
  for (int64_t parts = 1; parts <= kMinChunks; parts *= 2) {
    const int64_t local = s->outputs / parts;
    if (s->outputs % parts != 0 || local % kLanes != 0) break;
    const int64_t rows = rows_for(tiles, std::min(kScratch / (16 * 4 * (s->channels + local)), kMaxRows));
    const int64_t blocks = rows > 0 ? (tiles + rows - 1) / rows : 0;
    const bool can_part = local % 32 == 0 && s->outputs % (2 * parts) == 0;
    if (rows == 0 || (blocks * parts < kMinChunks && can_part && parts < kMinChunks)) continue;
    const double direct = 9 * kProduct * static_cast<double>(s->height * s->width);
    const double here = 16 * kProduct * static_cast<double>(blocks * rows) + kMoreWeights;
    return here < kWorth * direct ? std::optional(WinogradBlocks{rows, parts}) : std::nullopt;
  }
  return {};
}

bool apply_winograd(OptKernel& kernel, const WinogradBlocks& blocks) {
  const std::optional<Conv> s = conv_of(kernel.func, [](Ref) { return true; });
  if (!s || blocks.rows < 1 || blocks.rows > kMaxRows || blocks.parts < 1 || s->outputs % blocks.parts != 0 ||
      s->outputs / blocks.parts % kLanes != 0)
    return false;
  Nests(kernel, *s, blocks).run();
  return true;
}

} // namespace tgc
