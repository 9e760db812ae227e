// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is left of the loads of overlapping windows and of strided lanes, counted in row code.
#include <gtest/gtest.h>

#include <algorithm>

#include "render/linear_kernel.h"
#include "render/rows.h"

using namespace tgc;

namespace {

constexpr int64_t kWidth = 64;

/// y[i, l] = x[i, l] + x[i + 1, l] for 4 rows of 16 lanes at an offset; the second load, `gated` or not, is of x or of
/// y itself.
Ref sums_of_neighbours(Context& ctx, bool gated, bool of_result) {
  LinearKernel k{ctx, "windows"};
  const DType t = DType::F32;
  const Ref y = k.param(0, t, 1024), x = k.param(1, t, 1024);
  const Ref outer = k.range(8, "thread"), rows = k.iota(4, 0, 2), lanes = k.iota(16, 1, 2);
  const Ref at = k.emit(k.emit(outer * double(kWidth)) + k.emit(rows * double(kWidth)));
  const Ref below = k.emit(at + double(kWidth));
  std::vector<Ref> first = {x, at}, second = {of_result ? y : x, below};
  if (gated) {
    const Ref tail = k.emit(lt(lanes, ctx.index(13)));
    for (std::vector<Ref>* load : {&first, &second}) {
      const Ref row = load == &first ? rows : k.emit(rows + 1.0);
      load->push_back(k.emit(binary(Ops::And, k.emit(lt(row, ctx.index(4))), tail)));
      load->push_back(ctx.constant(t, 0));
    }
  }
  k.store({y, at, k.emit(k.load(first, 16) + k.load(second, 16))}, 16);
  k.end(outer);
  return k.func();
}

/// y[l] = x[2 l + first] + x[2 l + first + 1], x of `count` elements.
Ref sums_of_pairs(Context& ctx, int64_t first, int64_t count) {
  LinearKernel k{ctx, "pairs"};
  const DType t = DType::F32;
  const Ref y = k.param(0, t, 16), x = k.param(1, t, count);
  const Ref at = k.emit(k.emit(k.iota(16) * 2.0) + double(first));
  const Ref sum = k.emit(k.load({x, at}) + k.load({x, k.emit(at + 1.0)}));
  k.store({y, k.emit(k.iota(1) + 0.0), sum}, 16);
  return k.func();
}

int64_t count(Ref func, RowKind kind) {
  const TargetSpec spec = spec_of("c", "x86-64-v4");
  const TargetInfo target = find_renderer(spec).target(spec);
  const RowCode code = lower_to_rows(func, {}, {.target = &target});
  return std::count_if(code.insts.begin(), code.insts.end(), [&](const RowInst& i) { return i.kind == kind; });
}
int64_t loads(Ref func) { return count(func, RowKind::Load); }

} // namespace

TEST(RowShare, KeepsWhatIsReadAhead) {
  Context ctx;
  LinearKernel k{ctx, "ahead"};
  const Ref y = k.param(0, DType::F32, 16), x = k.param(1, DType::F32, 16), at = k.emit(k.iota(1) + 0.0);
  const Ref a = k.load_ahead({x, at}, 16, 64), b = k.load_ahead({x, at}, 16, 128); // one load; it asks for one place
  k.store({y, at, k.emit(a + b)}, 16);
  EXPECT_EQ(loads(k.func()), 1);
  EXPECT_EQ(count(k.func(), RowKind::Prefetch), 1);
}

TEST(RowShare, LoadsOverlappingRowsOnce) {
  Context ctx;
  EXPECT_EQ(loads(sums_of_neighbours(ctx, false, false)), 5); // of 8
}

TEST(RowShare, ComparesGates) {
  Context ctx;
  EXPECT_EQ(loads(sums_of_neighbours(ctx, true, false)), 5);
}

TEST(RowShare, KeepsLoadsOfWhatIsStored) {
  Context ctx;
  EXPECT_EQ(loads(sums_of_neighbours(ctx, false, true)), 8);
}

TEST(RowShare, ReadsGroupsOfLanesOnce) {
  Context ctx;
  EXPECT_EQ(loads(sums_of_pairs(ctx, 0, 40)), 1); // 32 elements, which both are lanes of
}

TEST(RowShare, ReadsLanesOfTwoGroupsTwice) {
  Context ctx;
  EXPECT_EQ(loads(sums_of_pairs(ctx, 1, 40)), 2);
}

TEST(RowShare, MasksLanesThatMayEndTheBuffer) {
  Context ctx;
  EXPECT_EQ(loads(sums_of_pairs(ctx, 0, 33)), 2); // no whole number of groups: each reads its own elements
}
