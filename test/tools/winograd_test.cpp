// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions by transformed tiles: chosen where they gain, and right at every edge: odd sizes, last blocks that are
// partly repeats, several pictures, channels in parts, what the kernel does to the sum afterwards.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "compiled.h"
#include "frontend/onnx_writer.h"
#include "uop/eval.h"
#include "uop/text.h"

namespace tgc {
namespace {

struct Case {
  int64_t batch, channels, outputs, height, width;
  std::vector<int64_t> pads = {1, 1, 1, 1};
};

std::vector<float> wave(int64_t count, double scale, int step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * step + 0.3) * scale);
  return values;
}

/// relu(conv(relu(conv1x1(x))) + bias + r): a residual block whose buffers are internal; x [batch, 4, …].
ModelSpec residual_block(const Case& k, const DimSpec& batch) {
  ModelSpec m;
  const int64_t oh = k.height + k.pads[0] + k.pads[2] - 2, ow = k.width + k.pads[1] + k.pads[3] - 2;
  m.inputs = {value_info("x", 1, {batch, 4, k.height, k.width}), value_info("r", 1, {batch, k.outputs, oh, ow})};
  m.initializers = {tensor_floats("w", {k.outputs, k.channels, 3, 3}, wave(k.outputs * k.channels * 9, 0.1, 7)),
                    tensor_floats("b", {k.outputs}, wave(k.outputs, 0.5, 3)),
                    tensor_floats("first", {k.channels, 4, 1, 1}, wave(k.channels * 4, 0.5, 5)),
                    tensor_floats("last", {8, k.outputs, 1, 1}, wave(8 * k.outputs, 0.2, 5))};
  m.nodes = {node({"Conv", {"x", "first"}, {"x0"}}),
             node({"Relu", {"x0"}, {"x1"}}),
             node({"Conv", {"x1", "w", "b"}, {"c"}, {attr("pads", k.pads)}}),
             node({"Add", {"c", "r"}, {"s"}}),
             node({"Relu", {"s"}, {"s1"}}),
             node({"Conv", {"s1", "last"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  return m;
}

std::string plan_of(const std::string& onnx, const CompileOptions& options) {
  Compilation c = start_compilation(import_bytes(bytes_of(onnx), "m.onnx", options.import), options);
  run_pipeline(c, options);
  return print(c.module);
}

HostTensor input(const std::vector<int64_t>& shape, int step) {
  HostTensor t = zeros(DType::F32, shape);
  const std::vector<float> values = wave(t.numel(), 1, step);
  for (int64_t i = 0; i < t.numel(); ++i) t.set(i, values[static_cast<size_t>(i)]);
  return t;
}

void expect_same(const Case& k, const DimSpec& batch) {
  SCOPED_TRACE(std::to_string(k.height) + " x " + std::to_string(k.width) + ", " + std::to_string(k.channels));
  const std::string onnx = model(residual_block(k, batch));
  CompileOptions options;
  options.passes.stop_after = "optimize";
  EXPECT_NE(plan_of(onnx, options).find("winograd"), std::string::npos);
  const int64_t oh = k.height + k.pads[0] + k.pads[2] - 2, ow = k.width + k.pads[1] + k.pads[3] - 2;
  const std::vector<HostTensor> inputs = {input({k.batch, 4, k.height, k.width}, 11),
                                          input({k.batch, k.outputs, oh, ow}, 13)};
  const HostTensor want = eval(import_bytes(bytes_of(onnx), "m.onnx"), inputs, {{"n", k.batch}})[0];
  const Compiled compiled(onnx);
  const HostTensor got = compiled.run(inputs)[0], again = compiled.run(inputs, 2)[0];
  ASSERT_EQ(got.shape, want.shape);
  for (int64_t i = 0; i < want.numel(); ++i) {
    ASSERT_NEAR(got.at(i), want.at(i), 2e-5) << i;
    ASSERT_EQ(got.at(i), again.at(i)) << i;
  }
}

} // namespace

TEST(Winograd, EqualsTheDirectSum) {
  expect_same({1, 16, 16, 16, 16}, 1);
  expect_same({1, 32, 48, 13, 17}, 1);               // odd: a row and a column of pixels too many
  expect_same({2, 48, 32, 12, 15}, 2);               // several pictures
  expect_same({1, 16, 32, 18, 14, {0, 0, 0, 0}}, 1); // no padding: every read is inside
  expect_same({1, 16, 32, 15, 14, {0, 2, 1, 0}}, 1); // uneven padding
  expect_same({1, 64, 128, 13, 13}, 1);              // few tiles: channels in parts
}

/// The bias is a column of the weights: both are read in one kernel.
TEST(Winograd, LeavesWeightsAloneThatAreReadTwice) {
  ModelSpec m = residual_block({1, 16, 16, 16, 16}, 1);
  const auto at_zero = [](const char* from, const char* to) {
    return node({"Gather", {from, "zero"}, {to}, {attr("axis", int64_t{1})}});
  };
  m.initializers[1] = tensor_head("zero", 7, {}).number(7, 0);
  m.nodes.insert(m.nodes.begin(), {at_zero("w", "w1"), at_zero("w1", "w2"), at_zero("w2", "b")});
  const std::string onnx = model(m);
  const std::vector<HostTensor> inputs = {input({1, 4, 16, 16}, 11), input({1, 16, 16, 16}, 13)};
  const HostTensor want = eval(import_bytes(bytes_of(onnx), "m.onnx"), inputs, {})[0];
  const HostTensor got = Compiled(onnx).run(inputs)[0];
  for (int64_t i = 0; i < want.numel(); ++i) ASSERT_NEAR(got.at(i), want.at(i), 2e-5) << i;
}

TEST(Winograd, TakesTheFactorsInEitherOrder) {
  CompileOptions options;
  options.passes.stop_after = "lower-stage";
  std::string text = plan_of(model(residual_block({1, 16, 16, 16, 16}, 1)), options);
  size_t swapped = 0;
  std::istringstream lines(text);
  text.clear();
  for (std::string line, id, is, op, type, a, b; std::getline(lines, line); text += line + "\n") {
    std::istringstream words(line);
    if (!(words >> id >> is >> op >> type >> a >> b) || op != "mul" || type != "f32") continue;
    line = "  " + id + " = mul f32 " + b + " " + a;
    ++swapped;
  }
  EXPECT_EQ(swapped, 3U);
  Module m = parse(text, "swapped.uop");
  options.passes = {.start_before = "optimize", .stop_after = "optimize"};
  Compilation c = start_compilation(std::move(m), options);
  run_pipeline(c, options);
  EXPECT_NE(print(c.module).find("winograd"), std::string::npos);
}

TEST(Winograd, TakesAnOpenBatch) { expect_same({3, 16, 32, 14, 13}, "n"); }

TEST(Winograd, IsNotUsedWhereItDoesNotGainOrRoundsOtherwise) {
  CompileOptions options;
  options.passes.stop_after = "optimize";
  const auto uses = [&](const Case& k, const DimSpec& batch = 1) {
    return plan_of(model(residual_block(k, batch)), options).find("winograd") != std::string::npos;
  };
  EXPECT_FALSE(uses({1, 3, 32, 32, 32}));  // few channels
  EXPECT_FALSE(uses({1, 256, 256, 7, 7})); // more weights than pixels
  EXPECT_TRUE(uses({1, 32, 32, 32, 32}));
  options.numerics = Numerics::Strict;
  EXPECT_FALSE(uses({1, 32, 32, 32, 32}));
}

} // namespace tgc
