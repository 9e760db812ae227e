// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "rewrite/pattern.h"
#include "uop/target.h"

namespace tgc {

/// Rules that express every elementwise op which the target lacks by ones that it has, and f16 and bf16 by f32 and
/// integer ops where the target lacks those types. Targets are expected to have: add, sub, mul, div, sqrt, and, or,
/// xor, not, shl, shr, lt, eq, ne, where, cast, bitcast, for f32, f64, i32, i64 and bool. f32 Mod is exact; f64 Mod for
/// |a/b| < 2^53.
PatternMatcher decompositions(const TargetInfo& target);
/// a*b + c and its signed relatives as Fma, in f32 and f64, when the target has it; else no rules. Structural: every
/// such sum becomes one, whether or not the product has other uses, so the result depends on the expression alone.
PatternMatcher form_fma(const TargetInfo& target);

/// Both, with constant folding, on one kernel: afterwards it holds only ops of context.target, which must be set.
Ref decompose(Ref kernel, PassContext& context);

/// The tables behind `decompositions`, for tests: rule by rule, whatever a target has.
const PatternMatcher& decompose_basic();
const PatternMatcher& decompose_transcendental();
/// For every target: a target's bit for Mod speaks of integers, its bit for Fma of f32 and f64.
const PatternMatcher& decompose_floats();
const PatternMatcher& decompose_half();

} // namespace tgc
