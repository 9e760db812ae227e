// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints as JSON what THREADS threads together can do: {"gflops": of f32 multiply-adds, "gbs": reading memory}. Every
// thread measures at the same time, and the results are added; a thread's data is 128 MB. Best of many short runs, by
// the wall clock. Usage: bench_peak [THREADS]; pin it to as many CPUs.
#include "peak.h"

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

namespace {

constexpr size_t kFloats = size_t{32} << 20;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

} // namespace

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? static_cast<size_t>(std::max(1, std::atoi(argv[1]))) : 1;
  std::vector<double> gflops(count), gbs(count);
  std::barrier together(static_cast<std::ptrdiff_t>(count));
  auto measure = [&](size_t i) {
    std::vector<float> data(kFloats + 64, 1.0F);
    float* aligned = data.data() + (64 - reinterpret_cast<size_t>(data.data()) / sizeof(float) % 64) % 64;
    together.arrive_and_wait();
    gflops[i] = tgc::fma_peak(seconds, 300);
    together.arrive_and_wait();
    gbs[i] = tgc::read_bandwidth(seconds, aligned, kFloats, 10);
  };
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back(measure, i);
  threads.clear();
  std::printf("{\"gflops\": %.1f, \"gbs\": %.2f}\n", std::accumulate(gflops.begin(), gflops.end(), 0.0),
              std::accumulate(gbs.begin(), gbs.end(), 0.0));
  return 0;
}
