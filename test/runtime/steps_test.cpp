// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs on several threads: graphs of steps that wait for some of the earlier ones give what one thread gives, however
// the threads are scheduled, and a caller's threads may run one after the other.
#include <random>
#include <thread>

#include "fixture.h"

namespace tgc::test {
namespace {

constexpr int64_t kElements = 444; // 37 chunks of 12, or 4 of 111, or one
constexpr size_t kSteps = 60;
constexpr uint32_t kInputs = 2; // that runs take in turns, so that what an earlier run left is wrong

const std::string kSource = kPrelude + R"(
typedef unsigned u32;
static void linger(void) { // so that a step that does not wait comes too early
  for (volatile int i = 0; i < 300; ++i) {}
}
KERNEL(k_fine) {
  const u32 *x = a->bufs[1], *y = a->bufs[2];
  u32 *z = a->bufs[0], *row = a->scratch;
  for (i64 n = begin; n < end; ++n) {
    linger();
    for (int i = 0; i < 12; ++i) row[i] = 3 * x[n * 12 + i];
    for (int i = 0; i < 12; ++i) z[n * 12 + i] = row[i] + y[443 - (n * 12 + i)];
  }
}
KERNEL(k_coarse) {
  const u32 *x = a->bufs[1], *y = a->bufs[2];
  u32 *z = a->bufs[0];
  for (i64 n = begin; n < end; ++n) linger();
  for (i64 i = begin * 111; i < end * 111; ++i) z[i] = x[443 - i] ^ 2 * y[i];
}
KERNEL(k_whole) {
  const u32 *x = a->bufs[1], *y = a->bufs[2];
  u32 *z = a->bufs[0];
  for (i64 n = begin; n < end; ++n) linger();
  for (i64 i = begin * 444; i < end * 444; ++i) z[i] = x[i] + 7 * y[443 - i];
}
)";

uint32_t value(int kernel, const std::vector<uint32_t>& x, const std::vector<uint32_t>& y, size_t i) {
  const size_t across = kElements - 1 - i;
  if (kernel == 0) return 3 * x[i] + y[across];
  return kernel == 1 ? x[across] ^ 2 * y[i] : x[i] + 7 * y[across];
}

uint32_t input(uint32_t which, uint32_t i) { return (i + which) * 2654435761u; }

using Values = std::vector<uint32_t>;

/// Steps that each read two results of the `reach` before, at random; the input stands before the first. `want` becomes
/// the last result for each input.
BundleContents random_steps(Context& ctx, unsigned seed, int reach, std::vector<Values>& want) {
  using Kind = BundleContents::Arg::Kind;
  std::mt19937 random(seed);
  BundleContents c;
  c.inputs = {{"x", DType::U32, {ctx.index(kElements)}}};
  c.outputs = {{"y", DType::U32, {ctx.index(kElements)}}};
  const Ref large = ctx.index(1 << 20);
  c.kernels = {{"k_fine", "", ctx.index(48), ctx.index(37), large, large},
               {"k_coarse", "", Ref(), ctx.index(4), large, large},
               {"k_whole", "", Ref(), ctx.index(1), large, large}};
  std::vector<std::vector<Values>> results(1, std::vector<Values>(kInputs)); // by step and input
  for (uint32_t which = 0; which < kInputs; ++which)
    for (uint32_t i = 0; i < kElements; ++i) results[0][which].push_back(input(which, i));
  for (size_t s = 0; s < kSteps; ++s) {
    if (s + 1 < kSteps) c.buffers.push_back({ctx.index(kElements * 4), static_cast<int>(s)});
    BundleContents::Step step;
    step.kernel = static_cast<int>(random() % 3);
    step.args = {s + 1 < kSteps ? BundleContents::Arg{Kind::Buffer, static_cast<int>(s)}
                                : BundleContents::Arg{Kind::Output, 0}};
    size_t read[2];
    for (size_t& r : read) {
      r = results.size() - 1 - random() % std::min(results.size(), static_cast<size_t>(reach));
      step.args.push_back(r == 0 ? BundleContents::Arg{Kind::Input, 0}
                                 : BundleContents::Arg{Kind::Buffer, static_cast<int>(r - 1)});
      if (r > 0) step.waits.push_back(static_cast<int>(r - 1));
    }
    std::vector<Values> result(kInputs);
    for (size_t which = 0; which < kInputs; ++which)
      for (size_t i = 0; i < kElements; ++i)
        result[which].push_back(value(step.kernel, results[read[0]][which], results[read[1]][which], i));
    results.push_back(std::move(result));
    c.steps.push_back(std::move(step));
  }
  want = results.back();
  return c;
}

/// Runs `repeats` times; whether all results were right.
bool run(tgrt_context* context, const std::vector<Values>& want, int repeats) {
  tgrt_error error;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const uint32_t which = static_cast<uint32_t>(repeat) % kInputs;
    auto* x = static_cast<uint32_t*>(tgrt_data(context, TGRT_INPUT, 0, &error));
    for (uint32_t i = 0; i < kElements; ++i) x[i] = input(which, i);
    EXPECT_EQ(tgrt_run(context, &error), 0) << error.text;
    const auto* y = static_cast<const uint32_t*>(tgrt_data(context, TGRT_OUTPUT, 0, &error));
    if (Values(y, y + kElements) != want[which]) return false;
  }
  return true;
}

Model random_model(unsigned seed, int reach, std::vector<Values>& want) {
  Context ctx;
  BundleContents c = random_steps(ctx, seed, reach, want);
  c.code = compile_c(kSource);
  const std::string path = temp_folder() + "/steps" + std::to_string(seed) + ".bundle";
  write_bundle(c, path);
  return load(path);
}

RunContext context_of(const Model& model, const tgrt_thread_pool& pool,
                      void (*profile)(void*, const tgrt_step_event*) = nullptr, void* profile_user = nullptr) {
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.pool = &pool;
  options.profile = profile;
  options.profile_user = profile_user;
  tgrt_context* context = nullptr;
  EXPECT_EQ(tgrt_create_context(model.get(), &options, &context, nullptr), 0);
  return RunContext(context);
}

} // namespace

TEST(Steps, AnyNumberOfThreadsGivesWhatOneGives) {
  TGRT_NEED_CC(compile_c(kSource));
  for (const auto& [seed, reach] : {std::pair{1u, 1}, {2u, 3}, {3u, 12}, {4u, 40}}) {
    std::vector<Values> want;
    const Model model = random_model(seed, reach, want);
    for (const uint32_t threads : {1u, 2u, 4u, 7u}) {
      const RunContext context = new_context(model, threads);
      EXPECT_TRUE(run(context.get(), want, 50)) << threads << " threads, seed " << seed;
    }
  }
}

TEST(Steps, ACallersThreadsMayRunOneAfterTheOther) {
  TGRT_NEED_CC(compile_c(kSource));
  std::vector<Values> want;
  const Model model = random_model(5, 12, want);
  const auto in_turn = [](void*, void (*body)(void*, uint32_t), void* arg) {
    for (const uint32_t thread : {2u, 0u, 1u}) body(arg, thread);
  };
  EXPECT_TRUE(run(context_of(model, {nullptr, 3, in_turn}).get(), want, 4));
  const auto one_late = [](void*, void (*body)(void*, uint32_t), void* arg) {
    std::thread other(body, arg, 1u);
    body(arg, 2);
    other.join();
    body(arg, 0);
  };
  EXPECT_TRUE(run(context_of(model, {nullptr, 3, one_late}).get(), want, 20));
}

TEST(Steps, NumbersOfRunsMayWrap) { // what a step remembers of a run holds 16 bits of its number
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  const RunContext context = new_context(model, 2);
  tgrt_error error;
  const int64_t few[] = {1, 4}, many[] = {9, 4};
  for (const int64_t* shape : {many, few, many}) {
    ASSERT_EQ(tgrt_set_shape(context.get(), 0, shape, 2, &error), 0) << error.text;
    auto* x = static_cast<float*>(tgrt_data(context.get(), TGRT_INPUT, 0, &error));
    std::fill(x, x + shape[0] * 4, 1.0f);
    for (int repeat = 0; repeat < 66000; ++repeat) ASSERT_EQ(tgrt_run(context.get(), &error), 0) << error.text;
    const auto* y = static_cast<const float*>(tgrt_data(context.get(), TGRT_OUTPUT, 0, &error));
    for (int64_t i = 0; i < shape[0] * 4; ++i) ASSERT_EQ(y[i], affine(1, static_cast<size_t>(i % 4)));
  }
}

TEST(Steps, EachStepOfALargePlanMayBeARun) { // as many as there are numbers of 16 bits without 0
  using Kind = BundleContents::Arg::Kind;
  constexpr int kMany = 65535;
  TGRT_NEED_CC(compile_c(kSource));
  Context ctx;
  BundleContents c;
  c.inputs = {{"x", DType::U32, {ctx.index(kElements)}}};
  c.outputs = {{"y", DType::U32, {ctx.index(kElements)}}};
  c.kernels = {{"k_coarse", "", Ref(), ctx.index(4), ctx.index(1 << 20), ctx.index(1 << 20)}};
  for (int s = 0; s < kMany; ++s) {
    c.steps.push_back({0, {{Kind::Output, 0}, {Kind::Input, 0}, {Kind::Input, 0}}, ""});
    if (s > 0) c.steps.back().waits = {s - 1};
  }
  c.code = compile_c(kSource);
  const std::string path = temp_folder() + "/large.bundle";
  write_bundle(c, path);
  const Model model = load(path);
  const auto in_turn = [](void*, void (*body)(void*, uint32_t), void* arg) { body(arg, 0), body(arg, 1); };
  int steps = 0;
  const auto count = [](void* to, const tgrt_step_event*) { ++*static_cast<int*>(to); };
  const RunContext context = context_of(model, {nullptr, 2, in_turn}, count, &steps);
  std::vector<Values> want(1);
  for (uint32_t i = 0; i < kElements; ++i) want[0].push_back(input(0, kElements - 1 - i) ^ 2 * input(0, i));
  for (int repeat = 0; repeat < 2; ++repeat) EXPECT_TRUE(run(context.get(), want, 1));
  EXPECT_EQ(steps, 2 * kMany);
}

} // namespace tgc::test
