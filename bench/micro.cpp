// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single kernels against what the core can do. Each benchmark compiles a graph with constant weights, runs it through
// libtgrt on one thread and reports GFLOP/s of its best run and the share of the best FMA loop measured in the same
// process just before. Compare best with best; machines are noisy.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>

#include "frontend/nn.h"
#include "peak.h"
#include "runtime/tgrt.h"
#include "tgc/pipeline.h"
#include "tgc/weights.h"

namespace {

using namespace tgc;

/// CPU time of this thread: what a neighbour on the machine takes does not count.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Graph {
  Module module;
  Context& ctx = *module.ctx;

  Ref leaf(Ops op, const std::vector<int64_t>& dims, Attrs attrs) {
    std::vector<Ref> src;
    for (int64_t d : dims) src.push_back(ctx.index(d));
    return ctx.make(op, DType::F32, src, std::move(attrs));
  }
  Ref input(const std::vector<int64_t>& dims) {
    return leaf(Ops::Param, dims, {{Attr::Slot, int64_t{0}}, {Attr::Name, std::string("x")}});
  }
  Ref weight(const std::string& key, const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    std::vector<std::byte> bytes(static_cast<size_t>(n) * 4);
    for (int64_t i = 0; i < n; ++i) {
      float v = static_cast<float>((i * 7919 % 1000) - 500) / 500;
      std::memcpy(bytes.data() + i * 4, &v, 4);
    }
    module.weights[key] = inline_weight(std::move(bytes));
    return leaf(Ops::Weight, dims, {{Attr::Key, key}});
  }
  void output(Ref value) {
    std::vector<Ref> dims(value->shape.begin(), value->shape.end());
    Ref out = ctx.make(Ops::Param, DType::F32, dims, {{Attr::Slot, int64_t{1}}, {Attr::Name, std::string("y")}});
    Ref sink = ctx.make(Ops::Sink, DType::Void, {ctx.make(Ops::Store, DType::Void, {out, value})});
    module.root = ctx.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("main")}});
  }
};

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

/// Compiles `graph` and times it; `flops` per run.
void run(benchmark::State& state, Graph& graph, double flops) {
  double peak = fma_peak(seconds);
  CompileOptions options;
  Compilation c = start_compilation(std::move(graph.module), options);
  run_pipeline(c, options);
  fold_constants(c);
  render(c);
  std::string path = "/tmp/tgc_bench_" + std::to_string(getpid()) + ".bundle";
  write_bundle(assemble(c, options), path);
  tgrt_error error{};
  tgrt_model* model = nullptr;
  tgrt_context* context = nullptr;
  tgrt_context_options one{};
  one.struct_size = sizeof one;
  one.threads = 1;
  if (tgrt_load_file(path.c_str(), nullptr, &model, &error) || tgrt_create_context(model, &one, &context, &error))
    fail(error.text);
  unlink(path.c_str());
  auto* x = static_cast<float*>(tgrt_data(context, TGRT_INPUT, 0, &error));
  for (size_t i = 0; i < tgrt_bytes(context, TGRT_INPUT, 0, &error) / 4; ++i)
    x[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  double best = 1e30;
  for (auto _ : state) {
    double start = seconds();
    if (tgrt_run(context, &error)) fail(error.text);
    best = std::min(best, seconds() - start);
  }
  state.counters["GFLOP/s"] = flops / best / 1e9;
  state.counters["of_peak"] = flops / best / 1e9 / peak;
  tgrt_free_context(context);
  tgrt_free_model(model);
}

/// Square f32 matmul, constant right operand.
void matmul(benchmark::State& state) {
  int64_t n = state.range(0);
  Graph g;
  Ref x = g.input({n, n});
  g.output(tensor::matmul(x, g.weight("w", {n, n})));
  run(state, g, 2.0 * static_cast<double>(n * n * n));
}
BENCHMARK(matmul)->Arg(64)->Arg(256)->Arg(512)->Arg(1024)->Unit(benchmark::kMicrosecond);

/// Channels in, channels out, height and width, kernel; stride 1, padded to the same size.
void conv(benchmark::State& state) {
  int64_t in = state.range(0), out = state.range(1), size = state.range(2), kernel = state.range(3);
  Graph g;
  tensor::Window window;
  window.kernel = kernel;
  window.pad_lo = window.pad_hi = kernel / 2;
  Ref x = g.input({1, in, size, size});
  g.output(tensor::conv(x, g.weight("w", {out, in, kernel, kernel}), {window, window}, 1));
  run(state, g, 2.0 * static_cast<double>(in * out * size * size * kernel * kernel));
}
BENCHMARK(conv)->Args({64, 64, 56, 3})->Args({256, 64, 56, 1})->Unit(benchmark::kMicrosecond);

} // namespace

BENCHMARK_MAIN();
