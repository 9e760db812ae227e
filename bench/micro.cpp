// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single kernels against what the core can do. Each row of kCases compiles a graph and runs it through libtgrt on one
// thread; GFLOP/s and GB/s are of its best run. of_roof is the share of the tighter of two limits, named in the label
// and measured in the same process before: the best FMA loop, and reading as many bytes as the graph must move
// (inputs, weights and outputs once) over and over, which finds them in the same cache as the kernel does. Compare best
// with best; machines are noisy. Operations of transcendentals and of reductions without products do not count.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
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

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

using Dims = std::vector<int64_t>;

double count(const Dims& dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

struct Graph {
  Module module;
  Context& ctx = *module.ctx;
  double flops = 0; ///< per run
  double bytes = 0; ///< of inputs, weights and outputs
  int64_t slots = 0;

  Ref leaf(Ops op, const Dims& dims, Attrs attrs) {
    std::vector<Ref> src;
    for (int64_t d : dims) src.push_back(ctx.index(d));
    bytes += 4 * count(dims);
    return ctx.make(op, DType::F32, src, std::move(attrs));
  }
  Ref param(const Dims& dims) {
    const int64_t slot = slots++;
    return leaf(Ops::Param, dims, {{Attr::Slot, slot}, {Attr::Name, std::to_string(slot)}});
  }
  Ref weight(const Dims& dims) {
    std::vector<std::byte> raw(static_cast<size_t>(count(dims)) * 4);
    for (size_t i = 0; i < raw.size() / 4; ++i) {
      const float v = static_cast<float>(static_cast<int64_t>(i * 7919 % 1000) - 500) / 500;
      std::memcpy(raw.data() + i * 4, &v, 4);
    }
    const std::string key = std::to_string(module.weights.size());
    module.weights[key] = inline_weight(std::move(raw));
    return leaf(Ops::Weight, dims, {{Attr::Key, key}});
  }
  void output(Ref value, const Dims& dims) {
    Ref sink = ctx.make(Ops::Sink, DType::Void, {ctx.make(Ops::Store, DType::Void, {param(dims), value})});
    module.root = ctx.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("main")}});
  }
};

using Build = std::function<void(Graph&)>;

enum class Right { Constant, Dynamic };

/// [m, k] · [k, n].
Build matmul(int64_t m, int64_t k, int64_t n, Right right = Right::Constant) {
  return [=](Graph& g) {
    Ref a = g.param({m, k});
    Ref b = right == Right::Constant ? g.weight({k, n}) : g.param({k, n});
    g.flops = 2 * count({m, k, n});
    g.output(tensor::matmul(a, b), {m, n});
  };
}

struct Conv {
  int64_t in, out, size, kernel, stride = 1, groups = 1;
};

/// Padded so that stride 1 keeps the size.
Build conv(Conv c) {
  return [c](Graph& g) {
    const tensor::Window window{.kernel = c.kernel, .stride = c.stride, .pad_lo = c.kernel / 2, .pad_hi = c.kernel / 2};
    const int64_t out_size = (c.size - 1) / c.stride + 1, part = c.in / c.groups;
    const Dims result = {1, c.out, out_size, out_size};
    Ref x = g.param({1, c.in, c.size, c.size});
    Ref w = g.weight({c.out, part, c.kernel, c.kernel});
    g.flops = 2 * count(result) * count({part, c.kernel, c.kernel});
    g.output(tensor::conv(x, w, {window, window}, c.groups), result);
  };
}

/// Over the last axis.
Build softmax(int64_t rows, int64_t columns) {
  return [=](Graph& g) { g.output(tensor::softmax(g.param({rows, columns}), 1), {rows, columns}); };
}

/// Over the last axis, with scale and bias.
Build layernorm(int64_t rows, int64_t columns) {
  return [=](Graph& g) {
    Ref x = tensor::standardize(g.param({rows, columns}), {1}, 1e-5);
    auto along_rows = [&] { return tensor::broadcast_to(g.weight({columns}), tensor::dims_of(x)); };
    Ref scaled = tensor::mul(x, along_rows());
    g.output(tensor::add(scaled, along_rows()), {rows, columns});
  };
}

/// softmax(Q · Kᵀ / √64) · V, all [heads, tokens, 64].
Build attention(int64_t heads, int64_t tokens) {
  return [=](Graph& g) {
    const int64_t width = 64;
    const Dims dims = {heads, tokens, width};
    Ref q = g.param(dims), k = g.param(dims), v = g.param(dims);
    Ref scores = tensor::mul(tensor::matmul(q, tensor::swap_axes(k, 1, 2)), 1 / std::sqrt(double(width)));
    g.flops = 4 * count({heads, tokens, tokens, width});
    g.output(tensor::matmul(tensor::softmax(scores, 2), v), dims);
  };
}

struct Case {
  const char* name;
  Build build;
};

// clang-format off
const Case kCases[] = {
    {"matmul/64",                      matmul(64, 64, 64)},
    {"matmul/128",                     matmul(128, 128, 128)},
    {"matmul/256",                     matmul(256, 256, 256)},
    {"matmul/512",                     matmul(512, 512, 512)},
    {"matmul/1024",                    matmul(1024, 1024, 1024)},
    {"matmul/2048",                    matmul(2048, 2048, 2048)},
    {"matmul_dynamic/512",             matmul(512, 512, 512, Right::Dynamic)},
    {"matmul_dynamic/1024",            matmul(1024, 1024, 1024, Right::Dynamic)},
    {"gemv/4096x4096",                 matmul(1, 4096, 4096)},
    {"conv3x3/64_64_56",               conv({.in = 64, .out = 64, .size = 56, .kernel = 3})},
    {"conv1x1/256_64_56",              conv({.in = 256, .out = 64, .size = 56, .kernel = 1})},
    {"conv7x7s2/3_64_224",             conv({.in = 3, .out = 64, .size = 224, .kernel = 7, .stride = 2})},
    {"depthwise3x3/96_56",             conv({.in = 96, .out = 96, .size = 56, .kernel = 3, .groups = 96})},
    {"depthwise3x3s2/96_56",           conv({.in = 96, .out = 96, .size = 56, .kernel = 3, .stride = 2, .groups = 96})},
    {"softmax/128x512",                softmax(128, 512)},
    {"softmax/6144x512",               softmax(6144, 512)},
    {"layernorm/128x768",              layernorm(128, 768)},
    {"layernorm/4096x768",             layernorm(4096, 768)},
    {"attention/12_128",               attention(12, 128)},
    {"attention/12_512",               attention(12, 512)},
    {"attention/12_1500",              attention(12, 1500)},
};
// clang-format on

// ---- running --------------------------------------------------------------------------------------------------------

/// A compiled graph, loaded, its inputs filled.
class Kernel {
public:
  explicit Kernel(const Build& build) {
    Graph graph;
    build(graph);
    flops = graph.flops;
    bytes = graph.bytes;
    const CompileOptions options;
    Compilation c = start_compilation(std::move(graph.module), options);
    run_pipeline(c, options);
    fold_constants(c);
    render(c);
    const std::string path = "/tmp/tgc_bench_" + std::to_string(getpid()) + ".bundle";
    write_bundle(assemble(c, options), path);
    load(path);
    unlink(path.c_str());
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() {
    tgrt_free_context(context_);
    tgrt_free_model(model_);
  }

  void run() {
    if (tgrt_run(context_, &error_)) fail(error_.text);
  }

  double flops = 0, bytes = 0;

private:
  void load(const std::string& path) {
    tgrt_context_options one{};
    one.struct_size = sizeof one;
    one.threads = 1;
    if (tgrt_load_file(path.c_str(), nullptr, &model_, &error_) ||
        tgrt_create_context(model_, &one, &context_, &error_))
      fail(error_.text);
    for (uint32_t input = 0; input < tgrt_tensor_count(model_, TGRT_INPUT); ++input) {
      auto* x = static_cast<float*>(tgrt_data(context_, TGRT_INPUT, input, &error_));
      for (size_t i = 0; i < tgrt_bytes(context_, TGRT_INPUT, input, &error_) / 4; ++i)
        x[i] = static_cast<float>(i % 17) / 17 - 0.5F;
    }
  }

  tgrt_error error_{};
  tgrt_model* model_ = nullptr;
  tgrt_context* context_ = nullptr;
};

/// GB/s of reading `bytes` again and again.
double bandwidth(double bytes) {
  const size_t floats = static_cast<size_t>(bytes) / 4;
  std::vector<float> data(floats + 16, 1.0F);
  const size_t misplaced = reinterpret_cast<size_t>(data.data()) / sizeof(float) % 16;
  return read_bandwidth(seconds, data.data() + (16 - misplaced) % 16, floats, 20);
}

/// The smallest memory that holds `bytes`, by name: of a cache that cores share, one may have less.
const char* home(double bytes) {
  if (bytes <= static_cast<double>(sysconf(_SC_LEVEL1_DCACHE_SIZE))) return "L1";
  if (bytes <= static_cast<double>(sysconf(_SC_LEVEL2_CACHE_SIZE))) return "L2";
  return bytes <= static_cast<double>(sysconf(_SC_LEVEL3_CACHE_SIZE)) ? "L3" : "DRAM";
}

/// GFLOP/s: the best so far, measured again; a core is slower at times.
double peak_so_far() {
  static double best = 0;
  return best = std::max(best, fma_peak(seconds, 300));
}

void measure(benchmark::State& state, Kernel& kernel) {
  const double peak = peak_so_far(), gbs = bandwidth(kernel.bytes);
  kernel.run();
  const double first = seconds();
  kernel.run();
  // Reading the clock takes some tenths of a microsecond, so that short runs are timed together.
  const auto together = static_cast<int64_t>(std::max(1.0, 50e-6 / std::max(seconds() - first, 1e-7)));
  double best = 1e30;
  while (state.KeepRunningBatch(together)) {
    const double start = seconds();
    for (int64_t i = 0; i < together; ++i) kernel.run();
    best = std::min(best, (seconds() - start) / static_cast<double>(together));
  }
  const double fma_time = kernel.flops / peak / 1e9, read_time = kernel.bytes / gbs / 1e9;
  if (kernel.flops > 0) state.counters["GFLOP/s"] = kernel.flops / best / 1e9;
  state.counters["GB/s"] = kernel.bytes / best / 1e9;
  state.counters["of_roof"] = std::max(fma_time, read_time) / best;
  char label[64];
  if (fma_time >= read_time)
    std::snprintf(label, sizeof label, "of FMA: %.1f GFLOP/s", peak);
  else
    std::snprintf(label, sizeof label, "of %s (%.2f MB): %.1f GB/s", home(kernel.bytes), kernel.bytes / 1e6, gbs);
  state.SetLabel(label);
}

} // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const Case& row : kCases)
    benchmark::RegisterBenchmark(row.name, [&row, kernel = std::shared_ptr<Kernel>()](benchmark::State& state) mutable {
      if (!kernel) kernel = std::make_shared<Kernel>(row.build); // once: the function is called for each trial
      measure(state, *kernel);
    })->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
