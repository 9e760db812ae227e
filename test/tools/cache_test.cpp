// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles with a cache of kernels: the bundle is the same without one, with an empty one and with a full one, whatever
// happened to the cache; and only what changed is compiled.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "render/object_cache.h"
#include "testing.h"
#include "tgc/pipeline.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

namespace fs = std::filesystem;

const std::string kModel = source_path("models/fashion_cnn/model.onnx");

std::string two_layers(const char* second) {
  return R"({"tgc": 1, "inputs": [{"name": "x", "type": "f32", "shape": [64, 64]}],
    "nodes": [{"op": "matmul", "name": "a", "in": ["x", "x"]}, {"op": "reduce", "name": "s", "in": ["a"],
      "kind": "add", "axes": [1]}, {"op": ")" +
         std::string(second) + R"(", "name": "y", "in": ["s"]}], "outputs": ["y"]})";
}

class Cache : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "tgc_cache_" + std::to_string(getpid());
  std::string objects = folder + "/objects";
  void SetUp() override {
    if (!find_renderer(parse_target("cpu:llvm")).probe().ok) GTEST_SKIP() << "cpu:c keeps no kernels";
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  /// The bundle's bytes.
  std::string compile(const std::string& model, ObjectCache* cache, CompileOptions options = {}) const {
    options.cache = cache;
    const std::string path = folder + "/" + std::to_string(reinterpret_cast<uintptr_t>(cache)) + ".bundle";
    compile_file(model, path, options);
    return read_file(path);
  }
};

} // namespace

TEST_F(Cache, BundlesAreTheSameWithoutColdAndWarm) {
  const std::string plain = compile(kModel, nullptr);
  ObjectCache cold(objects);
  EXPECT_TRUE(compile(kModel, &cold) == plain);
  EXPECT_EQ(cold.hits(), 0);
  EXPECT_GT(cold.misses(), 4); // kernels that run while compiling, too
  ObjectCache warm(objects);
  CompileOptions two_jobs;
  two_jobs.jobs = 2;
  EXPECT_TRUE(compile(kModel, &warm, two_jobs) == plain);
  EXPECT_EQ(warm.hits(), cold.misses());
  EXPECT_EQ(warm.misses(), 0);
}

TEST_F(Cache, OnlyWhatChangedIsCompiled) {
  write_file(folder + "/exp.json", two_layers("exp"));
  write_file(folder + "/sqrt.json", two_layers("sqrt"));
  ObjectCache first(objects), second(objects), other_target(objects);
  compile(folder + "/exp.json", &first);
  EXPECT_GE(first.misses(), 2);
  EXPECT_TRUE(compile(folder + "/sqrt.json", &second) == compile(folder + "/sqrt.json", nullptr));
  EXPECT_EQ(second.misses(), 1);
  EXPECT_EQ(second.hits(), first.misses() - 1);
  CompileOptions options;
  options.target = "cpu:llvm:x86-64-v2";
  compile(folder + "/exp.json", &other_target, options);
  EXPECT_EQ(other_target.hits(), 0);
}

TEST_F(Cache, DamagedEntriesAreBuiltAgain) {
  ObjectCache cold(objects);
  const std::string plain = compile(kModel, &cold);
  int damaged = 0;
  for (const auto& entry : fs::directory_iterator(objects)) {
    std::string bytes = read_file(entry.path().string());
    switch (damaged++ % 3) {
    case 0: bytes[bytes.size() / 2] ^= 1; break;
    case 1: bytes.resize(bytes.size() / 2); break;
    case 2: bytes.clear(); break;
    }
    write_file(entry.path().string(), bytes);
  }
  ObjectCache repaired(objects), warm(objects);
  EXPECT_TRUE(compile(kModel, &repaired) == plain);
  EXPECT_EQ(repaired.misses(), damaged);
  EXPECT_EQ(repaired.hits(), 0);
  EXPECT_TRUE(compile(kModel, &warm) == plain);
  EXPECT_EQ(warm.misses(), 0);
}

TEST_F(Cache, CompilersMayShareIt) {
  const std::string plain = compile(kModel, nullptr);
  std::string bundles[3];
  std::vector<std::thread> compilers;
  for (std::string& bundle : bundles)
    compilers.emplace_back([&] {
      ObjectCache cache(objects, 16384); // evicts while others read
      bundle = compile(kModel, &cache);
    });
  for (std::thread& thread : compilers) thread.join();
  for (const std::string& bundle : bundles) EXPECT_TRUE(bundle == plain);
}

TEST_F(Cache, TheProgramFindsItsFolder) {
  const auto lines = [&](const std::string& environment, const std::string& options) {
    const std::string log = folder + "/log", command = "cd " + folder + " && env -i " + environment +
                                                       " " TGC_PROGRAM " " + kModel + " -v -o x.bundle " + options +
                                                       " 2> log";
    EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << read_file(log);
    std::istringstream text(read_file(log));
    std::string found;
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("cache ")) found += line + "\n";
    return found;
  };
  const auto entries = [](const std::string& in) { return std::distance(fs::directory_iterator(in), {}); };
  const std::string xdg = "XDG_CACHE_HOME=" + folder + "/xdg", home = "HOME=" + folder + "/home";
  const std::string cold = lines(xdg + " " + home, "");
  const auto kept = entries(folder + "/xdg/tgc");
  EXPECT_EQ(cold, "cache     0 kernels found, " + std::to_string(kept) + " compiled  " + folder + "/xdg/tgc\n");
  const std::string bundle = read_file(folder + "/x.bundle");
  EXPECT_EQ(lines(xdg, ""),
            "cache     " + std::to_string(kept) + " kernels found, 0 compiled  " + folder + "/xdg/tgc\n");
  EXPECT_TRUE(read_file(folder + "/x.bundle") == bundle);
  EXPECT_FALSE(fs::exists(folder + "/home"));
  lines("XDG_CACHE_HOME=relative " + home, ""); // as the specification has it
  EXPECT_EQ(entries(folder + "/home/.cache/tgc"), kept);
  const std::string check =
      "cd " + folder + " && XDG_CACHE_HOME=" + folder + "/none " TGC_PROGRAM " " + kModel + " --check";
  EXPECT_EQ(std::system(check.c_str()), 0);
  EXPECT_FALSE(fs::exists(folder + "/none"));
  EXPECT_FALSE(fs::exists(folder + "/relative"));
  EXPECT_EQ(lines("NONE=1", ""), "cache     no folder: neither XDG_CACHE_HOME nor HOME is set\n");
  EXPECT_EQ(lines(home, "--cache=off"), "cache     --cache=off\n");
  lines(home, "--cache here");
  EXPECT_EQ(entries(folder + "/here"), kept);
  EXPECT_EQ(lines(home, "--cache log/x"), "cache     0 kernels found, " + std::to_string(kept) +
                                              " compiled  log/x\n"
                                              "cache     kernels are not kept: cannot make a file: Not a directory\n");
  EXPECT_TRUE(read_file(folder + "/x.bundle") == bundle);
}
