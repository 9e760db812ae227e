// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boolean algebra. Conjunctions and disjunctions are kept as sorted lists without repetition, contradiction or a
// comparison that another one implies; `not` moves inwards. Gates of padded accesses are such conjunctions.
#include <algorithm>

#include "rewrite/poly.h"
#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, C{2};
constexpr size_t kMaxClauses = 32;

Ref bool_const(Match& m, bool value) { return m.graph().constant_int(DType::Bool, value ? 1 : 0); }

/// a - b of an Index comparison a < b.
std::optional<Poly> difference(Ref less) {
  if (!less->is(Ops::Lt) || less->src[0]->dtype != DType::Index) return std::nullopt;
  std::optional<Poly> a = Poly::of(less->src[0]);
  const std::optional<Poly> b = Poly::of(less->src[1]);
  return a && b && a->add(*b, -1) ? a : std::nullopt;
}

/// What two clauses of a conjunction (or disjunction) amount to: one of them, a constant, or nothing simpler (null).
Ref merged(Match& m, Ref a, Ref b) {
  const bool conjunction = m.root()->is(Ops::And);
  if (a == b) return a;
  if ((a->is(Ops::Not) && a->src[0] == b) || (b->is(Ops::Not) && b->src[0] == a)) return bool_const(m, !conjunction);
  std::optional<Poly> p = difference(a);
  const std::optional<Poly> q = p ? difference(b) : std::nullopt;
  if (!q) return {};
  std::optional<Poly> sum = p;
  if (p->add(*q, -1))
    if (const std::optional<int64_t> d = p->as_constant()) // p = q + d: the larger implies the smaller
      return conjunction == (*d >= 0) ? a : b;
  // p < 0 and q < 0 give p + q <= -2; neither gives p + q >= 0.
  if (!sum->add(*q)) return {};
  if (conjunction && sum->add(Poly(1)) && sum->is_non_negative()) return bool_const(m, false);
  if (!conjunction) {
    std::optional<Poly> minus = multiply(*sum, Poly(-1));
    if (minus && minus->add(Poly(-1)) && minus->is_non_negative()) return bool_const(m, true);
  }
  return {};
}

bool gather(Ref node, Ops o, std::vector<Ref>& clauses) {
  std::vector<Ref> stack = {node};
  while (!stack.empty()) {
    const Ref x = stack.back();
    stack.pop_back();
    if (!x->is(o)) {
      clauses.push_back(x);
    } else {
      stack.push_back(x->src[1]);
      stack.push_back(x->src[0]);
    }
    if (clauses.size() + stack.size() > kMaxClauses) return false;
  }
  return true;
}

/// One clause in place of two that merge; false when there are none.
bool merge_once(Match& m, std::vector<Ref>& clauses) {
  for (size_t i = 0; i < clauses.size(); ++i)
    for (size_t j = i + 1; j < clauses.size(); ++j)
      if (const Ref one = merged(m, clauses[i], clauses[j])) {
        clauses[i] = one;
        clauses.erase(clauses.begin() + static_cast<std::ptrdiff_t>(j));
        return true;
      }
  return false;
}

Ref clauses_in_order(Match& m) {
  std::vector<Ref> clauses;
  const Ops o = m.root()->op;
  if (!gather(m.root(), o, clauses)) return {};
  while (merge_once(m, clauses)) {
  }
  std::sort(clauses.begin(), clauses.end(), structural_less);
  Ref out = clauses[0];
  for (size_t i = 1; i < clauses.size(); ++i) out = binary(o, out, clauses[i]);
  return out;
}

Ref take_x(Match& m) { return m[X]; }
Ref not_x(Match& m) { return unary(Ops::Not, m[X]); }
} // namespace

const PatternMatcher& boolean() {
  static const PatternMatcher rules(
      "boolean",
      {
          {"and-true", bools(Pat(X) & 1), take_x},
          {"and-false", bools(any() & 0), [](Match& m) { return bool_const(m, false); }},
          {"or-false", bools(Pat(X) | 0), take_x},
          {"or-true", bools(any() | 1), [](Match& m) { return bool_const(m, true); }},
          {"xor-false", bools(Pat(X) ^ 0), take_x},
          {"xor-true", bools(Pat(X) ^ 1), not_x},
          {"not-not", bools(~~Pat(X)), take_x},
          {"and-absorbs", bools(Pat(X) & (Pat(X) | any())), take_x},
          {"or-absorbs", bools(Pat(X) | (Pat(X) & any())), take_x},
          {"and-or-not", bools(Pat(X) & (~Pat(X) | Y)), [](Match& m) { return binary(Ops::And, m[X], m[Y]); }},
          {"or-and-not", bools(Pat(X) | (~Pat(X) & Y)), [](Match& m) { return binary(Ops::Or, m[X], m[Y]); }},
          {"clauses", bools(op({Ops::And, Ops::Or}, {any(), any()})).ordered(), clauses_in_order},
          // bool max is or, min is and
          {"max-is-or", bools(max(X, Y)).ordered(), [](Match& m) { return binary(Ops::Or, m[X], m[Y]); }},
          {"min-is-and", bools(min(X, Y)).ordered(), [](Match& m) { return binary(Ops::And, m[X], m[Y]); }},
          {"eq-true", eq(bools(X), 1), take_x},
          {"eq-false", eq(bools(X), 0), not_x},
          {"ne-true", ne(bools(X), 1), not_x},
          {"ne-false", ne(bools(X), 0), take_x},
          {"not-eq", ~eq(X, Y).ordered(), [](Match& m) { return binary(Ops::Ne, m[X], m[Y]); }},
          {"not-ne", ~ne(X, Y).ordered(), [](Match& m) { return binary(Ops::Eq, m[X], m[Y]); }},
          {"where-true-false", bools(where(C, 1, 0)), [](Match& m) { return m[C]; }},
          {"where-false-true", bools(where(C, 0, 1)), [](Match& m) { return unary(Ops::Not, m[C]); }},
          {"where-x-false", bools(where(C, X, 0)), [](Match& m) { return binary(Ops::And, m[C], m[X]); }},
          {"where-true-x", bools(where(C, 1, X)), [](Match& m) { return binary(Ops::Or, m[C], m[X]); }},
      },
      kSameValue);
  return rules;
}

} // namespace tgc
