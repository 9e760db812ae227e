// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "uop/uop.h"

namespace tgc {

/// Where a value lives between its computation and its uses.
enum class Fusion : uint8_t {
  Inline,  ///< computed at each use
  Stage,   ///< computed once per iteration of the ranges all uses agree on, kept in scratch
  Realize, ///< computed by its own kernel, kept in a buffer
};

/// A kernel reads few buffers (a chain of concatenations must not read them all), and its code is short: what is
/// inlined costs no more than this many operations, loops counted once. A value beyond is realized.
constexpr size_t kMaxReads = 10;
constexpr double kMaxCode = 512;

/// What a policy is told about one elementwise or reduce node. Sizes use the upper bounds of symbolic dims.
struct FusionQuery {
  Ref node;
  int64_t uses;             ///< distinct positions at which consumers read it
  double elements;          ///< elements of the node
  double evaluations;       ///< elements computed, over all uses, if inlined
  double cost;              ///< operations of computing one element, down to buffers and broadcasts
  size_t reads;             ///< distinct buffers that computing one element reads, likewise
  double code;              ///< operations of one element, the body of a reduction counted once
  bool reduces;             ///< computing it runs a reduction (those below a broadcast aside: they run elsewhere)
  bool in_reduce;           ///< some use lies inside a reduction whose range its index depends on
  bool contracts;           ///< that reduction is a sum of products
  bool multiplies;          ///< of values that are both known at run time only
  bool is_factor;           ///< its one use is as a factor of such a sum of products
  bool hoisted;             ///< it is used in more loops than it depends on
  double stage_bytes;       ///< scratch bytes if staged, with open dims as long as is likely; negative if it cannot be
  double stage_evaluations; ///< elements computed if staged
};

/// The scheduler's only judgement on fusion, replaceable as a whole.
using FusionPolicy = Fusion (*)(const FusionQuery&);

/// Inlines what is cheap or computed once anyway, stages what is shared within a row, realizes the rest.
Fusion default_fusion(const FusionQuery& query);

} // namespace tgc
