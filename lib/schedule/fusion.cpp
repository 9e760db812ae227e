// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The default fusion policy. Loop-invariant values are hoisted by the linearizer to the loop of their own innermost
// range, so inlining a value costs `evaluations - elements` extra computations and no more: a row sum used along its
// row is free, a convolution read by the windows of the next one is not. Everything here is arithmetic on that
// difference.
#include "schedule/fusion.h"

namespace tgc {
namespace {

constexpr double kRecompute = 4;          // operations per element worth less than a store and a load of it
constexpr double kStageBytes = 32 << 10;  // a staged row must stay in L1
constexpr double kOperandBytes = 2 << 20; // what is read for every block of rows must stay in L2

} // namespace

Fusion default_fusion(const FusionQuery& q) {
  const double extra = q.evaluations / (q.elements > 0 ? q.elements : 1) - 1;
  const bool once = q.stage_evaluations <= 1.5 * q.elements;
  const bool fits = q.stage_bytes >= 0 && q.stage_bytes <= kStageBytes;
  // Attention: a product of run-time values, read by row and then multiplied again, never leaves the row. Every block
  // of rows reads the other operand again: so many elements per one of the row as it is read, or has terms.
  const double other_bytes = q.stage_bytes * (q.is_factor ? extra + 1 : q.cost / 2);
  if (q.multiplies && fits && once && other_bytes <= kOperandBytes && (q.is_factor ? extra > 0 : q.uses > 1))
    return Fusion::Stage;
  if (q.reduces && q.in_reduce) return Fusion::Realize; // a matmul or convolution deserves its own tiled kernel
  // In a loop of another kernel, or twice in one, it would keep that kernel from tiling.
  if (q.contracts && (q.hoisted || q.uses > 1)) return Fusion::Realize;
  if (q.reads > kMaxReads || q.code > kMaxCode) return Fusion::Realize;
  if (extra * q.cost < kRecompute) return Fusion::Inline;
  if (q.uses > 1 && !q.reduces && once && fits) return Fusion::Stage;
  return Fusion::Realize;
}

} // namespace tgc
