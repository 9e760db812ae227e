// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What this core can do at most, measured: the roof that kernels are held against. Compiled with -O3 -march=native.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

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

/// GB/s of the best piece of 4 MB of `runs` sums over `count` floats, which should be several times what the caches
/// hold; `data` is 64-byte aligned. A piece is short enough not to be interrupted.
template <typename Clock> double read_bandwidth(Clock seconds, const float* data, size_t count, int runs = 10) {
  constexpr size_t kLanes = 16, kPiece = size_t{1} << 20;
  typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
  double best = 0;
  for (int run = 0; run < runs; ++run)
    for (size_t piece = 0; piece + kPiece <= count; piece += kPiece) {
      const auto* from = reinterpret_cast<const Lanes*>(data + piece);
      Lanes sum[4] = {};
      const double start = seconds();
      for (size_t i = 0; i < kPiece / kLanes; i += 4)
        for (size_t s = 0; s < 4; ++s) sum[s] += from[i + s];
      const double took = seconds() - start;
      for (Lanes& s : sum) asm volatile("" : "+x"(s));
      best = std::max(best, static_cast<double>(kPiece) * sizeof(float) / took / 1e9);
    }
  return best;
}

} // namespace tgc
