// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interning, inference of shapes, bounds and ranges, dim arithmetic, and errors of Context::make.
#include "uop/uop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "uop/diag.h"
#include "uop/eval.h"

using namespace tgc;

namespace {

std::string error_of(auto&& build) {
  try {
    build();
  } catch (const CompileError& e) {
    return e.what();
  }
  return "no error";
}

} // namespace

TEST(UOp, EqualNodesAreOneHandle) {
  Context ctx;
  Ref a = ctx.var("n", 1, 8), b = ctx.var("n", 1, 8);
  EXPECT_EQ(a.get(), b.get());
  EXPECT_EQ((a + ctx.index(1)).get(), (b + ctx.index(1)).get());
  EXPECT_NE((a + ctx.index(1)).get(), (a + ctx.index(2)).get());
}

TEST(UOp, FloatConstantsCompareByBits) {
  Context ctx;
  EXPECT_FALSE(ctx.constant(DType::F32, 0.0) == ctx.constant(DType::F32, -0.0));
  EXPECT_TRUE(ctx.constant(DType::F32, NAN) == ctx.constant(DType::F32, -NAN));
  EXPECT_TRUE(ctx.constant(DType::F32, 0.1) == ctx.constant(DType::F32, static_cast<double>(0.1f)));
  EXPECT_EQ(const_float(ctx.constant(DType::F16, 65520.0)), INFINITY);
  EXPECT_EQ(const_float(ctx.constant(DType::F16, 1.0 + 1.0 / 2048)), 1.0); // tie to even
  EXPECT_EQ(const_float(ctx.constant(DType::BF16, 1e-45)), 0.0);
}

TEST(UOp, IntegerConstantsWrap) {
  Context ctx;
  EXPECT_EQ(const_int(ctx.constant_int(DType::U8, 300)), 44);
  EXPECT_EQ(const_int(ctx.constant_int(DType::I8, 200)), -56);
  EXPECT_EQ(const_int(ctx.constant_int(DType::Bool, 7)), 1);
}

TEST(UOp, HashDoesNotDependOnContextOrOrder) {
  Context one, two;
  two.index(99);
  Ref a = one.var("n", 1, 8) * one.index(4) + one.index(3);
  Ref b = two.var("n", 1, 8) * two.index(4) + two.index(3);
  EXPECT_EQ(a->hash, b->hash);
  EXPECT_TRUE(import(two, a) == b);
}

TEST(UOp, BoundsFollowIntervalArithmetic) {
  Context ctx;
  Ref r = ctx.range(ctx.index(10), 0), x = r * 3.0 - 4.0;
  EXPECT_EQ(x->lo, -4);
  EXPECT_EQ(x->hi, 23);
  EXPECT_EQ(floordiv(x, ctx.index(4))->lo, -1);
  EXPECT_EQ(floordiv(x, ctx.index(4))->hi, 5);
  EXPECT_EQ(floormod(x, ctx.index(4))->hi, 3);
  EXPECT_EQ(lt(x, ctx.index(24))->lo, 1);
  Ref u = ctx.constant_int(DType::U8, 200) + ctx.constant_int(DType::U8, 100);
  EXPECT_EQ(u->lo, 0); // wraps: the whole type
  EXPECT_EQ(u->hi, 255);
}

TEST(UOp, RangesAreOpenUntilClosed) {
  Context ctx;
  Ref i = ctx.range(ctx.index(4), 0), k = ctx.range(i + 1.0, 1, "reduce");
  Ref x = ctx.make(Ops::Param, DType::F32, {ctx.index(64)}, {{Attr::Slot, int64_t{0}}});
  Ref load = ctx.make(Ops::Load, DType::F32, {x, i * 8.0 + k});
  EXPECT_EQ(load->ranges.size(), 2U);
  Ref sum = ctx.make(Ops::Reduce, DType::F32, {load, k}, {{Attr::Kind, std::string("add")}});
  ASSERT_EQ(sum->ranges.size(), 1U);
  EXPECT_TRUE(sum->ranges[0] == i);
}

TEST(UOp, DimArithmeticIsCanonical) {
  Context ctx;
  Ref n = ctx.var("n", 1, 64), m = ctx.var("m", 1, 64), two = ctx.index(2);
  EXPECT_TRUE(dim_add(dim_mul(n, two), m) == dim_add(m, dim_add(n, n)));
  EXPECT_TRUE(dim_mul(dim_add(n, m), dim_sub(n, m)) == dim_sub(dim_mul(n, n), dim_mul(m, m)));
  EXPECT_TRUE(dim_floordiv(dim_mul(dim_mul(n, m), ctx.index(6)), dim_mul(m, two)) == dim_mul(n, ctx.index(3)));
  EXPECT_EQ(dim_int(dim_floordiv(ctx.index(-7), two)), -4);
  EXPECT_FALSE(dims_equal(n, m));
  EXPECT_EQ(shape_text(std::vector<Ref>{n, two}), "[n,2]");
  const auto half = [&](Ref x) { return dim_floordiv(x, two); };
  const auto text = [](Ref x) { return shape_text(std::vector<Ref>{x}); };
  EXPECT_EQ(text(half(dim_add(dim_mul(n, two), m))), "[n+m/2]");
  EXPECT_EQ(text(half(dim_add(n, ctx.index(-1)))), "[(n+1)/2-1]");
  Ref down = n; // three convolutions of stride 2 round up each
  for (int i = 0; i < 3; ++i) down = dim_add(half(dim_sub(down, ctx.index(1))), ctx.index(1));
  EXPECT_EQ(text(down), "[(n+7)/8]");
}

TEST(UOp, DimDivisionsAreExact) {
  for (int64_t x = -9; x <= 9; ++x)
    for (int64_t c = -5; c <= 5; ++c) {
      Context ctx;
      const Ref n = ctx.var("n", x, x == 9 ? x : x + 1); // bounds do not fold it
      const Ref inner =
          dim_add(dim_floordiv(dim_add(dim_mul(n, ctx.index(3)), ctx.index(c)), ctx.index(2)), ctx.index(c));
      const auto floored = [](int64_t a, int64_t b) { return (a - ((a % b) + b) % b) / b; };
      EXPECT_EQ(eval_index(dim_floordiv(inner, ctx.index(5)), {{"n", x}}), floored(floored(3 * x + c, 2) + c, 5));
    }
}

TEST(UOp, DimArithmeticOfTheLeastInteger) {
  Context ctx;
  const Ref n = ctx.var("n", 1, 64), least = ctx.index(INT64_MIN), minus = ctx.index(-1);
  EXPECT_EQ(dim_int(dim_sub(minus, least)), INT64_MAX);
  EXPECT_EQ(dim_int(dim_sub(least, least)), 0);
  EXPECT_THROW(dim_sub(n, least), CompileError);
  EXPECT_THROW(dim_add(ctx.make(Ops::Sub, DType::Index, {n, least}), n), CompileError);
  EXPECT_TRUE(dim_floordiv(least, minus)->is(Ops::FloorDiv));
  EXPECT_TRUE(dim_floordiv(dim_mul(n, least), dim_mul(n, minus))->is(Ops::FloorDiv));
  EXPECT_EQ(dim_int(dim_floordiv(least, ctx.index(3))), -3074457345618258603);
  EXPECT_EQ(dim_int(dim_floordiv(least, ctx.index(2))), INT64_MIN / 2);
}

TEST(UOp, DimsAreSpeltOut) {
  Context ctx;
  const Ref n = ctx.var("n", 1, 64), m = ctx.var("m", 1, 64), two = ctx.index(2);
  const Ref sum = dim_add(dim_mul(n, two), m), smaller = ctx.make(Ops::Min, DType::Index, {n, dim_sub(m, two)});
  EXPECT_EQ(shape_text(std::vector<Ref>{sum, dim_floordiv(dim_mul(sum, n), m), smaller}),
            "[m+n*2,(m*n+n*n*2)/m,min(n,m-2)]");
  Ref many = n;
  for (int i = 0; i < 40; ++i) many = ctx.make(Ops::Max, DType::Index, {many, ctx.index(i)});
  EXPECT_NE(shape_text(std::vector<Ref>{many}).find("max(...)"), std::string::npos);
}

TEST(UOp, MovementShapes) {
  Context ctx;
  Ref n = ctx.var("n", 1, 64);
  Ref x = ctx.make(Ops::Param, DType::F32, {n, ctx.index(1), ctx.index(6)}, {{Attr::Slot, int64_t{0}}});
  EXPECT_EQ(shape_text(ctx.make(Ops::Reshape, DType::Void, {x, ctx.index(2), n, ctx.index(3)})->shape), "[2,n,3]");
  EXPECT_EQ(shape_text(ctx.make(Ops::Expand, DType::Void, {x, n, ctx.index(5), ctx.index(6)})->shape), "[n,5,6]");
  EXPECT_EQ(shape_text(ctx.make(Ops::Permute, DType::Void, {x}, {{Attr::Axes, std::vector<int64_t>{2, 0, 1}}})->shape),
            "[6,n,1]");
  Ref o = ctx.index(0), i = ctx.index(1);
  EXPECT_EQ(shape_text(ctx.make(Ops::Pad, DType::Void, {x, o, i, i, o, i, ctx.index(2)})->shape), "[n,3,9]");
  EXPECT_EQ(shape_text(ctx.make(Ops::Shrink, DType::Void, {x, o, o, i, n, i, ctx.index(4)})->shape), "[n,1,4]");
}

TEST(UOp, IllegalNodesNameTheOpAndTheReason) {
  Context ctx;
  Ref x = ctx.make(Ops::Param, DType::F32, {ctx.index(3)}, {{Attr::Slot, int64_t{0}}});
  Ref y = ctx.make(Ops::Param, DType::F32, {ctx.index(4)}, {{Attr::Slot, int64_t{1}}});
  EXPECT_EQ(error_of([&] { x + y; }), "error TGC-E101: add: shapes [3] and [4] do not broadcast");
  EXPECT_EQ(error_of([&] { ctx.make(Ops::Reshape, DType::Void, {x, ctx.index(5)}); }),
            "error TGC-E101: reshape: [3] does not have the element count of [5]");
  EXPECT_EQ(error_of([&] { binary(Ops::Add, x, cast(y, DType::F64)); }),
            "error TGC-E101: add: sources have different dtypes");
  EXPECT_EQ(error_of([&] { ctx.make(Ops::Param, DType::F32, Refs{}); }), "error TGC-E101: param: needs attribute slot");
  EXPECT_EQ(error_of([&] { ctx.make(Ops::Neg, DType::Void, {x, y}); }), "error TGC-E101: neg: does not take 2 sources");
  Ref big = ctx.index(int64_t{1} << 40);
  EXPECT_EQ(error_of([&] { dim_mul(big, big); }), "error TGC-E207: a shape has 2^63 or more elements");
}

TEST(UOp, LongChainsNeedNoStack) {
  Context ctx;
  Ref x = ctx.make(Ops::Param, DType::F32, Refs{}, {{Attr::Slot, int64_t{0}}});
  Ref y = x;
  for (int i = 0; i < 200000; ++i) y = y + x;
  EXPECT_EQ(toposort(y).size(), 200001U);
  Context other;
  EXPECT_EQ(import(other, y)->hash, y->hash);
}
