// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accuracy of the transcendental functions as compiled code on all 2^32 floats, against the host's f64 functions.
// Minutes of work, so only with TGC_FULL=1; rewrite/accuracy_test.cpp looks at every 397th float each time. One
// architecture with fused multiply-adds and one without.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "runtime/tgrt.h"
#include "testing.h"
#include "tgc/pipeline.h"
#include "ulps.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

constexpr uint64_t kBlock = 1 << 16, kFloats = uint64_t{1} << 32;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct Function {
  const char* name;
  double (*f64)(double);
  double domain; ///< |x| up to this is accurate; beyond, |result| <= 1
  double limit;  ///< ULP
};
const Function kFunctions[] = {{"exp", std::exp, INFINITY, 1.5}, {"log", std::log, INFINITY, 1.5},
                               {"tanh", std::tanh, INFINITY, 2}, {"erf", std::erf, INFINITY, 2},
                               {"sin", std::sin, 1e8, 2},        {"cos", std::cos, 1e8, 2}};

struct Worst {
  double ulp = 0;
  float x = 0;
  void see(double u, float at) {
    if (u > ulp) *this = {u, at};
  }
};

/// The worst of the blocks that `next` hands out, computed by the bundle.
Worst scan(const tgrt_model* model, const Function& function, std::atomic<uint64_t>& next) {
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  tgrt_context* context = nullptr;
  tgrt_error error{};
  Worst worst;
  if (tgrt_create_context(model, &options, &context, &error) != 0) {
    ADD_FAILURE() << error.text;
    return worst;
  }
  auto* x = static_cast<float*>(tgrt_data(context, TGRT_INPUT, 0, &error));
  const auto* y = static_cast<const float*>(tgrt_data(context, TGRT_OUTPUT, 0, &error));
  for (uint64_t first = next.fetch_add(kBlock); first < kFloats; first = next.fetch_add(kBlock)) {
    for (uint64_t i = 0; i < kBlock; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i));
    if (tgrt_run(context, &error) != 0) {
      ADD_FAILURE() << error.text;
      break;
    }
    for (uint64_t i = 0; i < kBlock; ++i) {
      const bool is_accurate = std::fabs(x[i]) <= function.domain || !std::isfinite(x[i]);
      worst.see(is_accurate            ? ulps(y[i], function.f64(static_cast<double>(x[i])))
                : std::fabs(y[i]) <= 1 ? 0
                                       : 1e9,
                x[i]);
    }
  }
  tgrt_free_context(context);
  return worst;
}

class EveryFloat : public ::testing::TestWithParam<std::tuple<Function, const char*>> {};

TEST_P(EveryFloat, IsAccurate) {
  if (std::getenv("TGC_FULL") == nullptr) GTEST_SKIP() << "skip: all 2^32 floats take minutes; TGC_FULL=1 runs them";
  if (kSanitized) GTEST_SKIP() << "skip: compiled code holds no checks for a sanitizer to find";
  const auto& [function, arch] = GetParam();
  const std::string stem = ::testing::TempDir() + "tgc_every_float_" + std::to_string(getpid()),
                    path = stem + ".bundle";
  write_file(stem + ".json", std::string(R"({"tgc": 1, "inputs": [{"name": "x", "type": "f32", "shape": [65536]}],
    "nodes": [{"op": ")") + function.name +
                                 R"(", "name": "y", "in": ["x"]}], "outputs": ["y"]})");
  CompileOptions options;
  options.target = std::string("cpu:llvm:") + arch;
  compile_file(stem + ".json", path, options);
  tgrt_model* model = nullptr;
  tgrt_error error{};
  const int code = tgrt_load_file(path.c_str(), nullptr, &model, &error);
  if (code == TGRT_E_CPU_FEATURES) GTEST_SKIP() << "skip: " << error.text;
  ASSERT_EQ(code, 0) << error.text;
  std::atomic<uint64_t> next = 0;
  Worst worst[2];
  std::thread other([&, f = function] { worst[1] = scan(model, f, next); });
  worst[0] = scan(model, function, next);
  other.join();
  if (worst[1].ulp > worst[0].ulp) worst[0] = worst[1];
  std::printf("%s f32 for %s, every float: %.3f ulp at %a\n", function.name, arch, worst[0].ulp,
              static_cast<double>(worst[0].x));
  EXPECT_GE(next, kFloats);
  EXPECT_LE(worst[0].ulp, function.limit) << function.name << " at " << worst[0].x;
  tgrt_free_model(model);
}
INSTANTIATE_TEST_SUITE_P(Functions, EveryFloat,
                         ::testing::Combine(::testing::ValuesIn(kFunctions), ::testing::Values("x86-64-v3", "x86-64")),
                         [](const auto& p) {
                           std::string arch = std::get<1>(p.param);
                           std::erase(arch, '-');
                           return std::string(std::get<0>(p.param).name) + "_" + arch;
                         });

} // namespace
