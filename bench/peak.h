// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What this core can do at most, measured: the roof that kernels are held against. Compiled with -O3 -march=native.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace tgc {

/// GFLOP/s of the best of `runs` short runs of twelve independent multiply-add chains in the widest vectors of this
/// build; `seconds()` is the clock.
template <typename Clock> double fma_peak(Clock seconds, int runs = 100) {
#ifdef __AVX512F__
  constexpr int kLanes = 16;
#else
  constexpr int kLanes = 8;
#endif
  constexpr int kChains = 12, kSteps = 20000;
  typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    Lanes chain[kChains] = {};
    for (Lanes& c : chain) asm volatile("" : "+x"(c)); // equal chains would be one
    Lanes scale = Lanes{} + 0.999F, step = Lanes{} + 0.5F;
    asm volatile("" : "+x"(scale));
    const double start = seconds();
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
      for (int c = 0; c < kChains; ++c) chain[c] = chain[c] * scale + step;
    const double took = seconds() - start;
    for (Lanes& c : chain) asm volatile("" : "+x"(c));
    best = std::max(best, 2.0 * kChains * kLanes * kSteps / took / 1e9);
  }
  return best;
}

/// GB/s of reading `count` floats over and over, from the cache or memory that holds that many; `data` is 64-byte
/// aligned. Reads eight streams at once, which keeps more of memory busy than one. The time of a pass is the sum of the
/// best times of its pieces of 4 MB: a piece is short enough not to be interrupted. Requires 256 floats.
template <typename Clock> double read_bandwidth(Clock seconds, const float* data, size_t count, int runs = 10) {
  constexpr size_t kLanes = 16, kStreams = 8, kPiece = size_t{1} << 20, kLeastRead = size_t{1} << 19;
  typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
  const size_t piece = std::min(count, kPiece);
  const size_t stream = piece / (kLanes * kStreams); // in vectors; an even number of them is read
  const size_t passes = std::max<size_t>(1, kLeastRead / piece);
  std::vector<double> best(std::max<size_t>(1, count / piece), 1e30);
  for (int run = 0; run < runs; ++run)
    for (size_t p = 0; p < best.size(); ++p) {
      const auto* from = reinterpret_cast<const Lanes*>(data + p * piece);
      Lanes sum[2 * kStreams] = {};
      const double start = seconds();
      for (size_t pass = 0; pass < passes; ++pass) {
        for (size_t i = 0; i + 1 < stream; i += 2)
#pragma GCC unroll 16
          for (size_t s = 0; s < 2 * kStreams; ++s) sum[s] += from[s / 2 * stream + i + s % 2];
        asm volatile("" ::: "memory");
      }
      const double took = (seconds() - start) / static_cast<double>(passes);
      for (Lanes& s : sum) asm volatile("" : "+x"(s));
      best[p] = std::min(best[p], took);
    }
  double total = 0;
  for (double took : best) total += took;
  const size_t read = best.size() * kStreams * (stream & ~size_t{1}) * kLanes;
  return static_cast<double>(read) * sizeof(float) / total / 1e9;
}

} // namespace tgc
