// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index sums and comparisons, in one canonical form.
//
// A sum is its polynomial, printed in canonical order; x % b and b * (x // b) meet there and become x again. A
// comparison is the sign of a polynomial: decided by its bounds, divided by what its coefficients share, and written
// with positive terms left, negative ones right, as `<` only. Nothing is done when coefficients leave 64 bits.
// The rules cover what tinygrad's symbolic.py spells as associativity variants, coefficient merging and folding of
// comparisons.
#include <algorithm>

#include "rewrite/poly.h"
#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, A{2}, B{3};

/// `atom` is y // b in the form that the division rules leave it in: (z // c) // b is z // (b*c).
bool is_quotient(Ref atom, Ref y, Ref b) {
  if (!atom->is(Ops::FloorDiv)) return false;
  if (atom->src[0] == y && atom->src[1] == b) return true;
  if (!y->is(Ops::FloorDiv) || !(atom->src[0] == y->src[0])) return false;
  const std::optional<int64_t> c = const_int(y->src[1]), bi = const_int(b);
  int64_t product = 0;
  return c && bi && *c > 0 && !__builtin_mul_overflow(*c, *bi, &product) && const_int(atom->src[1]) == product;
}

/// What s*(y % b) + s*b*other is worth without the factor s; null when `other` is no quotient of y by b.
Ref recombined(Ref y, Ref b, Ref other) {
  if (is_quotient(other, y, b)) return y;
  if (!other->is(Ops::FloorMod) || !is_quotient(other->src[0], y, b)) return {};
  const std::optional<int64_t> bi = const_int(b), a = const_int(other->src[1]);
  int64_t ab = 0;
  if (!bi || !a || *a <= 0 || __builtin_mul_overflow(*a, *bi, &ab)) return {};
  return floormod(y, y->ctx->index(ab)); // (y // b % a) * b + y % b = y % (a*b)
}

/// p with the term t = s*(y % b) and some term s*b*other made one, if there is such a pair.
std::optional<Poly> recombine_term(const Poly& p, const Term& t, Ref remainder) {
  const Ref y = remainder->src[0], b = remainder->src[1];
  const std::optional<Poly> divisor = b->lo > 0 ? Poly::of(b) : std::nullopt;
  if (!divisor || divisor->terms().size() != 1) return std::nullopt;
  const std::optional<Term> s = divide(t, Term{{remainder}, 1});
  const std::optional<Term> sb = s ? multiply(*s, divisor->terms()[0]) : std::nullopt;
  if (!sb) return std::nullopt;
  for (const Term& u : p.terms()) {
    const std::optional<Term> other = divide(u, *sb);
    if (!other || other->coefficient != 1 || other->atoms.size() != 1) continue;
    const Ref joined = recombined(y, b, other->atoms[0]);
    const std::optional<Poly> whole = joined ? Poly::of(joined) : std::nullopt;
    const std::optional<Poly> term = whole ? multiply(*whole, Poly(*s)) : std::nullopt;
    Poly out = p;
    if (term && out.add(Poly(t), -1) && out.add(Poly(u), -1) && out.add(*term)) return out;
  }
  return std::nullopt;
}

std::optional<Poly> recombine_once(const Poly& p) {
  for (const Term& t : p.terms())
    for (Ref atom : t.atoms)
      if (atom->is(Ops::FloorMod))
        if (std::optional<Poly> out = recombine_term(p, t, atom)) return out;
  return std::nullopt;
}

Ref linear_form(Match& m) {
  std::optional<Poly> p = Poly::of(m.root());
  if (!p) return {};
  while (std::optional<Poly> next = recombine_once(*p)) p = std::move(next);
  return p->to_ref(m.graph());
}

/// p = left - right without negative coefficients on terms; the constant stands alone where one side has no terms,
/// else on the right.
struct Sides {
  Poly left, right;
};
Sides sides_of(const Poly& p) {
  Sides s;
  for (Term t : p.terms()) {
    if (t.atoms.empty()) continue;
    const bool left = t.coefficient > 0;
    if (!left) t.coefficient = -t.coefficient;
    (left ? s.left : s.right).add(t);
  }
  const int64_t k = p.constant();
  (s.left.empty() ? s.left : s.right).add(Term{{}, s.left.empty() ? k : -k});
  return s;
}

/// Divisor shared by all non-constant coefficients.
int64_t content(const Poly& p) {
  int64_t g = 0;
  for (const Term& t : p.terms())
    if (!t.atoms.empty()) g = gcd(Term{{}, g}, Term{{}, t.coefficient}).coefficient;
  return g == 0 ? 1 : g;
}

/// Terms only; every coefficient and the constant multiplied by 1/g, rounded down.
Poly divided_down(const Poly& p, int64_t g) {
  Poly out;
  for (Term t : p.terms()) {
    t.coefficient = floor_div(t.coefficient, g);
    out.add(t);
  }
  return out;
}

Ref bool_const(Match& m, bool value) { return m.graph().constant_int(DType::Bool, value ? 1 : 0); }

bool has_min_coefficient(const Poly& p) {
  return std::any_of(p.terms().begin(), p.terms().end(), [](const Term& t) { return t.coefficient == INT64_MIN; });
}

/// g*S + R < 0 with 0 <= R < g is S < 0: drops the small terms R, for the largest g that allows it.
std::optional<Poly> without_small_terms(const Poly& p) {
  for (const Term& candidate : p.terms()) {
    const int64_t g = candidate.coefficient < 0 ? -candidate.coefficient : candidate.coefficient;
    if (candidate.atoms.empty() || g == 1) continue;
    Poly large, small;
    for (Term t : p.terms()) {
      const bool divides = !t.atoms.empty() && t.coefficient % g == 0;
      const int64_t rest = t.atoms.empty() ? floor_mod(t.coefficient, g) : 0;
      if (t.atoms.empty()) {
        small.add(Term{{}, rest});
        t.coefficient -= rest;
      }
      (divides || t.atoms.empty() ? large : small).add(t);
    }
    const IntRange r = small.bounds();
    if (!small.empty() && r.lo >= 0 && r.hi < g) return divided_down(large, g);
  }
  return std::nullopt;
}

/// left < right for p = left - right; null when that is already the node.
Ref less_than_zero(Match& m, Poly p) {
  if (has_min_coefficient(p)) return {};
  if (p.bounds().hi < 0) return bool_const(m, true);
  if (p.is_non_negative()) return bool_const(m, false);
  std::optional<Poly> minus = multiply(p, Poly(-1));
  if (minus && minus->add(Poly(-1)) && minus->is_non_negative()) return bool_const(m, true); // -p - 1 >= 0
  if (const std::optional<Poly> large = without_small_terms(p)) p = *large;
  const int64_t g = content(p);
  if (g > 1) p = divided_down(p, g); // g*s + k < 0 <=> s + floor(k/g) < 0
  const Sides s = sides_of(p);
  return lt(s.left.to_ref(m.graph()), s.right.to_ref(m.graph()));
}

Ref compare_less(Match& m) {
  std::optional<Poly> a = Poly::of(m[X]);
  const std::optional<Poly> b = Poly::of(m[Y]);
  if (!a || !b || !a->add(*b, -1)) return {};
  if (m.root()->is(Ops::Le) && !a->add(Poly(-1))) return {}; // a <= b <=> a - b - 1 < 0
  return less_than_zero(m, *a);
}

Ref compare_equal(Match& m) {
  const bool eq = m.root()->is(Ops::Eq);
  std::optional<Poly> p = Poly::of(m[X]);
  const std::optional<Poly> b = Poly::of(m[Y]);
  if (!p || !b || !p->add(*b, -1) || has_min_coefficient(*p)) return {};
  if (const std::optional<int64_t> c = p->as_constant()) return bool_const(m, (*c == 0) == eq);
  const IntRange r = p->bounds();
  if (r.lo > 0 || r.hi < 0) return bool_const(m, !eq);
  const int64_t g = content(*p);
  if (p->constant() % g != 0) return bool_const(m, !eq); // g*s = k has no solution
  *p = divided_down(*p, g);
  if (p->terms()[0].coefficient < 0) *p = *multiply(*p, Poly(-1));
  const Sides s = sides_of(*p);
  return binary(m.root()->op, s.left.to_ref(m.graph()), s.right.to_ref(m.graph()));
}

/// x // c < b <=> x < b*c;  a < x // c <=> (a+1)*c <= x, for c > 0.
Ref less_of_quotient(Match& m) {
  const int64_t c = m.i(B);
  if (c <= 0) return {};
  const std::optional<Poly> bound = Poly::of(m[A]);
  const std::optional<Poly> product = bound ? multiply(*bound, Poly(c)) : std::nullopt;
  return product ? lt(m[X], product->to_ref(m.graph())) : Ref();
}
Ref less_than_quotient(Match& m) {
  const int64_t c = m.i(B);
  std::optional<Poly> bound = Poly::of(m[A]);
  if (c <= 0 || !bound || !bound->add(Poly(1))) return {};
  std::optional<Poly> first = multiply(*bound, Poly(c));
  return first && first->add(Poly(-1)) ? lt(first->to_ref(m.graph()), m[X]) : Ref();
}

/// The one of two Index values that is never beaten by the other.
Ref dominant(Match& m) {
  const bool max = m.root()->is(Ops::Max);
  const std::optional<Poly> a = Poly::of(m[X]), b = Poly::of(m[Y]);
  if (!a || !b) return {};
  const std::optional<Poly> ab = subtract(*a, *b), ba = subtract(*b, *a);
  if (ab && ab->is_non_negative()) return max ? m[X] : m[Y];
  if (ba && ba->is_non_negative()) return max ? m[Y] : m[X];
  return {};
}

} // namespace

const PatternMatcher& index_linear() {
  static const PatternMatcher rules(
      "index",
      {
          {"linear-form", index(op({Ops::Add, Ops::Sub, Ops::Mul}, {any(), any()})), linear_form},
          {"linear-neg", index(-any()), linear_form},
          {"compare", op({Ops::Lt, Ops::Le}, {index(X), index(Y)}), compare_less},
          {"compare-equal", op({Ops::Eq, Ops::Ne}, {index(X), index(Y)}).ordered(), compare_equal},
          {"less-of-quotient", floordiv(index(X), cst(B)) < A, less_of_quotient},
          {"less-than-quotient", Pat(A) < floordiv(index(X), cst(B)), less_than_quotient},
          {"dominant", index(op({Ops::Max, Ops::Min}, {X, Y})).ordered(), dominant},
          // not (x < y) <=> y <= x: integers are totally ordered
          {"not-less", ~(index(X) < Y), [](Match& m) { return binary(Ops::Le, m[Y], m[X]); }},
          // truncated equals floored when nothing is negative
          {"div-of-positive", index(Pat(X) / Y),
           [](Match& m) { return m[X]->lo >= 0 && m[Y]->lo > 0 ? floordiv(m[X], m[Y]) : Ref(); }},
          {"mod-of-positive", index(Pat(X) % Y),
           [](Match& m) { return m[X]->lo >= 0 && m[Y]->lo > 0 ? floormod(m[X], m[Y]) : Ref(); }},
      },
      kSameValue);
  return rules;
}

} // namespace tgc
