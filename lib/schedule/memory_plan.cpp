// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers to arena slots. Sizes may be symbolic, so slots are chosen at compile time and sized by closed forms at run
// time: in order of first write each buffer takes the free slot that fits it best (the smallest that is large enough by
// upper bound, else the largest), or a new one. Reuse begins at the call after the last reader, never within a call.
// Not here: reordering of calls to lower the peak, and outputs in place of inputs.
#include "schedule/memory_plan.h"

#include <algorithm>

#include "rewrite/rewrite.h"

namespace tgc {
namespace {

struct Life {
  Ref buffer;
  size_t first, last;
  double bytes;
};

std::vector<Life> lives_of(Refs calls) {
  std::vector<Life> lives;
  for (size_t step = 0; step < calls.size(); ++step)
    for (Ref argument : calls[step]->src.subspan(1)) {
      if (!argument->is(Ops::Buffer)) continue;
      auto known = std::find_if(lives.begin(), lives.end(), [&](const Life& l) { return l.buffer == argument; });
      if (known != lives.end()) {
        known->last = step;
        continue;
      }
      double bytes = byte_size(argument->dtype);
      for (Ref dim : argument->shape) bytes *= static_cast<double>(dim->hi);
      lives.push_back({argument, step, step, bytes});
    }
  return lives;
}

} // namespace

Ref plan_memory(Ref plan) {
  Context& ctx = *plan->ctx;
  Refs calls = plan->src[0]->src;
  struct Slot {
    double bytes;
    size_t busy_until;
  };
  std::vector<Slot> slots;
  std::vector<std::pair<Ref, Ref>> replace;
  for (const Life& life : lives_of(calls)) {
    size_t best = slots.size();
    auto better = [&](const Slot& a, const Slot& b) {
      bool a_fits = a.bytes >= life.bytes, b_fits = b.bytes >= life.bytes;
      return a_fits != b_fits ? a_fits : a_fits ? a.bytes < b.bytes : a.bytes > b.bytes;
    };
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].busy_until < life.first && (best == slots.size() || better(slots[i], slots[best]))) best = i;
    if (best == slots.size()) slots.push_back({});
    slots[best] = {std::max(slots[best].bytes, life.bytes), life.last};
    Attrs attrs = {{Attr::Slot, static_cast<int64_t>(best)}, {Attr::Space, std::string("global")}};
    replace.emplace_back(life.buffer, ctx.make(Ops::Buffer, life.buffer->dtype, life.buffer->shape, attrs));
  }
  std::vector<Ref> renamed;
  for (Ref call : calls) {
    std::vector<Ref> src(call->src.begin(), call->src.end());
    for (Ref& s : src)
      for (const auto& [from, to] : replace)
        if (s == from) {
          s = to;
          break;
        }
    renamed.push_back(ctx.with_src(call, src));
  }
  return with_body(plan, ctx.make(Ops::Linear, DType::Void, renamed));
}

} // namespace tgc
