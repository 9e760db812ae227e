// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Floor division and remainder of Index expressions: what every reshape becomes (flatten, then divide).
//
// The dividend is a polynomial, the divisor d mostly one term (a positive integer, or a product of positive symbols).
// Each rule splits the dividend into a part that g divides and a rest R that provably stays within [q*g, q*g + g):
//     (g*S + R) // (g*e) = (S + q) // e        (g*S + R) % (g*e) = g*((S + q) % e) + R - q*g
// With g = d this cuts out whole multiples of d; with g a divisor of d it shrinks both sides. Bounds with symbolic
// extents come from Poly::is_non_negative. Negative divisors are mapped to positive ones; x // 0 is left to folding.
// Rule families after tinygrad's divandmod.py; the unification by (g, S, R, q) is ours.
#include <algorithm>

#include "rewrite/poly.h"
#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, C1{2}, C2{3};

/// Dividend and divisor of m.root(), when the divisor is one positive term.
struct Division {
  Poly dividend;
  Term divisor;
  bool is_div;
};
std::optional<Division> division_of(Ref root) {
  std::optional<Poly> n = Poly::of(root->src[0]);
  const std::optional<Poly> d = Poly::of(root->src[1]);
  if (!n || !d || d->terms().size() != 1 || root->src[1]->lo <= 0) return std::nullopt;
  return Division{std::move(*n), d->terms()[0], root->is(Ops::FloorDiv)};
}

/// p as g*quotient + rest. The constant is split by floor when g is a number.
struct Split {
  Poly quotient, rest;
};
Split split(const Poly& p, const Term& g) {
  Split s;
  for (const Term& t : p.terms()) {
    if (const std::optional<Term> q = divide(t, g)) {
      s.quotient.add(*q);
    } else if (t.atoms.empty() && g.atoms.empty()) {
      s.quotient.add(Term{{}, floor_div(t.coefficient, g.coefficient)});
      s.rest.add(Term{{}, floor_mod(t.coefficient, g.coefficient)});
    } else {
      s.rest.add(t);
    }
  }
  return s;
}

/// The q with q*g <= rest < q*g + g for all values, if it is known.
std::optional<int64_t> block_of(const Poly& rest, const Term& g) {
  if (g.atoms.empty()) {
    const IntRange r = rest.bounds();
    const int64_t q = floor_div(r.lo, g.coefficient);
    if (r.lo != INT64_MIN && r.hi != INT64_MAX && q == floor_div(r.hi, g.coefficient)) return q;
  }
  if (!rest.is_non_negative()) return std::nullopt;
  std::optional<Poly> room = subtract(Poly(g), rest);
  return room && room->add(Poly(-1)) && room->is_non_negative() ? std::optional<int64_t>(0) : std::nullopt;
}

bool is_one(const Term& t) { return t.atoms.empty() && t.coefficient == 1; }

/// `a op b` as a node, b a term.
Ref divide_node(bool is_div, const Poly& a, const Term& b, Context& ctx) {
  const Ref x = a.to_ref(ctx), y = Poly(b).to_ref(ctx);
  return is_div ? floordiv(x, y) : floormod(x, y);
}

/// The result of (g*S + R) op (g*e), for R in block q of g.
Ref shrunk(const Division& d, const Term& g, Split s, int64_t q, Context& ctx) {
  const std::optional<Term> e = divide(d.divisor, g);
  if (!e || !s.quotient.add(Poly(q))) return {};
  if (d.is_div) return is_one(*e) ? s.quotient.to_ref(ctx) : divide_node(true, s.quotient, *e, ctx);
  if (!s.rest.add(Poly(g), -q)) return {};
  if (is_one(*e)) return s.rest.to_ref(ctx);
  const Ref inner = divide_node(false, s.quotient, *e, ctx);
  const Ref scaled = inner * Poly(g).to_ref(ctx);
  return s.rest.empty() ? scaled : scaled + s.rest.to_ref(ctx);
}

/// d*Q + R: whole multiples of the divisor leave.  (d*Q + R) // d = Q + R // d,  (d*Q + R) % d = R % d
Ref split_multiples(Match& m) {
  const std::optional<Division> d = division_of(m.root());
  if (!d) return {};
  Split s = split(d->dividend, d->divisor);
  if (const std::optional<int64_t> q = block_of(s.rest, d->divisor)) return shrunk(*d, d->divisor, s, *q, m.graph());
  if (s.quotient.empty()) return {};
  const Ref rest = divide_node(d->is_div, s.rest, d->divisor, m.graph());
  return d->is_div ? s.quotient.to_ref(m.graph()) + rest : rest;
}

/// g*S + R with R within one block of g, g a divisor of d shared with some term: both sides shrink by g.
Ref shrink_by_divisor(Match& m) {
  const std::optional<Division> d = division_of(m.root());
  if (!d) return {};
  for (const Term& t : d->dividend.terms()) {
    const Term g = gcd(t, d->divisor);
    if (t.atoms.empty() || is_one(g) || g == d->divisor) continue;
    const Split s = split(d->dividend, g);
    if (const std::optional<int64_t> q = block_of(s.rest, g)) return shrunk(*d, g, s, *q, m.graph());
  }
  return {};
}

/// Coefficients reduced modulo an integer divisor: when what is left stays within one block, the quotient is linear.
///     (13*x + 2) // 12 = x + (x + 2) // 12 = x   for 0 <= x < 10
Ref congruence(Match& m) {
  const std::optional<Division> d = division_of(m.root());
  if (!d || !d->divisor.atoms.empty()) return {};
  const int64_t c = d->divisor.coefficient;
  for (const bool nearest : {false, true}) {
    Split s;
    for (const Term& t : d->dividend.terms()) {
      int64_t r = floor_mod(t.coefficient, c);
      if (nearest && !t.atoms.empty() && r > c - r) r -= c;
      s.rest.add(Term{t.atoms, r});
      s.quotient.add(Term{t.atoms, (t.coefficient - r) / c});
    }
    if (const std::optional<int64_t> q = block_of(s.rest, d->divisor)) return shrunk(*d, d->divisor, s, *q, m.graph());
  }
  return {};
}

/// d a sum, like the padded width w + 2 of a window: long division by its first term, when what is left is in [0, d).
///     (k*(w + 3) + i) // (w + 2) = k   for 0 <= k < 3 and 0 <= i < w
Ref long_division(Match& m) {
  const std::optional<Poly> n = Poly::of(m.root()->src[0]), d = Poly::of(m.root()->src[1]);
  if (!n || !d || d->terms().size() < 2 || m.root()->src[1]->lo <= 0) return {};
  Poly quotient;
  for (const Term& t : n->terms())
    if (const std::optional<Term> q = divide(t, d->terms()[0]); q && !quotient.add(*q)) return {};
  const std::optional<Poly> multiple = multiply(quotient, *d);
  const std::optional<Poly> rest = multiple ? subtract(*n, *multiple) : std::nullopt;
  std::optional<Poly> room = rest ? subtract(*d, *rest) : std::nullopt;
  if (!room || !room->add(Poly(-1)) || !rest->is_non_negative() || !room->is_non_negative()) return {};
  return (m.root()->is(Ops::FloorDiv) ? quotient : *rest).to_ref(m.graph());
}

/// (x // a + k) // b = (x + k*a) // (a*b) for a, b > 0.
Ref nested_division(Match& m) {
  const std::optional<Division> d = division_of(m.root());
  if (!d || !d->divisor.atoms.empty() || d->dividend.terms().empty()) return {};
  const Term& first = d->dividend.terms()[0];
  const bool alone = d->dividend.terms().size() == 1 || d->dividend.terms()[1].atoms.empty();
  if (!alone || first.coefficient != 1 || first.atoms.size() != 1 || !first.atoms[0]->is(Ops::FloorDiv)) return {};
  const std::optional<int64_t> a = const_int(first.atoms[0]->src[1]);
  int64_t ab = 0;
  if (!a || *a <= 0 || __builtin_mul_overflow(*a, d->divisor.coefficient, &ab)) return {};
  std::optional<Poly> x = Poly::of(first.atoms[0]->src[0]);
  if (!x || !x->add(Poly(d->dividend.constant()), *a)) return {};
  return divide_node(true, *x, Term{{}, ab}, m.graph());
}

/// (k*(x % a) + y) % b = (k*x + y) % b when b divides k*a: x % a and x differ by a multiple of a.
Ref remainder_of_remainder(Match& m) {
  const std::optional<Division> d = division_of(m.root());
  if (!d) return {};
  for (const Term& t : d->dividend.terms())
    for (Ref atom : t.atoms) {
      if (!atom->is(Ops::FloorMod)) continue;
      const std::optional<Poly> a = Poly::of(atom->src[1]), x = Poly::of(atom->src[0]);
      const std::optional<Term> k = divide(t, Term{{atom}, 1});
      if (!a || !x || !k || a->terms().size() != 1 || atom->src[1]->lo <= 0) continue;
      const std::optional<Term> ka = multiply(*k, a->terms()[0]);
      const std::optional<Poly> kx = multiply(*x, Poly(*k));
      Poly dividend = d->dividend;
      if (!ka || !divide(*ka, d->divisor) || !kx || !dividend.add(Poly(t), -1) || !dividend.add(*kx)) continue;
      return divide_node(false, dividend, d->divisor, m.graph());
    }
  return {};
}

/// (x % (a*b)) // b = (x // b) % a for a, b > 0: the remainder is outermost.
Ref division_of_remainder(Match& m) {
  const int64_t ab = m.i(C1), b = m.i(C2);
  if (ab <= 0 || b <= 0 || ab % b != 0) return {};
  return floormod(floordiv(m[X], m[C2]), m.graph().index(ab / b));
}

/// x // -c = -x // c,  x % -c = -(-x % c)
Ref negative_divisor(Match& m) {
  if (m[Y]->hi >= 0) return {};
  const bool is_div = m.root()->is(Ops::FloorDiv);
  const Ref q = binary(m.root()->op, -m[X], -m[Y]);
  return is_div ? q : -q;
}
} // namespace

const PatternMatcher& divmod() {
  const auto either = [] { return index(op({Ops::FloorDiv, Ops::FloorMod}, {X, Y})); };
  static const PatternMatcher rules(
      "divmod",
      {
          {"negative-divisor", either(), negative_divisor},
          {"split-multiples", either(), split_multiples},
          {"congruence", either(), congruence},
          {"long-division", either(), long_division},
          {"shrink-by-divisor", either(), shrink_by_divisor},
          {"nested-division", index(floordiv(X, Y)), nested_division},
          {"remainder-of-remainder", index(floormod(X, Y)), remainder_of_remainder},
          {"division-of-remainder", floordiv(floormod(index(X), cst(C1)), cst(C2)), division_of_remainder},
      },
      kSameValue);
  return rules;
}

} // namespace tgc
