// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uop/eval.h"

#include <cmath>
#include <cstring>
#include <ctime>

#include "testing.h"
#include "uop/text.h"

using namespace tgc;
using tgc::testing::error_of;

namespace {

using Values = std::vector<double>;

Values values(const HostTensor& t) {
  Values out;
  for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
  return out;
}

HostTensor iota(DType dtype, std::vector<int64_t> shape, double start = 0) {
  HostTensor t = zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < t.numel(); ++i) t.set(i, start + static_cast<double>(i));
  return t;
}

// The value of bare lines of text; %0 is a param that takes `x`.
HostTensor run(const std::string& lines, const HostTensor& x, const VarValues& vars = {}) {
  const Module m = parse("; tgc uop 1\n" + lines);
  LeafValues leaves;
  for (Ref node : toposort(m.root))
    if (node->is(Ops::Param)) leaves[node->id] = x;
  return eval_expr(m.root, leaves, vars);
}

TEST(Eval, TensorGraphWithSymbolicDim) {
  const Module m = parse(R"(; tgc uop 1
weights {
  "w" = inline x0000803f000000400000404000008040 0x1
}
func @main {
  %0 = var index {name="batch" min=1 max=64}
  %1 = param f32 %0 {slot=1 name="y"}
  %2 = param f32 %0 4 {slot=0 name="x"}
  %3 = weight f32 4 {key="w"}
  %4 = reshape f32 %3 1 4
  %5 = expand f32 %4 %0 4
  %6 = mul f32 %2 %5
  %7 = reduce f32 %6 {kind="add" axes=[1]}
  %8 = store %1 %7
  sink %8
}
)");
  const HostTensor x = tensor_of(DType::F32, {2, 4}, {1, 1, 1, 1, 1, 0, -1, 2});
  const std::vector<HostTensor> out = eval(m, {x}, {{"batch", 2}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape, std::vector<int64_t>{2});
  EXPECT_EQ(values(out[0]), (Values{10, 6}));
  EXPECT_EQ(error_of([&] { eval(m, {x}); }), "error TGC-E105: no value is given for dimension \"batch\"");
  EXPECT_EQ(error_of([&] { eval(m, {x}, {{"batch", 65}}); }),
            "error TGC-E105: dimension \"batch\" = 65 is outside 1..64");
  EXPECT_EQ(error_of([&] { eval(m, {}, {{"batch", 2}}); }), "error TGC-E105: no value is given for input \"x\"");
  EXPECT_EQ(error_of([&] { eval(m, {x}, {{"batch", 3}}); }),
            "error TGC-E105: input \"x\" needs f32[batch,4], got f32 of rank 2");
}

TEST(Eval, MovementOps) {
  const HostTensor x = iota(DType::I32, {2, 3});
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = reshape i32 %0 3 2", x)), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = permute i32 %0 {axes=[1,0]}", x)),
            (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = permute i32 %0 {axes=[1,0]}\n%2 = reshape i32 %1 2 3", x)),
            (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = flip i32 %0 {axes=[1]}", x)), (Values{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = flip i32 %0 {axes=[0,1]}\n%2 = reshape i32 %1 6", x)),
            (Values{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = pad i32 %0 0 1 1 0", x)),
            (Values{0, 0, 1, 2, 0, 3, 4, 5, 0, 0, 0, 0}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = shrink i32 %0 1 1 1 2", x)), (Values{4, 5}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = reshape i32 %0 2 1 3\n%2 = expand i32 %1 2 2 3", x)),
            (Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(
      values(
          run("%0 = iota index 3 {dim=1 rank=2}\n%1 = param i32 2 3 {slot=0}\n%2 = cast index %1\n%3 = mul index %2 %0",
              x)),
      (Values{0, 1, 4, 0, 4, 10}));
  EXPECT_EQ(values(run("%0 = param i32 2 3 {slot=0}\n%1 = shrink i32 %0 0 0 0 3", x)), Values{});
}

TEST(Eval, Reductions) {
  const HostTensor x = tensor_of(DType::F32, {2, 3}, {1, 2, 3, -4, 5, 0.5});
  const auto reduce = [&](const std::string& attrs) {
    return values(run("%0 = param f32 2 3 {slot=0}\n%1 = reduce f32 %0 {" + attrs + "}", x));
  };
  EXPECT_EQ(reduce("kind=\"add\" axes=[1]"), (Values{6, 1.5}));
  EXPECT_EQ(reduce("kind=\"add\" axes=[0]"), (Values{-3, 7, 3.5}));
  EXPECT_EQ(reduce("kind=\"mul\" axes=[0,1] keep=1"), (Values{-60}));
  EXPECT_EQ(reduce("kind=\"max\" axes=[1]"), (Values{3, 5}));
  EXPECT_EQ(reduce("kind=\"min\" axes=[0]"), (Values{-4, 2, 0.5}));
  const HostTensor nan = tensor_of(DType::F32, {2, 3}, {1, std::nan(""), 3, -4, 5, 6});
  const HostTensor max = run("%0 = param f32 2 3 {slot=0}\n%1 = reduce f32 %0 {kind=\"max\" axes=[1]}", nan);
  EXPECT_TRUE(std::isnan(max.at(0)));
  EXPECT_EQ(max.at(1), 6);
  // f16 sums do not stall at 2048; i8 sums wrap; an empty reduction is the identity.
  HostTensor ones = zeros(DType::F16, {4096});
  for (int64_t i = 0; i < 4096; ++i) ones.set(i, 1);
  EXPECT_EQ(run("%0 = param f16 4096 {slot=0}\n%1 = reduce f16 %0 {kind=\"add\" axes=[0]}", ones).at(0), 4096);
  EXPECT_EQ(
      run("%0 = param i8 2 {slot=0}\n%1 = reduce i8 %0 {kind=\"add\" axes=[0]}", tensor_of(DType::I8, {2}, {100, 100}))
          .at(0),
      -56);
  EXPECT_EQ(run("%0 = param f32 0 {slot=0}\n%1 = reduce f32 %0 {kind=\"max\" axes=[0]}", zeros(DType::F32, {0})).at(0),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(error_of([&] { reduce("kind=\"avg\" axes=[0]"); }),
            "error TGC-E105: reduce kind \"avg\" is not add, mul, max or min");
}

TEST(Eval, MatmulIsAReducedProductOfViews) {
  // [2,3] x [3,2], with the product also used on its own in the second graph.
  const std::string product = R"(%0 = param f32 2 3 {slot=0}
%1 = reshape f32 %0 2 1 3
%2 = expand f32 %1 2 2 3
%3 = permute f32 %0 {axes=[1,0]}
%4 = reshape f32 %3 1 3 2
%5 = expand f32 %4 2 3 2
%6 = permute f32 %5 {axes=[0,2,1]}
%7 = mul f32 %2 %6
%8 = reduce f32 %7 {kind="add" axes=[2]}
)";
  const HostTensor x = tensor_of(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run(product, x)), (Values{14, 32, 32, 77}));
  EXPECT_EQ(values(run(product + "%9 = reduce f32 %7 {kind=\"max\" axes=[2]}\n%10 = add f32 %8 %9", x)),
            (Values{23, 50, 50, 113}));
}

TEST(Eval, GatherTakesAlongOneDim) {
  Context ctx;
  const Ref data =
      ctx.make(Ops::Param, DType::F32, {ctx.index(2), ctx.index(3), ctx.index(2)}, {{Attr::Slot, int64_t{0}}});
  const Ref at =
      ctx.make(Ops::Param, DType::I32, {ctx.index(2), ctx.index(2), ctx.index(2)}, {{Attr::Slot, int64_t{1}}});
  const Ref y = ctx.make(Ops::Gather, DType::F32, {data, at}, {{Attr::Dim, int64_t{1}}});
  EXPECT_EQ(shape_text(y->shape), "[2,2,2]");
  const HostTensor x = tensor_of(DType::F32, {2, 3, 2}, {0, 1, 2, 3, -0.0, 5, 6, 7, 8, 9, 10, 11}),
                   i = tensor_of(DType::I32, {2, 2, 2}, {2, 0, 1, 3, -1, 1, 2, 2});
  const HostTensor got = eval_expr(y, {{data->id, x}, {at->id, i}}, {});
  const double want[] = {-0.0, 1, 2, 0, 0, 9, 10, 11};
  for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(got.at(k), want[k]) << k;
  EXPECT_TRUE(std::signbit(got.at(0)));
  EXPECT_THROW(ctx.make(Ops::Gather, DType::F32, {data, at}, {{Attr::Dim, int64_t{2}}}), CompileError);
}

TEST(Eval, GatherAtTensorLevel) {
  const std::string text =
      "%0 = param i32 4 {slot=0}\n%1 = cast index %0\n%2 = le bool 0 %1\n%3 = load i32 %0 %1 %2 7:i32";
  EXPECT_EQ(values(run(text, tensor_of(DType::I32, {4}, {3, 0, -1, 1}))), (Values{1, 3, 7, 0}));
  EXPECT_EQ(error_of([&] { run(text, tensor_of(DType::I32, {4}, {3, 0, 4, 1})); }),
            "load i32[4]: error TGC-E105: load at index 4 of 4 elements");
}

TEST(Eval, UndefinedOpsAreDiagnosed) {
  EXPECT_EQ(error_of([] { run("%0 = param i32 2 {slot=0}\n%1 = sqrt i32 %0", zeros(DType::I32, {2})); }),
            "error TGC-E105: sqrt is not defined for i32");
  EXPECT_EQ(error_of([] { run("%0 = param i32 2 {slot=0}\n%1 = tuple %0", zeros(DType::I32, {2})); }),
            "error TGC-E105: tuple cannot be evaluated here");
}

TEST(Eval, BindsLeavesAndVars) {
  Context c;
  const Ref n = c.var("n", 1, 100), r = c.range(n, 0);
  const LeafValues leaves{{r->id, tensor_of(DType::Index, {}, {5})}};
  EXPECT_EQ(eval_expr(r * n + c.index(1), leaves, {{"n", 10}}).int_at(0), 51);
  EXPECT_EQ(eval_index(floordiv(n, c.index(3)), {{"n", 10}}), 3);
}

// A graph with every kind of dependence, to compare sampled elements with a full evaluation.
constexpr const char* kMixedGraph = R"(; tgc uop 1
func @main {
  %0 = param f32 6 8 10 {slot=0}
  %1 = param f32 9 6 8 {slot=1}
  %2 = pad f32 %0 0 1 1 0 1 1
  %3 = shrink f32 %2 0 1 0 6 8 10
  %4 = flip f32 %3 {axes=[2]}
  %5 = mul f32 %4 %0
  %6 = reduce f32 %5 {kind="add" axes=[2]}
  %7 = reshape f32 %6 6 8 1
  %8 = expand f32 %7 6 8 9
  %9 = reduce f32 %0 {kind="max" axes=[0,2]}
  %10 = reshape f32 %9 8 1
  %11 = expand f32 %10 8 9
  %12 = reshape f32 %11 1 8 9
  %13 = expand f32 %12 6 8 9
  %14 = sub f32 %8 %13
  %15 = permute f32 %14 {axes=[2,0,1]}
  %16 = lt bool %15 0.5:f32
  %17 = where f32 %16 1.0:f32 %15
  %18 = store %1 %17
  sink %18
}
)";

TEST(Eval, SampledElementsEqualAFullEvaluation) {
  const Module m = parse(kMixedGraph);
  HostTensor x = zeros(DType::F32, {6, 8, 10});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>((i * 7919) % 23) * 0.25 - 2);
  const HostTensor full = eval(m, {x})[0];
  const std::vector<int64_t> few{431, 0, 17, 17, 200, 100}, many = [] {
    std::vector<int64_t> all(432);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(431 - i);
    return all;
  }();
  for (const std::vector<int64_t>& at : {few, many}) {
    const HostTensor sample = eval_at(m, {x}, 0, at);
    ASSERT_EQ(sample.shape, std::vector<int64_t>{static_cast<int64_t>(at.size())});
    for (size_t i = 0; i < at.size(); ++i) EXPECT_EQ(sample.at(static_cast<int64_t>(i)), full.at(at[i])) << at[i];
  }
  const std::vector<int64_t> outside{432};
  EXPECT_EQ(error_of([&] { eval_at(m, {x}, 0, outside); }), "error TGC-E105: element 432 of 432");
}

TEST(Eval, LongChainsNeedNoStack) {
  Context c;
  Ref x = c.make(Ops::Param, DType::F32, {c.index(2)}, {{Attr::Slot, int64_t{0}}});
  const LeafValues leaves{{x->id, tensor_of(DType::F32, {2}, {0, 1})}};
  Ref chain = x;
  for (int i = 0; i < 10000; ++i) chain = i % 2 == 0 ? chain + 1.0 : -chain;
  EXPECT_EQ(values(eval_expr(chain, leaves)), (Values{0, 1}));
  const Module back = parse(print(chain));
  EXPECT_EQ(back.root->hash, chain->hash);
}

// Element-operations a second that an oracle must reach to check real models.
constexpr double kMinRate = 50e6;

// CPU time, so that a busy machine does not matter.
TEST(Eval, IsFastEnough) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's build is several times slower";
#endif
  const HostTensor x = iota(DType::F32, {1 << 20});
  const std::clock_t start = std::clock();
  run("%0 = param f32 1048576 {slot=0}\n%1 = add f32 %0 %0\n%2 = mul f32 %1 0.5:f32\n%3 = max f32 %2 %1\n%4 = reduce "
      "f32 %3 {kind=\"add\" axes=[0]}",
      x);
  const HostTensor a = iota(DType::F32, {200, 200});
  run("%0 = param f32 200 200 {slot=0}\n%1 = reshape f32 %0 200 1 200\n%2 = expand f32 %1 200 200 200\n%3 = permute "
      "f32 %0 {axes=[1,0]}\n"
      "%4 = reshape f32 %3 1 200 200\n%5 = expand f32 %4 200 200 200\n%6 = mul f32 %2 %5\n%7 = reduce f32 %6 "
      "{kind=\"add\" axes=[2]}",
      a);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const double rate = (4.0 * (1 << 20) + 2 * 8e6) / seconds;
  std::printf("%.0f M element-operations a second\n", rate / 1e6);
  EXPECT_GT(rate, kMinRate);
}

} // namespace
