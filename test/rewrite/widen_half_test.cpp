// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The graph that widen-half makes of f16 arithmetic: its values against f32 ones rounded once, and the places where
// rounding must stay.
#include "rewrite/rules/widen_half.h"

#include <gtest/gtest.h>

#include "uop/eval.h"
#include "uop/module.h"

namespace tgc {
namespace {

/// The value of a graph over f16 inputs, before and after widen-half.
class WidenHalf : public testing::Test {
protected:
  Ref input(const std::vector<double>& values, DType type = DType::F16) {
    const int64_t slot = static_cast<int64_t>(inputs_.size()), n = static_cast<int64_t>(values.size());
    inputs_.push_back(tensor_of(type, {n}, values));
    return ctx().make(Ops::Param, type, {ctx().index(n)}, {{Attr::Slot, slot}});
  }
  std::vector<double> run(Ref value, Numerics numerics) {
    const int64_t slot = static_cast<int64_t>(inputs_.size());
    Ref out = ctx().make(Ops::Param, value->dtype, value->shape, {{Attr::Slot, slot}});
    Ref sink = ctx().make(Ops::Sink, DType::Void, {ctx().make(Ops::Store, DType::Void, {out, value})});
    PassContext pass;
    pass.numerics = numerics;
    module_.root = widen_half(ctx().make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("main")}}), pass);
    const HostTensor t = eval(module_, inputs_)[0];
    std::vector<double> values;
    for (int64_t i = 0; i < t.numel(); ++i) values.push_back(t.at(i));
    return values;
  }
  std::vector<double> narrow(Ref value) { return run(value, Numerics::Strict); }
  std::vector<double> wide(Ref value) { return run(value, Numerics::Standard); }
  Context& ctx() { return *module_.ctx; }

private:
  Module module_;
  std::vector<HostTensor> inputs_;
};
using Values = std::vector<double>;

TEST_F(WidenHalf, ChainsRoundOnce) {
  Ref x = input({2048, 2049}), one = input({1, 1}); // 2049 is 2048 in f16: its neighbours are 2 apart
  Ref y = (x + one) - x;
  EXPECT_EQ(narrow(y), (Values{0, 0}));
  EXPECT_EQ(wide(y), (Values{1, 1}));
}

TEST_F(WidenHalf, RoundingMovesBehindMovementAndExtremes) {
  Ref x = input({2048, 2048}), one = input({1, 1}), two = ctx().index(2), single = ctx().index(1);
  Ref moved = ctx().make(Ops::Reshape, DType::F16, {x + one, two, single});
  Ref best = ctx().make(Ops::Reduce, DType::F16, {moved},
                        {{Attr::Kind, std::string("max")}, {Attr::Axes, std::vector<int64_t>{1}}});
  EXPECT_EQ(narrow(best - x), (Values{0, 0}));
  EXPECT_EQ(wide(best - x), (Values{1, 1}));
}

TEST_F(WidenHalf, ComparedAndConvertedValuesAreRounded) {
  Ref x = input({2048, 2048}), one = input({1, 2});
  Ref sum = x + one; // 2049 rounds to 2048
  EXPECT_EQ(wide(cast(sum, DType::I32)), (Values{2048, 2050}));
  EXPECT_EQ(wide(cast(lt(x, sum), DType::F32)), (Values{0, 1}));
}

TEST_F(WidenHalf, AModelsOwnConversionOfItsDataRounds) {
  Ref x = input({2049, 3}, DType::F32);
  EXPECT_EQ(wide(cast(cast(x, DType::F16), DType::F32)), (Values{2048, 3}));
}

TEST_F(WidenHalf, SelectionsOfStoredHalvesStayHalves) {
  Ref a = input({1, 2}), b = input({2, 1});
  Ref larger = binary(Ops::Max, a, b);
  PassContext pass;
  EXPECT_EQ(widen_half(larger, pass), larger);
  EXPECT_EQ(wide(larger), (Values{2, 2}));
}

} // namespace
} // namespace tgc
