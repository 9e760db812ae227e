// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators with values worked out by hand, where the ONNX backend tests do not go: windows of attention, ellipses,
// lengths that pad or cut, gates; and the refusals of each.
#include <cmath>

#include <gtest/gtest.h>

#include "frontend/one_node.h"

namespace tgc {
namespace {

constexpr double kClose = 1e-6; // a few roundings in f32

/// One node on constants.
OneNode on_constants(NodeSpec spec, int64_t opset, std::vector<Wire> constants) {
  return {std::move(spec), opset, {}, std::move(constants)};
}
void expect_near(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], kClose) << "element " << i;
}
Wire text(const char* name, const char* value) { return attr(name, std::string(value)); }
Wire number(const char* name, int64_t value) { return attr(name, value); }

TEST(OpValues, EinsumSpellsAnEllipsisOut) {
  OneNode n{{"Einsum", {"x"}, {}, {text("equation", "...i->...")}}, 12};
  EXPECT_EQ(n.values(), (Values{6, 15}));
  n.spec.attributes = {text("equation", "...ji")}; // without an arrow: the ellipsis, then i and j in order
  EXPECT_EQ(n.values(), (Values{1, 4, 2, 5, 3, 6}));
  n = {{"Einsum", {"x", "a"}, {}, {text("equation", "...ij, ...jk -> ...ik")}}, 12, {{2, 1, 1, 2}, {3, 2, 1}}};
  EXPECT_EQ(n.run().shape, (Ints{2, 3, 1, 1}));
  EXPECT_EQ(n.values(), (Values{5, 11, 17, 11, 25, 39}));
  n.spec.attributes = {text("equation", "...ijk, ...jk -> ...ik")};
  EXPECT_EQ(n.error(), "shapes [2,1,2,1] and [3,1,1,2] do not broadcast"); // j is 1 here, 2 there
}

TEST(OpValues, AttentionWindowsCountFromTheQuery) {
  const std::vector<Wire> constants = {tensor_floats("q", {1, 1, 4, 1}, {0, 0, 0, 0}),
                                       tensor_floats("k", {1, 1, 6, 1}, {1, 2, 3, 4, 5, 6}),
                                       tensor_floats("v", {1, 1, 6, 1}, {0, 1, 2, 3, 4, 5})};
  OneNode n =
      on_constants({"Attention", {"q", "k", "v"}, {}, {number("left_window_size", 2), number("right_window_size", 1)}},
                   25, constants);
  expect_near(n.values(), {0.5, 1, 1.5, 2.5}); // means of {0,1}, {0..2}, {0..3}, {1..4}
  n.spec.attributes = {number("left_window_size", 0), number("is_causal", 1)};
  expect_near(n.values(), {0, 1, 2, 3});
  n.spec.attributes = {};
  expect_near(n.values(), {2.5, 2.5, 2.5, 2.5});
  n.spec.attributes = {number("left_window_size", -2)};
  EXPECT_EQ(n.error(), "a window size is below -1");
}

TEST(OpValues, FourierTransformsCutPadAndInvert) {
  OneNode n =
      on_constants({"DFT", {"x", "n"}}, 20, {tensor_floats("x", {1, 3, 1}, {1, 2, 3}), tensor_ints("n", {}, {4})});
  expect_near(n.values(), {6, 0, -2, -2, 2, 0, -2, 2});
  n.initializers[1] = tensor_ints("n", {}, {2});
  expect_near(n.values(), {3, 0, -1, 0});
  // 1, 2, 3 from half of its transform, 6 and -3/2 + i sqrt(3)/2.
  n = on_constants({"DFT", {"x", "n"}, {}, {number("inverse", 1), number("onesided", 1)}}, 20,
                   {tensor_floats("x", {1, 2, 2}, {6, 0, -1.5f, 0.8660254f}), tensor_ints("n", {}, {3})});
  expect_near(n.values(), {1, 2, 3});
  n.spec.inputs = {"x", "n", "axis"};
  n.initializers.push_back(tensor_ints("axis", {}, {-1}));
  EXPECT_EQ(n.error(), "the axis is that of real and imaginary parts");
}

TEST(OpValues, DeterminantsExpandByRows) {
  OneNode n = on_constants({"Det", {"x"}}, 11, {tensor_floats("x", {3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 4})});
  EXPECT_EQ(n.values(), (Values{18}));
  n.initializers = {tensor_floats("x", {1, 4, 4}, {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0})};
  EXPECT_EQ(n.values(), (Values{6})); // two exchanges of rows
  n = {{"Det", {"x"}}, 11, {{7, 7}}};
  EXPECT_EQ(n.error(), "matrices of more than 6 rows are not supported");
}

/// y_t = decay*y_(t-1) + v_t with one head of size 1 and q = k = 1.
TEST(OpValues, LinearAttentionDecaysItsState) {
  const Wire ones = tensor_floats("q", {1, 3, 1}, {1, 1, 1}), values = tensor_floats("v", {1, 3, 1}, {1, 2, 3});
  const float half = std::log(0.5f);
  const std::vector<Wire> attributes = {number("q_num_heads", 1), number("kv_num_heads", 1), attr("scale", 1.0f)};
  OneNode n = on_constants(
      {"LinearAttention", {"q", "q", "v", "s", "d"}, {}, attributes}, 27,
      {ones, values, tensor_floats("s", {1, 1, 1, 1}, {4}), tensor_floats("d", {1, 3, 1}, {half, half, half})});
  n.spec.attributes.push_back(text("update_rule", "gated"));
  expect_near(n.values(), {3, 3.5, 4.75});
  // The delta rule with beta = 1 and a unit key replaces what the key held.
  n.spec.inputs = {"q", "q", "v", "s", "", "b"};
  n.initializers.push_back(tensor_floats("b", {1, 3, 1}, {1, 1, 0.5f}));
  n.spec.attributes.back() = text("update_rule", "delta");
  expect_near(n.values(), {1, 2, 2.5});
  n.spec.inputs = {"q", "q", "v"};
  EXPECT_EQ(n.error(), "decay goes with gated rules, beta with delta rules");
}

TEST(OpValues, OptionalsAreTensorsOrNothing) {
  OneNode n{{"OptionalHasElement", {"x"}}, 18};
  EXPECT_EQ(n.values(), (Values{1}));
  n = {{"OptionalHasElement", {""}}, 18, {}};
  EXPECT_EQ(n.values(), (Values{0}));
}

TEST(OpValues, RoiAlignNeedsAFixedNumberOfSamples) {
  // One region of 2x2 at the corner of 0..15: its centre sample is the mean of 0, 1, 4 and 5.
  std::vector<float> ramp;
  for (int i = 0; i < 16; ++i) ramp.push_back(static_cast<float>(i));
  OneNode n = on_constants(
      {"RoiAlign", {"x", "r", "b"}, {}, {number("sampling_ratio", 1)}}, 16,
      {tensor_floats("x", {1, 1, 4, 4}, ramp), tensor_floats("r", {1, 4}, {0, 0, 2, 2}), tensor_ints("b", {1}, {0})});
  expect_near(n.values(), {2.5});
  n.spec.attributes.clear();
  EXPECT_EQ(n.error(), "sampling_ratio=0 lets the data choose the number of samples; only fixed ones are supported");
}

TEST(OpValues, TensorScatterWrapsAround) {
  OneNode n = on_constants({"TensorScatter", {"c", "u", "w"}, {}, {number("axis", 1), text("mode", "circular")}}, 24,
                           {tensor_floats("c", {2, 3}, {1, 2, 3, 4, 5, 6}), tensor_floats("u", {2, 2}, {7, 8, 9, 10}),
                            tensor_ints("w", {2}, {2, 0})});
  EXPECT_EQ(n.values(), (Values{8, 2, 7, 9, 10, 6}));
}

} // namespace
} // namespace tgc
