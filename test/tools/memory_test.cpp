// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a compile may cost: weights stay in the model's file until the bundle is written, one value is not stored many
// times, equal kernels are compiled once, and the arena is about what lives at once.
#include "tgc/memory_use.h"

#include <gtest/gtest.h>

#include <set>

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
  EXPECT_EQ(use.live, 62720);
  EXPECT_EQ(use.arena, 62720);
  EXPECT_EQ(use.weights, 323688);
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
