// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schedule/region.h"

#include <algorithm>
#include <set>
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
  std::vector<std::pair<Ref, bool>> left{{condition, holds}};
  std::set<std::pair<uint32_t, bool>> seen; // by id: parts may be shared
  while (!left.empty()) {
    const auto [c, is_true] = left.back();
    left.pop_back();
    if (!seen.insert({c->id, is_true}).second) continue;
    if (c->is(Ops::Not)) {
      left.emplace_back(c->src[0], !is_true);
    } else if (c->is(Ops::And) && is_true) {
      left.emplace_back(c->src[1], true);
      left.emplace_back(c->src[0], true);
    } else if (c->is(Ops::Const)) {
      if ((const_int(c) != 0) != is_true) return false;
    } else if (!c->is(Ops::Lt) || c->src[0]->dtype != DType::Index ||
               !compare(simplify(c->src[0] - c->src[1]), is_true)) {
      return false;
    }
  }
  return true;
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
