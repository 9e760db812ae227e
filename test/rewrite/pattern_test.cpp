// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What patterns match and what the matcher promises about order, captures and refusal.
#include "rewrite/pattern.h"

#include <gtest/gtest.h>

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, C1{2}, C2{3};

class Patterns : public ::testing::Test {
protected:
  Ref rewrite(const Pat& pattern, Action action, Ref node, unsigned tags = 0) {
    return PatternMatcher("t", {{"r", pattern, action, tags}}).rewrite(node, pass);
  }
  static Ref take_x(Match& m) { return m[X]; }
  Context ctx;
  PassContext pass;
  Ref a = ctx.var("a", 0, 9), b = ctx.var("b", 0, 9);
};

TEST_F(Patterns, LiteralMatchesEitherSideOfACommutativeOp) {
  EXPECT_EQ(rewrite(Pat(X) + 0, take_x, a + ctx.index(0)), a);
  EXPECT_EQ(rewrite(Pat(X) + 0, take_x, ctx.index(0) + a), a);
  EXPECT_FALSE(rewrite(Pat(X) + 0, take_x, a + ctx.index(1)));
  EXPECT_FALSE(rewrite(Pat(X) - 0, take_x, ctx.index(0) - a));
}

TEST_F(Patterns, ZeroLiteralTellsTheSignOfFloats) {
  const Ref x = ctx.make(Ops::Param, DType::F32, {}, {{Attr::Slot, int64_t{0}}});
  EXPECT_EQ(rewrite(Pat(X) + -0.0, take_x, x + ctx.constant(DType::F32, -0.0)), x);
  EXPECT_FALSE(rewrite(Pat(X) + -0.0, take_x, x + ctx.constant(DType::F32, 0.0)));
  EXPECT_FALSE(rewrite(Pat(X) + 0.0, take_x, x + ctx.constant(DType::F32, -0.0)));
}

TEST_F(Patterns, SameCaptureDemandsSameNode) {
  EXPECT_EQ(rewrite(Pat(X) - X, take_x, a - a), a);
  EXPECT_FALSE(rewrite(Pat(X) - X, take_x, a - b));
}

TEST_F(Patterns, NestedCommutativeOrdersAreAllOffered) {
  // (x*y) + x in all of its 4 spellings.
  const Pat p = (Pat(X) * Y) + X;
  const auto y = [](Match& m) { return m[Y]; };
  EXPECT_EQ(rewrite(p, y, (a * b) + a), b);
  EXPECT_EQ(rewrite(p, y, (b * a) + a), b);
  EXPECT_EQ(rewrite(p, y, a + (a * b)), b);
  EXPECT_EQ(rewrite(p, y, a + (b * a)), b);
  EXPECT_FALSE(rewrite(p.ordered(), y, a + (a * b)));
}

TEST_F(Patterns, NextBindingIsTriedWhenTheActionRefuses) {
  const auto bigger = [](Match& m) { return m[X]->hi > m[Y]->hi ? m[X] : Ref(); };
  const Ref big = ctx.var("big", 0, 99);
  EXPECT_EQ(rewrite(Pat(X) + Y, bigger, a + big), big);
  EXPECT_EQ(rewrite(Pat(X) + Y, bigger, big + a), big);
  EXPECT_FALSE(rewrite(Pat(X) + Y, bigger, a + b));
}

TEST_F(Patterns, ConstCapturesAndDtypeLimits) {
  const Pat p = floordiv(floordiv(Pat(X), cst(C1)), cst(C2));
  const auto product = [](Match& m) { return m.graph().index(m.i(C1) * m.i(C2)); };
  EXPECT_EQ(rewrite(p, product, floordiv(floordiv(a, ctx.index(3)), ctx.index(4))), ctx.index(12));
  EXPECT_FALSE(rewrite(p, product, floordiv(floordiv(a, b), ctx.index(4))));
  EXPECT_FALSE(rewrite(floats(Pat(X) + Y), take_x, a + b));
  EXPECT_EQ(rewrite(index(Pat(X) + Y), take_x, a + b), a);
}

TEST_F(Patterns, AttributeIsCompared) {
  const Ref n = ctx.index(4), r = ctx.range(n, 0, "reduce"), l = ctx.range(n, 0, "loop");
  const Pat p = op(Ops::Range, {X}).with(Attr::Axis, "reduce");
  EXPECT_EQ(rewrite(p, take_x, r), n);
  EXPECT_FALSE(rewrite(p, take_x, l));
}

TEST_F(Patterns, FirstRuleThatChangesTheNodeWins) {
  const PatternMatcher t("t", {{"same", Pat(X) + Y, [](Match& m) { return m.root(); }},
                               {"none", Pat(X) + Y, [](Match&) { return Ref(); }},
                               {"first", Pat(X) + Y, take_x},
                               {"second", Pat(X) + Y, [](Match& m) { return m[Y]; }}});
  pass.count_rules = true;
  EXPECT_EQ(t.rewrite(a + b, pass), a);
}

TEST_F(Patterns, AnyRootIsTriedInPlace) {
  const PatternMatcher t("t",
                         {{"any", any(), [](Match& m) { return m.root()->is(Ops::Add) ? m.root()->src[1] : Ref(); }},
                          {"add", Pat(X) + Y, take_x}});
  EXPECT_EQ(t.rewrite(a + b, pass), b);
  EXPECT_FALSE(t.rewrite(a * b, pass));
}

TEST_F(Patterns, SameValueRefusesAnotherShapeOrType) {
  const Ref lanes = ctx.make(Ops::Iota, DType::Index, {ctx.index(8)});
  const auto zero = [](Match& m) { return m.graph().index(0); };
  EXPECT_FALSE(rewrite(Pat(X) - X, zero, lanes - lanes, kSameValue));
  EXPECT_EQ(rewrite(Pat(X) - X, zero, a - a, kSameValue), ctx.index(0));
  EXPECT_FALSE(rewrite(cast(X), take_x, cast(a, DType::I64), kSameValue));
}

TEST_F(Patterns, DisabledAndForbiddenRulesDoNotFire) {
  const PatternMatcher t("t", {{"x", Pat(X) + Y, take_x}, {"fast", Pat(X) * Y, take_x, kFast}});
  EXPECT_EQ(t.rewrite(a + b, pass), a);
  pass.disabled_rules = {"t/x"};
  EXPECT_FALSE(t.rewrite(a + b, pass));
  EXPECT_FALSE(t.rewrite(a * b, pass));
  pass.numerics = Numerics::Fast;
  EXPECT_EQ(t.rewrite(a * b, pass), a);
}

TEST_F(Patterns, ConcatenationKeepsOrderAndTables) {
  const PatternMatcher p("p", {{"r", Pat(X) + Y, take_x}}), q("q", {{"r", Pat(X) + Y, [](Match& m) { return m[Y]; }}});
  const PatternMatcher both = p + q;
  EXPECT_EQ(both.rewrite(a + b, pass), a);
  pass.disabled_rules = {"p/r"};
  EXPECT_EQ(both.rewrite(a + b, pass), b);
  EXPECT_EQ(both.rules()[1].full_name(), "q/r");
}

TEST_F(Patterns, Print) {
  EXPECT_EQ(to_string(index(floordiv(Pat(X) + 0, cst(C1)))), "(floordiv (add ?0 0) ?2:(const)).index");
  EXPECT_EQ(to_string(op({Ops::Lt, Ops::Le}, {X, any()})), "(lt|le ?0 _)");
}

TEST_F(Patterns, StateIsReachedByType) {
  struct Numbers {
    int next = 7;
  } numbers;
  pass.set_state(numbers);
  const auto number = [](Match& m) { return m.graph().index(m.state<Numbers>().next++); };
  EXPECT_EQ(rewrite(Pat(X) + Y, number, a + b), ctx.index(7));
  EXPECT_EQ(numbers.next, 8);
}

} // namespace
} // namespace tgc
