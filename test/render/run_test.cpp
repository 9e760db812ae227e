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
  if (!find_renderer(spec()).probe().ok) GTEST_SKIP() << find_renderer(spec()).probe().reason;
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

INSTANTIATE_TEST_SUITE_P(Renderers, Run, testing::Values("llvm", "c"),
                         [](const auto& p) { return std::string(p.param); });

} // namespace
