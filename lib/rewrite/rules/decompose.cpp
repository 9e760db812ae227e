// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops in terms of other ops, for targets that lack them, each exact by ops.def's meaning (transcendental functions to
// their stated accuracy). One rule per op; a target gets the rules of what it lacks, and rewriting to a fixpoint
// expands what the expansions use. Also the formation of fused multiply-adds, which is the one place they come from.
#include "rewrite/rules/decompose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "rewrite/rewrite.h"
#include "rewrite/rules/tables.h"
#include "rewrite/rules/transcendental.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, Z{2};

bool is_wide_float(DType t) { return t == DType::F32 || t == DType::F64; }
Pat wide(const Pat& p) { return p.where_dtype(dtype_mask(is_wide_float)); }
Pat halves(const Pat& p) {
  return p.where_dtype(dtype_mask([](DType t) { return is_float(t) && byte_size(t) == 2; }));
}
Ref both(Ref a, Ref b) { return logical_and(a, b); }
Ref zero_of(Ref x) { return const_like(x, 0); }
Ref is_zero(Ref x) { return binary(Ops::Eq, x, zero_of(x)); }
Ref negative(Ref x) { return lt(x, zero_of(x)); }

bool has_fma(Match& m) { return m.ctx().target && m.ctx().target->supports(Ops::Fma); }

// ---- rounding -------------------------------------------------------------------------------------------------------
/// |x| + 2^m - 2^m is |x| rounded to even, for |x| < 2^m; larger values and NaN are integers or themselves.
Ref round_of(Ref x) {
  const Ref a = unary(Ops::Abs, x);
  const double unit = x->dtype == DType::F64 ? 0x1p52 : 0x1p23;
  return real::with_sign_of(where(lt(a, const_like(x, unit)), (a + unit) - unit, a), x);
}
Ref round_rule(Match& m) { return round_of(m[X]); }
Ref floor_rule(Match& m) {
  const Ref r = unary(Ops::Round, m[X]);
  return real::with_sign_of(unary(Ops::Abs, where(lt(m[X], r), r - 1.0, r)), m[X]);
}
Ref ceil_rule(Match& m) {
  const Ref r = unary(Ops::Round, m[X]);
  return real::with_sign_of(unary(Ops::Abs, where(lt(r, m[X]), r + 1.0, r)), m[X]);
}
Ref trunc_rule(Match& m) {
  const Ref a = unary(Ops::Abs, m[X]), r = unary(Ops::Round, a);
  return real::with_sign_of(where(lt(a, r), r - 1.0, r), m[X]);
}

// ---- signs, order ---------------------------------------------------------------------------------------------------
Ref abs_float(Match& m) {
  const Ref bits = bitcast(m[X], real::bits_type(m[X]->dtype));
  const Ref mask = unary(Ops::Not, real::sign_bits(const_like(m[X], -0.0)));
  return bitcast(binary(Ops::And, bits, mask), m[X]->dtype);
}
Ref abs_int(Match& m) { return is_unsigned(m[X]->dtype) ? m[X] : where(negative(m[X]), unary(Ops::Neg, m[X]), m[X]); }
Ref neg_rule(Match& m) { return const_like(m[X], is_float(m[X]->dtype) ? -0.0 : 0.0) - m[X]; }

/// The first operand of equal ones, NaN of either.
Ref max_rule(Match& m) {
  const Ref greater = where(lt(m[X], m[Y]), m[Y], m[X]);
  return is_float(m[X]->dtype) ? where(binary(Ops::Ne, m[Y], m[Y]), m[Y], greater) : greater;
}
Ref min_rule(Match& m) {
  const Ref less = where(lt(m[Y], m[X]), m[Y], m[X]);
  return is_float(m[X]->dtype) ? where(binary(Ops::Ne, m[Y], m[Y]), m[Y], less) : less;
}
Ref le_rule(Match& m) {
  if (is_float(m[X]->dtype)) return binary(Ops::Or, lt(m[X], m[Y]), binary(Ops::Eq, m[X], m[Y]));
  return unary(Ops::Not, lt(m[Y], m[X]));
}

// ---- integer division -----------------------------------------------------------------------------------------------
/// log2 of a Const power of two, or nothing.
std::optional<int64_t> shift_of(Ref y) {
  const std::optional<int64_t> c = const_int(y);
  if (!c || *c <= 0 || !std::has_single_bit(static_cast<uint64_t>(*c))) return std::nullopt;
  return std::countr_zero(static_cast<uint64_t>(*c));
}
bool same_as_truncated(Ref x, Ref y) { return is_unsigned(x->dtype) || (x->lo >= 0 && y->lo > 0); }

/// Floored from truncated: one less when the remainder is not zero and has another sign than y. x/0 = 0 and x%0 = 0.
Ref floordiv_rule(Match& m) {
  const Ref x = m[X], y = m[Y];
  if (const std::optional<int64_t> k = shift_of(y)) return binary(Ops::Shr, x, const_like(x, static_cast<double>(*k)));
  const Ref q = binary(Ops::Div, x, y);
  if (same_as_truncated(x, y)) return q;
  const Ref r = binary(Ops::Mod, x, y);
  const Ref inexact = unary(Ops::Not, is_zero(r)), other_sign = binary(Ops::Ne, negative(r), negative(y));
  return where(both(inexact, other_sign), q - 1.0, q);
}
Ref floormod_rule(Match& m) {
  const Ref x = m[X], y = m[Y];
  if (shift_of(y)) return binary(Ops::And, x, x->ctx->constant_int(x->dtype, *const_int(y) - 1));
  const Ref r = binary(Ops::Mod, x, y);
  if (same_as_truncated(x, y)) return r;
  const Ref inexact = unary(Ops::Not, is_zero(r)), other_sign = binary(Ops::Ne, negative(r), negative(y));
  return where(both(inexact, other_sign), r + y, r);
}
Ref mod_int(Match& m) {
  const Ref r = m[X] - binary(Ops::Div, m[X], m[Y]) * m[Y];
  return m[Y]->lo > 0 || m[Y]->hi < 0 ? r : where(is_zero(m[Y]), zero_of(r), r);
}

// ---- floating remainder ---------------------------------------------------------------------------------------------
/// a mod b for a >= 0, b > 0 in f64, where a/b < 2^53: a quotient rounded one too far is put back.
Ref remainder_step(Ref a, Ref b, bool fma) {
  const Ref q = unary(Ops::Trunc, binary(Ops::Div, a, b));
  const real::Double2 p = real::product(q, b, fma);
  const Ref r = (a - p.high) - p.low;
  return where(lt(a, b), a, where(negative(r), r + b, where(lt(r, b), r, r - b)));
}
/// Exact: a/b < 2^277 (f32) or 2^2098 (f64) is taken 52 bits at a time, in f64. A scaled b may be infinite: no step.
Ref mod_float(Match& m) {
  const Ref x = m[X], y = m[Y];
  const Ref a = cast(unary(Ops::Abs, x), DType::F64), b = cast(unary(Ops::Abs, y), DType::F64);
  Ref r = a;
  for (int step = x->dtype == DType::F32 ? 5 : 40; step >= 0; --step) {
    const int first = std::min(52 * step, 1020);
    const Ref scaled = b * std::ldexp(1.0, first) * std::ldexp(1.0, std::min(52 * step - first, 1020));
    r = remainder_step(r, 52 * step > 2040 ? scaled * std::ldexp(1.0, 52 * step - 2040) : scaled, has_fma(m));
  }
  const Ref inf = const_like(a, std::numeric_limits<double>::infinity());
  const Ref nan = const_like(a, std::numeric_limits<double>::quiet_NaN());
  r = where(binary(Ops::Eq, b, inf), a, r);
  const Ref defined = both(lt(a, inf), lt(zero_of(b), b));
  return real::with_sign_of(cast(where(defined, r, nan), x->dtype), x);
}

/// Exact: the remainder of two numbers of a format is a number of the format.
Ref mod_half(Match& m) {
  return cast(binary(Ops::Mod, cast(m[X], DType::F32), cast(m[Y], DType::F32)), m.root()->dtype);
}

// ---- fused 16-bit floats --------------------------------------------------------------------------------------------
/// The product is exact in f64. What the sum loses goes into its last bit (round to odd), for the last rounding to see.
Ref fma_half(Match& m) {
  const Ref p = cast(m[X], DType::F64) * cast(m[Y], DType::F64), z = cast(m[Z], DType::F64);
  const Ref s = p + z, part = s - p, lost = (p - (s - part)) + (z - part);
  const Ref up = lt(zero_of(lost), lost), down = negative(lost), bits = bitcast(s, DType::I64);
  const Ref shrink = binary(Ops::Ne, down, negative(s));
  const Ref truncated = where(shrink, bits - const_like(bits, 1), bits);
  const Ref odd = binary(Ops::Or, truncated, bits->ctx->constant_int(DType::I64, 1));
  const Ref inexact = binary(Ops::Or, up, down); // neither for infinity and NaN
  return cast(bitcast(where(inexact, odd, bits), DType::F64), m.root()->dtype);
}

/// z - x*y; the sign goes into a constant factor where there is one.
Ref subtract_product(Match& m) {
  const std::optional<double> c = const_float(m[Y]);
  const Ref x = c ? m[X] : -m[X], y = c ? const_like(m[Y], -*c) : m[Y];
  return m.graph().make(Ops::Fma, m.root()->dtype, {x, y, m[Z]});
}

/// Byte by byte: shifts put a byte on top, and back down with its sign or with zeros.
Ref dot4_rule(Match& m) {
  const auto byte = [&](Ref x, int i) { return binary(Ops::Shl, x, const_like(x, 24 - 8 * i)); };
  const Ref down = const_like(m[X], 24), low = const_like(m[X], 255);
  Ref sum = m[Z];
  for (int i = 0; i < 4; ++i) {
    const Ref a = binary(Ops::And, binary(Ops::Shr, m[X], const_like(m[X], 8 * i)), low);
    sum = sum + a * binary(Ops::Shr, byte(m[Y], i), down);
  }
  return sum;
}

/// The rules whose op the target lacks.
std::vector<Rule> lacking(const PatternMatcher& table, const TargetInfo& target) {
  std::vector<Rule> rules;
  for (const Rule& rule : table.rules()) {
    const OpMask& ops = rule.pattern.nodes().back().ops;
    for (int o = 0; o < kNumOps; ++o)
      if (ops.test(static_cast<size_t>(o)) && !target.supports(static_cast<Ops>(o))) {
        rules.push_back(rule);
        break;
      }
  }
  return rules;
}
} // namespace

const PatternMatcher& decompose_basic() {
  static const PatternMatcher rules(
      "decompose",
      {
          {"round", wide(op(Ops::Round, {X})), round_rule},
          {"floor", wide(op(Ops::Floor, {X})), floor_rule},
          {"ceil", wide(op(Ops::Ceil, {X})), ceil_rule},
          {"trunc", wide(op(Ops::Trunc, {X})), trunc_rule},
          {"abs", wide(op(Ops::Abs, {X})), abs_float},
          {"abs-int", ints(op(Ops::Abs, {X})), abs_int},
          {"neg", op(Ops::Neg, {X}).where_dtype(~dtype_mask([](DType t) { return byte_size(t) == 2 && is_float(t); })),
           neg_rule},
          {"max", max(X, Y).ordered(), max_rule},
          {"min", min(X, Y).ordered(), min_rule},
          {"le", Pat(X) <= Y, le_rule},
          {"floordiv", ints(floordiv(X, Y)), floordiv_rule},
          {"floormod", ints(floormod(X, Y)), floormod_rule},
          {"mod-int", ints(Pat(X) % Y), mod_int},
          {"dot4", op(Ops::Dot4, {X, Y, Z}), dot4_rule},
      },
      kSameValue);
  return rules;
}

const PatternMatcher& decompose_floats() {
  static const PatternMatcher rules("decompose-floats",
                                    {
                                        {"mod-float", of_dtype(DType::F32, Pat(X) % Y), mod_float},
                                        {"mod-double", of_dtype(DType::F64, Pat(X) % Y), mod_float},
                                        {"mod-half", halves(Pat(X) % Y), mod_half},
                                        {"fma-half", halves(op(Ops::Fma, {X, Y, Z})), fma_half},
                                    },
                                    kSameValue);
  return rules;
}

const PatternMatcher& decompose_transcendental() {
  static const PatternMatcher rules(
      "transcendental",
      {
          {"exp", wide(op(Ops::Exp, {X})), [](Match& m) { return exp_of(m[X]); }},
          {"log", wide(op(Ops::Log, {X})), [](Match& m) { return log_of(m[X]); }},
          {"tanh", wide(op(Ops::Tanh, {X})), [](Match& m) { return tanh_of(m[X]); }},
          {"erf", wide(op(Ops::Erf, {X})), [](Match& m) { return erf_of(m[X]); }},
          {"sin", wide(op(Ops::Sin, {X})), [](Match& m) { return sin_of(m[X]); }},
          {"cos", wide(op(Ops::Cos, {X})), [](Match& m) { return cos_of(m[X]); }},
          {"pow-by-constant", wide(op(Ops::Pow, {X, cst(Y)})),
           [](Match& m) { return pow_by_constant(m[X], *const_float(m[Y])); }},
          {"pow", wide(op(Ops::Pow, {X, Y})), [](Match& m) { return pow_of(m[X], m[Y], has_fma(m)); }},
      },
      kSameValue | kApproximate);
  return rules;
}

PatternMatcher decompositions(const TargetInfo& target) {
  std::vector<Rule> rules;
  const auto add = [&rules](std::vector<Rule> more) {
    for (Rule& rule : more) rules.push_back(std::move(rule));
  };
  // f16 and bf16 first: what they become may need decomposing. Where the target has the type, only for ops it lacks.
  const bool all_types = target.supports(DType::F16) && target.supports(DType::BF16);
  for (const Rule& rule : decompose_half().rules())
    if (rule.name == "lacking-op" || !all_types) rules.push_back(rule);
  for (const Rule& rule : decompose_floats().rules()) rules.push_back(rule);
  add(lacking(decompose_transcendental(), target));
  add(lacking(decompose_basic(), target));
  return PatternMatcher("decompositions", std::move(rules));
}

PatternMatcher form_fma(const TargetInfo& target) {
  std::vector<Rule> rules;
  if (target.supports(Ops::Fma)) {
    rules = {
        {"add", wide((Pat(X) * Y).ordered() + Z),
         [](Match& m) { return m.graph().make(Ops::Fma, m.root()->dtype, {m[X], m[Y], m[Z]}); }, kStandard},
        {"sub", wide((Pat(X) * Y).ordered() - Z),
         [](Match& m) { return m.graph().make(Ops::Fma, m.root()->dtype, {m[X], m[Y], -m[Z]}); }, kStandard},
        {"sub-from", wide(Pat(Z) - (Pat(X) * Y).ordered()), subtract_product, kStandard},
    };
  }
  return PatternMatcher("fma", std::move(rules), kSameValue);
}

Ref decompose(Ref kernel, PassContext& context) {
  TGC_CHECK(context.target, "decompose needs a target");
  // Not `symbolic()`: it prefers floored division, which this pass takes apart.
  const PatternMatcher rules = decompositions(*context.target) + const_fold() + identities();
  kernel = graph_rewrite(kernel, rules, context, {.name = "decompose"});
  return graph_rewrite(kernel, form_fma(*context.target), context, {.name = "form-fma"});
}

} // namespace tgc
