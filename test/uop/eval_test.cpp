// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uop/eval.h"

#include "testing.h"
#include "uop/text.h"

using namespace tgc;
using tgc::testing::error_of;

namespace {

std::vector<double> values(const HostTensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
  return out;
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
  const std::vector<HostTensor> out =
      eval(m, {tensor_of(DType::F32, {2, 4}, {1, 1, 1, 1, 1, 0, -1, 2})}, {{"batch", 2}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape, std::vector<int64_t>{2});
  EXPECT_EQ(values(out[0]), (std::vector<double>{10, 6}));
}

} // namespace
