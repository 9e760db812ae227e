// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: attention divides every probability by its row's sum, a division per score and one more pass over them.
// Idea: the division is the same for all terms of the product that reads them, so it can follow that sum. Only for a
// softmax: the dividends are exponentials of differences to their maximum, so none is larger than 1, and the divisor is
// their sum. A sum of products then grows by that divisor at most, the number of its terms, before it is divided.
// Not handled: quotients that are cast on the way.
#include "schedule/defer.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "schedule/movement.h"

namespace tgc {
namespace {

/// Whether `after` stages exp(y - max y) of a staged y.
bool is_softmax_dividend(Ref after) {
  if (!after->src[1]->is(Ops::End)) return false;
  const Ref exp = after->src[1]->src[0]->src[2];
  if (!exp->is(Ops::Exp) || !exp->src[0]->is(Ops::Sub)) return false;
  const Ref y = exp->src[0]->src[0], most = exp->src[0]->src[1];
  return y->is(Ops::Load) && most->is(Ops::Reduce) && most->s(Attr::Kind) == "max" && most->src[0]->is(Ops::Load) &&
         most->src[0]->src[0] == y->src[0] && most->src[0]->src.size() == 2 && most->src.size() == 2 &&
         most->src[0]->src[1] == most->src[1] && dims_equal(y->src[0]->shape[0], most->src[1]->src[0]);
}

/// The staged x of a staged quotient x / s whose s is the sum of all x; null if `after` is no such quotient.
Ref dividend_of(Ref after, Ref& sum) {
  if (!after->is(Ops::After) || !after->src[1]->is(Ops::End) || after->src[1]->src.size() != 2) return {};
  const Ref store = after->src[1]->src[0], range = after->src[1]->src[1];
  const Ref quotient = store->src[2];
  if (store->src[1] != range || !quotient->is(Ops::Div) || !is_float(quotient->dtype)) return {};
  const Ref x = quotient->src[0], s = quotient->src[1];
  if (!x->is(Ops::Load) || x->src.size() != 2 || x->src[1] != range || !x->src[0]->is(Ops::After)) return {};
  if (!s->is(Ops::Reduce) || s->s(Attr::Kind) != "add" || s->src.size() != 2) return {};
  const Ref term = s->src[0];
  if (!term->is(Ops::Load) || term->src.size() != 2 || term->src[0] != x->src[0] || term->src[1] != s->src[1])
    return {};
  if (!dims_equal(s->src[1]->src[0], range->src[0]) || !is_softmax_dividend(x->src[0])) return {};
  sum = s;
  return x->src[0];
}

} // namespace

Ref with_deferred_division(Ref func) {
  Context& ctx = *func->ctx;
  std::vector<std::pair<Ref, Ref>> deferred;
  for (Ref node : toposort(func)) {
    if (!node->is(Ops::Reduce) || node->s(Attr::Kind) != "add" || !node->src[0]->is(Ops::Mul)) continue;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Ref load = node->src[0]->src[i], other = node->src[0]->src[1 - i];
      Ref sum;
      const Ref x = load->is(Ops::Load) && load->src.size() == 2 ? dividend_of(load->src[0], sum) : Ref();
      if (!x || std::any_of(node->src.begin() + 1, node->src.end(), [&](Ref r) { return depends(sum, r); })) continue;
      std::vector<Ref> src(node->src.begin(), node->src.end());
      const Ref factor = ctx.make(Ops::Load, load->dtype, {x, load->src[1]});
      src[0] = ctx.with_src(node->src[0], i == 0 ? std::vector<Ref>{factor, other} : std::vector<Ref>{other, factor});
      deferred.emplace_back(node, binary(Ops::Div, ctx.with_src(node, src), sum));
      break;
    }
  }
  return deferred.empty() ? Ref() : substitute(func, deferred);
}

} // namespace tgc
