// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What simplify must reach (the index forms that reshapes make), and that it never changes a value: random Index
// expressions with bounds, evaluated before and after.
#include <gtest/gtest.h>

#include "rewrite/array_eval.h"
#include "rewrite/node_text.h"
#include "rewrite/rewrite.h"

namespace tgc {
namespace {

class Simplify : public ::testing::Test {
protected:
  Ref I(int64_t v) { return ctx.index(v); }
  Ref range(int64_t n, int64_t id) { return ctx.range(I(n), id); }
  Ref param(DType t, int64_t slot) { return ctx.make(Ops::Param, t, {}, {{Attr::Slot, slot}}); }
  std::string text(Ref root) { return node_text(simplify(root), 8); }
  Context ctx;
  Ref a = range(10, 0), b = range(4, 1), c = range(8, 2);
  Ref x = ctx.var("x", 0, 100), y = ctx.var("y", -50, 50), z = ctx.var("z", 1, 9);
  Ref H = ctx.var("H", 1, 4096), W = ctx.var("W", 1, 4096), N = ctx.var("N", 1, 64);
};

TEST_F(Simplify, ReshapeIsUndoneByReshape) {
  const Ref flat = (a * I(4) + b) * I(8) + c;
  EXPECT_EQ(simplify(floormod(flat, I(8))), c);
  EXPECT_EQ(simplify(floormod(floordiv(flat, I(8)), I(4))), b);
  EXPECT_EQ(simplify(floordiv(flat, I(32))), a);
  // merge the first two dims, then split them again
  EXPECT_EQ(simplify(floordiv(floordiv(flat, I(8)), I(4))), a);
  // flat = 320 elements seen as [5, 64]: a stays in both coordinates
  EXPECT_EQ(simplify(floordiv(flat, I(64))), simplify(floordiv(a, I(2))));
  EXPECT_EQ(simplify(floormod(flat, I(64))), simplify(floormod(a, I(2)) * I(32) + b * I(8) + c));
}

TEST_F(Simplify, SymbolicReshape) {
  const Ref n = ctx.range(N, 0), h = ctx.range(H, 1), w = ctx.range(W, 2);
  const Ref flat = (n * H + h) * W + w;
  EXPECT_EQ(simplify(floordiv(flat, H * W)), n);
  EXPECT_EQ(simplify(floormod(floordiv(flat, W), H)), h);
  EXPECT_EQ(simplify(floormod(flat, W)), w);
  EXPECT_EQ(simplify(floordiv(n * I(784) + range(28, 1) * I(28) + range(28, 2), I(784))), n);
  EXPECT_EQ(simplify(lt(flat, N * H * W)), ctx.constant_int(DType::Bool, 1));
  EXPECT_EQ(simplify(floordiv(w, W) * W + floormod(w, W)), w);
}

TEST_F(Simplify, WindowsOverSymbolicWidthsNeedNoDivision) {
  const Ref k = range(3, 0), w = ctx.range(W, 1), padded = W + I(2);
  EXPECT_EQ(simplify(floordiv(k * (padded + I(1)) + w, padded)), k); // the taps of a 3-wide window, one row apart
  EXPECT_EQ(simplify(floormod(k * (padded + I(1)) + w, padded)), simplify(w + k));
  const Ref outputs = floordiv(W - I(1), I(2)) + I(1), i = ctx.range(outputs, 1); // stride 2
  EXPECT_EQ(simplify(floormod(k * (padded + I(1)) + i * I(2), padded)), simplify(i * I(2) + k));
  const Ref more = ctx.range(W + I(1), 1); // one output too many: the last tap runs over
  EXPECT_TRUE(simplify(floormod(k * (padded + I(1)) + more, padded))->is(Ops::FloorMod));
}

TEST_F(Simplify, SumsAreCanonical) {
  EXPECT_EQ(simplify(x + y), simplify(y + x));
  EXPECT_EQ(simplify((x + I(3)) * I(2) - (x - y) - I(6)), simplify(y + x));
  EXPECT_EQ(text(x - x), "0");
  EXPECT_EQ(text((y + x) * I(2) + I(1)), "add(add(mul(x, 2), mul(y, 2)), 1)");
}

TEST_F(Simplify, RemaindersAndQuotientsRecombine) {
  EXPECT_EQ(simplify(floordiv(x, I(7)) * I(7) + floormod(x, I(7))), x);
  EXPECT_EQ(simplify(floormod(floordiv(x, I(4)), I(3)) * I(4) + floormod(x, I(4))), floormod(x, I(12)));
  EXPECT_EQ(simplify(floordiv(floormod(x, I(12)), I(4))), floormod(floordiv(x, I(4)), I(3)));
  EXPECT_EQ(simplify(floordiv(floordiv(x, I(4)) + I(1), I(5))), simplify(floordiv(x + I(4), I(20))));
  EXPECT_EQ(simplify(floormod(floormod(y, I(12)), I(4))), floormod(y, I(4)));
  EXPECT_EQ(simplify(floordiv(y, I(-4))), simplify(floordiv(-y, I(4))));
}

TEST_F(Simplify, Comparisons) {
  EXPECT_EQ(text(lt(a * I(4) + b, I(20))), "lt(range(10){id=0,axis=loop}, 5)");
  EXPECT_EQ(text(lt(I(2), x + I(5))), "1:bool");
  EXPECT_EQ(text(lt(I(2), y + I(5))), "lt(-3, y)");
  EXPECT_EQ(text(lt(y + x + I(5), z * I(2))), "lt(add(x, y), add(mul(z, 2), -5))");
  EXPECT_EQ(text(lt(floordiv(x, I(4)), I(5))), "lt(x, 20)");
  EXPECT_EQ(text(lt(x, I(101))), "1:bool");
  EXPECT_EQ(text(binary(Ops::Eq, x * I(2), I(7))), "0:bool");
  EXPECT_EQ(text(unary(Ops::Not, lt(x, I(5)))), "lt(4, x)");
  EXPECT_EQ(text(logical_and(logical_and(lt(x, I(9)), lt(y, I(3))), lt(x, I(5)))), "and(lt(x, 5), lt(y, 3))");
  EXPECT_EQ(text(logical_and(lt(x, I(5)), lt(I(7), x))), "0:bool");
  EXPECT_EQ(text(binary(Ops::Or, lt(x, I(8)), lt(I(6), x))), "1:bool");
}

TEST_F(Simplify, FloatsKeepNanAndSignedZero) {
  const Ref f = param(DType::F32, 0), zero = ctx.constant(DType::F32, 0), minus = ctx.constant(DType::F32, -0.0);
  EXPECT_EQ(simplify(f * 1.0), f);
  EXPECT_EQ(simplify(f + minus), f);
  EXPECT_EQ(simplify(f + zero), f + zero);
  EXPECT_EQ(simplify(f * zero), f * zero);
  EXPECT_EQ(simplify(f - f), f - f);
  EXPECT_EQ(simplify(binary(Ops::Div, f, ctx.constant(DType::F32, 4))), f * 0.25);
  EXPECT_EQ(simplify(ctx.constant(DType::F32, 0.1) + ctx.constant(DType::F32, 0.2)),
            ctx.constant(DType::F32, static_cast<double>(0.1f + 0.2f)));
  EXPECT_EQ(simplify(cast(cast(f, DType::F64), DType::F16)), cast(f, DType::F16));
  EXPECT_EQ(simplify(cast(cast(f, DType::F16), DType::F32)), cast(cast(f, DType::F16), DType::F32));
}

TEST_F(Simplify, SelectionsMerge) {
  const Ref f = param(DType::F32, 0), g = param(DType::F32, 1), p = lt(x, I(5)), q = lt(y, I(3));
  EXPECT_EQ(simplify(where(p, where(q, f, g), g)), where(logical_and(p, q), f, g));
  EXPECT_EQ(simplify(where(lt(x, I(200)), f, g)), f);
  EXPECT_EQ(simplify(where(p, where(p, f, g), g)), where(p, f, g));
}

TEST_F(Simplify, ShapesAreKept) {
  const Ref lanes = ctx.make(Ops::Iota, DType::Index, {I(8)});
  EXPECT_EQ(simplify(lanes - lanes)->rank(), 1);
  EXPECT_EQ(simplify((lanes + x) + I(0))->rank(), 1);
}

TEST_F(Simplify, GivenAFact) {
  // A gate 0 <= y, y < 20 bounds y.
  const Ref fact = logical_and(binary(Ops::Le, I(0), y), lt(y, I(20)));
  EXPECT_EQ(simplify_given(floormod(y, I(20)), fact), y);
  EXPECT_EQ(text(simplify_given(lt(y, I(25)), fact)), "1:bool");
  EXPECT_EQ(simplify_given(where(lt(y, I(20)), x, z), fact), x);
  EXPECT_EQ(simplify_given(y + x, binary(Ops::Eq, y, I(3))), simplify(x + I(3)));
  // A gate on a sum: padded coordinates a + b - 1 within [0, 10).
  const Ref at = a + b - I(1), inside = logical_and(binary(Ops::Le, I(0), at), lt(at, I(10)));
  EXPECT_EQ(simplify_given(floormod(at, I(10)), inside), simplify(at));
  EXPECT_EQ(simplify_given(floordiv(x * I(10) + at, I(10)), inside), x);
  EXPECT_EQ(text(simplify_given(inside, inside)), "1:bool");
}

// ---- random expressions ---------------------------------------------------------------------------------------------
constexpr uint32_t kSeed = 7919;
constexpr int kCases = 20000, kAssignments = 48;

class Fuzz {
public:
  explicit Fuzz(uint32_t seed) : state_(seed) {}
  int64_t below(int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(n));
  }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }

  Ref leaf(int i) {
    const std::string name(1, static_cast<char>('a' + i));
    switch (below(6)) {
    case 0: return ctx->var(name, -below(30), below(30));
    case 1: return ctx->range(ctx->var("n", 1, 1 + below(12)), i);
    case 2: return ctx->range(ctx->var("m", 1, 1 + below(12)), i);
    default: return ctx->range(ctx->index(1 + below(24)), i);
    }
  }
  Ref divisor() {
    if (below(8) == 0) return ctx->var("n", 1, 9);
    if (below(6) == 0) return ctx->var("n", 1, 9) * ctx->index(between(1, 3)) + ctx->index(between(0, 4));
    const int64_t common[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 28, 5, 7, -3};
    return ctx->index(common[below(13)]);
  }
  /// A window's position: tap k of output i, flattened over the padded width, and that width; sometimes a bit off.
  Ref window() {
    const Ref n = ctx->var("n", 1, 9), width = n + ctx->index(between(0, 4)), step = ctx->index(between(1, 3));
    const Ref outputs = floordiv(n + ctx->index(between(-1, 3)), step) + ctx->index(1);
    const Ref k = ctx->range(ctx->index(between(1, 4)), 5), i = ctx->range(simplify(outputs), 6);
    const Ref flat = k * (width + ctx->index(between(0, 2))) + i * step;
    return below(2) ? floordiv(flat, width) : floormod(flat, width);
  }
  Ref expression(int depth) {
    if (depth > 0 && below(12) == 0) return window();
    if (depth == 0) return below(5) ? leaves[static_cast<size_t>(below(4))] : ctx->index(between(-12, 30));
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
      return expression(depth - 1) * (below(6) ? ctx->index(between(-3, 16)) : expression(0)) + expression(depth - 1);
    case 3: return expression(depth - 1) - expression(depth - 1);
    case 4:
    case 5: return floordiv(expression(depth - 1), divisor());
    case 6:
    case 7: return floormod(expression(depth - 1), divisor());
    case 8: return binary(below(2) ? Ops::Max : Ops::Min, expression(depth - 1), expression(depth - 1));
    default: return where(condition(depth - 1), expression(depth - 1), expression(depth - 1));
    }
  }
  Ref condition(int depth) {
    const Ops compare[] = {Ops::Lt, Ops::Le, Ops::Eq, Ops::Ne};
    switch (depth ? below(6) : 0) {
    case 4: return logical_and(condition(depth - 1), condition(depth - 1));
    case 5: return binary(below(2) ? Ops::Or : Ops::Xor, condition(depth - 1), unary(Ops::Not, condition(depth - 1)));
    default: return binary(compare[below(4)], expression(depth), expression(depth));
    }
  }
  void bind(ArrayEval& eval, Ref root) {
    for (Ref x : toposort(root)) {
      if (!x->is(Ops::Var) && !x->is(Ops::Range)) continue;
      std::vector<int64_t> values;
      for (int i = 0; i < kAssignments; ++i) {
        const int64_t hi = x->is(Ops::Var) ? x->hi : static_cast<int64_t>(eval.at(x->src[0], i)) - 1;
        values.push_back(below(6) == 0 ? hi : between(x->lo, hi));
      }
      eval.bind(x, values.data());
    }
  }

  std::unique_ptr<Context> ctx;
  std::vector<Ref> leaves;

private:
  uint64_t state_;
};

TEST(SimplifyRandom, KeepsEveryValueAndIsIdempotent) {
  Fuzz fuzz(kSeed);
  int changed = 0;
  for (int n = 0; n < kCases; ++n) {
    if (n % 100 == 0) fuzz.ctx = std::make_unique<Context>();
    fuzz.leaves.clear();
    for (int i = 0; i < 4; ++i) fuzz.leaves.push_back(fuzz.leaf(i));
    const int depth = 1 + n % 4;
    const Ref before = n % 3 ? fuzz.expression(depth) : fuzz.condition(depth), after = simplify(before);
    changed += !(before == after);
    EXPECT_EQ(simplify(after), after) << "not idempotent: " << node_text(before, 9) << " -> " << node_text(after, 9);
    ArrayEval eval(kAssignments);
    const Ref both[] = {before, after};
    fuzz.bind(eval, fuzz.ctx->make(Ops::Tuple, DType::Void, both));
    for (int i = 0; i < kAssignments; ++i) {
      const auto x = static_cast<int64_t>(eval.at(before, i)), y = static_cast<int64_t>(eval.at(after, i));
      ASSERT_EQ(x, y) << "seed " << kSeed << " case " << n << ": " << node_text(before, 9) << " -> "
                      << node_text(after, 9);
      if (before->dtype != DType::Index) continue;
      ASSERT_GE(x, after->lo) << node_text(after, 9);
      ASSERT_LE(x, after->hi) << node_text(after, 9);
    }
    if (::testing::Test::HasFailure()) return;
  }
  RecordProperty("changed", changed);
  EXPECT_GT(changed, kCases / 2);
}

TEST(SimplifyRandom, GivenAFactKeepsValuesWhereItHolds) {
  Fuzz fuzz(kSeed + 1);
  int64_t checked = 0;
  for (int n = 0; n < kCases / 5; ++n) {
    if (n % 100 == 0) fuzz.ctx = std::make_unique<Context>();
    fuzz.leaves.clear();
    for (int i = 0; i < 4; ++i) fuzz.leaves.push_back(fuzz.leaf(i));
    const Ref before = fuzz.expression(2), fact = fuzz.condition(2), after = simplify_given(before, fact);
    ArrayEval eval(kAssignments);
    const Ref all[] = {before, fact, after};
    fuzz.bind(eval, fuzz.ctx->make(Ops::Tuple, DType::Void, all));
    for (int i = 0; i < kAssignments; ++i) {
      if (!eval.at(fact, i)) continue;
      ++checked;
      ASSERT_EQ(eval.at(before, i), eval.at(after, i))
          << "seed " << kSeed + 1 << " case " << n << ": " << node_text(before, 9) << " given " << node_text(fact, 9)
          << " -> " << node_text(after, 9);
    }
  }
  EXPECT_GT(checked, 50000);
}

} // namespace
} // namespace tgc
