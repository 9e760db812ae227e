// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schedule/region.h"

#include <algorithm>
#include <utility>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"

namespace tgc {
namespace {

/// The smaller of two numbers; null if that depends on symbolic dims.
Ref smaller(Ref a, Ref b) {
  const Ref difference = simplify(a - b);
  if (difference->hi <= 0) return a;
  return difference->lo >= 0 ? b : Ref();
}
Ref larger(Ref a, Ref b) {
  const Ref least = smaller(a, b);
  return !least ? Ref() : least == a ? b : a;
}

} // namespace

bool equals(Ref a, Ref b) { return is_const(simplify(a - b), 0); }

Region::Region(std::vector<Ref> loops) : loops_(std::move(loops)) {
  for (Ref loop : loops_) {
    Context& ctx = *loop->ctx;
    lo_.push_back(loop->is(Ops::Range) ? ctx.index(0) : loop);
    hi_.push_back(loop->is(Ops::Range) ? loop->src[0] : simplify(loop + ctx.index(1)));
  }
}

bool Region::narrow(Ref condition, bool holds) {
  if (condition->is(Ops::Not)) return narrow(condition->src[0], !holds);
  if (condition->is(Ops::And) && holds) return narrow(condition->src[0], true) && narrow(condition->src[1], true);
  if (condition->is(Ops::Const)) return (const_int(condition) != 0) == holds;
  if (!condition->is(Ops::Lt) || condition->src[0]->dtype != DType::Index) return false;
  return compare(simplify(condition->src[0] - condition->src[1]), holds);
}

/// difference < 0, or not.
bool Region::compare(Ref difference, bool holds) {
  const auto at = std::find_if(loops_.begin(), loops_.end(), [&](Ref loop) { return depends(difference, loop); });
  if (at == loops_.end()) return false;
  const auto i = static_cast<size_t>(at - loops_.begin());
  const int64_t factor = coefficient(difference, *at).value_or(0);
  if (factor != 1 && factor != -1) return false;
  // loop < bound, or, of the negated loop, bound <= loop
  const Ref one = difference->ctx->index(1);
  const Ref bound = factor == 1 ? simplify(*at - difference) : simplify(difference + *at + one);
  if (!bound->ranges.empty()) return false;
  Ref& end = holds == (factor == 1) ? hi_[i] : lo_[i];
  const Ref narrowed = &end == &hi_[i] ? smaller(end, bound) : larger(end, bound);
  if (narrowed) end = narrowed;
  return static_cast<bool>(narrowed);
}

} // namespace tgc
