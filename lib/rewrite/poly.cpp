// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Polynomials over Index atoms: what index sums, comparisons and divisions are simplified as.
//
// Canonical terms replace the many associativity and commutativity variants of sum rules, and give division something
// to split. All arithmetic is checked: an expression whose coefficients leave 64 bits has no polynomial and is left as
// it is. Large sums (more than kMaxTerms terms) are refused too, so that the cost per node stays bounded.
#include "rewrite/poly.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tgc {
namespace {
using Wide = __int128;
constexpr size_t kMaxTerms = 64;
constexpr int kMaxVisits = 400;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

int64_t saturate(Wide x) { return x < kMin ? kMin : x > kMax ? kMax : static_cast<int64_t>(x); }

bool atoms_less(const std::vector<Ref>& a, const std::vector<Ref>& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), structural_less);
}

std::optional<Poly> build(Ref x, int& visits) {
  if (--visits < 0) return std::nullopt;
  if (x->lo == x->hi && x->lo != kMin && x->lo != kMax) return Poly(x->lo);
  const auto source = [&](size_t i) { return build(x->src[i], visits); };
  if (x->is(Ops::Add) || x->is(Ops::Sub)) {
    std::optional<Poly> a = source(0), b = source(1);
    if (!a || !b || !a->add(*b, x->is(Ops::Add) ? 1 : -1)) return std::nullopt;
    return a;
  }
  if (x->is(Ops::Mul)) {
    const std::optional<Poly> a = source(0), b = source(1);
    return a && b ? multiply(*a, *b) : std::nullopt;
  }
  if (x->is(Ops::Neg)) {
    const std::optional<Poly> a = source(0);
    return a ? multiply(*a, Poly(-1)) : std::nullopt;
  }
  return Poly(Term{{x}, 1});
}

IntRange bounds_of(const Term& term) {
  IntRange r{1, 1};
  const auto scale = [&r](int64_t lo, int64_t hi) {
    const Wide p[] = {Wide(r.lo) * lo, Wide(r.lo) * hi, Wide(r.hi) * lo, Wide(r.hi) * hi};
    r = {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
  };
  for (Ref atom : term.atoms) scale(atom->lo, atom->hi);
  scale(term.coefficient, term.coefficient);
  return r;
}

/// The node n such that 0 <= atom < n whatever the values, if there is one worth more than the atom's own bounds.
Ref extent_of(Ref atom) {
  const bool counts = atom->is(Ops::Range) || atom->is(Ops::Iota);
  const Ref n = counts ? atom->src[0] : atom->is(Ops::FloorMod) && atom->src[1]->lo > 0 ? atom->src[1] : Ref();
  return n && !n->is(Ops::Const) && n->dtype == DType::Index ? n : Ref();
}

/// p as slope * atom + rest, when the atom occurs at most once per term.
struct Line {
  Poly slope, rest;
};
std::optional<Line> line_in(const Poly& p, Ref atom) {
  Line line;
  for (const Term& t : p.terms()) {
    const auto n = std::count(t.atoms.begin(), t.atoms.end(), atom);
    if (n > 1) return std::nullopt;
    Term part = t;
    std::erase(part.atoms, atom);
    if (!(n ? line.slope : line.rest).add(part)) return std::nullopt;
  }
  return line;
}

/// p where c * (x // c) is replaced by its bound: x - c + 1 from below, x (under a negative factor) from above.
std::optional<Poly> without_division(const Poly& p) {
  for (const Term& t : p.terms()) {
    if (t.atoms.size() != 1 || !t.atoms[0]->is(Ops::FloorDiv)) continue;
    const Ref atom = t.atoms[0];
    const std::optional<int64_t> c = const_int(atom->src[1]);
    const std::optional<Poly> x = Poly::of(atom->src[0]);
    if (!c || *c <= 0 || !x || t.coefficient % *c != 0) continue;
    const int64_t times = t.coefficient / *c;
    Poly lower = p;
    if (lower.add(Poly(t), -1) && lower.add(*x, times) && (times < 0 || lower.add(Poly(*c - 1), -times))) return lower;
  }
  return std::nullopt;
}

/// p with one symbolic-extent atom at the end that makes p smallest; nothing when there is no such atom.
std::optional<Poly> lower_once(const Poly& p) {
  for (const Term& t : p.terms())
    for (Ref atom : t.atoms) {
      const Ref n = extent_of(atom);
      if (!n) continue;
      std::optional<Line> line = line_in(p, atom);
      const std::optional<Poly> extent = Poly::of(n);
      if (!line || !extent) continue;
      const IntRange slope = line->slope.bounds();
      if (slope.lo >= 0) return line->rest;
      if (slope.hi > 0) continue;
      const std::optional<Poly> last = subtract(*extent, Poly(1));
      const std::optional<Poly> at_end = last ? multiply(line->slope, *last) : std::nullopt;
      if (at_end && line->rest.add(*at_end)) return line->rest;
    }
  return std::nullopt;
}
} // namespace

Poly::Poly(int64_t constant) {
  if (constant != 0) terms_.push_back({{}, constant});
}
Poly::Poly(const Term& term) {
  if (term.coefficient != 0) terms_.push_back(term);
}

std::optional<Poly> Poly::of(Ref x) {
  int visits = kMaxVisits;
  return build(x, visits);
}

Ref Poly::to_ref(Context& ctx) const {
  Ref sum;
  for (const Term& t : terms_) {
    Ref product;
    for (Ref atom : t.atoms) product = product ? ctx.make(Ops::Mul, DType::Index, {product, atom}) : atom;
    const Ref c = ctx.index(t.coefficient);
    if (!product)
      product = c;
    else if (t.coefficient != 1)
      product = ctx.make(Ops::Mul, DType::Index, {product, c});
    sum = sum ? ctx.make(Ops::Add, DType::Index, {sum, product}) : product;
  }
  return sum ? sum : ctx.index(0);
}

int64_t Poly::constant() const {
  return terms_.empty() || !terms_.back().atoms.empty() ? 0 : terms_.back().coefficient;
}

std::optional<int64_t> Poly::as_constant() const {
  if (terms_.empty()) return 0;
  return terms_[0].atoms.empty() ? std::optional(terms_[0].coefficient) : std::nullopt;
}

bool Poly::add(const Term& term) {
  if (term.coefficient == 0) return true;
  const auto at = std::lower_bound(terms_.begin(), terms_.end(), term,
                                   [](const Term& a, const Term& b) { return atoms_less(a.atoms, b.atoms); });
  if (at == terms_.end() || at->atoms != term.atoms) {
    terms_.insert(at, term);
    return terms_.size() <= kMaxTerms;
  }
  if (__builtin_add_overflow(at->coefficient, term.coefficient, &at->coefficient)) return false;
  if (at->coefficient == 0) terms_.erase(at);
  return true;
}

bool Poly::add(const Poly& other, int64_t factor) {
  for (Term t : other.terms_)
    if (__builtin_mul_overflow(t.coefficient, factor, &t.coefficient) || !add(t)) return false;
  return true;
}

IntRange Poly::bounds() const {
  Wide lo = 0, hi = 0;
  for (const Term& t : terms_) {
    const IntRange r = bounds_of(t);
    lo += r.lo, hi += r.hi;
  }
  return {saturate(lo), saturate(hi)};
}

bool Poly::is_non_negative() const {
  if (bounds().lo >= 0) return true;
  Poly p = *this;
  for (int step = 0; step < 16; ++step) {
    std::optional<Poly> lower = lower_once(p);
    if (!lower) lower = without_division(p);
    if (!lower) return false;
    p = std::move(*lower);
    if (p.bounds().lo >= 0) return true;
  }
  return false;
}

std::optional<Term> multiply(const Term& a, const Term& b) {
  Term t;
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &t.coefficient)) return std::nullopt;
  t.atoms.resize(a.atoms.size() + b.atoms.size());
  std::merge(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(), t.atoms.begin(), structural_less);
  return t;
}

std::optional<Poly> multiply(const Poly& a, const Poly& b) {
  Poly out;
  for (const Term& x : a.terms())
    for (const Term& y : b.terms()) {
      const std::optional<Term> t = multiply(x, y);
      if (!t || !out.add(*t)) return std::nullopt;
    }
  return out;
}

std::optional<Poly> subtract(const Poly& a, const Poly& b) {
  Poly out = a;
  return out.add(b, -1) ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Term> divide(const Term& a, const Term& b) {
  if (b.coefficient == 0 || (b.coefficient == -1 && a.coefficient == kMin) || a.coefficient % b.coefficient != 0)
    return std::nullopt;
  if (!std::includes(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(), structural_less))
    return std::nullopt;
  Term q;
  q.coefficient = a.coefficient / b.coefficient;
  std::set_difference(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(), std::back_inserter(q.atoms),
                      structural_less);
  return q;
}

Term gcd(const Term& a, const Term& b) {
  Term g;
  g.coefficient = std::gcd(a.coefficient, b.coefficient);
  std::set_intersection(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(), std::back_inserter(g.atoms),
                        structural_less);
  return g;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t floor_mod(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

} // namespace tgc
