// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a chain of f16 ops rounds after each, and the errors add up to many units of the result's last place, while
// the hardware computes in f32 anyway.
// Idea: each op on halves is the op in f32 with a cast down behind it (one op so rounded is the op rounded once:
// 24 >= 2*11 + 2 bits). Casts down move behind movement and extremes, which commute with rounding; one that meets a
// cast up goes away with it. That last step is the only one that changes values, towards the exact ones. What is left
// is one rounding where a value leaves f32: outputs, comparisons, conversions to other types. Not handled: reductions
// that sum halves (importers accumulate in f32).
#include "rewrite/rules/widen_half.h"

#include "rewrite/rewrite.h"

namespace tgc {
namespace {
constexpr Cap X{0};

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
Pat halves(const Pat& p) { return p.where_dtype(dtype_mask(is_half)); }
bool is_narrowed(Ref x) { return x->is(Ops::Cast) && is_half(x->dtype) && x->src[0]->dtype == DType::F32; }

/// Where a value is computed, so that its f32 form exists without rounding; a model's own conversion of its data does
/// round.
bool is_computed(Ref x) {
  while (info(x->op).cls == OpClass::Movement) x = x->src[0];
  const OpClass c = info(x->op).cls;
  return (c == OpClass::Unary && !x->is(Ops::Cast) && !x->is(Ops::Bitcast)) || c == OpClass::Binary ||
         c == OpClass::Ternary || c == OpClass::Reduce;
}

bool selects(Ref x) { return x->is(Ops::Where) || x->is(Ops::Max) || x->is(Ops::Min); }

Ref on_floats(Ref x) {
  std::vector<Ref> src(x->src.begin(), x->src.end());
  for (Ref& s : src)
    if (is_half(s->dtype)) s = is_narrowed(s) ? s->src[0] : cast(s, DType::F32);
  return cast(x->ctx->make(x->op, DType::F32, src, *x->attrs), x->dtype);
}

/// A selection among stored halves stays as it is.
Ref elementwise_on_floats(Match& m) {
  const Ref x = m.root();
  if (x->is(Ops::Cast) || x->is(Ops::Bitcast)) return {};
  bool narrowed = !selects(x);
  for (Ref s : x->src) narrowed |= is_narrowed(s) && is_computed(s->src[0]);
  return narrowed ? on_floats(x) : Ref();
}

Ref behind(Match& m) {
  const Ref x = m.root(), s = x->src[0];
  if (!is_narrowed(s) || !is_computed(s->src[0])) return {};
  if (x->is(Ops::Reduce) && x->s(Attr::Kind) != "max" && x->s(Attr::Kind) != "min") return {};
  return on_floats(x);
}

Ref cast_up(Match& m) {
  const Ref wide = m[X];
  return wide->dtype == DType::F32 && is_computed(wide) ? wide : Ref();
}

OpMask elementwise_ops() {
  OpMask ops;
  for (int o = 0; o < kNumOps; ++o) {
    const OpClass c = info(static_cast<Ops>(o)).cls;
    ops.set(static_cast<size_t>(o), c == OpClass::Unary || c == OpClass::Binary || c == OpClass::Ternary);
  }
  return ops;
}

OpMask passing_ops() {
  OpMask ops;
  for (int o = 0; o < kNumOps; ++o) ops.set(static_cast<size_t>(o), info(static_cast<Ops>(o)).cls == OpClass::Movement);
  ops.set(static_cast<size_t>(Ops::Reduce));
  return ops;
}
} // namespace

const PatternMatcher& widen_half() {
  static const PatternMatcher rules("widen-half",
                                    {
                                        {"op", halves(Pat(elementwise_ops(), {}, true)), elementwise_on_floats},
                                        {"behind", halves(Pat(passing_ops(), {}, true)), behind},
                                        {"cast-up", of_dtype(DType::F32, cast(halves(cast(X)))), cast_up, kApproximate},
                                    },
                                    kSameValue | kStandard);
  return rules;
}

Ref widen_half(Ref root, PassContext& context) {
  return graph_rewrite(root, widen_half(), context, {.name = "widen-half"});
}

} // namespace tgc
