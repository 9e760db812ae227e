// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simplification under an assumption: what a gate lets through, e.g. 0 <= e and e < n.
//
// The fact is a conjunction. Each clause is true in the expression, its negation false. Index comparisons become bounds
// of their linear part: the expression is rewritten over a fresh Var with exactly those bounds, simplified by the
// ordinary rules, and written back. For a sum the Var stands for the whole sum, by eliminating one of its atoms; that
// is kept only when it made the expression smaller. Not handled: disjunctions, and bounds that depend on other symbols.
#include <algorithm>

#include "rewrite/poly.h"
#include "rewrite/rewrite.h"

namespace tgc {
namespace {
using Wide = __int128;

/// lo <= part <= hi, where part is a sum of terms without a constant whose first coefficient is positive.
struct Bound {
  Poly part;
  int64_t lo, hi;
};

std::vector<Ref> conjunction(Ref fact) {
  std::vector<Ref> stack = {fact}, clauses;
  while (!stack.empty()) {
    const Ref x = stack.back();
    stack.pop_back();
    if (!x->is(Ops::And)) {
      clauses.push_back(x);
      continue;
    }
    stack.push_back(x->src[1]);
    stack.push_back(x->src[0]);
  }
  return clauses;
}

/// p <= 0 as a bound of p without its constant.
void add_upper(std::vector<Bound>& bounds, const Poly& p) {
  Poly part = p;
  const int64_t k = p.constant();
  if (k == INT64_MIN || !part.add(Term{{}, -k}) || part.empty()) return;
  const bool negate = part.terms()[0].coefficient < 0;
  if (negate) {
    const std::optional<Poly> minus = multiply(part, Poly(-1));
    if (!minus) return;
    part = *minus;
  }
  auto at = std::find_if(bounds.begin(), bounds.end(), [&](const Bound& b) { return b.part.terms() == part.terms(); });
  if (at == bounds.end()) {
    const IntRange own = part.bounds();
    at = bounds.insert(at, Bound{part, own.lo, own.hi});
  }
  if (negate)
    at->lo = std::max(at->lo, k); // -part + k <= 0
  else
    at->hi = std::min(at->hi, -k);
}

std::vector<Bound> bounds_of(const std::vector<Ref>& clauses) {
  std::vector<Bound> bounds;
  for (Ref c : clauses) {
    if (!(c->is(Ops::Lt) || c->is(Ops::Eq)) || c->src[0]->dtype != DType::Index) continue;
    std::optional<Poly> p = Poly::of(c->src[0]);
    const std::optional<Poly> b = Poly::of(c->src[1]);
    if (!p || !b || !p->add(*b, -1)) continue;
    if (c->is(Ops::Lt)) {
      if (p->add(Poly(1))) add_upper(bounds, *p);
      continue;
    }
    add_upper(bounds, *p);
    if (const std::optional<Poly> minus = multiply(*p, Poly(-1))) add_upper(bounds, *minus);
  }
  return bounds;
}

/// An atom to eliminate: alone in a term of coefficient 1 or -1, in no other term, scalar.
const Term* pivot_of(const Poly& part) {
  const auto uses = [&part](Ref atom) {
    size_t n = 0;
    for (const Term& t : part.terms()) n += static_cast<size_t>(std::count(t.atoms.begin(), t.atoms.end(), atom));
    return n;
  };
  for (const Term& t : part.terms())
    if (t.atoms.size() == 1 && (t.coefficient == 1 || t.coefficient == -1) && t.atoms[0]->rank() == 0 &&
        uses(t.atoms[0]) == 1)
      return &t;
  return nullptr;
}

Ref replace(Ref root, Ref from, Ref to) {
  const std::pair<Ref, Ref> pair[] = {{from, to}};
  return substitute(root, pair);
}

/// root rewritten over a Var for the bounded sum, simplified, and back; or root when there is no atom to eliminate.
Ref apply_bound(Ref root, const Bound& bound, int number) {
  const Term* pivot = pivot_of(bound.part);
  if (!pivot || bound.lo > bound.hi) return root;
  Context& ctx = *root->ctx;
  const Ref atom = pivot->atoms[0];
  const Ref fresh =
      bound.lo == bound.hi ? ctx.index(bound.lo) : ctx.var("given." + std::to_string(number), bound.lo, bound.hi);
  Poly rest = bound.part; // part = c*atom + rest, so atom = c*(fresh - rest)
  if (!rest.add(Poly(*pivot), -1)) return root;
  Poly value{Term{{fresh}, 1}};
  if (fresh->is(Ops::Const)) value = Poly(bound.lo);
  if (!value.add(rest, -1)) return root;
  const std::optional<Poly> solved = multiply(value, Poly(pivot->coefficient));
  if (!solved) return root;
  const Ref inner = simplify(replace(root, atom, solved->to_ref(ctx)));
  return simplify(fresh->is(Ops::Const) ? inner : replace(inner, fresh, bound.part.to_ref(ctx)));
}

bool is_improvement(Ref after, Ref before, const Bound& bound) {
  return bound.part.terms().size() == 1 || toposort(after).size() < toposort(before).size();
}
} // namespace

Ref simplify_given(Ref root, Ref fact) {
  Context& ctx = *root->ctx;
  root = simplify(root);
  const std::vector<Ref> clauses = conjunction(simplify(fact));
  std::vector<std::pair<Ref, Ref>> known;
  for (Ref c : clauses) {
    if (c->is(Ops::Const) || c->rank() != 0) continue;
    known.emplace_back(c, ctx.constant_int(DType::Bool, 1));
    const Ref negation = simplify(unary(Ops::Not, c));
    if (!negation->is(Ops::Const)) known.emplace_back(negation, ctx.constant_int(DType::Bool, 0));
  }
  root = simplify(substitute(root, known));
  int number = 0;
  for (const Bound& bound : bounds_of(clauses)) {
    const Ref out = apply_bound(root, bound, number++);
    if (is_improvement(out, root, bound)) root = out;
  }
  return root;
}

} // namespace tgc
