// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What looks through views and conversions of a tensor.
#include "schedule/views.h"

#include <gtest/gtest.h>

namespace tgc {
namespace {

TEST(Views, UniformLooksThroughLongChainsOfCasts) {
  Context ctx;
  Ref scalar = ctx.make(Ops::Param, DType::F32, {}, {{Attr::Slot, int64_t{0}}});
  Ref x = reshaped(scalar, std::vector<Ref>{ctx.index(1)});
  for (int i = 0; i < 100000; ++i) x = cast(x, i % 2 == 0 ? DType::I32 : DType::F32); // each rounds: none is void
  const std::vector<Ref> dims = {x, ctx.index(8)};
  const Ref value = uniform(ctx.make(Ops::Expand, DType::F32, dims));
  ASSERT_TRUE(value);
  EXPECT_EQ(value->rank(), 0);
  EXPECT_EQ(value->dtype, DType::F32);
}

TEST(Views, UniformIsOneValueOrNone) {
  Context ctx;
  const Ref one = ctx.constant(DType::F32, 3), dims[] = {ctx.index(2), ctx.index(4)};
  EXPECT_EQ(uniform(filled(one, dims)), one);
  EXPECT_EQ(uniform(cast(filled(one, dims), DType::I32)), ctx.constant_int(DType::I32, 3));
  EXPECT_FALSE(uniform(ctx.make(Ops::Param, DType::F32, dims, {{Attr::Slot, int64_t{0}}})));
}

} // namespace
} // namespace tgc
