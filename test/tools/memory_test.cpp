// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a compile may cost: weights stay in the model's file until the bundle is written, one value is not stored many
// times, equal kernels are compiled once, and the arena is about what lives at once.
#include "tgc/memory_use.h"

#include <gtest/gtest.h>

#include <set>

#include "schedule/constants.h"
#include "tgc/pipeline.h"

using namespace tgc;

namespace {

const std::string kModel = std::string(TGC_SOURCE_DIR) + "/models/fashion_cnn/model.onnx";

BundleContents contents_of(Compilation c, const CompileOptions& options) {
  run_pipeline(c, options);
  fold_constants(c);
  render(c);
  return assemble(c, options);
}

BundleContents contents_of_json(const std::string& text) {
  CompileOptions options;
  return contents_of(start_compilation(import_bytes(bytes_of(text), "graph.json"), options), options);
}

} // namespace

TEST(Memory, WeightsOfAModelAreRangesOfItsFile) {
  const Module module = import_model(kModel, {});
  uint64_t bytes = 0;
  for (const auto& [key, weight] : module.weights) {
    EXPECT_TRUE(weight.kind == WeightData::Kind::Mapped) << key;
    EXPECT_EQ(weight.file, kModel) << key;
    bytes += weight.length;
  }
  EXPECT_EQ(bytes, 323688U);
}

TEST(Memory, TheArenaIsWhatLivesAtOnce) {
  CompileOptions options;
  options.import.dims["batch"] = {1, 1};
  const MemoryUse use = memory_use(contents_of(start_compilation(kModel, options), options));
  EXPECT_EQ(use.live, 66560); // pictures of 28 x 28 and 14 x 14 by 16 channels, zeros around the latter
  EXPECT_EQ(use.arena, 66560);
  EXPECT_EQ(use.weights,
            323688 + 7 * 16 * 32 * 4); // 16 instead of 9 for each pair of channels of the third convolution
}

TEST(Memory, EqualKernelsAreCompiledOnce) {
  const BundleContents contents = contents_of_json(R"({"tgc": 1,
    "inputs": [{"name": "x", "type": "f32", "shape": [32, 1024]}, {"name": "w", "type": "f32", "shape": [1024, 1024]}],
    "nodes": [{"op": "matmul", "name": "a", "in": ["x", "w"]}, {"op": "neg", "name": "b", "in": ["a"]},
              {"op": "matmul", "name": "c", "in": ["b", "w"]}, {"op": "neg", "name": "d", "in": ["c"]},
              {"op": "matmul", "name": "e", "in": ["d", "w"]}, {"op": "neg", "name": "f", "in": ["e"]}],
    "outputs": ["f"]})");
  EXPECT_EQ(contents.steps.size(), 3U);
  EXPECT_EQ(contents.kernels.size(), 1U);
}

TEST(Memory, StepsWaitForWhatTheyReadAndForReadersOfTheirPlace) {
  const BundleContents contents = contents_of_json(R"({"tgc": 1,
    "inputs": [{"name": "x", "type": "f32", "shape": [32, 1024]}, {"name": "y", "type": "f32", "shape": [32, 1024]},
               {"name": "w", "type": "f32", "shape": [1024, 1024]}],
    "nodes": [{"op": "matmul", "name": "p", "in": ["x", "w"]}, {"op": "matmul", "name": "q", "in": ["p", "w"]},
              {"op": "matmul", "name": "r", "in": ["y", "w"]}, {"op": "matmul", "name": "s", "in": ["r", "w"]},
              {"op": "neg", "name": "t", "in": ["x"]}],
    "outputs": ["q", "s", "t"]})");
  std::vector<std::vector<int>> waits;
  for (const auto& step : contents.steps) waits.push_back(step.waits);
  EXPECT_EQ(waits, (std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {}})); // r lies where p was
}

TEST(Memory, ChannelsAreInnermostAndWindowsReadStoredZeros) {
  std::string first, second;
  for (int i = 0; i < 32 * 4 * 9; ++i) first += (i ? "," : "") + std::to_string(i % 7);
  for (int i = 0; i < 16 * 32 * 9; ++i) second += (i ? "," : "") + std::to_string(i % 5);
  CompileOptions options;
  Compilation c = start_compilation(import_bytes(bytes_of(R"({"tgc": 1,
    "inputs": [{"name": "x", "type": "f32", "shape": [1, 4, 10, 12]}],
    "constants": [{"name": "v", "type": "f32", "shape": [32, 4, 3, 3], "data": [)" +
                                                          first + R"(]},
                  {"name": "w", "type": "f32", "shape": [16, 32, 3, 3], "data": [)" +
                                                          second + R"(]}],
    "nodes": [{"op": "conv", "name": "a", "in": ["x", "v"], "pad": [1, 1, 1, 1]}, {"op": "neg", "name": "b", "in": ["a"]},
              {"op": "conv", "name": "y", "in": ["b", "w"], "pad": [1, 1, 1, 1]}],
    "outputs": ["y"]})"),
                                                 "graph.json"),
                                    options);
  run_pipeline(c, options);
  std::vector<Ref> calls;
  std::string layouts;
  for (Ref call : c.module.root->src[0]->src) {
    if (is_constant_call(call)) continue;
    calls.push_back(call);
    for (Ref node : toposort(call->src[0]))
      EXPECT_TRUE(!node->is(Ops::Load) || node->src.size() == 2)
          << "a load is gated in " << call->src[0]->s(Attr::Name);
    const Ref out = call->src[1];
    layouts += shape_text(out->shape) + (out->has(Attr::Layout) ? "by channel " : " ");
  }
  // x and the zeros around it on two axes, the same around the first result, which it reads channel by channel
  EXPECT_EQ(calls.size(), 7U);
  EXPECT_EQ(layouts, "[1,4,12,14] [1,4,12,14] [1,4,12,14] [1,12,14,32]by channel [1,12,14,32]by channel "
                     "[1,12,14,32]by channel [1,16,10,12] ");
}

TEST(Memory, OneValueIsNotStoredManyTimes) {
  const BundleContents contents = contents_of_json(R"({"tgc": 1,
    "inputs": [{"name": "x", "type": "f32", "shape": [4194304]}],
    "constants": [{"name": "c", "type": "f32", "shape": [1], "data": 2},
                  {"name": "k", "type": "f32", "shape": [4194304], "data": 3}],
    "nodes": [{"op": "expand", "name": "e", "in": ["c"], "shape": [4194304]}, {"op": "exp", "name": "f", "in": ["e"]},
              {"op": "mul", "name": "g", "in": ["x", "f"]}, {"op": "add", "name": "y", "in": ["g", "k"]}],
    "outputs": ["y"]})");
  EXPECT_EQ(contents.weights.size(), 0U);
  EXPECT_EQ(memory_use(contents).arena, 0);
}
