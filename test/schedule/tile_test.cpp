// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Register tiles: how many rows, what overlapping windows share, and the tiles and repetitions that registers allow.
#include "schedule/tile.h"

#include "plan_graph.h"

namespace tgc {
namespace {

/// Kernels over a picture [rows, columns, channels], or [channels, rows, columns], by windows of taps x taps.
struct Windows {
  int64_t size, channels, taps, step;
  Context ctx = {};
  Ref c = ctx.range(ctx.index(channels), 0, "loop"), y = ctx.range(ctx.index(size), 1, "loop"),
      x = ctx.range(ctx.index(size), 2, "loop"), i = ctx.range(ctx.index(taps), 3, "reduce"),
      j = ctx.range(ctx.index(taps), 4, "reduce"), k = ctx.range(ctx.index(3), 5, "reduce");
  int64_t wide = (size - 1) * step + taps;

  Ref n(int64_t value) { return ctx.index(value); }
  Ref load(int64_t slot, int64_t numel, Ref at) {
    Ref from = ctx.make(Ops::Param, DType::F32, {n(numel)}, {{Attr::Slot, slot}});
    return ctx.make(Ops::Load, DType::F32, {from, simplify(at)});
  }
  Ref sum(Ref value, std::vector<Ref> loops) {
    loops.insert(loops.begin(), value);
    return ctx.make(Ops::Reduce, DType::F32, loops, {{Attr::Kind, std::string("add")}});
  }
  Ref pixel() { return (y * n(step) + i) * n(wide) + (x * n(step) + j); }
  /// Each channel by itself; channels are innermost.
  Ref depthwise() {
    Ref weight = load(2, channels * taps * taps, c * n(taps * taps) + i * n(taps) + j);
    return sum(load(1, wide * wide * channels, pixel() * n(channels) + c) * weight, {i, j});
  }
  /// The same of channels that are pictures of their own.
  Ref planar() {
    Ref weight = load(2, channels * taps * taps, c * n(taps * taps) + i * n(taps) + j);
    return sum(load(1, wide * wide * channels, c * n(wide * wide) + pixel()) * weight, {i, j});
  }
  /// Three channels, each a picture of its own, by a weight for each channel of the result.
  Ref first_layer() {
    Ref at = ((c * n(3) + k) * n(taps) + i) * n(taps) + j;
    return sum(load(1, 3 * wide * wide, k * n(wide * wide) + pixel()) * load(2, channels * 3 * taps * taps, at),
               {k, i, j});
  }
  std::string opts(Ref value, const TargetInfo& target, bool is_planar = false) {
    Ref out = ctx.make(Ops::Param, DType::F32, {n(size * size * channels)}, {{Attr::Slot, int64_t{0}}});
    Ref at = is_planar ? (c * n(size) + y) * n(size) + x : (y * n(size) + x) * n(channels) + c;
    Ref sink = ctx.make(Ops::Sink, DType::Void, {ctx.make(Ops::Store, DType::Void, {out, simplify(at), value})});
    Ref func = ctx.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("k")}});
    return optimize_kernel(func, target, {false, false, true}).func->s(Attr::Opts);
  }
};

TargetInfo registers(int count) {
  TargetInfo t = wide_target();
  t.vector_registers = count;
  return t;
}

TEST(Tile, ManyRowsMayRepeatAFewForTallerTiles) {
  EXPECT_EQ(row_count(56, 14), 14);
  EXPECT_EQ(row_count(64, 14), 8);   // 13 and 14 would repeat rows
  EXPECT_EQ(row_count(197, 14), 14); // no divisor: 15 tiles, of which the last repeats 13 rows
  EXPECT_EQ(row_count(512, 14), 12); // 516 rows are done, not 518
  EXPECT_EQ(row_count(1024, 14), 13);
  EXPECT_EQ(row_count(2048, 14), 14);
}

} // namespace

TEST(Tile, CountWhatNeighboursShare) {
  Windows one{.size = 28, .channels = 16, .taps = 3, .step = 1}, two{.size = 28, .channels = 16, .taps = 3, .step = 2},
      apart{.size = 28, .channels = 16, .taps = 3, .step = 3};
  EXPECT_EQ(shared_reads(one.depthwise(), one.x, 14, one.j), 16); // of 42
  EXPECT_EQ(shared_reads(two.depthwise(), two.x, 8, two.j), 17);  // of 24
  EXPECT_EQ(shared_reads(apart.depthwise(), apart.x, 8, apart.j), 0);
  EXPECT_EQ(shared_reads(one.depthwise(), one.x, 14, one.i), 0); // a row of the picture is longer than the tile
  EXPECT_EQ(shared_reads(one.depthwise(), one.y, 4, one.i), 6);
  EXPECT_TRUE(overlaps(one.depthwise(), one.y));
  EXPECT_FALSE(overlaps(apart.depthwise(), apart.y));
  EXPECT_TRUE(slides(one.depthwise(), one.c, one.x));
  EXPECT_FALSE(slides(apart.depthwise(), apart.c, apart.x));
  EXPECT_FALSE(slides(one.first_layer(), one.c, one.x));       // its picture is broadcast along the lanes
  EXPECT_EQ(sliding_rows(one.depthwise(), one.x, 16, 32), 15); // 15 sums, 17 columns
  EXPECT_EQ(sliding_rows(two.depthwise(), two.x, 16, 32), 10); // 10 sums, 21 columns
  EXPECT_EQ(sliding_rows(one.depthwise(), one.x, 16, 16), 7);
}

TEST(Tile, ReductionsHaveChainsSideBySide) {
  Context ctx;
  const auto chains = [&](int64_t channels, int64_t rows, const char* kind) {
    Ref y = ctx.range(ctx.index(rows), 0), c = ctx.range(ctx.index(channels), 1),
        i = ctx.range(ctx.index(9), 2, "reduce");
    Ref out = ctx.make(Ops::Param, DType::F32, {ctx.index(rows * channels)}, {{Attr::Slot, int64_t{0}}});
    Ref in = ctx.make(Ops::Param, DType::F32, {ctx.index(rows * channels * 9)}, {{Attr::Slot, int64_t{1}}});
    Ref at = y * ctx.index(channels) + c;
    Ref value = ctx.make(Ops::Load, DType::F32, {in, *kind ? at * ctx.index(9) + i : at});
    if (*kind) value = ctx.make(Ops::Reduce, DType::F32, {value, i}, {{Attr::Kind, std::string(kind)}});
    Ref store = ctx.make(Ops::Store, DType::Void, {out, at, value});
    return lane_chains(make_func("k", ctx.make(Ops::Sink, DType::Void, {store})), c, 8);
  };
  EXPECT_EQ(chains(64, 56, "max"), 4);
  EXPECT_EQ(chains(48, 56, "max"), 2); // whole vectors
  EXPECT_EQ(chains(40, 56, "max"), 1);
  EXPECT_EQ(chains(64, 4, "add"), 2); // threads want pieces
  EXPECT_EQ(chains(64, 56, ""), 1);   // nothing waits
}

TEST(Tile, RowsComeOutEven) {
  EXPECT_EQ(row_count(0, 14), 8); // open: a power of two
  EXPECT_EQ(row_count(9, 14), 9);
  EXPECT_EQ(row_count(56, 14), 14);
  EXPECT_EQ(row_count(56, 15), 14);
  EXPECT_EQ(row_count(17, 8), 6); // three tiles, the last one repeats a row
}

TEST(Tile, DepthwiseTilesKeepWhatTheyReadInRegisters) {
  Windows near{.size = 28, .channels = 48, .taps = 3, .step = 1}; // its channels stay outermost
  EXPECT_EQ(near.opts(near.depthwise(), registers(16)).substr(0, 40), "split 0 8; lane 1; split 3 7; upcast 4; ");
  EXPECT_EQ(near.opts(near.depthwise(), registers(32)).substr(0, 41), "split 0 8; lane 1; split 3 14; upcast 4; ");
  Windows five{.size = 28, .channels = 48, .taps = 5, .step = 2};
  EXPECT_EQ(five.opts(five.depthwise(), registers(32)).substr(0, 40), "split 0 8; lane 1; split 3 7; upcast 4; ");
  Windows far{.size = 64, .channels = 96, .taps = 3, .step = 1}; // channels of a pixel, pixels of a row, rows
  EXPECT_EQ(far.opts(far.depthwise(), registers(32)),
            "split 0 8; lane 1; split 3 8; upcast 4; reorder 0 1 2 4 3 5 6; reorder 2 4 0 1 3 5 6; unroll 6; unroll 5; "
            "pack 2 2 5 6 3; thread 0");
}

TEST(Tile, PicturesOfTheirOwnHavePixelsAsLanes) {
  const char* tile = "split 2 8; lane 3; split 1 7; upcast 2; ";
  for (const int64_t step : {1, 2}) { // two vectors and a shuffle, not a sum along lanes
    Windows overlapping{.size = 28, .channels = 4, .taps = 3, .step = step};
    EXPECT_EQ(overlapping.opts(overlapping.planar(), registers(32), true).substr(0, 40), tile);
  }
  Windows apart{.size = 28, .channels = 4, .taps = 2, .step = 2}; // like a product of rows, whose length may be open
  EXPECT_EQ(apart.opts(apart.planar(), registers(32), true).substr(0, 7), "lane 4;"); // the taps
}

TEST(Tile, TapsAreRepeatedOnlyIfWhatTheyShareHasRegisters) {
  Windows first{.size = 28, .channels = 16, .taps = 3, .step = 2};
  const std::string few = first.opts(first.first_layer(), registers(32)), // 28 sums, 29 columns
      many = first.opts(first.first_layer(), registers(80));
  EXPECT_EQ(few.find("unroll"), std::string::npos) << few;
  EXPECT_NE(many.find("unroll"), std::string::npos) << many;
}

} // namespace tgc
