// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scheduling and lowering keep meaning: every graph here is evaluated as a tensor graph, as scheduled kernels, as
// optimised kernels and as linear kernels, and all four agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "rewrite/lower/expand.h"
#include "rewrite/lower/linearize.h"
#include "rewrite/lower/stage.h"
#include "rewrite/rewrite.h"
#include "schedule/constants.h"
#include "schedule/memory_plan.h"
#include "schedule/optimize.h"
#include "schedule/rangeify.h"
#include "uop/eval.h"
#include "uop/text.h"

using namespace tgc;

namespace {

TargetInfo wide_target(bool fma = false) {
  TargetInfo t;
  t.device = "cpu";
  t.vector_bytes = 32;
  t.vector_registers = 16;
  t.ops.set();
  t.ops.set(static_cast<size_t>(Ops::Fma), fma);
  t.dtypes.set();
  return t;
}

Ref map_kernels(Ref plan, const std::function<Ref(Ref)>& change) {
  Context& ctx = *plan->ctx;
  std::vector<Ref> calls;
  for (Ref call : plan->src[0]->src) {
    std::vector<Ref> src(call->src.begin(), call->src.end());
    src[0] = change(src[0]);
    calls.push_back(ctx.make(Ops::Call, DType::Void, src));
  }
  return ctx.make(Ops::Func, DType::Void, {ctx.make(Ops::Linear, DType::Void, calls)}, *plan->attrs);
}

std::vector<HostTensor> random_inputs(const Module& m, const VarValues& vars, unsigned seed) {
  std::map<int64_t, Ref> params;
  std::vector<Ref> stored;
  for (Ref n : toposort(m.root)) {
    if (n->is(Ops::Param)) params[n->i(Attr::Slot)] = n;
    if (n->is(Ops::Store)) stored.push_back(n->src[0]);
  }
  std::vector<HostTensor> inputs;
  for (const auto& [slot, p] : params) {
    if (std::find(stored.begin(), stored.end(), p) != stored.end()) continue;
    std::vector<int64_t> shape;
    for (Ref d : p->shape) shape.push_back(eval_index(d, vars));
    HostTensor t = zeros(p->dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i) {
      seed = seed * 1664525u + 1013904223u;
      t.set(i, static_cast<double>(seed >> 20) / 2048.0 - 1);
    }
    inputs.push_back(t);
  }
  return inputs;
}

void expect_close(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b, const char* stage,
                  const std::string& text) {
  ASSERT_EQ(a.size(), b.size()) << stage;
  for (size_t o = 0; o < a.size(); ++o)
    for (int64_t i = 0; i < a[o].numel(); ++i) {
      double x = a[o].at(i), y = b[o].at(i);
      if (std::isnan(x) && std::isnan(y)) continue;
      ASSERT_NEAR(x, y, 1e-5 * (1 + std::fabs(x))) << stage << " output " << o << " element " << i << "\n" << text;
    }
}

/// A graph under construction.
struct Graph {
  Module m;
  Context& ctx = *m.ctx;
  int64_t slots = 0;
  std::vector<Ref> stores;

  std::vector<Ref> dims(std::initializer_list<int64_t> shape) {
    std::vector<Ref> out;
    for (int64_t d : shape) out.push_back(ctx.index(d));
    return out;
  }
  Ref param(std::vector<Ref> shape, DType t = DType::F32) {
    return ctx.make(Ops::Param, t, shape, {{Attr::Slot, slots++}});
  }
  Ref param(std::initializer_list<int64_t> shape) { return param(dims(shape)); }
  Ref weight(std::initializer_list<int64_t> shape) {
    const std::string key = "w" + std::to_string(m.weights.size());
    const auto values = std::make_shared<std::vector<float>>();
    size_t count = 1;
    for (int64_t d : shape) count *= static_cast<size_t>(d);
    for (size_t i = 0; i < count; ++i) values->push_back(static_cast<float>(i % 13) / 8 - 0.5F);
    m.weights[key] = {.kind = WeightData::Kind::Inline,
                      .file = {},
                      .offset = 0,
                      .length = count * sizeof(float),
                      .data = reinterpret_cast<const std::byte*>(values->data()),
                      .owner = values,
                      .hash = 0};
    return ctx.make(Ops::Weight, DType::F32, dims(shape), {{Attr::Key, key}});
  }
  Ref move(Ops op, Ref x, std::vector<Ref> operands) {
    operands.insert(operands.begin(), x);
    return ctx.make(op, x->dtype, operands);
  }
  Ref move(Ops op, Ref x, std::initializer_list<int64_t> operands) { return move(op, x, dims(operands)); }
  Ref permute(Ref x, std::vector<int64_t> axes) { return ctx.make(Ops::Permute, x->dtype, {x}, {{Attr::Axes, axes}}); }
  Ref reduce(Ref x, const char* kind, std::vector<int64_t> axes) {
    return ctx.make(Ops::Reduce, x->dtype, {x}, {{Attr::Kind, std::string(kind)}, {Attr::Axes, axes}});
  }
  Ref full(double value, Refs shape) {
    std::vector<Ref> ones(shape.size(), ctx.index(1));
    return move(Ops::Expand, move(Ops::Reshape, ctx.constant(DType::F32, value), ones), {shape.begin(), shape.end()});
  }
  /// x [m,k] @ w [k,n]
  Ref matmul(Ref x, Ref w) {
    Ref m_ = x->shape[0], k = x->shape[1], n = w->shape[1], one = ctx.index(1);
    Ref a = move(Ops::Expand, move(Ops::Reshape, x, {m_, one, k}), {m_, n, k});
    Ref b = move(Ops::Expand, move(Ops::Reshape, permute(w, {1, 0}), {one, n, k}), {m_, n, k});
    return reduce(a * b, "add", {2});
  }
  /// b [n] over [m,n]
  Ref row(Ref b, Ref like) {
    return move(Ops::Expand, move(Ops::Reshape, b, {ctx.index(1), like->shape[1]}),
                {like->shape.begin(), like->shape.end()});
  }
  /// c [m] over [m,n]
  Ref column(Ref c, Ref like) {
    return move(Ops::Expand, move(Ops::Reshape, c, {like->shape[0], ctx.index(1)}),
                {like->shape.begin(), like->shape.end()});
  }
  Ref softmax(Ref x) {
    Ref e = unary(Ops::Exp, x - column(reduce(x, "max", {1}), x));
    return binary(Ops::Div, e, column(reduce(e, "add", {1}), e));
  }
  /// softmax(q [h,m,k] . keys [h or 1,n,k] / 2 + mask [m,n]) . values [h or 1,n,d]
  Ref attention(Ref q, Ref keys, Ref values, Ref mask) {
    Ref h = q->shape[0], m_ = q->shape[1], k = q->shape[2], n = keys->shape[1], d = values->shape[2],
        one = ctx.index(1), shared = keys->shape[0];
    const std::vector<Ref> scores = {h, m_, n}, products = {h, m_, n, k}, weighted = {h, m_, d, n};
    Ref a = move(Ops::Expand, move(Ops::Reshape, q, {h, m_, one, k}), products);
    Ref b = move(Ops::Expand, move(Ops::Reshape, keys, {shared, one, n, k}), products);
    Ref s = reduce(a * b, "add", {3}) * full(0.5, scores) +
            move(Ops::Expand, move(Ops::Reshape, mask, {one, m_, n}), scores);
    const auto over = [&](Ref x) { return move(Ops::Expand, move(Ops::Reshape, x, {h, m_, one}), scores); };
    Ref e = unary(Ops::Exp, s - over(reduce(s, "max", {2})));
    Ref p = binary(Ops::Div, e, over(reduce(e, "add", {2})));
    Ref v = move(Ops::Expand, move(Ops::Reshape, permute(values, {0, 2, 1}), {shared, one, d, n}), weighted);
    return reduce(move(Ops::Expand, move(Ops::Reshape, p, {h, m_, one, n}), weighted) * v, "add", {3});
  }
  /// a over b along `axis` of two matrices
  Ref concat(Ref a, Ref b, size_t axis) {
    std::vector<Ref> none(2, ctx.index(0)), after_a = none, before_b = none;
    after_a[axis] = b->shape[axis], before_b[axis] = a->shape[axis];
    const auto padded = [&](Ref x, std::vector<Ref> lo, const std::vector<Ref>& hi) {
      lo.insert(lo.end(), hi.begin(), hi.end());
      return move(Ops::Pad, x, lo);
    };
    const Ref first = padded(a, none, after_a), second = padded(b, before_b, none);
    std::vector<Ref> line(2, ctx.index(1)), shape(first->shape.begin(), first->shape.end());
    line[axis] = shape[axis];
    const Ref at = move(Ops::Expand, move(Ops::Reshape, ctx.make(Ops::Iota, DType::Index, {shape[axis]}), line), shape);
    std::vector<Ref> ones(2, ctx.index(1));
    const Ref end = move(Ops::Expand, move(Ops::Reshape, a->shape[axis], ones), shape);
    return where(lt(at, end), first, second);
  }
  Graph& output(Ref value) {
    Ref out = param({value->shape.begin(), value->shape.end()}, value->dtype);
    stores.push_back(ctx.make(Ops::Store, DType::Void, {out, value}));
    return *this;
  }
  Module& done() {
    m.root = ctx.make(Ops::Func, DType::Void, {ctx.make(Ops::Sink, DType::Void, stores)},
                      {{Attr::Name, std::string("main")}});
    return m;
  }
};

/// Evaluates at every level; returns the number of kernels.
size_t check(Graph& graph, const VarValues& vars = {}) {
  Module& m = graph.done();
  std::vector<HostTensor> inputs = random_inputs(m, vars, 1);
  std::vector<HostTensor> want = eval(m, inputs, vars);
  m.root = rangeify(m.root);
  expect_close(want, eval(m, inputs, vars), "kernels", print(m));
  size_t kernels = m.root->src[0]->src.size();
  m.root = plan_memory(m.root);
  expect_close(want, eval(m, inputs, vars), "plan", print(m));
  Ref scheduled = map_kernels(m.root, lower_stage);
  m.root = scheduled;
  std::string staged = print(m);
  expect_close(want, eval(m, inputs, vars), "stage", staged);
  TargetInfo target = wide_target();
  m.root = optimize_plan(scheduled, target);
  std::string optimized = print(m);
  expect_close(want, eval(m, inputs, vars), "opt", optimized);
  m.root = map_kernels(m.root, [](Ref k) { return order_sums(lower_access(simplify(expand(k)))); });
  std::string expanded = print(m);
  m.root = map_kernels(m.root, [&](Ref k) { return linearize(k, false); });
  expect_close(want, eval(m, inputs, vars), "linear", optimized + expanded + print(m));
  return kernels;
}

} // namespace

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

namespace {

/// The single kernel of x [12,8] @ w [8,20], scheduled, with `opts` applied; its text and that it computes the same.
std::string with_opts(const std::string& opts) {
  Graph g;
  Ref x = g.param({12, 8}), w = g.param({8, 20});
  Module& m = g.output(g.matmul(x, w)).done();
  std::vector<HostTensor> inputs = random_inputs(m, {}, 1), want = eval(m, inputs);
  m.root = rangeify(m.root);
  std::string text;
  m.root = map_kernels(m.root, [&](Ref k) {
    OptKernel kernel{k, {}};
    for (const Opt& opt : parse_opts(opts)) apply_opt(kernel, opt);
    text = print_func(kernel.func);
    return order_sums(lower_access(simplify(expand(kernel.func))));
  });
  expect_close(want, eval(m, inputs), "opts", text);
  m.root = map_kernels(m.root, [&](Ref k) { return linearize(k, false); });
  expect_close(want, eval(m, inputs), "linear", text + print(m));
  return text;
}

std::string refusal(const std::string& opts) {
  try {
    with_opts(opts);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "applied";
}

} // namespace

TEST(Opts, NeverChangeWhatIsComputed) {
  for (const char* opts : {"split 0 5", "split 0 5; upcast 1", "split 0 7; upcast 1; split 2 16; lane 3",
                           "split 1 8; lane 2", "split 0 4; upcast 1; split 2 16; lane 3", "reorder 1 0 2", "unroll 2",
                           "split 2 3; unroll 3", "lane 2", "thread 0; split 1 8; lane 2; unroll 3", "stage 1 0 2",
                           "stage 2 1 2", "split 0 4; upcast 1; split 2 8; lane 3; reorder 2 0 1 3 4; stage 2 0 4 3",
                           "split 0 4; upcast 1; split 2 8; lane 3; stage 1 0 4 1; stage 2 2 4 3"}) {
    SCOPED_TRACE(opts);
    with_opts(opts);
  }
}

TEST(Opts, StageListsEveryRegisterAxisItReads) {
  Graph g;
  Ref x = g.param({12, 8}), w = g.param({8, 20});
  Module& m = g.output(g.matmul(x, w)).done();
  m.root = rangeify(m.root);
  std::string message;
  map_kernels(m.root, [&](Ref k) {
    OptKernel kernel{k, {}};
    for (const Opt& opt : parse_opts("upcast 0")) apply_opt(kernel, opt);
    try {
      apply_opt(kernel, parse_opts("stage 1 1 2")[0]);
    } catch (const CompileError& e) {
      message = e.what();
    }
    return k;
  });
  EXPECT_EQ(message,
            "error TGC-E302: opt \"stage 1 1 2\": the index depends on a register or lane axis that is not listed");
}

/// The opts that the heuristic gives the last kernel of `graph`.
static std::string heuristic(Graph& graph) {
  Module& m = graph.done();
  m.root = optimize_plan(map_kernels(rangeify(m.root), lower_stage), wide_target(true));
  return m.root->src[0]->src.back()->src[0]->s(Attr::Opts);
}

TEST(Opts, RowsTimesRowsAreStagedAPanelAtATime) {
  Graph g; // x [96,40] @ y [64,40]^T: neither operand is contiguous along an output axis
  EXPECT_NE(heuristic(g.output(g.matmul(g.param({96, 40}), g.permute(g.param({64, 40}), {1, 0})))).find("stage 2"),
            std::string::npos);
  Graph h; // x @ y: y is read along the lanes as it lies
  EXPECT_EQ(heuristic(h.output(h.matmul(h.param({96, 40}), h.param({40, 64})))).find("stage"), std::string::npos);
  for (const int64_t rows : {96, 13, 4}) {
    Graph c;
    EXPECT_EQ(check(c.output(c.matmul(c.param({rows, 40}), c.permute(c.param({70, 40}), {1, 0})))), 1U);
  }
}

/// The opts of out[place] = value(place of x).
static std::string opts_of(Ref out_index, Ref value, int64_t numel) {
  Context& ctx = *value->ctx;
  Ref out = ctx.make(Ops::Param, DType::F32, {ctx.index(numel)}, {{Attr::Slot, int64_t{0}}});
  Ref sink = ctx.make(Ops::Sink, DType::Void, {ctx.make(Ops::Store, DType::Void, {out, out_index, value})});
  Ref func = ctx.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("k")}});
  return optimize_kernel(func, wide_target(), {}).func->s(Attr::Opts);
}

TEST(Opts, ThreadsDivideWhatLiesOutermostInMemory) {
  Context ctx;
  const auto param = [&](int64_t slot, int64_t numel) {
    return ctx.make(Ops::Param, DType::F32, {ctx.index(numel)}, {{Attr::Slot, slot}});
  };
  const auto load = [&](Ref x, Ref at) { return ctx.make(Ops::Load, DType::F32, {x, at}); };
  Ref c = ctx.range(ctx.index(64), 0, "loop"), h = ctx.range(ctx.index(8), 1, "loop"),
      w = ctx.range(ctx.index(16), 2, "loop");
  Ref padded = h * ctx.index(18) + w, at = (h * ctx.index(16) + w) * ctx.index(64) + c; // [8,18,…], [8,16,64]
  Ref x = load(param(1, 8 * 18 * 64), padded * ctx.index(64) + c);
  EXPECT_EQ(opts_of(at, unary(Ops::Neg, x), 8 * 16 * 64), "split 0 8; lane 1; reorder 2 3 0 1; collapse 0; thread 0");
  Ref scale = unary(Ops::Exp, load(param(2, 64), c)); // once for each channel, not for each pixel
  EXPECT_EQ(opts_of(at, x * scale, 8 * 16 * 64), "split 0 8; lane 1; thread 0");
  Ref k = ctx.range(ctx.index(24), 3, "reduce"); // rows as four blocks, in which the loops stay as they were
  Ref y = load(param(1, 8 * 18 * 24), padded * ctx.index(24) + k) * load(param(2, 24 * 64), k * ctx.index(64) + c);
  Ref sum = ctx.make(Ops::Reduce, DType::F32, {y, k}, {{Attr::Kind, std::string("add")}});
  const std::string opts = opts_of(at, sum, 8 * 16 * 64);
  EXPECT_EQ(opts.substr(opts.rfind("split")), "split 3 2; reorder 3 0 1 2 4 5 6 7; collapse 0; collapse 0; thread 0")
      << opts;
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

TEST(Opts, PackDoesNotCopyAWeightForEachPixel) {
  // x [c, 64, 64] * w [c, y%2, x%2] summed over c, as a convolution before a pixel shuffle reads its weight.
  Graph g;
  Ref x = g.param({8, 64, 64}), w = g.param({8, 2, 2});
  Ref wide = g.move(Ops::Expand, g.move(Ops::Reshape, w, {8, 1, 2, 1, 2}), {8, 32, 2, 32, 2});
  Module& m = g.output(g.reduce(x * g.move(Ops::Reshape, wide, {8, 64, 64}), "add", {0})).done();
  m.root = rangeify(m.root);
  std::string message = "applied";
  map_kernels(m.root, [&](Ref k) {
    OptKernel kernel{k, {}};
    try {
      for (const Opt& opt : parse_opts("pack 2 0 1 2")) apply_opt(kernel, opt);
    } catch (const CompileError& e) {
      message = e.what();
    }
    return k;
  });
  EXPECT_EQ(message, "error TGC-E302: opt \"pack 2 0 1 2\": an element would be copied too often: 32768 for 32");
}

TEST(Opts, PartialRowsReadTheLastOne) {
  const std::string text = with_opts("split 0 5; upcast 1");
  std::istringstream lines(text);
  size_t loads = 0, clamps = 0;
  for (std::string line; std::getline(lines, line);) {
    clamps += line.find("= min index") != std::string::npos;
    if (line.find("= load") == std::string::npos) continue;
    ++loads;
    EXPECT_EQ(std::count(line.begin(), line.end(), '%'), 3) << line; // result, buffer, index: no gate
  }
  EXPECT_EQ(loads, 2U);
  EXPECT_EQ(clamps, 1U);
  EXPECT_NE(text.find("store"), std::string::npos);
}

TEST(Opts, ReadAndPrintTheSame) {
  const char* text =
      "split 1 32; lane 2; split 0 8; upcast 1; reorder 2 0 1 3 4; unroll 4; pack 2 0 4 3; stage 1 0 4 1; thread 0";
  EXPECT_EQ(to_string(parse_opts(text)), text);
}

TEST(Opts, NestsHaveListsOfTheirOwn) {
  Graph g;
  Ref y = g.attention(g.param({3, 70, 8}), g.param({3, 24, 8}), g.param({3, 24, 8}), g.param({70, 24}));
  Ref plan = rangeify(g.output(y).done().root);
  ASSERT_EQ(plan->src[0]->src.size(), 1U);
  Ref kernel = lower_stage(plan->src[0]->src[0]->src[0]);
  const Ref chosen = optimize_kernel(kernel, wide_target(), {}).func;
  const std::string opts = chosen->s(Attr::Opts);
  EXPECT_EQ(opts.substr(0, 12), "nest 1 36 | ") << opts; // three register tiles of 12 rows, two blocks: two rows repeat
  EXPECT_EQ(std::count(opts.begin(), opts.end(), '|'), 4) << opts;
  const auto given = [&](const std::string& text) {
    const Attrs attrs = {{Attr::Name, kernel->s(Attr::Name)}, {Attr::Opts, text}};
    return optimize_kernel(g.ctx.make(Ops::Func, DType::Void, kernel->src, attrs), wide_target(), {}).func;
  };
  EXPECT_EQ(given(opts), chosen);
  const auto refused = [&](const std::string& text) {
    try {
      given(text);
    } catch (const CompileError& e) {
      return e.all()[0].message;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("nest 1 36 | |"), "3 lists of opts for a kernel of 3 nests");
  EXPECT_EQ(refused("nest 0 | | | |"), "opt \"nest 0\": takes an axis and the rows of a block, or nothing");
  EXPECT_EQ(refused("nest 9 8 | | | |"),
            "opt \"nest 9 8\": the kernel stages no sum of products, or not along this axis");
  EXPECT_EQ(refused("nest 1 36 | reorder 1 0 2 3 4 | | |"),
            "opt \"reorder 1 0 2 3 4\": a block axis, which nests share, must stay where it is");
  EXPECT_EQ(refused("nest 1 36 | | | |"), "accepted");
}

TEST(Opts, ARefusalSaysWhy) {
  EXPECT_EQ(refusal("split 7 4"), "error TGC-E302: opt \"split 7 4\": there is no such axis");
  EXPECT_EQ(refusal("split 0 1"), "error TGC-E302: opt \"split 0 1\": the inner extent must be at least 2");
  EXPECT_EQ(refusal("reorder 0 1"), "error TGC-E302: opt \"reorder 0 1\": must name all 3 axes");
  EXPECT_EQ(refusal("merge 0"), "error TGC-E302: opt \"merge 0\": the merged axis would need divisions");
  EXPECT_EQ(refusal("lane 0; lane 1"), "error TGC-E302: opt \"lane 1\": a value would depend on two lane axes");
  EXPECT_EQ(refusal("thread 2"), "error TGC-E302: opt \"thread 2\": only an output axis can be divided among threads");
  EXPECT_EQ(
      refusal("stage 1 0 1"),
      "error TGC-E302: opt \"stage 1 0 1\": the index depends on an axis inside 0 that is not listed, or the reverse");
  EXPECT_EQ(refusal("lane 0; split 0 4"), "error TGC-E302: opt \"split 0 4\": the axis is already lane");
  EXPECT_EQ(refusal("stage 2 1 2; unroll 1"),
            "error TGC-E302: opt \"unroll 1\": a staged value depends on the axis and its scratch does not");
  EXPECT_EQ(refusal("stage 2 1 2; lane 1"),
            "error TGC-E302: opt \"lane 1\": a staged value depends on the axis and its scratch does not");
  EXPECT_EQ(refusal("tile 3"),
            "error TGC-E302: opt \"tile 3\": unknown; known are split, merge, collapse, reorder, thread, unroll, "
            "upcast, lane, pack, stage, nest, winograd");
}
