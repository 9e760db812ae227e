// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels by hand, in both forms a body has: expressions over ranges, and a linear sequence.
#include <cmath>

#include "testing.h"
#include "uop/eval.h"
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

HostTensor ramp(DType dtype, int64_t n) {
  HostTensor t = zeros(dtype, {n});
  for (int64_t i = 0; i < n; ++i) t.set(i, static_cast<double>(i));
  return t;
}

// Runs the one func of `text` on flat tensors.
void run(const std::string& text, std::vector<HostTensor>& buffers, const VarValues& vars = {}) {
  const Module m = parse("; tgc uop 1\n" + text);
  EXPECT_EQ(print(m.root), print(parse(print(m.root)).root));
  std::vector<BufferArg> args;
  for (HostTensor& b : buffers) args.push_back(buffer_arg(b));
  eval_kernel(m.root, args, vars);
}

// c[m,n] = sum_k a[m,k] * b[k,n], all 3 x 4 x 5, as expressions.
constexpr const char* kMatmulSink = R"(func @mm {
  %0 = param f32 12 {slot=0}
  %1 = range index 3 {id=0 axis="loop"}
  %2 = range index 4 {id=1 axis="loop"}
  %3 = mul index %1 4
  %4 = add index %3 %2
  %5 = range index 5 {id=2 axis="reduce"}
  %6 = param f32 15 {slot=1}
  %7 = mul index %1 5
  %8 = add index %7 %5
  %9 = load f32 %6 %8
  %10 = param f32 20 {slot=2}
  %11 = mul index %5 4
  %12 = add index %11 %2
  %13 = load f32 %10 %12
  %14 = mul f32 %9 %13
  %15 = reduce f32 %14 %5 {kind="add"}
  %16 = store %0 %4 %15
  sink %16
}
)";

// The same, linear: rows by loop, the 4 columns as lanes, the sum in a register.
constexpr const char* kMatmulLinear = R"(func @mm {
  %0 = param f32 12 {slot=0}
  %1 = param f32 15 {slot=1}
  %2 = param f32 20 {slot=2}
  %3 = buffer f32 4 {slot=0 space="reg"}
  %4 = range index 3 {id=0 axis="thread"}
  %5 = store %3 0 0.0:f32
  %6 = range index 5 {id=1 axis="reduce"}
  %7 = mul index %4 5
  %8 = add index %7 %6
  %9 = load f32 %1 %8
  %10 = iota index 1
  %11 = mul index %6 4
  %12 = add index %11 %10
  %13 = load f32 %2 %12 {lanes=4}
  %14 = load f32 %3 0
  %15 = fma f32 %9 %13 %14
  %16 = store %3 0 %15
  %17 = end %6
  %18 = mul index %4 4
  %19 = add index %18 %10
  %14
  %23 = store %0 %19 %14 {lanes=4}
  %24 = end %4
  linear
}
)";

Values matmul(const HostTensor& a, const HostTensor& b) {
  Values c(12, 0);
  for (size_t m = 0; m < 3; ++m)
    for (size_t n = 0; n < 4; ++n)
      for (size_t k = 0; k < 5; ++k)
        c[m * 4 + n] += a.at(static_cast<int64_t>(m * 5 + k)) * b.at(static_cast<int64_t>(k * 4 + n));
  return c;
}

TEST(EvalKernel, MatmulInBothForms) {
  for (const char* text : {kMatmulSink, kMatmulLinear}) {
    std::vector<HostTensor> buffers{zeros(DType::F32, {12}), ramp(DType::F32, 15), ramp(DType::F32, 20)};
    run(text, buffers);
    EXPECT_EQ(values(buffers[0]), matmul(buffers[1], buffers[2]));
  }
}

TEST(EvalKernel, OutOfRangeNamesKernelAccessAndIndex) {
  std::vector<HostTensor> buffers{zeros(DType::F32, {12}), ramp(DType::F32, 15), ramp(DType::F32, 19)};
  EXPECT_EQ(error_of([&] { run(kMatmulSink, buffers); }),
            "kernel mm, slot 2: error TGC-E105: load at index 19 of 19 elements");
  EXPECT_EQ(error_of([&] { run(kMatmulLinear, buffers); }),
            "kernel mm, slot 2: error TGC-E105: load at index 19 of 19 elements");
  std::vector<HostTensor> small{zeros(DType::F32, {11}), ramp(DType::F32, 15), ramp(DType::F32, 20)};
  EXPECT_EQ(error_of([&] { run(kMatmulSink, small); }),
            "kernel mm, slot 0: error TGC-E105: store at index 11 of 11 elements");
  EXPECT_EQ(error_of([&] { run(kMatmulLinear, small); }),
            "kernel mm, slot 0: error TGC-E105: store at index 11 of 11 elements");
  small.pop_back();
  EXPECT_EQ(error_of([&] { run(kMatmulLinear, small); }), "kernel mm: error TGC-E105: slot 2 of 2 arguments");
}

// y[i] = x[i - 1] with zero in front, and only where i < 3: gates keep accesses in range.
TEST(EvalKernel, GatedAccessNeverTouchesMemory) {
  for (const std::string& body : {std::string("  %9 = store %0 %1 %6 %7\n  sink %9\n}\n"),
                                  std::string("  %8 = store %0 %1 %6 %7\n  %9 = end %1\n  linear\n}\n")}) {
    std::vector<HostTensor> buffers{tensor_of(DType::F32, {3}, {9, 9, 9}), ramp(DType::F32, 4)};
    run("func @shift {\n  %0 = param f32 3 {slot=0}\n  %2 = param f32 4 {slot=1}\n  %1 = range index 5 {id=0 "
        "axis=\"loop\"}\n  %3 = sub index %1 1\n"
        "  %4 = le bool 0 %3\n  %6 = load f32 %2 %3 %4 -1.0:f32\n  %7 = lt bool %1 3\n" +
            body,
        buffers);
    EXPECT_EQ(values(buffers[0]), (Values{-1, 0, 1}));
  }
}

TEST(EvalKernel, LinearSemanticsAreBitExactInOrder) {
  // ((1e8 + 1) - 1e8) in f32 is 0: no reassociation, no wider accumulation.
  std::vector<HostTensor> buffers{zeros(DType::F32, {1}), tensor_of(DType::F32, {3}, {1e8, 1, -1e8})};
  run(R"(func @sum {
  %0 = param f32 1 {slot=0}
  %1 = param f32 3 {slot=1}
  %2 = iota index 3
  %3 = load f32 %1 %2
  %4 = reduce f32 %3 {kind="add" axes=[0]}
  %5 = store %0 0 %4
  linear
}
)",
      buffers);
  EXPECT_EQ(buffers[0].at(0), 0);
  // The graph form may add in a wider type.
  run(R"(func @sum {
  %0 = param f32 1 {slot=0}
  %1 = param f32 3 {slot=1}
  %2 = range index 3 {id=0 axis="reduce"}
  %3 = load f32 %1 %2
  %4 = reduce f32 %3 %2 {kind="add"}
  %5 = store %0 0 %4
  sink %5
}
)",
      buffers);
  EXPECT_EQ(buffers[0].at(0), 1);
}

TEST(EvalKernel, ShapedValuesAreRegistersTimesLanes) {
  // A 2 x 4 tile of y = x + 10*row, masked in the last lane.
  std::vector<HostTensor> buffers{zeros(DType::F32, {8}), ramp(DType::F32, 8)};
  run(R"(func @tile {
  %0 = param f32 8 {slot=0}
  %1 = param f32 8 {slot=1}
  %2 = iota index 2 {dim=0 rank=2}
  %3 = mul index %2 4
  %4 = load f32 %1 %3 {lanes=4}
  %5 = cast f32 %2
  %6 = mul f32 %5 10.0:f32
  %7 = add f32 %4 %6
  %8 = iota index 4 {dim=1 rank=2}
  %9 = lt bool %8 3
  %10 = store %0 %3 %7 %9 {lanes=4}
  linear
}
)",
      buffers);
  EXPECT_EQ(values(buffers[0]), (Values{0, 1, 2, 0, 14, 15, 16, 0}));
}

TEST(EvalKernel, OneValueIsStoredToAllLanes) {
  for (const bool linear : {false, true}) {
    std::vector<HostTensor> buffers{ramp(DType::F32, 8)};
    run(std::string("func @fill {\n  %0 = param f32 8 {slot=0}\n  %1 = range index 2 {id=0 axis=\"loop\"}\n"
                    "  %2 = mul index %1 4\n  %3 = store %0 %2 9.0:f32 {lanes=3}\n") +
            (linear ? "  %4 = end %1\n  linear\n}\n" : "  sink %3\n}\n"),
        buffers);
    EXPECT_EQ(values(buffers[0]), (Values{9, 9, 9, 3, 9, 9, 9, 7})) << linear;
  }
  std::vector<HostTensor> buffers{ramp(DType::F32, 8)};
  const std::string text = "func @odd {\n  %0 = param f32 8 {slot=0}\n  %1 = iota index 4 {dim=0 rank=1}\n"
                           "  %2 = cast f32 %1\n  %3 = store %0 0 %2 {lanes=3}\n  sink %3\n}\n";
  EXPECT_NE(error_of([&] { run(text, buffers); }).find("stores 3 lanes of 4"), std::string::npos);
}

TEST(EvalKernel, ScratchAndZeroTripLoops) {
  std::vector<HostTensor> buffers{tensor_of(DType::I32, {2}, {5, 6})};
  const std::string text = R"(func @scratch {
  %0 = param i32 2 {slot=0}
  %1 = var index {name="n" min=0 max=9}
  %2 = buffer i32 2 {slot=0 space="scratch"}
  %3 = range index %1 {id=0 axis="loop"}
  %4 = load i32 %0 %3
  %5 = sub index 1 %3
  %6 = store %2 %5 %4
  %7 = end %3
  %8 = range index %1 {id=1 axis="loop"}
  %9 = load i32 %2 %8
  %10 = store %0 %8 %9
  %11 = end %8
  linear %3 %4 %5 %6 %7 %8 %9 %10 %11
}
)";
  run(text, buffers, {{"n", 0}});
  EXPECT_EQ(values(buffers[0]), (Values{5, 6}));
  run(text, buffers, {{"n", 2}});
  EXPECT_EQ(values(buffers[0]), (Values{6, 5}));
}

TEST(EvalKernel, StageAndPick) {
  // y[i] = x2[2 - i] where x2 = stage of x[i] * x[i] over i.
  std::vector<HostTensor> buffers{zeros(DType::F32, {6}), ramp(DType::F32, 6)};
  run(R"(func @stage {
  %0 = param f32 6 {slot=0}
  %1 = range index 2 {id=0 axis="loop"}
  %2 = range index 3 {id=1 axis="loop"}
  %3 = mul index %1 3
  %4 = add index %3 %2
  %5 = range index 3 {id=2 axis="loop"}
  %6 = param f32 6 {slot=1}
  %7 = add index %3 %5
  %8 = load f32 %6 %7
  %9 = mul f32 %8 %8
  %10 = stage f32 %9 %5 {space="scratch"}
  %11 = sub index 2 %2
  %12 = pick f32 %10 %11
  %13 = store %0 %4 %12
  sink %13
}
)",
      buffers);
  EXPECT_EQ(values(buffers[0]), (Values{4, 1, 0, 25, 16, 9}));
}

TEST(EvalKernel, ExtentsMayDependOnOuterRanges) {
  // y[i] = x[0] + … + x[i].
  std::vector<HostTensor> buffers{zeros(DType::F32, {4}), ramp(DType::F32, 4)};
  run(R"(func @prefix {
  %0 = param f32 4 {slot=0}
  %1 = range index 4 {id=0 axis="loop"}
  %2 = add index %1 1
  %3 = range index %2 {id=1 axis="reduce"}
  %4 = param f32 4 {slot=1}
  %5 = load f32 %4 %3
  %6 = reduce f32 %5 %3 {kind="add"}
  %7 = store %0 %1 %6
  sink %7
}
)",
      buffers);
  EXPECT_EQ(values(buffers[0]), (Values{0, 1, 3, 6}));
}

TEST(EvalKernel, ReduceCountsRangesItsSourceIgnores) {
  std::vector<HostTensor> buffers{zeros(DType::F32, {1})};
  run("func @count {\n  %0 = param f32 1 {slot=0}\n  %1 = range index 5 {id=0 axis=\"reduce\"}\n  %2 = reduce f32 "
      "2.0:f32 %1 {kind=\"add\"}\n"
      "  %3 = store %0 0 %2\n  sink %3\n}\n",
      buffers);
  EXPECT_EQ(buffers[0].at(0), 10);
}

TEST(EvalKernel, MalformedLinearBodiesAreDiagnosed) {
  std::vector<HostTensor> buffers{zeros(DType::F32, {4})};
  const auto error = [&](const std::string& body) {
    return error_of([&] { run("func @k {\n" + body + "}\n", buffers); });
  };
  EXPECT_EQ(error("  %0 = range index 4 {id=0 axis=\"loop\"}\n  linear %0\n"),
            "kernel k: error TGC-E105: range index[]: the range is not closed");
  EXPECT_EQ(error("  %0 = range index 4 {id=0 axis=\"loop\"}\n  %1 = end %0\n  linear %1\n"),
            "kernel k: error TGC-E105: end: does not close the innermost open range");
  EXPECT_EQ(
      error("  %0 = var index {name=\"n\" min=1 max=1}\n  %1 = add index %0 1\n  %2 = mul index %1 2\n  linear %2\n"),
      "error TGC-E105: no value is given for dimension \"n\"");
  EXPECT_EQ(error("  %0 = iota index 2\n  %1 = add index %0 1\n  %2 = mul index %1 2\n  linear %2\n"),
            "kernel k: error TGC-E105: add index[2]: is used before it is executed");
}

TEST(EvalKernel, ScheduledModulesRunTheirCallsInOrder) {
  const Module m = parse(R"(; tgc uop 1
func @double {
  %0 = param f32[4] 4 {slot=0}
  %1 = range index 4 {id=0 axis="loop"}
  %2 = param f32[4] 4 {slot=1}
  %3 = load f32 %2 %1
  %4 = add f32 %3 %3
  %5 = store %0 %1 %4
  sink %5
}
func @main {
  %0 = buffer f32[4] 4 {slot=0 space="global"}
  %1 = param f32[2,2] 2 2 {slot=0 name="x"}
  call @double %0 %1
  %2 = param f32[2,2] 2 2 {slot=1 name="y"}
  call @double %2 %0
  linear
}
)");
  const std::vector<HostTensor> out = eval(m, {tensor_of(DType::F32, {2, 2}, {1, 2, 3, 4})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values(out[0]), (Values{4, 8, 12, 16}));
}

} // namespace
