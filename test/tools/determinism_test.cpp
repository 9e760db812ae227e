// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same model gives the same bytes, and the same inputs the same bits: whatever the number of compiler threads, the
// number of threads of a run, what else runs in the process, and where the bundle lies. Run it under ThreadSanitizer
// too: two contexts share one model.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "runtime/tgrt.h"
#include "testing.h"
#include "tgc/pipeline.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

const std::string kModel = source_path("models/fashion_cnn/model.onnx");
constexpr const char* kMatmul = R"({"tgc": 1,
  "inputs": [{"name": "a", "type": "f32", "shape": [1024, 1024]}, {"name": "b", "type": "f32", "shape": [1024, 1024]}],
  "nodes": [{"op": "matmul", "name": "y", "in": ["a", "b"]}], "outputs": ["y"]})";

std::string folder() {
  static const std::string path = [] {
    std::string name = ::testing::TempDir() + "tgc_determinism_" + std::to_string(getpid());
    std::filesystem::create_directories(name);
    return name;
  }();
  return path;
}

std::string compiled(const std::string& model, const std::string& name, int jobs = 1) {
  CompileOptions options;
  options.jobs = jobs;
  const std::string path = folder() + "/" + name;
  compile_file(model, path, options);
  return path;
}
const std::string& cnn() {
  static const std::string path = compiled(kModel, "cnn.bundle");
  return path;
}
const std::string& matmul() {
  static const std::string path = [] {
    write_file(folder() + "/matmul.json", kMatmul);
    return compiled(folder() + "/matmul.json", "matmul.bundle", 2);
  }();
  return path;
}

struct FreeModel {
  void operator()(tgrt_model* m) const { tgrt_free_model(m); }
};
struct FreeContext {
  void operator()(tgrt_context* c) const { tgrt_free_context(c); }
};
using Model = std::unique_ptr<tgrt_model, FreeModel>;
using RunContext = std::unique_ptr<tgrt_context, FreeContext>;

Model load(const std::string& path) {
  tgrt_model* model = nullptr;
  tgrt_error error{};
  EXPECT_EQ(tgrt_load_file(path.c_str(), nullptr, &model, &error), 0) << error.text;
  return Model(model);
}

/// A context with seeded inputs; the symbolic batch, if any, is `batch`.
RunContext ready(const Model& model, uint32_t threads, int64_t batch) {
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  tgrt_context* raw = nullptr;
  tgrt_error error{};
  EXPECT_EQ(tgrt_create_context(model.get(), &options, &raw, &error), 0) << error.text;
  RunContext context(raw);
  const bool is_symbolic = tgrt_var_count(model.get()) > 0;
  EXPECT_EQ(is_symbolic ? tgrt_set_var(raw, "batch", batch, &error) : 0, 0) << error.text;
  uint64_t state = 7;
  for (uint32_t i = 0; i < tgrt_tensor_count(model.get(), TGRT_INPUT); ++i) {
    auto* data = static_cast<float*>(tgrt_data(raw, TGRT_INPUT, i, &error));
    for (size_t n = tgrt_bytes(raw, TGRT_INPUT, i, &error) / 4, k = 0; k < n; ++k) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      data[k] = static_cast<float>(state >> 40) / (1 << 24) - 0.25f;
    }
  }
  return context;
}

std::string run(const RunContext& context) {
  tgrt_error error{};
  EXPECT_EQ(tgrt_run(context.get(), &error), 0) << error.text;
  const void* data = tgrt_data(context.get(), TGRT_OUTPUT, 0, &error);
  return {static_cast<const char*>(data), tgrt_bytes(context.get(), TGRT_OUTPUT, 0, &error)};
}

} // namespace

TEST(Determinism, BundlesAreAFunctionOfTheModel) {
  const std::string want = read_file(cnn());
  EXPECT_GT(want.size(), 300000U);
  EXPECT_TRUE(read_file(compiled(kModel, "again.bundle")) == want);
  EXPECT_TRUE(read_file(compiled(kModel, "jobs.bundle", 2)) == want);
  std::filesystem::create_directories(folder() + "/elsewhere");
  const std::string copy = folder() + "/elsewhere/renamed.onnx";
  std::filesystem::copy_file(kModel, copy, std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(read_file(compiled(copy, "elsewhere/copy.bundle")) == want);
}

TEST(Determinism, ThreadsDoNotChangeABit) {
  for (const std::string& path : {cnn(), matmul()}) {
    const Model model = load(path);
    const std::string want = run(ready(model, 1, 16));
    EXPECT_EQ(want.size(), path == cnn() ? 16U * 10 * 4 : 1024U * 1024 * 4);
    for (const uint32_t threads : {2U, 4U}) {
      const RunContext context = ready(model, threads, 16);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(context) == want) << path << " with " << threads << " threads";
    }
  }
}

TEST(Determinism, ContextsOfOneModelRunAtTheSameTime) {
  const Model model = load(cnn());
  const std::string want = run(ready(model, 1, 16));
  std::string got[2];
  std::thread threads[2];
  for (size_t t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      const RunContext context = ready(model, 2, 16);
      for (int i = 0; i < 5; ++i) got[t] = run(context);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(got[0] == want);
  EXPECT_TRUE(got[1] == want);
}

TEST(Determinism, BundlesDoNotDisturbEachOther) {
  const Model first = load(cnn()), second = load(matmul());
  const std::string want_first = run(ready(first, 1, 3)), want_second = run(ready(second, 1, 0));
  const RunContext a = ready(first, 2, 3), b = ready(second, 2, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(run(a) == want_first);
    EXPECT_TRUE(run(b) == want_second);
  }
}

TEST(Determinism, ABundleInMemoryIsTheOneInTheFile) {
  const std::string bytes = read_file(cnn());
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64), std::free);
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  tgrt_model* raw = nullptr;
  tgrt_error error{};
  ASSERT_EQ(tgrt_load_memory(memory.get(), bytes.size(), nullptr, &raw, &error), 0) << error.text;
  const Model in_memory(raw);
  EXPECT_TRUE(run(ready(in_memory, 2, 5)) == run(ready(load(cnn()), 2, 5)));
}
