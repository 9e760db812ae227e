// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identities: units, zeros, idempotence, selections, casts. Each holds for every value of the types it names: wrapping
// integers, and floats with NaN, infinities and both zeros. Those that do not are tagged kFast.
// Absent on purpose: x + 0.0 (wrong for -0), x - x and x * 0 for floats (NaN, infinity), c*(a+b) for floats.
#include <cmath>

#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, C{2}, D{3}, A{4}, B{5};

Ref take_x(Match& m) { return m[X]; }
Ref zero(Match& m) { return m.graph().constant_int(m.root()->dtype, 0); }
Ref bool_false(Match& m) { return m.graph().constant_int(DType::Bool, 0); }
Ref bool_true(Match& m) { return m.graph().constant_int(DType::Bool, 1); }

bool is_plain_int(DType t) { return is_int(t) && t != DType::Index; } // Index sums have their canonical form
Pat plain_ints(const Pat& p) { return p.where_dtype(dtype_mask(is_plain_int)); }

/// (x op c) op d = x op (c op d) for wrapping integers; the constants fold at once.
Ref regroup_constants(Match& m) { return binary(m.root()->op, m[X], binary(m.root()->op, m[C], m[D])); }

/// Every value of `from` is a value of `to`.
bool holds(DType to, DType from) {
  if (to == from || from == DType::Bool) return true;
  if (to == DType::Bool) return false;
  const DTypeInfo &t = info(to), &f = info(from);
  if (is_float(from)) return is_float(to) && t.bytes > f.bytes; // f16 and bf16 do not hold each other
  const int bits = 8 * f.bytes - (is_signed(from) ? 1 : 0);
  if (is_float(to)) return bits <= t.mantissa_bits + 1;
  return 8 * t.bytes - (is_signed(to) ? 1 : 0) >= bits && (is_signed(to) || !is_signed(from));
}

/// x -> B -> C is x -> C when B holds all of x. Between integers a float B saturates where an integer wraps, so that
/// needs a C that holds x as well.
Ref cast_of_cast(Match& m) {
  const DType from = m[X]->dtype, through = m[Y]->dtype, to = m.root()->dtype;
  if (!holds(through, from)) return {};
  const bool saturates = is_float(through) && is_int(from) && is_int(to);
  return saturates && !holds(to, from) ? Ref() : cast(m[X], to);
}

/// x / c = x * (1/c) when 1/c is exact: both are the correctly rounded quotient.
Ref divide_by_power_of_two(Match& m) {
  const double c = *const_float(m[C]);
  int exponent = 0;
  if (!std::isfinite(c) || std::fabs(std::frexp(c, &exponent)) != 0.5) return {};
  const Ref inverse = m.graph().constant(m.root()->dtype, 1.0 / c);
  const double kept = *const_float(inverse);
  return std::isfinite(kept) && kept == 1.0 / c && kept != 0 ? m[X] * inverse : Ref();
}

bool is_rounding(Ref x) { return x->is(Ops::Floor) || x->is(Ops::Ceil) || x->is(Ops::Trunc) || x->is(Ops::Round); }

/// Rounding what is already an integer: the result of a rounding, or of an integer's cast.
Ref round_of_integer(Match& m) {
  const bool from_int = m[X]->is(Ops::Cast) && !is_float(m[X]->src[0]->dtype);
  return is_rounding(m[X]) || from_int ? m[X] : Ref();
}

std::vector<Rule> integer_rules() {
  return {
      {"int-add-0", ints(Pat(X) + 0), take_x},
      {"int-sub-0", ints(Pat(X) - 0), take_x},
      {"int-mul-1", ints(Pat(X) * 1), take_x},
      {"int-mul-0", ints(any() * 0), zero},
      {"int-sub-self", ints(Pat(X) - X), zero},
      {"int-div-1", ints(op({Ops::Div, Ops::FloorDiv}, {X, 1})), take_x},
      {"int-mod-1", ints(op({Ops::Mod, Ops::FloorMod}, {any(), 1})), zero},
      {"int-mod-self", ints(op({Ops::Mod, Ops::FloorMod}, {X, X})), zero},
      {"int-and-0", ints(any() & 0), zero},
      {"int-and-ones", ints(Pat(X) & -1), take_x},
      {"int-or-0", ints(Pat(X) | 0), take_x},
      {"int-or-ones", ints(any() | cst(C)), [](Match& m) { return m.i(C) == -1 ? m[C] : Ref(); }},
      {"int-xor-0", ints(Pat(X) ^ 0), take_x},
      {"int-xor-self", op(Ops::Xor, {X, X}).where_dtype(~dtype_mask(is_float)), zero},
      {"int-shift-0", ints(op({Ops::Shl, Ops::Shr}, {X, 0})), take_x},
      {"int-not-not", ints(~~Pat(X)), take_x},
      {"int-regroup", plain_ints(op(Ops::Add, {Pat(X) + cst(C), cst(D)})), regroup_constants},
      {"int-regroup-mul", plain_ints(op(Ops::Mul, {Pat(X) * cst(C), cst(D)})), regroup_constants},
      {"int-regroup-max", ints(max(max(X, cst(C)), cst(D))), regroup_constants},
      {"int-regroup-min", ints(min(min(X, cst(C)), cst(D))), regroup_constants},
      {"int-regroup-and", ints((Pat(X) & cst(C)) & cst(D)), regroup_constants},
      {"int-regroup-or", ints((Pat(X) | cst(C)) | cst(D)), regroup_constants},
      {"int-sub-const", plain_ints(Pat(X) - cst(C)), [](Match& m) { return m[X] + -m[C]; }},
      {"int-max", ints(max(X, Y)), [](Match& m) { return m[X]->lo >= m[Y]->hi ? m[X] : Ref(); }},
      {"int-min", ints(min(X, Y)), [](Match& m) { return m[X]->hi <= m[Y]->lo ? m[X] : Ref(); }},
      {"int-eq-self", eq(ints(X), X), bool_true},
      {"int-ne-self", ne(ints(X), X), bool_false},
      {"int-le-self", ints(X) <= X, bool_true},
      {"abs-positive", ints(op(Ops::Abs, {X})), [](Match& m) { return m[X]->lo >= 0 ? m[X] : Ref(); }},
  };
}

std::vector<Rule> float_rules() {
  return {
      {"add-minus-0", floats(Pat(X) + -0.0), take_x},
      {"sub-0", floats(Pat(X) - 0.0), take_x},
      {"mul-1", floats(Pat(X) * 1), take_x},
      {"div-1", floats(Pat(X) / 1), take_x},
      {"mul-minus-1", floats(Pat(X) * -1), [](Match& m) { return -m[X]; }},
      {"div-minus-1", floats(Pat(X) / -1), [](Match& m) { return -m[X]; }},
      {"div-power-of-2", floats(Pat(X) / cst(C)), divide_by_power_of_two},
      {"add-neg", floats(Pat(X) + -Pat(Y)), [](Match& m) { return m[X] - m[Y]; }},
      {"sub-neg", floats(Pat(X) - -Pat(Y)), [](Match& m) { return m[X] + m[Y]; }},
      {"neg-mul-neg", floats(-Pat(X) * -Pat(Y)), [](Match& m) { return m[X] * m[Y]; }},
      {"neg-mul-const", floats(-Pat(X) * cst(C)), [](Match& m) { return m[X] * -m[C]; }},
      {"round-of-integer", op({Ops::Floor, Ops::Ceil, Ops::Trunc, Ops::Round}, {X}), round_of_integer},
      {"mul-0", floats(any() * 0.0), [](Match& m) { return m.graph().constant(m.root()->dtype, 0); }, kFast},
      {"add-0", floats(Pat(X) + 0.0), take_x, kFast},
      {"sub-self", floats(Pat(X) - X), [](Match& m) { return m.graph().constant(m.root()->dtype, 0); }, kFast},
      {"div-self", floats(Pat(X) / X), [](Match& m) { return m.graph().constant(m.root()->dtype, 1); }, kFast},
      {"regroup-mul", floats((Pat(X) * cst(C)) * cst(D)), regroup_constants, kFast},
      {"regroup-add", floats((Pat(X) + cst(C)) + cst(D)), regroup_constants, kFast},
  };
}

std::vector<Rule> common_rules() {
  return {
      {"neg-neg", -(-Pat(X)), take_x},
      {"abs-abs", op(Ops::Abs, {op(Ops::Abs, {X}).as(Y)}), [](Match& m) { return m[Y]; }},
      {"abs-neg", op(Ops::Abs, {-Pat(X)}).where_dtype(~dtype_mask(is_unsigned)),
       [](Match& m) { return unary(Ops::Abs, m[X]); }},
      {"lt-self", Pat(X) < X, bool_false},
      {"max-self", max(X, X), take_x},
      {"min-self", min(X, X), take_x},
      {"and-self", Pat(X) & X, take_x},
      {"or-self", Pat(X) | X, take_x},
      {"const-right",
       op({Ops::Add, Ops::Mul, Ops::Max, Ops::Min, Ops::And, Ops::Or, Ops::Xor, Ops::Eq, Ops::Ne}, {cst(C), X})
           .ordered(),
       [](Match& m) {
         const bool signed_zero = is_float(m.root()->dtype) && is_const(m[C], 0.0); // max(-0, 0) is its first source
         const bool picks = m.root()->is(Ops::Max) || m.root()->is(Ops::Min);
         return m[X]->is(Ops::Const) || (picks && signed_zero) ? Ref() : binary(m.root()->op, m[X], m[C]);
       }},
      {"where-known", where(cst(C), X, Y), [](Match& m) { return m.i(C) ? m[X] : m[Y]; }},
      {"where-same", where(any(), X, X), take_x},
      {"where-not", where(~Pat(C), X, Y), [](Match& m) { return where(m[C], m[Y], m[X]); }},
      {"where-repeats-then", where(C, where(C, X, any()), Y), [](Match& m) { return where(m[C], m[X], m[Y]); }},
      {"where-repeats-else", where(C, X, where(C, any(), Y)), [](Match& m) { return where(m[C], m[X], m[Y]); }},
      {"where-and", where(A, where(B, X, Y), Y), [](Match& m) { return where(logical_and(m[A], m[B]), m[X], m[Y]); }},
      {"where-or", where(A, X, where(B, X, Y)),
       [](Match& m) { return where(binary(Ops::Or, m[A], m[B]), m[X], m[Y]); }},
      {"cast-same", cast(X), [](Match& m) { return m[X]->dtype == m.root()->dtype ? m[X] : Ref(); }},
      {"cast-cast", cast(cast(X).as(Y)), cast_of_cast},
      {"bitcast-same", op(Ops::Bitcast, {X}), [](Match& m) { return m[X]->dtype == m.root()->dtype ? m[X] : Ref(); }},
      {"bitcast-bitcast", op(Ops::Bitcast, {op(Ops::Bitcast, {X})}),
       [](Match& m) { return bitcast(m[X], m.root()->dtype); }},
      {"cast-where", cast(where(C, cst(A), cst(B))),
       [](Match& m) { return where(m[C], cast(m[A], m.root()->dtype), cast(m[B], m.root()->dtype)); }},
  };
}
} // namespace

const PatternMatcher& identities() {
  static const PatternMatcher rules = [] {
    std::vector<Rule> all = common_rules();
    for (std::vector<Rule>& part : std::vector{integer_rules(), float_rules()})
      for (Rule& rule : part) all.push_back(std::move(rule));
    return PatternMatcher("identities", std::move(all), kSameValue);
  }();
  return rules;
}

} // namespace tgc
