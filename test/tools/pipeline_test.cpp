// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole pipeline on the quickstart model and on small graphs: every pass's text reads back and compiles on to the
// same bundle; bundles do not depend on jobs or folder; an extra rule anywhere changes no result; fusion as promised.
#include "tgc/pipeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "rewrite/rules/symbolic.h"
#include "tgc/passes.h"
#include "tgc/weights.h"
#include "uop/eval.h"
#include "uop/text.h"

using namespace tgc;

namespace {

const std::string kModel = std::string(TGC_SOURCE_DIR) + "/models/fashion_cnn/model.onnx";

std::string scratch_dir() {
  std::string dir = testing::TempDir() + "tgc_pipeline_" + std::to_string(getpid());
  std::filesystem::create_directories(dir);
  return dir;
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string bundle_of(Compilation c, const CompileOptions& options, const std::string& name) {
  run_pipeline(c, options);
  fold_constants(c);
  render(c);
  std::string path = scratch_dir() + "/" + name;
  write_bundle(assemble(c, options), path);
  return bytes_of_file(path);
}

Module json(const std::string& text) { return import_bytes(bytes_of(text), "graph.json"); }

size_t kernels(const std::string& text) {
  CompileOptions options;
  Compilation c = start_compilation(json(text), options);
  run_pipeline(c, options);
  return c.module.root->src[0]->src.size();
}

} // namespace

TEST(Pipeline, EveryStageReadsBackAndCompilesOnToTheSameBytes) {
  CompileOptions options;
  std::string want = bundle_of(start_compilation(kModel, options), options, "want");
  std::vector<std::pair<std::string, std::string>> texts;
  CompileOptions spying = options;
  spying.after_pass = [&](const Pass& pass, const Module& m, double) { texts.emplace_back(pass.name, print(m)); };
  Compilation whole = start_compilation(kModel, options);
  run_pipeline(whole, spying);
  std::vector<std::string> names = pass_names();
  ASSERT_EQ(texts.size(), names.size());
  for (size_t i = 0; i + 1 < texts.size(); ++i) {
    SCOPED_TRACE(texts[i].first);
    Module m = parse(texts[i].second, "stage.uop");
    ASSERT_EQ(print(m), texts[i].second);
    open_weights(m);
    CompileOptions on = options;
    on.passes.start_before = names[i + 1];
    EXPECT_TRUE(bundle_of(start_compilation(std::move(m), on), on, "again") == want);
  }
}

TEST(Pipeline, BundlesDoNotDependOnJobsOrFolder) {
  CompileOptions one, two;
  two.jobs = 2;
  std::filesystem::create_directories(scratch_dir() + "/elsewhere");
  std::string copy = scratch_dir() + "/elsewhere/renamed.onnx";
  std::filesystem::copy_file(kModel, copy, std::filesystem::copy_options::overwrite_existing);
  std::string a = bundle_of(start_compilation(kModel, one), one, "a");
  std::string b = bundle_of(start_compilation(copy, two), two, "elsewhere/b");
  EXPECT_GT(a.size(), 300000U);
  EXPECT_TRUE(a == b);
}

TEST(Pipeline, AnExtraRuleAnywhereChangesNoResult) {
  // x + 0 -> x is not in the tables for floats (it changes -0), but is right for integers and indices, so it is a
  // correct rule that fires or not depending on where it stands.
  static const Cap X{0};
  static const PatternMatcher extra("extra", {{"add-zero", ints(Pat(X) + 0), [](Match& m) { return m[X]; }}});
  CompileOptions options;
  Compilation plain = start_compilation(kModel, options);
  std::vector<HostTensor> inputs = {zeros(DType::F32, {1, 1, 28, 28})};
  for (int64_t i = 0; i < 784; ++i) inputs[0].set(i, static_cast<double>(i * 37 % 256));
  auto evaluate = [&](Compilation& c) { return eval(c.module, inputs, {{"batch", 1}}); };
  run_pipeline(plain, options);
  std::vector<HostTensor> want;
  {
    Compilation folded = start_compilation(kModel, options);
    run_pipeline(folded, options);
    want = evaluate(folded);
  }
  for (const std::string& name : pass_names()) {
    if (name == "linearize") continue; // after it the sequence is fixed; before it is covered by order-sums
    SCOPED_TRACE(name);
    CompileOptions with = options;
    with.passes.extra.push_back({name, false, &extra});
    Compilation c = start_compilation(kModel, with);
    run_pipeline(c, with);
    EXPECT_EQ(evaluate(c)[0].data, want[0].data);
  }
}

TEST(Pipeline, ProductSummedOverTheLastAxisIsOneKernel) {
  EXPECT_EQ(kernels(R"({"tgc": 1,
    "inputs": [{"name": "a", "type": "f32", "shape": [1024, 1, 1024]}, {"name": "b", "type": "f32", "shape": [1, 1024, 1024]}],
    "nodes": [{"op": "mul", "name": "p", "in": ["a", "b"]}, {"op": "reduce", "name": "y", "in": ["p"], "kind": "add", "axes": [-1]}],
    "outputs": ["y"]})"),
            1U);
}

TEST(Pipeline, StepsNameTheModelsNodesButNotSharedConstants) {
  const char* text = R"({"tgc": 1,
    "inputs": [{"name": "x", "type": "f32", "shape": [64, 64]}],
    "constants": [{"name": "two", "type": "f32", "shape": [1, 1], "data": 2}],
    "nodes": [{"op": "expand", "name": "twos", "in": ["two"], "shape": [64, 64]},
              {"op": "mul", "name": "scaled", "in": ["x", "twos"]},
              {"op": "matmul", "name": "product", "in": ["scaled", "scaled"]},
              {"op": "mul", "name": "y", "in": ["product", "twos"]}], "outputs": ["y"]})";
  CompileOptions options;
  Compilation c = start_compilation(json(text), options);
  run_pipeline(c, options);
  fold_constants(c);
  render(c);
  std::vector<std::string> origins;
  for (const BundleContents::Step& step : assemble(c, options).steps) origins.push_back(step.origin);
  EXPECT_EQ(origins, (std::vector<std::string>{"scaled", "product, y"}));
}

TEST(Pipeline, NodesMadeByARewriteKeepTheirOrigin) {
  CompileOptions options;
  Compilation c = start_compilation(json(R"({"tgc": 1,
    "inputs": [{"name": "x", "type": "f16", "shape": [64]}],
    "nodes": [{"op": "exp", "name": "e", "in": ["x"]}, {"op": "neg", "name": "y", "in": ["e"]}], "outputs": ["y"]})"),
                                    options);
  run_pipeline(c, options);
  EXPECT_EQ(c.module.root->src[0]->src[0]->s(Attr::Origin), "e, y");
}

TEST(Pipeline, UnknownPassesAreNamed) {
  CompileOptions options;
  options.passes.stop_after = "rangify";
  Compilation c = start_compilation(kModel, options);
  try {
    run_pipeline(c, options);
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_STREQ(e.what(), "error TGC-E503: there is no pass \"rangify\"\n  note: tgc --list-passes lists them");
  }
}

TEST(Pipeline, InputsThatNothingReadsKeepTheirPlace) {
  const char* text = R"({"tgc": 1,
    "inputs": [{"name": "unused", "type": "f32", "shape": [3]}, {"name": "x", "type": "f32", "shape": [2]}],
    "nodes": [{"op": "neg", "name": "y", "in": ["x"]}], "outputs": ["y"]})";
  CompileOptions options;
  Compilation c = start_compilation(json(text), options);
  std::string printed = print(c.module);
  EXPECT_EQ(print(parse(printed, "again")), printed);
  EXPECT_TRUE(parse(printed, "again").root->hash == c.module.root->hash);
  run_pipeline(c, options);
  fold_constants(c);
  render(c);
  BundleContents contents = assemble(c, options);
  ASSERT_EQ(contents.inputs.size(), 2U);
  EXPECT_EQ(contents.inputs[0].name, "unused");
  EXPECT_EQ(contents.inputs[1].name, "x");
}
