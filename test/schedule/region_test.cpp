// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which iterations take one way through choices.
#include "schedule/region.h"

#include <gtest/gtest.h>

#include "uop/text.h"

namespace tgc {
namespace {

struct RegionTest : ::testing::Test {
  Context ctx;
  Ref i = ctx.range(ctx.index(10), 0), j = ctx.range(ctx.index(20), 1);

  Ref below(Ref a, int64_t b) { return binary(Ops::Lt, a, ctx.index(b)); }
  Ref negated(Ref a) { return ctx.make(Ops::Not, DType::Bool, {a}); }
};

TEST_F(RegionTest, ConditionsNarrowTheLoopTheySpeakOf) {
  Region region({i, j});
  EXPECT_TRUE(region.narrow(binary(Ops::And, below(i, 7), negated(below(j, 4))), true));
  EXPECT_EQ(region.lo(0), ctx.index(0));
  EXPECT_EQ(region.hi(0), ctx.index(7));
  EXPECT_EQ(region.lo(1), ctx.index(4));
  EXPECT_EQ(region.hi(1), ctx.index(20));
}

TEST_F(RegionTest, WhatIsNoIntervalIsRefused) {
  EXPECT_FALSE(Region({i, j}).narrow(binary(Ops::And, below(i, 7), below(j, 4)), false)); // all but a corner
  EXPECT_FALSE(Region({i, j}).narrow(below(i + i, 7), true));
  EXPECT_FALSE(Region({i, j}).narrow(below(i + j, 7), true));
  EXPECT_TRUE(Region({i, j}).narrow(ctx.constant_int(DType::Bool, 1), true));
  EXPECT_FALSE(Region({i, j}).narrow(ctx.constant_int(DType::Bool, 1), false));
}

TEST_F(RegionTest, LongChainsNeedNoStack) {
  Region region({i, j});
  Ref chain = below(i, 3);
  for (int n = 0; n < 100000; ++n) chain = binary(Ops::And, negated(negated(chain)), below(j, 5));
  EXPECT_TRUE(region.narrow(chain, true));
  EXPECT_EQ(region.hi(0), ctx.index(3));
  EXPECT_EQ(region.hi(1), ctx.index(5));
}

TEST_F(RegionTest, SharedPartsAreReadOnce) {
  Region region({i, j});
  Ref all = below(i, 3);
  for (int n = 0; n < 60; ++n) // 2^60 paths
    all = binary(Ops::And, binary(Ops::And, all, below(j, 5 + n)), binary(Ops::And, all, below(j, 100 + n)));
  EXPECT_TRUE(region.narrow(all, true));
  EXPECT_EQ(region.hi(0), ctx.index(3));
  EXPECT_EQ(region.hi(1), ctx.index(5));
}

} // namespace
} // namespace tgc
