// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the scheduler makes of graphs: how many kernels, which values live in memory and in which order of dims; and
// each keeps its meaning (plan_graph.h).
#include "plan_graph.h"

namespace tgc {

TEST(Schedule, ElementwiseIsOneKernel) {
  Graph g;
  Ref x = g.param({3, 37});
  EXPECT_EQ(check(g.output(x * x)), 1U);
}

TEST(Schedule, MatmulBiasReluIsOneKernel) {
  for (int64_t n : {16, 32, 37}) {
    Graph g;
    Ref x = g.param({12, 8}), w = g.param({8, n}), b = g.param({n});
    Ref y = g.matmul(x, w);
    y = y + g.row(b, y);
    EXPECT_EQ(check(g.output(binary(Ops::Max, y, g.full(0, y->shape)))), 1U) << n;
  }
}

TEST(Schedule, SoftmaxIsOneKernel) {
  for (int64_t n : {5, 8, 40, 37}) {
    Graph g;
    EXPECT_EQ(check(g.output(g.softmax(g.param({6, n})))), 1U) << n;
  }
}

TEST(Schedule, MatmulThenSoftmaxIsTwoKernels) {
  Graph g;
  Ref x = g.param({5, 96}), w = g.weight({96, 10});
  EXPECT_EQ(check(g.output(g.softmax(g.matmul(x, w)))), 2U);
}

TEST(Schedule, AttentionIsOneKernel) {
  for (int64_t rows : {1, 3, 33, 64, 70})
    for (int64_t keys : {2, 7, 64}) {
      Graph g;
      Ref y = g.attention(g.param({3, rows, 8}), g.param({3, keys, 8}), g.param({3, keys, 12}), g.param({rows, keys}));
      EXPECT_EQ(check(g.output(y)), 1U) << rows << " " << keys;
    }
}

TEST(Schedule, AttentionOverHeadsThatShareKeysIsOneKernel) {
  for (int64_t rows : {1, 40}) {
    Graph g;
    Ref y = g.attention(g.param({4, rows, 8}), g.param({1, 24, 8}), g.param({1, 24, 16}), g.param({rows, 24}));
    EXPECT_EQ(check(g.output(y)), 1U) << rows;
  }
}

TEST(Schedule, AttentionOfOneHeadIsOneKernel) { // no loop is left for its nests to share
  for (int64_t rows : {2, 16}) {
    Graph g;
    Ref y = g.attention(g.param({1, rows, 8}), g.param({1, 20, 8}), g.param({1, 20, 8}), g.param({rows, 20}));
    EXPECT_EQ(check(g.output(y)), 1U) << rows;
  }
}

TEST(Schedule, AttentionOverSymbolicRowsAndKeysIsOneKernel) {
  for (int64_t rows : {1, 2, 31, 32, 33})
    for (int64_t keys : {1, 5, 40}) {
      Graph g;
      Ref m = g.ctx.var("m", 1, 64), n = g.ctx.var("n", 1, 64), two = g.ctx.index(2), k = g.ctx.index(8);
      Ref y = g.attention(g.param({two, m, k}), g.param({two, n, k}), g.param({two, n, k}), g.param({m, n}));
      EXPECT_EQ(check(g.output(y), {{"m", rows}, {"n", keys}}), 1U) << rows << " " << keys;
    }
}

TEST(Schedule, HeadsOfAttentionLieApart) { // [tokens, 3 * 8] as [3, tokens, 8]: the rows of a head follow each other
  for (const bool open : {false, true}) {
    Graph g;
    const Ref three = g.ctx.index(3), n = open ? g.ctx.var("n", 1, 64) : g.ctx.index(40), k = g.ctx.index(8);
    const Ref x = g.param({n, g.ctx.index(12)});
    const auto heads = [&](std::vector<int64_t> axes) {
      return g.permute(g.move(Ops::Reshape, g.matmul(x, g.weight({12, 24})), {n, three, k}), std::move(axes));
    };
    const Ref keys = heads({1, 2, 0}); // transposed, as many write it
    Ref y = g.attention(heads({1, 0, 2}), g.permute(keys, {0, 2, 1}), heads({1, 0, 2}), g.param({n, n}));
    EXPECT_EQ(check(g.output(y), open ? VarValues{{"n", 33}} : VarValues{}), 4U);
    int found = 0;
    for (Ref node : toposort(g.m.root)) {
      if (!node->is(Ops::Buffer) || node->rank() != 3) continue;
      ++found;
      EXPECT_EQ(node->shape[0], three);
      EXPECT_EQ(node->shape[2], k); // of the keys too
    }
    EXPECT_EQ(found, 3);
  }
}

TEST(Schedule, AConstantIsNoBufferHoweverManyReadIt) {
  Graph g;
  constexpr size_t kReaders = 20;
  Ref two = g.full(2, g.dims({4, 8}));
  std::vector<Ref> x;
  for (size_t i = 0; i < kReaders; ++i) x.push_back(g.param({4, 8}));
  for (Ref base : x) g.output(binary(Ops::Pow, base, two));
  EXPECT_EQ(check(g), kReaders);
}

TEST(Schedule, HalfWeightsAreWidenedWhereTheyAreRead) {
  Graph g;
  const auto bits = std::make_shared<std::vector<uint16_t>>();
  for (int i = 0; i < 24 * 40; ++i) bits->push_back(static_cast<uint16_t>(0x3c00 + (i * 37) % 512)); // 1 to 1.5
  g.m.weights["h"] = {.kind = WeightData::Kind::Inline,
                      .file = {},
                      .offset = 0,
                      .length = bits->size() * sizeof(uint16_t),
                      .data = reinterpret_cast<const std::byte*>(bits->data()),
                      .owner = bits,
                      .hash = 0};
  Ref half = g.ctx.make(Ops::Weight, DType::F16, g.dims({24, 40}), {{Attr::Key, std::string("h")}});
  Ref y = g.matmul(g.param({30, 24}), g.ctx.make(Ops::Cast, DType::F32, {half}));
  const Ref plan = optimize_plan(rangeify(g.output(y).done().root), wide_target());
  size_t packed = 0;
  for (Ref call : plan->src[0]->src)
    for (Ref argument : call->src.subspan(1)) packed += argument->is(Ops::Weight) && argument->dtype == DType::F16;
  EXPECT_EQ(packed, 3U); // the packing reads one and writes another, which the product reads
  EXPECT_EQ(check(g), 1U);
}

TEST(Schedule, ScoresTooLongForScratchAreABuffer) {
  Graph g;
  const int64_t keys = 9000;
  Ref y = g.attention(g.param({1, 2, 4}), g.param({1, keys, 4}), g.param({1, keys, 4}), g.param({2, keys}));
  EXPECT_EQ(check(g.output(y)), 4U); // scores, their exponentials, and two products over them
}

TEST(Schedule, SymbolicRows) {
  Graph g;
  Ref n = g.ctx.var("n", 1, 1024), x = g.param({n, g.ctx.index(24)}), w = g.param({24, 20});
  Ref y = g.matmul(x, w);
  EXPECT_EQ(check(g.output(binary(Ops::Max, y, g.full(0, y->shape))), {{"n", 7}}), 1U);
}

TEST(Schedule, MovementChainsCostNoKernel) {
  Graph g;
  Ref x = g.param({4, 6, 10});
  Ref y = g.permute(g.move(Ops::Reshape, x, {4, 2, 3, 10}), {2, 0, 3, 1}); // [3,4,10,2]
  y = g.move(Ops::Pad, y, {0, 1, 2, 0, 1, 0, 3, 0});                       // [4,5,15,2]
  y = g.ctx.make(Ops::Flip, y->dtype, {y}, {{Attr::Axes, std::vector<int64_t>{1, 2}}});
  y = g.move(Ops::Shrink, y, {0, 1, 3, 0, 4, 4, 11, 2}); // [4,4,11,2]
  y = g.move(Ops::Reshape, y, {16, 22});
  EXPECT_EQ(check(g.output(y + g.full(1, y->shape))), 1U);
}

TEST(Schedule, ReductionsInsideReductions) {
  Graph g;
  Ref x = g.param({7, 33});
  Ref mean = g.reduce(x, "add", {1}) * g.full(1.0 / 33, std::vector<Ref>{g.ctx.index(7)});
  Ref d = x - g.column(mean, x);
  EXPECT_EQ(check(g.output(g.reduce(d * d, "add", {1})).output(g.reduce(g.reduce(x, "max", {1}), "min", {0}))), 3U);
}

TEST(Schedule, RowsReadTwiceAlongTheOuterAxis) {
  Graph g;
  Ref e = unary(Ops::Exp, g.param({9, 64}));
  Ref y = g.move(Ops::Shrink, e, {1, 0, 8, 64}) * g.move(Ops::Shrink, e, {0, 0, 8, 64});
  check(g.output(y).output(g.reduce(y, "add", {0})).output(g.reduce(y, "add", {1})));
}

TEST(Schedule, ConstantsOfASymbolicDimAreNotFolded) {
  Graph g;
  Ref n = g.ctx.var("n", 1, 1024), x = g.param({n, g.ctx.index(64)});
  Ref w = g.ctx.make(Ops::Weight, DType::F32, {g.ctx.index(64)}, {{Attr::Key, std::string("w")}});
  Ref size = g.move(Ops::Expand, g.move(Ops::Reshape, cast(n, DType::F32), {1}), {64});
  g.output(x + g.row(binary(Ops::Div, w, size), x));
  Ref plan = mark_constants(rangeify(g.done().root));
  for (Ref call : plan->src[0]->src) EXPECT_FALSE(is_constant_call(call));
}

TEST(Schedule, ConcatenationsAreMadeInPlace) {
  for (const size_t axis : {0U, 1U}) {
    Graph g;
    Ref x = g.param({32, 8}), a = g.matmul(x, g.param({8, 32})), b = g.matmul(x, g.param({8, 32}));
    Ref c = g.concat(a, b, axis), y = g.matmul(c, g.param({c->shape[1], g.ctx.index(16)}));
    const size_t kernels = check(g.output(y).output(a + g.full(1, a->shape)));
    EXPECT_EQ(kernels, 4U) << "two products in place, no copy: axis " << axis;
  }
  Graph g; // a block that appends: all of it in one buffer
  Ref x = g.param({32, 32}), all = x;
  for (int i = 0; i < 3; ++i)
    all = g.concat(all, g.matmul(g.move(Ops::Shrink, all, {4, 0, 28, 32}), g.param({32, 32})), 0);
  EXPECT_EQ(check(g.output(g.matmul(all, g.param({32, 4})))), 5U); // one copy of x, three products, the last one
  Graph h;                                                         // of symbolic length
  Ref n = h.ctx.var("n", 1, 64), s = h.param({n, h.ctx.index(32)}), t = h.matmul(s, h.param({32, 32}));
  EXPECT_EQ(check(h.output(h.matmul(h.concat(t, unary(Ops::Neg, s), 0), h.param({32, 4}))), {{"n", 5}}), 3U);
}

TEST(Schedule, OnlyWholeValuesAreMadeInPlace) { // else elements would lie where others do, or outside of the result
  const auto kernels = [](const std::function<Ref(Graph&, Ref, Ref, Ref, Ref)>& result) {
    Graph g; // two values of 64 rows, the upper and lower half of the first; both are read elsewhere too
    const Ref x = g.param({64, 8}), y = g.matmul(x, g.param({8, 32})), z = g.matmul(x, g.param({8, 32}));
    const Ref upper = g.move(Ops::Shrink, y, {0, 0, 32, 32}), lower = g.move(Ops::Shrink, y, {32, 0, 32, 32});
    const Ref all = g.matmul(result(g, y, z, upper, lower), g.param({32, 4}));
    return check(g.output(all).output(y + g.full(1, y->shape)).output(z + g.full(1, z->shape)));
  };
  const auto in_rows = [](Graph& g, Ref like) { // the row of each element
    const Ref row = g.ctx.make(Ops::Iota, DType::Index, {like->shape[0]});
    return g.move(Ops::Expand, g.move(Ops::Reshape, row, {like->shape[0], g.ctx.index(1)}),
                  {like->shape.begin(), like->shape.end()});
  };
  EXPECT_EQ(kernels([](Graph& g, Ref, Ref, Ref a, Ref b) { return g.concat(a, b, 0); }), 4U) << "all of it, no copy";
  EXPECT_EQ(kernels([](Graph& g, Ref, Ref, Ref a, Ref b) { return g.concat(b, a, 0); }), 6U) << "its halves exchanged";
  kernels([](Graph& g, Ref, Ref, Ref a, Ref b) { return g.concat(a, unary(Ops::Neg, b), 0); });
  kernels([](Graph& g, Ref, Ref, Ref a, Ref b) { return g.concat(b, unary(Ops::Neg, a), 0); });
  kernels([](Graph& g, Ref, Ref, Ref a, Ref b) { return g.concat(g.concat(a, b, 0), b, 0); });
  kernels([](Graph& g, Ref, Ref z, Ref a, Ref) { return g.concat(a, g.move(Ops::Shrink, z, {32, 0, 32, 32}), 0); });
  kernels([](Graph& g, Ref, Ref, Ref a, Ref) { return g.move(Ops::Pad, a, {1, 0, 31, 0}); });
  kernels([&](Graph& g, Ref y, Ref z, Ref, Ref) {
    return where(lt(in_rows(g, y), g.move(Ops::Expand, g.move(Ops::Reshape, g.ctx.index(40), {1, 1}), {64, 32})), y, z);
  });
  kernels([&](Graph& g, Ref y, Ref z, Ref, Ref) { // a triangle
    const Ref column = g.move(
        Ops::Expand, g.move(Ops::Reshape, g.ctx.make(Ops::Iota, DType::Index, {y->shape[1]}), {1, 32}), {64, 32});
    return where(lt(in_rows(g, y), column), y, z);
  });
}

TEST(Schedule, TheAxisOfConstantsIsInnermost) {
  Graph g; // weights [20,8] . x [8,5]: their rows become lanes, so that of the result is stored last
  Ref y = unary(Ops::Neg, g.matmul(g.weight({20, 8}), g.param({8, 5})));
  EXPECT_EQ(check(g.output(g.matmul(y, g.param({5, 6}))).output(y + g.full(1, y->shape))), 3U);
  int found = 0;
  for (Ref node : toposort(g.m.root)) {
    if (!node->is(Ops::Buffer) || !node->has(Attr::Layout)) continue;
    ++found;
    EXPECT_EQ(node->ints(Attr::Layout), (std::vector<int64_t>{1, 0}));
    EXPECT_EQ(shape_text(node->shape), "[5,20]");
  }
  EXPECT_EQ(found, 1);
}

TEST(Schedule, RowsThatDataChoosesAreNotPacked) {
  Graph g; // sum over k of table[id[i],k] * v[k]: where the table is read is known at run time only
  Ref table = g.weight({16, 8}), id = g.param(g.dims({3}), DType::I64), v = g.param({8});
  const std::vector<Ref> shape = g.dims({3, 8});
  Ref at = g.move(Ops::Expand, g.move(Ops::Reshape, id, {3, 1}), shape);
  Ref rows = g.ctx.make(Ops::Gather, table->dtype, {table, at}, {{Attr::Dim, int64_t{0}}});
  Ref line = g.move(Ops::Expand, g.move(Ops::Reshape, v, {1, 8}), shape);
  EXPECT_EQ(check(g.output(g.reduce(rows * line, "add", {1}))), 1U);
}

TEST(Schedule, CopiesAndSecondStores) {
  Graph g;
  Ref x = g.param({5, 5}), y = x + x;
  EXPECT_EQ(check(g.output(x).output(y).output(y).output(g.permute(x, {1, 0})).output(g.full(2, x->shape))), 5U);
}

TEST(Schedule, AProductBesideAnotherGetsItsOwnKernel) {
  Graph g; // a vector-matrix product that is added to each row of a matrix product
  Ref x = g.param({32, 16}), w = g.param({16, 24}), v = g.param({1, 40}), u = g.param({40, 24});
  Ref y = g.matmul(x, w);
  Ref bias = g.move(Ops::Expand, g.matmul(v, u), {32, 24});
  EXPECT_EQ(check(g.output(y + bias)), 2U);
  Graph h; // one product, its halves multiplied
  Ref z = h.matmul(h.param({32, 16}), h.param({16, 48}));
  EXPECT_EQ(check(h.output(h.move(Ops::Shrink, z, {0, 0, 32, 24}) * h.move(Ops::Shrink, z, {0, 24, 32, 24}))), 2U);
}

TEST(Schedule, AProductJoinsTheSumThatOthersReadToo) { // a chain of residual blocks: the shortcut is a buffer anyway
  Graph g;
  Ref y = g.param({5, 8});
  for (int i = 0; i < 4; ++i) y = binary(Ops::Max, g.matmul(y, g.weight({8, 8})) + y, g.full(0, y->shape));
  EXPECT_EQ(check(g.output(y)), 4U);
}

TEST(Schedule, AProductTimesItsOwnFunctionIsOneKernel) { // SiLU of a dense layer
  Graph g;
  Ref y = g.matmul(g.param({5, 8}), g.weight({8, 8}));
  EXPECT_EQ(check(g.output(y * unary(Ops::Tanh, y + g.full(0.25, y->shape)))), 1U);
}

} // namespace tgc
