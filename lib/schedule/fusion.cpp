// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The default fusion policy. Loop-invariant values are hoisted by the linearizer to the loop of their own innermost
// range, so inlining a value costs `evaluations - elements` extra computations and no more: a row sum used along its
// row is free, a convolution read by the windows of the next one is not. Everything here is arithmetic on that
// difference.
#include "schedule/fusion.h"

namespace tgc {
namespace {

constexpr double kRecompute = 4;         // operations per element worth less than a store and a load of it
constexpr double kMaxReads = 10;         // a kernel reads few buffers: a chain of concatenations must not read them all
constexpr double kStageBytes = 32 << 10; // a staged row must stay in L1

} // namespace

Fusion default_fusion(const FusionQuery& q) {
  const double extra = q.evaluations / (q.elements > 0 ? q.elements : 1) - 1;
  const bool once = q.stage_evaluations <= 1.5 * q.elements;
  const bool fits = q.stage_bytes >= 0 && q.stage_bytes <= kStageBytes;
  // Attention: a product of run-time values, read by row and then multiplied again, never leaves the row.
  if (q.multiplies && fits && once && (q.is_factor ? extra > 0 : q.uses > 1)) return Fusion::Stage;
  if (q.reduces && q.in_reduce) return Fusion::Realize; // a matmul or convolution deserves its own tiled kernel
  // In a loop of another kernel, or twice in one, it would keep that kernel from tiling.
  if (q.contracts && (q.hoisted || q.uses > 1)) return Fusion::Realize;
  if (q.reads > kMaxReads) return Fusion::Realize;
  if (extra * q.cost < kRecompute) return Fusion::Inline;
  if (q.uses > 1 && !q.reduces && once && fits) return Fusion::Stage;
  return Fusion::Realize;
}

} // namespace tgc
