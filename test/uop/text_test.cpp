// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uop/text.h"

#include <cmath>
#include <limits>

#include "testing.h"

using namespace tgc;
using tgc::testing::error_of;

namespace {

// print → parse → print: equal text, equal hash.
void round_trips(Ref root) {
  const std::string text = print(root);
  const Module back = parse(text);
  ASSERT_TRUE(back.root);
  EXPECT_EQ(back.root->hash, root->hash) << text;
  EXPECT_EQ(print(back.root), text);
}

WeightData mapped(std::string file, uint64_t offset, uint64_t length, uint64_t hash) {
  WeightData w;
  w.kind = WeightData::Kind::Mapped;
  w.file = std::move(file);
  w.offset = offset;
  w.length = length;
  w.hash = hash;
  return w;
}

Module example() {
  Module m;
  Context& c = *m.ctx;
  const Ref n = c.var("batch", 1, 64);
  const Ref x =
      c.make(Ops::Param, DType::F32, {n, c.index(4)}, {{Attr::Slot, int64_t{0}}, {Attr::Name, std::string("x")}});
  const Ref w = c.make(Ops::Weight, DType::F32, {c.index(4)}, {{Attr::Key, std::string("w")}});
  const Ref wide =
      c.make(Ops::Expand, DType::F32, {c.make(Ops::Reshape, DType::F32, {w, c.index(1), c.index(4)}), n, c.index(4)});
  const Ref sum = c.make(Ops::Reduce, DType::F32, {x * wide},
                         {{Attr::Kind, std::string("add")}, {Attr::Axes, std::vector<int64_t>{1}}});
  const Ref out = c.make(Ops::Param, DType::F32, {n}, {{Attr::Slot, int64_t{1}}, {Attr::Name, std::string("y")}});
  const Ref sink = c.make(Ops::Sink, DType::Void, {c.make(Ops::Store, DType::Void, {out, sum})});
  m.root = c.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("main")}});
  m.origin[sum->id] = "dot 1";
  m.weights["w"] = mapped("w.bin", 64, 16, 0xabc);
  return m;
}

constexpr const char* kExample = R"(; tgc uop 1
weights {
  "w" = mapped "w.bin" 64 16 0xabc
}
func @main {
  %0 = var index {name="batch" min=1 max=64}
  %1 = param f32[batch] %0 {slot=1 name="y"}
  %2 = param f32[batch,4] %0 4 {slot=0 name="x"}
  %3 = weight f32[4] 4 {key="w"}
  %4 = reshape f32[1,4] %3 1 4
  %5 = expand f32[batch,4] %4 %0 4
  %6 = mul f32[batch,4] %2 %5
  %7 = reduce f32[batch] %6 {kind="add" axes=[1]} !"dot 1"
  %8 = store %1 %7
  sink %8
}
)";

TEST(Text, PrintsAModule) { EXPECT_EQ(print(example()), kExample); }

TEST(Text, ParsesWhatItPrints) {
  const Module m = parse(kExample, "m.uop");
  EXPECT_EQ(m.root->hash, example().root->hash);
  EXPECT_EQ(print(m), kExample);
  EXPECT_EQ(m.weights.at("w").offset, 64u);
  EXPECT_EQ(m.source, "m.uop");
}

TEST(Text, ConstantsAreExact) {
  Context c;
  const double kInf = std::numeric_limits<double>::infinity();
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64})
    for (double v : {0.0, -0.0, 0.1, -1.5, 1e-7, 65504.0, 3.0e38, 1.0 / 3, kInf, -kInf, std::nan(""), 5e-324, 1e-45})
      round_trips(c.make(Ops::Neg, t, {c.constant(t, v)}));
  for (DType t : {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64,
                  DType::U64, DType::Index})
    for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                      std::numeric_limits<int64_t>::max()})
      round_trips(c.make(Ops::Not, t, {c.constant_int(t, v)}));
}

} // namespace
