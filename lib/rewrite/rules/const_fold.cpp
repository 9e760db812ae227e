// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constant folding of scalars.
//
// An elementwise op of constants is computed by the same scalar function as the interpreter uses, so folding cannot
// change a result. Exp, Log, Sin, Cos, Tanh, Erf and Pow are left alone: their value is what our polynomials compute,
// and they fold once they are decomposed. An integer node whose bounds leave one value is that constant; ranges stay,
// because reductions and loops name them. Folding of whole tensors is done by compiled kernels, not here.
#include <limits>

#include "rewrite/rules/tables.h"
#include "uop/scalar.h"

namespace tgc {
namespace {
constexpr Cap X{0};

bool is_approximated(Ops o) {
  switch (o) {
  case Ops::Exp:
  case Ops::Log:
  case Ops::Sin:
  case Ops::Cos:
  case Ops::Tanh:
  case Ops::Erf:
  case Ops::Pow: return true;
  default: return false;
  }
}

Ref constant_of(Context& ctx, DType dtype, Bits bits) {
  return is_float(dtype) ? ctx.constant(dtype, to_double(dtype, bits)) : ctx.constant_int(dtype, to_int(dtype, bits));
}

bool all_const(Ref node) {
  for (Ref s : node->src)
    if (!s->is(Ops::Const)) return false;
  return true;
}

Ref fold(Match& m) {
  const Ref x = m.root();
  if (x->src.empty() || !all_const(x) || is_approximated(x->op)) return {};
  const DType type = x->is(Ops::Where) ? x->dtype : x->src[0]->dtype;
  const ScalarFn fn = scalar_fn(x->op, type);
  if (!fn) return {};
  Bits in[3] = {};
  for (size_t i = 0; i < x->src.size(); ++i) in[i] = const_bits(x->src[i]);
  return constant_of(m.graph(), x->dtype, fn(in[0], in[1], in[2]));
}

Ref fold_cast(Match& m) {
  const Ref x = m[X];
  if (!x->is(Ops::Const)) return {};
  return constant_of(m.graph(), m.root()->dtype, cast_bits(m.root()->dtype, x->dtype, const_bits(x)));
}

Ref fold_bitcast(Match& m) {
  if (!m[X]->is(Ops::Const) || m.root()->dtype == DType::Bool) return {}; // bits other than 0 and 1 are no bool
  return constant_of(m.graph(), m.root()->dtype, const_bits(m[X]));
}

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
          {"cast", op(Ops::Cast, {cst(X)}), fold_cast},
          {"bitcast", op(Ops::Bitcast, {cst(X)}), fold_bitcast},
          {"elementwise", elementwise(), fold},
      },
      kSameValue);
  return rules;
}

} // namespace tgc
