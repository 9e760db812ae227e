// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opts: none changes what a kernel computes (plan_graph.h), what they do to loops and operands, and how one is refused.
#include "plan_graph.h"

namespace tgc {
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

TEST(Opts, PackedWeightsTooLargeToStayInCacheAreReadAhead) {
  const auto packed = [](int64_t depth, const std::string& opts) {
    Graph g;
    Module& m = g.output(g.matmul(g.param({16, depth}), g.weight({depth, 64}))).done();
    OptKernel kernel{rangeify(m.root)->src[0]->src[0]->src[0], {}};
    for (const Opt& opt : parse_opts(opts)) apply_opt(kernel, opt);
    for (Ref node : toposort(kernel.func))
      if (node->is(Ops::Load) && node->src[0]->i(Attr::Slot) == 2) return node->i(Attr::Ahead, 0);
    return int64_t{-1};
  };
  EXPECT_EQ(packed(512, "split 0 8; upcast 1; pack 2 2 3"), 2048); // 128 KiB; 8 KiB ahead
  EXPECT_EQ(packed(511, "split 0 8; upcast 1; pack 2 2 3"), 0);
  EXPECT_EQ(packed(512, "pack 2 1 2"), 0); // no rows share what is loaded
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

TEST(Opts, PartialRowsOfEverySecondOneReadTheLastOneToo) {
  Graph g; // rows 0, 2, 4 … of x [n,8] @ w [8,20]: as many as (n+1)/2, so that row i exists where 2i < n
  Ref n = g.ctx.var("n", 1, 64), one = g.ctx.index(1), zero = g.ctx.index(0), two = g.ctx.index(2), k = g.ctx.index(8);
  Ref half = dim_floordiv(dim_add(n, one), two);
  Ref even = g.move(Ops::Pad, g.param({n, k}), {zero, zero, one, zero});
  even = g.move(Ops::Shrink, even, {zero, zero, dim_mul(half, two), k});
  even = g.move(Ops::Shrink, g.move(Ops::Reshape, even, {half, two, k}), {zero, zero, zero, half, one, k});
  Module& m = g.output(g.matmul(g.move(Ops::Reshape, even, {half, k}), g.param({8, 20}))).done();
  const VarValues vars = {{"n", 13}};
  std::vector<HostTensor> inputs = random_inputs(m, vars, 1), want = eval(m, inputs, vars);
  m.root = rangeify(m.root);
  std::string text;
  m.root = map_kernels(m.root, [&](Ref kernel) {
    OptKernel changed{kernel, {}};
    for (const Opt& opt : parse_opts("split 0 5; upcast 1")) apply_opt(changed, opt);
    text = print_func(changed.func);
    return order_sums(lower_access(simplify(expand(changed.func))));
  });
  expect_close(want, eval(m, inputs, vars), "opts", text);
  EXPECT_NE(text.find("= min index"), std::string::npos) << text;
  EXPECT_EQ(text.find("0:f32"), std::string::npos) << text; // no load has an alternative
}

TEST(Opts, TilesOfACopyAreTurnedInRegisters) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{24, 40}, {21, 43}, {6, 100}}) {
    Graph g; // lanes of the result lie `columns` apart in what it copies, whose own columns become rows of registers
    EXPECT_EQ(check(g.output(unary(Ops::Neg, g.permute(g.param({rows, columns}), {1, 0})))), 1U);
    EXPECT_NE(print(g.m).find("= permute f32[8,"), std::string::npos) << print(g.m);
  }
  Graph w; // a weight is copied once, when compiling: that code must be small
  w.output(unary(Ops::Neg, w.permute(w.param({24, 40}), {1, 0}))).done();
  const auto opts = [&](const std::vector<bool>& constant) {
    const Ref kernel = rangeify(w.m.root)->src[0]->src[0]->src[0];
    return optimize_kernel(kernel, wide_target(), constant).func->s(Attr::Opts);
  };
  EXPECT_NE(opts({}).find("upcast"), std::string::npos) << opts({});
  EXPECT_EQ(opts({false, true}).find("upcast"), std::string::npos) << opts({false, true});
  Graph h; // of open sizes
  Ref n = h.ctx.var("n", 1, 64), k = h.ctx.var("k", 1, 64);
  EXPECT_EQ(check(h.output(unary(Ops::Neg, h.permute(h.param({n, k}), {1, 0}))), {{"n", 13}, {"k", 9}}), 1U);
  EXPECT_NE(print(h.m).find("= permute f32[8,"), std::string::npos) << print(h.m);
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
  EXPECT_EQ(opts.substr(0, 20), "defer; nest 1 16 1 |") << opts;   // five blocks: ten rows repeat
  EXPECT_EQ(std::count(opts.begin(), opts.end(), '|'), 5) << opts; // scores, exponentials, their sums, result; all
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
  EXPECT_EQ(refused("nest 0 | | | |"),
            "opt \"nest 0\": takes an axis and the rows of a block (and 1: these are innermost), or nothing");
  EXPECT_EQ(refused("nest 9 8 | | | |"),
            "opt \"nest 9 8\": the kernel stages no sum of products, or not along this axis");
  EXPECT_EQ(refused("nest 1 36 | reorder 1 0 2 3 4 | | |"),
            "opt \"reorder 1 0 2 3 4\": a block axis, which nests share, must stay where it is");
  EXPECT_EQ(refused("nest 1 36 | pack 2 0 3 4 | | |"), "opt \"pack\" in nest 0: other nests may read the operand too");
  EXPECT_EQ(refused("nest 1 36 | | | |"), "accepted");
  EXPECT_EQ(refused("nest 1 36"), "opts \"nest 1 36\" open nests and list no opts for them");
}

TEST(Opts, WhatManyRowsReadIsCopiedIfItsTermsLieFarApart) {
  const auto opts = [](int64_t rows, int64_t columns) {
    Graph g;
    Ref y = g.matmul(g.param({rows, 24}), g.param({24, columns}));
    Ref kernel = rangeify(g.output(y).done().root)->src[0]->src[0]->src[0];
    return optimize_kernel(kernel, wide_target(), {}).func->s(Attr::Opts);
  };
  EXPECT_NE(opts(64, 256).find("stage 2 "), std::string::npos) << opts(64, 256);
  EXPECT_EQ(opts(64, 248).find("stage 2 "), std::string::npos) << opts(64, 248); // 992 bytes from term to term
  EXPECT_EQ(opts(56, 256).find("stage 2 "), std::string::npos) << opts(56, 256); // few rows
}

/// Every Div of `func`, and whether its dividend is a sum.
std::vector<bool> divisions_of_sums(Ref func) {
  std::vector<bool> out;
  for (Ref node : toposort(func))
    if (node->is(Ops::Div)) out.push_back(node->src[0]->is(Ops::Reduce));
  return out;
}

TEST(Opts, DeferDividesOncePerResult) {
  Graph g;
  Ref y = g.attention(g.param({3, 5, 8}), g.param({3, 24, 8}), g.param({3, 24, 8}), g.param({5, 24}));
  Ref kernel = lower_stage(rangeify(g.output(y).done().root)->src[0]->src[0]->src[0]);
  EXPECT_EQ(divisions_of_sums(kernel), std::vector<bool>{false});
  OptKernel deferred{kernel, {}};
  apply_opt(deferred, Opt{Opt::Kind::Defer, {}});
  EXPECT_EQ(divisions_of_sums(deferred.func), std::vector<bool>{true});
  EXPECT_THROW(apply_opt(deferred, Opt{Opt::Kind::Defer, {}}), CompileError); // nothing is left to defer
}

TEST(Opts, DeferIsForQuotientsThatAddUpToOne) {
  Graph g;
  Ref y = g.attention(g.param({3, 5, 8}), g.param({3, 24, 8}), g.param({3, 24, 8}), g.param({5, 24}));
  Ref kernel = lower_stage(rangeify(g.output(y).done().root)->src[0]->src[0]->src[0]);
  EXPECT_EQ(optimize_kernel(kernel, wide_target(), {}, true).func->s(Attr::Opts).substr(0, 6), "defer;");
  EXPECT_EQ(optimize_kernel(kernel, wide_target(), {}, false).func->s(Attr::Opts).substr(0, 5), "nest ");
  std::vector<std::pair<Ref, Ref>> other;
  for (Ref node : toposort(kernel))
    if (node->is(Ops::Div)) {
      std::vector<Ref> sum(node->src[1]->src.begin(), node->src[1]->src.end());
      sum[0] = sum[0] * sum[0];
      other.emplace_back(node->src[1], g.ctx.with_src(node->src[1], sum));
    }
  ASSERT_EQ(other.size(), 1U);
  OptKernel by_squares{substitute(kernel, other), {}};
  EXPECT_THROW(apply_opt(by_squares, Opt{Opt::Kind::Defer, {}}), CompileError);
  std::vector<std::pair<Ref, Ref>> unbounded; // exp y instead of exp(y - max y)
  for (Ref node : toposort(kernel))
    if (node->is(Ops::Exp)) unbounded.emplace_back(node->src[0], node->src[0]->src[0]);
  ASSERT_EQ(unbounded.size(), 1U);
  OptKernel large{substitute(kernel, unbounded), {}};
  EXPECT_THROW(apply_opt(large, Opt{Opt::Kind::Defer, {}}), CompileError);
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
            "upcast, lane, word, pack, stage, defer, nest, winograd");
}

} // namespace tgc
