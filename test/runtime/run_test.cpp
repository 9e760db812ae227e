// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running bundles: results, symbolic dims, threads, contexts, callers' memory and threads, profiles, guard mode. The
// model is y = relu(x * w + b) of fixture.h, whose results are exact.
#include <atomic>
#include <cfenv>
#include <thread>

#include "runtime/fixture.h"

using namespace tgc;
using namespace tgc::test;

TEST(Run, FromPathAndFromMemory) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const std::vector<float> x = sample(5);
  const Model from_path = load(path);
  Aligned bytes(read_file(path));
  const Model from_memory = load(bytes);
  ASSERT_TRUE(from_path && from_memory);
  EXPECT_EQ(run_affine(new_context(from_path).get(), x), expected_affine(x));
  EXPECT_EQ(run_affine(new_context(from_memory).get(), x), expected_affine(x));
  tgrt_error error{};
  EXPECT_EQ(tgrt_verify(from_path.get(), &error), 0) << error.text;
}

TEST(Run, DescribesItsTensors) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  ASSERT_TRUE(model);
  tgrt_tensor_info info;
  ASSERT_EQ(tgrt_get_tensor(model.get(), TGRT_OUTPUT, 0, &info), 0);
  EXPECT_STREQ(info.name, "y");
  EXPECT_EQ(info.dtype, static_cast<uint32_t>(TGRT_F32));
  EXPECT_EQ(info.element_bytes, 4u);
  EXPECT_EQ(info.rank, 2u);
  const char* name = nullptr;
  EXPECT_EQ(tgrt_model_dim(model.get(), TGRT_INPUT, 0, 0, &name), -1);
  EXPECT_STREQ(name, "N");
  EXPECT_EQ(tgrt_model_dim(model.get(), TGRT_INPUT, 0, 1, &name), 4);
  EXPECT_EQ(name, nullptr);
  EXPECT_EQ(tgrt_find_tensor(model.get(), TGRT_INPUT, "x"), 0);
  EXPECT_EQ(tgrt_find_tensor(model.get(), TGRT_INPUT, "y"), -1);
  EXPECT_EQ(tgrt_get_tensor(model.get(), TGRT_INPUT, 1, &info), TGRT_E_ARGUMENT);
  EXPECT_STREQ(tgrt_meta(model.get(), "source"), "affine");
  EXPECT_EQ(tgrt_meta(model.get(), "absent"), nullptr);
}

TEST(Run, SymbolicDimsUpAndDown) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  const RunContext context = new_context(model, 2);
  for (const int64_t rows : {3, 1024, 1, 77, 1024}) {
    const std::vector<float> x = sample(rows);
    EXPECT_EQ(run_affine(context.get(), x), expected_affine(x)) << rows;
    int64_t dims[2] = {0, 0};
    EXPECT_EQ(tgrt_shape(context.get(), TGRT_OUTPUT, 0, dims, nullptr), 0);
    EXPECT_EQ(dims[0], rows);
    EXPECT_EQ(dims[1], 4);
  }
}

TEST(Run, OwnTensorsNeedNoBinding) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  const RunContext context = new_context(model);
  tgrt_error error{};
  ASSERT_EQ(tgrt_set_var(context.get(), "N", 2, &error), 0) << error.text;
  const std::vector<float> x = sample(2);
  ASSERT_EQ(tgrt_bytes(context.get(), TGRT_INPUT, 0, &error), 32u);
  std::memcpy(tgrt_data(context.get(), TGRT_INPUT, 0, &error), x.data(), 32);
  ASSERT_EQ(tgrt_run(context.get(), &error), 0) << error.text;
  const float* y = static_cast<const float*>(tgrt_data(context.get(), TGRT_OUTPUT, 0, &error));
  EXPECT_EQ(std::vector<float>(y, y + 8), expected_affine(x));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(y) % 64, 0u);
}

TEST(Run, ThreadsGiveEqualBits) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  const std::vector<float> x = sample(1000);
  const std::vector<float> one = run_affine(new_context(model, 1).get(), x);
  EXPECT_EQ(one, expected_affine(x));
  for (const uint32_t threads : {2u, 4u, 7u}) {
    const RunContext context = new_context(model, threads);
    for (int repeat = 0; repeat < 300; ++repeat) ASSERT_EQ(run_affine(context.get(), x), one) << threads;
  }
}

TEST(Run, MoreThreadsThanChunks) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  const RunContext context = new_context(model, 8);
  EXPECT_EQ(run_affine(context.get(), sample(3)), expected_affine(sample(3)));
}

TEST(Run, ContextsOfOneModelInSeveralThreads) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  std::vector<std::vector<float>> results(2);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      const RunContext context = new_context(model, 2);
      for (int repeat = 0; repeat < 50; ++repeat)
        results[t] = run_affine(context.get(), sample(static_cast<int64_t>(100 + t)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], expected_affine(sample(100)));
  EXPECT_EQ(results[1], expected_affine(sample(101)));
}

TEST(Run, TwoBundlesInterleaved) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  Context ctx;
  BundleContents other = affine_model(ctx, read_file(path).empty() ? "" : compile_c(kAffineSource));
  other.weights[0].data = inline_weight({10, 10, 10, 10});
  other.weights[1].data = inline_weight({1, 1, 1, 1});
  const std::string other_path = temp_folder() + "/other.bundle";
  write_bundle(other, other_path);
  const Model a = load(path), b = load(other_path);
  const RunContext run_a = new_context(a), run_b = new_context(b);
  const std::vector<float> x = {1, 2, 3, 4};
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(run_affine(run_a.get(), x), (std::vector<float>{1, 3, 0, 2.25f}));
    EXPECT_EQ(run_affine(run_b.get(), x), (std::vector<float>{11, 21, 31, 41}));
  }
}

namespace {

struct CountingAllocator {
  std::atomic<int> live{0}, calls{0};
  static void* allocate(void* user, size_t bytes, size_t alignment) {
    auto* self = static_cast<CountingAllocator*>(user);
    ++self->live;
    ++self->calls;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  static void release(void* user, void* memory, size_t) {
    --static_cast<CountingAllocator*>(user)->live;
    std::free(memory);
  }
  tgrt_allocator hooks() { return {this, allocate, release}; }
};

} // namespace

TEST(Run, CallersAllocatorSeesEverythingAndNothingDuringRuns) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  CountingAllocator counter;
  const tgrt_allocator hooks = counter.hooks();
  tgrt_load_options options{};
  options.struct_size = sizeof options;
  options.allocator = &hooks;
  tgrt_model* raw = nullptr;
  ASSERT_EQ(tgrt_load_file(path.c_str(), &options, &raw, nullptr), 0);
  Model model(raw);
  RunContext context = new_context(model, 2);
  run_affine(context.get(), sample(64));
  const int calls = counter.calls;
  EXPECT_GE(calls, 5); // model, context, pool, arena, tensors
  for (const int64_t rows : {64, 8, 64}) run_affine(context.get(), sample(rows));
  EXPECT_EQ(counter.calls, calls);
  context.reset();
  model.reset();
  EXPECT_EQ(counter.live, 0);
}

TEST(Run, CallersThreads) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  static std::atomic<int> forks;
  forks = 0;
  tgrt_thread_pool pool{};
  pool.count = 3;
  pool.run = [](void*, void (*body)(void*, uint32_t), void* arg) {
    ++forks;
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 3; ++t) threads.emplace_back(body, arg, 2 - t);
    for (std::thread& thread : threads) thread.join();
  };
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.pool = &pool;
  tgrt_context* raw = nullptr;
  ASSERT_EQ(tgrt_create_context(model.get(), &options, &raw, nullptr), 0);
  const RunContext context(raw);
  EXPECT_EQ(run_affine(context.get(), sample(100)), expected_affine(sample(100)));
  EXPECT_EQ(forks, 1);
}

TEST(Run, ProfileReportsEachStep) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  std::vector<std::string> seen;
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  options.profile_user = &seen;
  options.profile = [](void* user, const tgrt_step_event* event) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(event->step) + " " + event->kernel + " " +
                                                            event->origin + " " + std::to_string(event->bytes));
    EXPECT_LT(event->nanoseconds, 1000000000u);
  };
  tgrt_context* raw = nullptr;
  ASSERT_EQ(tgrt_create_context(model.get(), &options, &raw, nullptr), 0);
  const RunContext context(raw);
  run_affine(context.get(), sample(10));
  EXPECT_EQ(seen, (std::vector<std::string>{"0 k_scale mul1 480", "1 k_bias add1, relu1 480"}));
}

TEST(Run, FloatStateIsSetAndRestored) {
  const std::string source = kPrelude + R"(
KERNEL(k) { const float *x = a->bufs[0]; float *y = a->bufs[1]; y[0] = x[0] + x[1]; y[1] = x[2] * x[3]; }
)";
  const std::string code = compile_c(source);
  TGRT_NEED_CC(code);
  Context ctx;
  BundleContents c;
  c.inputs = {{"x", DType::F32, {ctx.index(4)}}};
  c.outputs = {{"y", DType::F32, {ctx.index(2)}}};
  c.kernels = {{"k", "", Ref(), ctx.index(1), Ref(), Ref()}};
  c.steps = {{0, {{BundleContents::Arg::Kind::Input, 0}, {BundleContents::Arg::Kind::Output, 0}}, ""}};
  c.code = code;
  const std::string path = temp_folder() + "/round.bundle";
  write_bundle(c, path);
  const Model model = load(path);
  const RunContext context = new_context(model);
  const float x[4] = {1, 1e-9f, 1e-30f, 1e-10f}; // 1 + tiny rounds up under FE_UPWARD; the product is denormal
  std::memcpy(tgrt_data(context.get(), TGRT_INPUT, 0, nullptr), x, sizeof x);
  std::fesetround(FE_UPWARD);
  const int rc = tgrt_run(context.get(), nullptr);
  const int mode = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(mode, FE_UPWARD);
  const float* y = static_cast<const float*>(tgrt_data(context.get(), TGRT_OUTPUT, 0, nullptr));
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1e-40f);
}

TEST(Run, GuardFindsNothingInAGoodModel) {
  const std::string path = affine_bundle();
  TGRT_NEED_CC(path);
  const Model model = load(path);
  const RunContext context = new_context(model, 2, TGRT_CONTEXT_GUARD);
  for (const int64_t rows : {7, 100, 1})
    EXPECT_EQ(run_affine(context.get(), sample(rows)), expected_affine(sample(rows)));
}

TEST(Run, GuardNamesTheKernelThatWritesTooFar) {
  std::string source = kAffineSource;
  const std::string last = "row[i];\n  }";
  source.replace(source.find(last), last.size(), "row[i];\n  }\n  t[end * 4] = x[0];");
  const std::string code = compile_c(source);
  TGRT_NEED_CC(code);
  Context ctx;
  const std::string path = temp_folder() + "/stray.bundle";
  write_bundle(affine_model(ctx, code), path);
  const Model model = load(path);
  const RunContext context = new_context(model, 1, TGRT_CONTEXT_GUARD);
  const std::vector<float> x = sample(3);
  const int64_t dims[] = {3, 4};
  ASSERT_EQ(tgrt_set_shape(context.get(), 0, dims, 2, nullptr), 0);
  ASSERT_EQ(tgrt_bind_input(context.get(), 0, x.data(), 48, nullptr), 0);
  tgrt_error error{};
  EXPECT_EQ(tgrt_run(context.get(), &error), TGRT_E_GUARD);
  EXPECT_STREQ(error.text, "TGR-E308: step 0, kernel k_scale: wrote outside an arena buffer, at byte 48. This is a bug "
                           "of the compiler; report the model and its options.");
}

TEST(Run, GuardUnaliasesBuffersOfOneSlot) {
  // Two buffers share slot 0: apart they take the larger size, in guard mode both.
  const std::string code = compile_c(kAffineSource);
  TGRT_NEED_CC(code);
  Context ctx;
  BundleContents c = affine_model(ctx, code);
  c.buffers.push_back({ctx.index(4096), 0});
  const std::string path = temp_folder() + "/alias.bundle";
  write_bundle(c, path);
  const Model model = load(path);
  const RunContext plain = new_context(model), guarded = new_context(model, 1, TGRT_CONTEXT_GUARD);
  for (tgrt_context* context : {plain.get(), guarded.get()}) ASSERT_EQ(tgrt_set_var(context, "N", 1, nullptr), 0);
  const size_t scratch = 64 + 128;
  EXPECT_EQ(tgrt_arena_bytes(plain.get(), nullptr), 4096 + scratch);
  EXPECT_EQ(tgrt_arena_bytes(guarded.get(), nullptr), 4096 + 64 + scratch + 3 * 512);
}
