// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Divisions after sums of bytes go into the constants that scale them.
#include "schedule/quotients.h"

#include "plan_graph.h"
#include "schedule/views.h"

namespace tgc {
namespace {

/// A layer of quantised values, up to its division: f32(sums) * 0.5, of sums [2,3].
struct Layer {
  Context ctx;
  Ref sums = ctx.make(Ops::Param, DType::I32, dims(), {{Attr::Slot, int64_t{0}}});

  std::vector<Ref> dims() { return {ctx.index(2), ctx.index(3)}; }
  Ref constant(double value, Ref like) { return filled(ctx.constant(DType::F32, value), like->shape); }
  Ref scaled() { return binary(Ops::Mul, cast(sums, DType::F32), constant(0.5, sums)); }
  static bool divides_live(Ref root) {
    for (Ref n : toposort(root))
      if (n->is(Ops::Div))
        for (Ref m : toposort(n))
          if (m->is(Ops::Param)) return true;
    return false;
  }
};

TEST(Quotients, AreDividedInTheConstants) {
  Layer l;
  Ref x = l.scaled() + l.constant(3, l.sums);
  x = binary(Ops::Max, x, l.constant(0, x));
  EXPECT_FALSE(Layer::divides_live(divide_constants(binary(Ops::Div, x, l.constant(4, x)))));
  EXPECT_TRUE(Layer::divides_live(divide_constants(binary(Ops::Div, x, l.constant(-4, x))))); // max would be min
  const Ref read_twice = binary(Ops::Add, binary(Ops::Div, x, l.constant(4, x)), x);
  EXPECT_TRUE(Layer::divides_live(divide_constants(read_twice)));
}

TEST(Quotients, LongChainsNeedNoStack) {
  Layer l;
  Ref x = l.scaled();
  for (int i = 0; i < 100000; ++i) x = x + l.constant(i + 1, x);
  EXPECT_FALSE(Layer::divides_live(divide_constants(binary(Ops::Div, x, l.constant(4, x)))));
}

} // namespace
} // namespace tgc
