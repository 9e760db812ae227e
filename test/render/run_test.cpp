// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled linear kernels against expected values, on every renderer that can compile here.
#include <gtest/gtest.h>

#include "render/linear_kernel.h"

using namespace tgc;

namespace {

class Run : public testing::TestWithParam<const char*> {
protected:
  TargetSpec spec(const char* arch = "native") const { return spec_of(GetParam(), arch); }
  Context ctx;
};

TEST_P(Run, AddsInVectorsWithThreadRange) {
  LinearKernel k{ctx};
  const Ref x = k.param(0, DType::F32, 64), y = k.param(1, DType::F32, 64);
  const Ref r = k.range(8, "thread");
  const Ref at = k.emit(r * 8.0);
  const Ref index = k.emit(at + k.iota(1));
  const Ref v = k.load({x, index}, 8);
  k.store({y, index, k.emit(v + 1.5)}, 8);
  k.end(r);
  std::vector<float> in(64), out(64, -1);
  for (int i = 0; i < 64; ++i) in[size_t(i)] = float(i);
  run_kernel(k.func(), spec(), {in.data(), out.data()}, {}, {}, 1, 7);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], i >= 8 && i < 56 ? float(i) + 1.5F : -1.0F) << i;
}

/// C[8,32] = A[8,K] B[K,32] with the accumulators in registers; A is packed [K][8].
Ref microkernel(Context& ctx, int64_t depth, DType t = DType::F32) {
  LinearKernel k{ctx, "gemm"};
  const Ref a = k.param(0, t, depth * 8), b = k.param(1, t, depth * 32), c = k.param(2, t, 8 * 32);
  const Ref acc = k.buffer(0, "reg", t, {8, 32});
  k.set(acc, ctx.constant(t, 0));
  const Ref r = k.range(depth, "reduce");
  const Ref at_a = k.emit(k.emit(r * 8.0) + k.iota(8, 0, 2));
  const Ref at_b = k.emit(k.emit(r * 32.0) + k.iota(1, 1, 2));
  const Ref x = k.load({a, at_a}), y = k.load({b, at_b}, 32);
  k.set(acc, k.emit(ctx.make(Ops::Fma, DType::Void, {x, y, k.get(acc)})));
  k.end(r);
  const Ref at_c = k.emit(k.emit(k.iota(8, 0, 2) * 32.0) + k.iota(1, 1, 2));
  k.store({c, at_c, k.get(acc)}, 32);
  return k.func();
}

TEST_P(Run, Microkernel) {
  const TargetSpec s = spec();
  const Renderer& r = find_renderer(s);
  const TargetInfo target = r.target(s);
  const KernelSource source{"gemm", r.render(microkernel(ctx, 256), target, {})};
  const std::string assembly = r.assembly(source, target);
  EXPECT_EQ(assembly.find("rsp"), std::string::npos) << assembly;
}

INSTANTIATE_TEST_SUITE_P(Renderers, Run, testing::Values("llvm", "c"), [](const auto& p) { return std::string(p.param); });

} // namespace
