// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a quantised layer ends in a division of each result by the scale of the next.
// Idea: scale * sum / number = (scale / number) * sum, and with a bias or a maximum in between each part is divided,
// as when a batch norm goes into a convolution. So the divisor goes into constants, which are divided once, at compile
// time. This holds up to rounding, hence not under strict numerics, and for a positive number, where it meets a
// maximum. Not handled: sums that something else reads, too.
#include "schedule/quotients.h"

#include <unordered_map>
#include <vector>

#include "rewrite/rewrite.h"
#include "schedule/views.h"

namespace tgc {
namespace {

class Quotients {
public:
  Quotients(Ref root)
      : readers_(root->ctx->size()), is_live_(root->ctx->size()), done_(root->ctx->size()), order_(toposort(root)) {
    for (Ref node : order_) {
      is_live_[node->id] = node->is(Ops::Param);
      for (Ref s : node->src) {
        ++readers_[s->id];
        is_live_[node->id] = is_live_[node->id] || is_live_[s->id];
      }
    }
  }

  Ref run() {
    for (Ref node : order_) {
      std::vector<Ref> src;
      for (Ref s : node->src) src.push_back(done_[s->id]);
      done_[node->id] = node->ctx->with_src(node, src);
      if (!node->is(Ops::Div) || node->dtype != DType::F32 || !is_live_[node->id]) continue;
      const Ref number = uniform(node->src[1]);
      const std::optional<double> value = number ? const_float(number) : std::nullopt;
      if (!value || !(*value > 0) || !holds_sum(node->src[0])) continue;
      if (const Ref other = divided(node->src[0], number)) done_[node->id] = other;
    }
    return done_[order_.back()->id];
  }

private:
  bool is_scaled_sum(Ref x) const {
    return x->is(Ops::Mul) && x->src[0]->is(Ops::Cast) && x->src[0]->src[0]->dtype == DType::I32 &&
           !is_live_[x->src[1]->id];
  }
  bool holds_sum(Ref x) const {
    while (is_movement(x) || x->is(Ops::Add) || x->is(Ops::Max)) x = x->src[0];
    return is_scaled_sum(x);
  }
  /// sum / number, where nothing but a division reads `sum`; null if a part of it is no constant times a value.
  Ref divided(Ref sum, Ref number) const {
    std::vector<Ref> parts{sum}; // each before its operands, which nothing else reads
    for (size_t i = 0; i < parts.size(); ++i) {
      Ref x = parts[i];
      if (!is_live_[x->id]) continue;
      const bool is_pair = x->is(Ops::Add) || x->is(Ops::Max); // the number is positive
      if (readers_[x->id] > 1 || x->is(Ops::Pad) || !(is_scaled_sum(x) || is_pair || is_movement(x))) return {};
      if (!is_scaled_sum(x)) parts.insert(parts.end(), x->src.begin(), x->src.begin() + (is_pair ? 2 : 1));
    }
    std::unordered_map<uint32_t, Ref> quotients;
    for (auto at = parts.rbegin(); at != parts.rend(); ++at) {
      Ref x = *at;
      std::vector<Ref> src(x->src.begin(), x->src.end());
      if (is_live_[x->id] && is_scaled_sum(x)) {
        src = {done_[src[0]->id], scaled_view(src[1], number, Ops::Div)};
        if (!src[1]) return {};
      } else if (is_live_[x->id]) {
        for (size_t i = 0; i < (is_movement(x) ? 1 : src.size()); ++i) src[i] = quotients.at(src[i]->id);
      }
      Ref& quotient = quotients[x->id];
      quotient = is_live_[x->id] ? x->ctx->with_src(x, src) : scaled_view(x, number, Ops::Div);
      if (!quotient) return {};
    }
    return quotients.at(sum->id);
  }

  std::vector<int> readers_;
  std::vector<bool> is_live_;
  std::vector<Ref> done_, order_;
};

} // namespace

Ref divide_constants(Ref root) { return Quotients(root).run(); }

} // namespace tgc
