// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every rule of every table, tried on random instances of its left side; both sides must agree.
#include "rewrite/check_rules.h"

#include <gtest/gtest.h>

#include "rewrite/rules/decompose.h"
#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, C1{2};
constexpr uint64_t kSeed = 20240607;
constexpr int kWanted = 60;

void check_table(const PatternMatcher& table) {
  PassContext pass;
  for (const Rule& rule : table.rules()) {
    if (rule.pattern.nodes().back().ops == op(Ops::Store, {}).nodes().back().ops) continue; // has no value
    const RuleCheckResult r = check_rule(rule, pass, {.seed = kSeed, .wanted = kWanted});
    EXPECT_EQ(r.counterexample, "") << rule.full_name() << ": " << to_string(rule.pattern) << ", seed " << kSeed;
    EXPECT_GE(r.fired, kWanted) << rule.full_name() << " fired in " << r.attempts << " random instances of "
                                << to_string(rule.pattern);
  }
}

TEST(Rules, ConstFold) { check_table(const_fold()); }
TEST(Rules, Identities) { check_table(identities()); }
TEST(Rules, Boolean) { check_table(boolean()); }
TEST(Rules, IndexLinear) { check_table(index_linear()); }
TEST(Rules, Divmod) { check_table(divmod()); }
TEST(Rules, Gates) { check_table(gates()); }
TEST(Rules, DecomposeBasic) { check_table(decompose_basic()); }
TEST(Rules, DecomposeFloats) { check_table(decompose_floats()); }
TEST(Rules, DecomposeTranscendental) { check_table(decompose_transcendental()); }
TEST(Rules, DecomposeHalf) { check_table(decompose_half()); }
TEST(Rules, FormFma) {
  TargetInfo target;
  target.ops.set(static_cast<size_t>(Ops::Fma));
  EXPECT_EQ(form_fma(target).rules().size(), 3u);
  EXPECT_EQ(form_fma(TargetInfo()).rules().size(), 0u);
  check_table(form_fma(target));
}

std::string counterexample(Rule rule) {
  PassContext pass;
  rule.table = "planted";
  return check_rule(rule, pass, {.seed = kSeed, .wanted = 300}).counterexample;
}

TEST(Rules, WrongOnesAreCaughtWithACounterexample) {
  const Action take_x = [](Match& m) { return m[X]; };
  const std::string zero = counterexample({"add-0", of_dtype(DType::F32, Pat(X) + 0.0), take_x});
  EXPECT_NE(zero.find("-0.000000"), std::string::npos) << zero; // x + 0.0 is not x for -0
  const std::string div = counterexample({"div", index(floordiv(Pat(X) * cst(C1), C1)), take_x});
  EXPECT_NE(div.find("floordiv("), std::string::npos) << div; // x*0 // 0
  EXPECT_NE(counterexample({"commute", index(Pat(X) - Y), [](Match& m) { return m[Y] - m[X]; }}), "");
  EXPECT_NE(counterexample({"narrow", of_dtype(DType::I32, cast(of_dtype(DType::I8, cast(X)))),
                            [](Match& m) { return cast(m[X], DType::I32); }}),
            "");
}

} // namespace
} // namespace tgc
