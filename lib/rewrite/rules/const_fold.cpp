// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constant folding of scalars.
//
// An integer node whose bounds leave one value is that constant; ranges stay,
// because reductions and loops name them. Folding of whole tensors is done by compiled kernels, not here.
#include <limits>

#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
bool is_elementwise(Ref x) {
  switch (x->cls()) {
  case OpClass::Unary:
  case OpClass::Binary:
  case OpClass::Compare:
  case OpClass::Ternary: return true;
  default: return false;
  }
}

/// A saturated bound may stand for any value beyond it.
Ref known_value(Match& m) {
  const Ref x = m.root();
  const bool saturated = x->lo == std::numeric_limits<int64_t>::min() || x->lo == std::numeric_limits<int64_t>::max();
  return x->lo == x->hi && !saturated && is_elementwise(x) ? m.graph().constant_int(x->dtype, x->lo) : Ref();
}

Pat elementwise() {
  OpMask ops;
  for (int o = 0; o < kNumOps; ++o) {
    const OpClass cls = info(static_cast<Ops>(o)).cls;
    ops.set(static_cast<size_t>(o),
            cls == OpClass::Unary || cls == OpClass::Binary || cls == OpClass::Compare || cls == OpClass::Ternary);
  }
  return Pat(ops, {}, true);
}
bool is_int_or_bool(DType t) { return is_int(t) || t == DType::Bool; }
} // namespace

const PatternMatcher& const_fold() {
  static const PatternMatcher rules(
      "const-fold",
      {
          {"known-value", elementwise().where_dtype(dtype_mask(is_int_or_bool)), known_value},

      },
      kSameValue);
  return rules;
}

} // namespace tgc
