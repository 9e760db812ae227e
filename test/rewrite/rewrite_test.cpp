// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The drivers: orders, memo, fuel, long chains, and a pass whose rules carry state (numbering parameters).
#include "rewrite/rewrite.h"

#include <gtest/gtest.h>

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, C1{2}, C2{3};

Ref param(Context& ctx, std::string name, int64_t slot) {
  return ctx.make(Ops::Param, DType::F32, {}, {{Attr::Slot, slot}, {Attr::Name, std::move(name)}});
}

class Drivers : public ::testing::Test {
protected:
  Context ctx;
  PassContext pass;
  Ref a = ctx.var("a", 0, 9), b = ctx.var("b", 0, 9), one = ctx.index(1);
};

TEST_F(Drivers, ChildrenFirstReachesAFixpointThroughReplacements) {
  // max(x, y) -> x + y, x + 0 -> x: the second applies to what the first makes.
  const PatternMatcher t("t", {{"max", max(X, Y), [](Match& m) { return m[X] + m[Y]; }},
                               {"zero", Pat(X) + 0, [](Match& m) { return m[X]; }}});
  const Ref root = binary(Ops::Max, binary(Ops::Max, a, ctx.index(0)), ctx.index(0)) * b;
  EXPECT_EQ(graph_rewrite(root, t, pass), a * b);
}

TEST_F(Drivers, EachDistinctNodeIsMatchedOnce) {
  static int calls;
  calls = 0;
  const PatternMatcher t("t", {{"count", Pat(X) + Y, [](Match&) { return ++calls, Ref(); }}});
  const Ref shared = a + b;
  graph_rewrite(((shared * shared) * (shared * a)), t, pass);
  EXPECT_EQ(calls, 2); // one node, both orders of its sources
}

TEST_F(Drivers, ParentFirstSeesOriginalSourcesAndStops) {
  // A parent that stops keeps its sources as they were.
  const PatternMatcher t("t", {{"gate", Pat(X) * Y, [](Match& m) { return m.ctx().stop(), Ref(); }},
                               {"b", op(Ops::Var, {}), [](Match& m) {
                                  return m.root()->s(Attr::Name) == "a" ? m.graph().var("c", 0, 9) : Ref();
                                }}});
  const Ref c = ctx.var("c", 0, 9);
  EXPECT_EQ(graph_rewrite((a * b) + a, t, pass, {.order = Order::ParentFirst}), (a * b) + c);
  EXPECT_EQ(graph_rewrite((a * b) + a, t, pass), (c * b) + c);
}

TEST_F(Drivers, OncePerNodeDoesNotMatchReplacements) {
  const PatternMatcher t("t", {{"wrap", Pat(X) + Y, [](Match& m) { return (m[X] + m[Y]) + m.graph().index(1); }}});
  EXPECT_EQ(graph_rewrite(a + b, t, pass, {.order = Order::OncePerNode}), (a + b) + one);
  // Swapping two leaves at once is possible only so.
  const PatternMatcher swap("swap", {{"ab", op(Ops::Var, {}), [](Match& m) {
                                        return m.graph().var(m.root()->s(Attr::Name) == "a" ? "b" : "a", 0, 9);
                                      }}});
  EXPECT_EQ(graph_rewrite(a - b, swap, pass, {.order = Order::OncePerNode}), b - a);
}

TEST_F(Drivers, ChainOfTenThousandNodes) {
  Ref chain = a;
  for (int i = 0; i < 10000; ++i) chain = chain + ctx.index(1);
  const PatternMatcher t("t", {{"twice", (Pat(X) + cst(C1)) + cst(C2),
                                [](Match& m) { return m[X] + m.graph().index(m.i(C1) + m.i(C2)); }}});
  EXPECT_EQ(graph_rewrite(chain, t, pass), a + ctx.index(10000));
  const std::pair<Ref, Ref> to_b[] = {{a, b}};
  const Ref moved = substitute(chain, to_b);
  EXPECT_EQ(graph_rewrite(moved, t, pass), b + ctx.index(10000));
  EXPECT_EQ(graph_rewrite(chain, t, pass, {.order = Order::ParentFirst, .fuel = 10000}), a + ctx.index(10000));
}

std::string error_of(const PatternMatcher& t, Ref root, PassContext& pass, RewriteOptions options = {}) {
  try {
    graph_rewrite(root, t, pass, options);
  } catch (const CompileError& e) {
    EXPECT_EQ(e.all().at(0).code, ErrorCode::E104);
    return e.all().at(0).message;
  }
  return "no error";
}

TEST_F(Drivers, CycleIsReportedWithRulesAndNodes) {
  const PatternMatcher t("t", {{"to-mul", (Pat(X) + Y).ordered(), [](Match& m) { return m[X] * m[Y]; }},
                               {"to-add", (Pat(X) * Y).ordered(), [](Match& m) { return m[X] + m[Y]; }}});
  EXPECT_EQ(error_of(t, a + b, pass, {.name = "loop"}),
            "pass \"loop\" does not terminate at add(a, b); the last rules are t/to-mul, t/to-add\n"
            "  t/to-mul: add(a, b) -> mul(a, b)\n"
            "  t/to-add: mul(a, b) -> add(a, b)");
}

TEST_F(Drivers, GrowthIsStoppedByFuel) {
  const PatternMatcher t("t",
                         {{"grow", (Pat(X) + cst(C1)), [](Match& m) { return m[X] + m.graph().index(m.i(C1) + 1); }}});
  const std::string text = error_of(t, a + one, pass, {.fuel = 50});
  EXPECT_NE(text.find("does not terminate at add(a, 51)"), std::string::npos) << text;
  EXPECT_NE(text.find("t/grow: add(a, 51) -> add(a, 52)"), std::string::npos) << text;
}

TEST_F(Drivers, FuelIsPerOriginalNode) {
  // 300 nodes of three replacements each pass with fuel for three.
  const PatternMatcher t("t", {{"count", floormod(X, cst(C1)), [](Match& m) {
                                  return m.i(C1) > 2 ? floormod(m[X], m.graph().index(m.i(C1) - 1)) : Ref();
                                }}});
  Ref chain = a;
  for (int i = 0; i < 300; ++i) chain = floormod(chain, ctx.index(5)) + one;
  EXPECT_THROW(graph_rewrite(chain, t, pass, {.fuel = 2}), CompileError);
  EXPECT_NO_THROW(graph_rewrite(chain, t, pass, {.fuel = 3}));
}

TEST_F(Drivers, CallBodiesAreEnteredOnRequest) {
  const Ref body = ctx.make(Ops::Sink, DType::Void, {ctx.make(Ops::End, DType::Void, {ctx.range(a + one, 0)})});
  const Ref func = ctx.make(Ops::Func, DType::Void, {body}, {{Attr::Name, std::string("k")}});
  const Ref call = ctx.make(Ops::Call, DType::Void, {func});
  const PatternMatcher t("t", {{"x", Pat(X) + 1, [](Match& m) { return m[X]; }}});
  EXPECT_EQ(graph_rewrite(call, t, pass), call);
  const Ref inner = graph_rewrite(call, t, pass, {.enter_funcs = true});
  EXPECT_EQ(inner->src[0]->src[0]->src[0]->src[0]->src[0], a);
}

TEST_F(Drivers, CountsAndEvents) {
  const PatternMatcher t(
      "t", {{"zero", Pat(X) + 0, [](Match& m) { return m[X]; }}, {"never", Pat(X) - X, [](Match& m) { return m[X]; }}});
  pass.count_rules = true;
  std::string seen;
  pass.on_rewrite = [&](const RewriteEvent& e) { seen += std::string(e.pass) + ":" + e.rule + " "; };
  graph_rewrite((a + ctx.index(0)) - (b + ctx.index(0)), t, pass, {.name = "p"});
  EXPECT_EQ(seen, "p:t/zero p:t/zero ");
  const std::vector<RuleCount> counts = pass.rule_counts();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].rule, "t/never");
  EXPECT_EQ(counts[0].attempts, 1);
  EXPECT_EQ(counts[0].hits, 0);
  EXPECT_EQ(counts[1].attempts, 2);
  EXPECT_EQ(counts[1].hits, 2);
}

// Params without a slot of their own (slot -1 here) get consecutive slots in the order in which they are first visited.
struct NumberParams {
  int64_t next = 0;
};
TEST_F(Drivers, RulesCarryStateToNumberParams) {
  const PatternMatcher number_params("number-params", {{"slot", op_any_sources({Ops::Param}), [](Match& m) {
                                                          if (m.root()->i(Attr::Slot) >= 0) return Ref();
                                                          Attrs attrs = *m.root()->attrs;
                                                          for (AttrItem& item : attrs)
                                                            if (item.key == Attr::Slot)
                                                              item.value = m.state<NumberParams>().next++;
                                                          return m.graph().make(Ops::Param, m.root()->dtype,
                                                                                m.root()->src, std::move(attrs));
                                                        }}});
  NumberParams state;
  pass.set_state(state);
  const Ref p = param(ctx, "p", -1), q = param(ctx, "q", -1);
  const Ref out = graph_rewrite((q * p) + (p - q), number_params, pass);
  const Ref q0 = param(ctx, "q", 0), p1 = param(ctx, "p", 1);
  EXPECT_EQ(out, (q0 * p1) + (p1 - q0));
  EXPECT_EQ(state.next, 2);
}

} // namespace
} // namespace tgc
