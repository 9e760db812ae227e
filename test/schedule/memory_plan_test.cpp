// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory plan on chains of calls made by hand: where buffers go, and that the arena is no larger than what lives.
#include "schedule/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace tgc;

namespace {

/// Calls of one kernel that writes its first argument and reads the rest. Buffers are numbered in order of making.
struct Plan {
  Context ctx;
  Ref kernel = make_func("k", ctx.make(Ops::Sink, DType::Void, {}));
  std::vector<Ref> calls;
  int64_t made = 0;

  Ref buffer(Ref floats) {
    return ctx.make(Ops::Buffer, DType::F32, {floats}, {{Attr::Slot, made++}, {Attr::Space, std::string("global")}});
  }
  Ref buffer(int64_t floats) { return buffer(ctx.index(floats)); }
  void call(std::vector<Ref> args) {
    args.insert(args.begin(), kernel);
    calls.push_back(ctx.make(Ops::Call, DType::Void, args));
  }
  /// "slot+at" of argument 0 of each call, after planning.
  std::vector<std::string> places() {
    const Ref root = make_func("main", ctx.make(Ops::Linear, DType::Void, calls));
    std::vector<std::string> out;
    for (Ref planned : plan_memory(root)->src[0]->src) {
      const Ref storage = planned->src[1];
      if (!storage->is(Ops::Buffer)) continue;
      out.push_back(std::to_string(storage->i(Attr::Slot)) + "+" + std::to_string(storage->i(Attr::At, 0)));
    }
    return out;
  }
};

} // namespace

TEST(MemoryPlan, TwoSmallBuffersTakeThePlaceOfALargeOne) {
  Plan p;
  const Ref a = p.buffer(48), b = p.buffer(16), c = p.buffer(32), d = p.buffer(16);
  const Ref out = p.ctx.make(Ops::Param, DType::F32, {p.ctx.index(16)}, {{Attr::Slot, int64_t{0}}});
  p.call({a});
  p.call({b, a});
  p.call({c, b});
  p.call({d, b, c});
  p.call({out, d, c});
  // 256 bytes are in use during calls 1 and 3, and 256 are taken: c and d lie where a was, side by side.
  EXPECT_EQ(p.places(), (std::vector<std::string>{"0+0", "0+192", "0+0", "0+128"}));
}

TEST(MemoryPlan, BuffersStartAtMultiplesOf64) {
  Plan p;
  const Ref a = p.buffer(3), b = p.buffer(5), c = p.buffer(7);
  p.call({a});
  p.call({b, a});
  p.call({c, a, b});
  EXPECT_EQ(p.places(), (std::vector<std::string>{"0+64", "0+0", "0+128"})); // b, used for two calls, is the first
}

TEST(MemoryPlan, SymbolicBuffersShareSlotsOfTheirOwn) {
  Plan p;
  const Ref n = p.ctx.var("N", 1, 64);
  const Ref fixed = p.buffer(16), a = p.buffer(n), b = p.buffer(n), c = p.buffer(n);
  p.call({fixed});
  p.call({a, fixed});
  p.call({b, a});
  p.call({c, b, fixed});
  EXPECT_EQ(p.places(), (std::vector<std::string>{"0+0", "1+0", "2+0", "1+0"}));
}

TEST(MemoryPlan, ManyBuffersArePlannedQuickly) {
  Plan p;
  std::vector<Ref> buffers = {p.buffer(16)};
  p.call({buffers[0]});
  for (int64_t i = 1; i < 3000; ++i) {
    buffers.push_back(p.buffer(16 * (1 + i % 7)));
    p.call({buffers.back(), buffers[static_cast<size_t>(i) - 1]});
  }
  int64_t most = 0;
  for (const std::string& place : p.places()) most = std::max<int64_t>(most, std::stoll(place.substr(2)));
  EXPECT_EQ(most, 64 * 7); // 7 and 6 units live at once: 13 units of arena
}
