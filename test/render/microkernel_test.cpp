// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel that everything else is measured by: an 8x32 (or 6x16) register tile of a matrix product. What it
// computes, that its accumulators stay in registers, and how far it is from the machine's FMA peak (printed, not
// judged: the machine may be busy).
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

#include "render/linear_kernel.h"
#include "uop/eval.h"

using namespace tgc;

namespace {

/// C[rows,cols] = A B with A packed [depth][rows] in slot 0, B [depth][cols] in slot 1, C in slot 2.
Ref microkernel(Context& ctx, int64_t rows, int64_t cols, int64_t depth) {
  LinearKernel k{ctx, "gemm"};
  const DType t = DType::F32;
  const Ref a = k.param(0, t, depth * rows), b = k.param(1, t, depth * cols), c = k.param(2, t, rows * cols);
  const Ref acc = k.buffer(0, "reg", t, {rows, cols});
  k.set(acc, ctx.constant(t, 0));
  const Ref r = k.range(depth, "reduce");
  const Ref at_a = k.emit(k.emit(r * double(rows)) + k.iota(rows, 0, 2));
  const Ref at_b = k.emit(k.emit(r * double(cols)) + k.iota(1, 1, 2));
  const Ref x = k.load({a, at_a}), y = k.load({b, at_b}, cols);
  k.set(acc, k.emit(ctx.make(Ops::Fma, DType::Void, {x, y, k.get(acc)})));
  k.end(r);
  const Ref at_c = k.emit(k.emit(k.iota(rows, 0, 2) * double(cols)) + k.iota(1, 1, 2));
  k.store({c, at_c, k.get(acc)}, cols);
  return k.func();
}

/// `steps` rounds of 16 independent fused multiply-adds on vectors of `lanes`, which nothing can outrun.
Ref fma_peak(Context& ctx, int64_t lanes, int64_t steps) {
  LinearKernel k{ctx, "peak"};
  const DType t = DType::F32;
  const Ref out = k.param(0, t, 16 * lanes), acc = k.buffer(0, "reg", t, {16, lanes});
  const Ref at = k.emit(k.emit(k.iota(16, 0, 2) * double(lanes)) + k.iota(1, 1, 2));
  k.set(acc, k.load({out, at}, lanes));
  const Ref x = k.load({out, k.emit(k.iota(1, 1, 2) + 0.0)}, lanes);
  const Ref r = k.range(steps, "reduce");
  k.set(acc, k.emit(ctx.make(Ops::Fma, DType::Void, {k.get(acc), x, x})));
  k.end(r);
  k.store({out, at, k.get(acc)}, lanes);
  return k.func();
}

/// Seconds of one call, the best of many.
double best_time(KernelFn f, std::vector<void*> bufs) {
  const KernelArgs args{bufs.data(), nullptr, nullptr};
  double best = 1;
  for (int i = 0; i < 30; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < 10; ++j) f(&args, 0, 1);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 10);
  }
  return best;
}

class Microkernel : public testing::TestWithParam<const char*> {};

TEST_P(Microkernel, FillsTheRegisterFile) {
  Context ctx;
  const TargetSpec spec = spec_of(GetParam());
  const Renderer& renderer = find_renderer(spec);
  if (!renderer.probe().ok) GTEST_SKIP() << renderer.probe().reason;
  const TargetInfo target = renderer.target(spec);
  if (!target.supports(Ops::Fma)) GTEST_SKIP() << "needs a CPU with FMA";
  const bool wide = target.vector_bytes == 64;
  const int64_t rows = wide ? 8 : 6, cols = wide ? 32 : 16, depth = 256;
  const Ref gemm = microkernel(ctx, rows, cols, depth), peak = fma_peak(ctx, target.vector_bytes / 4, 1000);
  const std::vector<KernelSource> sources{{"gemm", renderer.render(gemm, target, {})},
                                          {"peak", renderer.render(peak, target, {})}};

  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  HostTensor a = zeros(DType::F32, {depth, rows}), b = zeros(DType::F32, {depth, cols});
  for (HostTensor* x : {&a, &b})
    for (int64_t i = 0; i < x->numel(); ++i) x->set(i, uniform(random));
  HostTensor expected = zeros(DType::F32, {rows, cols}), actual = expected;
  const BufferArg buffers[] = {buffer_arg(a), buffer_arg(b), buffer_arg(expected)};
  eval_kernel(gemm, buffers);

  const LoadedCode code(renderer.compile(sources, target, 1, nullptr).image);
  const std::vector<void*> bufs{a.data.data(), b.data.data(), actual.data.data()};
  const double gemm_time = best_time(code["gemm"], bufs);
  for (int64_t i = 0; i < expected.numel(); ++i) ASSERT_EQ(expected.at(i), actual.at(i)) << i;
  std::vector<float> out(16 * 16);
  for (size_t i = 0; i < out.size(); ++i) out[i] = 0.5F + float(i) / 1024;
  const double peak_time = best_time(code["peak"], {out.data()});
  const double gflops = 2e-9 * double(rows * cols * depth) / gemm_time;
  const double peak_gflops = 2e-9 * double(16 * target.vector_bytes / 4) * 1000 / peak_time;
  std::printf("cpu:%s %s: %lldx%lld tile %.1f GF/s, FMA peak %.1f GF/s (%.0f %%)\n", target.renderer.c_str(),
              target.arch.c_str(), static_cast<long long>(rows), static_cast<long long>(cols), gflops, peak_gflops,
              100 * gflops / peak_gflops);
  const std::string assembly = renderer.assembly(sources[0], target);
  EXPECT_NE(assembly.find(wide ? "%zmm" : "%ymm"), std::string::npos);
  EXPECT_EQ(assembly.find("(%rsp)"), std::string::npos) << "an accumulator lives on the stack\n" << assembly;
}

INSTANTIATE_TEST_SUITE_P(Renderers, Microkernel, testing::Values("llvm", "c"),
                         [](const auto& p) { return std::string(p.param); });

} // namespace
