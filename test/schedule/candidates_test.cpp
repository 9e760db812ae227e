// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Candidates are lists that apply and compute what the heuristic's list computes, to the bit; the estimate that picks
// them knows a good tile from a bad one.
#include "schedule/candidates.h"

#include "plan_graph.h"
#include "schedule/estimate.h"

using namespace tgc;

namespace {

struct KernelCase {
  Ref func;
  std::vector<bool> constant;
};

/// The scheduled plan of `graph`, its last kernel, and which operands of that are weights.
KernelCase last_kernel(Graph& graph) {
  Module& m = graph.done();
  m.root = map_kernels(rangeify(m.root), lower_stage);
  KernelCase out;
  const Ref call = m.root->src[0]->src.back();
  out.func = call->src[0];
  for (Ref argument : call->src.subspan(1)) out.constant.push_back(argument->is(Ops::Weight));
  return out;
}

/// The graph's outputs by linear kernels, its last one with the opts given.
std::vector<HostTensor> outputs(const Module& scheduled, Ref kernel, const std::string& opts,
                                const std::vector<HostTensor>& inputs) {
  Module m;
  m.weights = scheduled.weights;
  const Ref plan = import(*m.ctx, scheduled.root), wanted = import(*m.ctx, kernel);
  const FindOpts find = [&](Ref func, const std::vector<bool>&) {
    return func == wanted ? std::optional(FoundOpts{opts, "here"}) : std::nullopt;
  };
  m.root = optimize_plan(plan, wide_target(), true, find);
  m.root = map_kernels(m.root, [](Ref k) { return linearize(order_sums(lower_access(simplify(expand(k)))), false); });
  return eval(m, inputs);
}

/// Checks every candidate of the graph's last kernel; returns them.
std::vector<Candidate> check_candidates(Graph& graph, int most = 12) {
  std::vector<HostTensor> inputs = random_inputs(graph.done(), {}, 3);
  const KernelCase k = last_kernel(graph);
  const std::vector<Candidate> all = candidates(k.func, wide_target(), k.constant, {.most = most});
  EXPECT_EQ(all.at(0).opts, optimize_kernel(k.func, wide_target(), k.constant).func->s(Attr::Opts));
  EXPECT_FALSE(all[0].regroups);
  EXPECT_LE(all.size(), static_cast<size_t>(most) + 1);
  const std::vector<HostTensor> want = outputs(graph.m, k.func, all[0].opts, inputs);
  for (const Candidate& c : all) {
    SCOPED_TRACE(c.opts);
    EXPECT_GT(c.cycles, 0);
    const std::vector<HostTensor> got = outputs(graph.m, k.func, c.opts, inputs);
    if (c.regroups)
      expect_close(want, got, "regrouped", "");
    else
      EXPECT_TRUE(want.back().data == got.back().data);
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j) EXPECT_NE(all[i].opts, all[j].opts);
  return all;
}

/// A convolution of 3x3 taps as rangeify leaves it: out [16,16,32] of a padded picture [18,18,32], param 2 the weights.
Ref convolution(Context& ctx) {
  const auto param = [&](int64_t slot, int64_t numel) {
    return ctx.make(Ops::Param, DType::F32, {ctx.index(numel)}, {{Attr::Slot, slot}});
  };
  const auto load = [&](Ref x, Ref at) { return ctx.make(Ops::Load, DType::F32, {x, at}); };
  Ref y = ctx.range(ctx.index(16), 0), x = ctx.range(ctx.index(16), 1), m = ctx.range(ctx.index(32), 2);
  Ref c = ctx.range(ctx.index(32), 3, "reduce"), ky = ctx.range(ctx.index(3), 4, "reduce"),
      kx = ctx.range(ctx.index(3), 5, "reduce");
  Ref pixel = load(param(1, 18 * 18 * 32), ((y + ky) * ctx.index(18) + (x + kx)) * ctx.index(32) + c);
  Ref weight = load(param(2, 9 * 32 * 32), ((ky * ctx.index(3) + kx) * ctx.index(32) + c) * ctx.index(32) + m);
  Ref sum = ctx.make(Ops::Reduce, DType::F32, {pixel * weight, c, ky, kx}, {{Attr::Kind, std::string("add")}});
  Ref store =
      ctx.make(Ops::Store, DType::Void, {param(0, 16 * 16 * 32), (y * ctx.index(16) + x) * ctx.index(32) + m, sum});
  return make_func("conv", ctx.make(Ops::Sink, DType::Void, {store}));
}

std::vector<std::string> texts(const std::vector<Candidate>& all) {
  std::vector<std::string> out;
  for (const Candidate& c : all) out.push_back(c.opts);
  return out;
}

Ref with_opts(Ref func, const std::string& opts) {
  return func->ctx->make(Ops::Func, DType::Void, func->src, {{Attr::Name, func->s(Attr::Name)}, {Attr::Opts, opts}});
}

} // namespace

TEST(Candidates, ApplyAndKeepEveryBit) {
  Graph weights, rows, across, softmax, attention, grouped, sums;
  EXPECT_GE(check_candidates(weights.output(weights.matmul(weights.param({37, 24}), weights.weight({24, 48})))).size(),
            8U);
  EXPECT_GE(check_candidates(rows.output(rows.matmul(rows.param({96, 40}), rows.param({40, 64})))).size(), 8U);
  Ref transposed = across.permute(across.param({64, 40}), {1, 0});
  EXPECT_GE(check_candidates(across.output(across.matmul(across.param({96, 40}), transposed))).size(), 4U);
  EXPECT_GE(check_candidates(softmax.output(softmax.softmax(softmax.param({12, 50})))).size(), 1U);
  EXPECT_GE(check_candidates(sums.output(sums.reduce(sums.param({9, 70, 40}), "add", {1}))).size(), 2U);
  Ref keys = attention.param({3, 24, 8}), values = attention.param({3, 24, 8});
  const std::vector<Candidate> nests = check_candidates(
      attention.output(attention.attention(attention.param({3, 70, 8}), keys, values, attention.param({70, 24}))));
  EXPECT_GE(nests.size(), 6U);
  for (const Candidate& c : nests) EXPECT_EQ(c.opts.substr(0, 12), "defer; nest ") << c.opts;
}

TEST(Candidates, AreTheSameInAnotherContext) {
  Context here, there;
  there.index(77); // other node numbers
  const std::vector<bool> constant = {false, false, true};
  const Ref func = convolution(here);
  EXPECT_EQ(texts(candidates(func, wide_target(), constant, {})),
            texts(candidates(import(there, func), wide_target(), constant, {})));
}

TEST(Candidates, RegroupSumsOnlyWhereThatIsAllowed) {
  Context ctx;
  const Ref func = convolution(ctx);
  const auto count = [&](const std::vector<bool>& constant, bool reorder) {
    const std::vector<Candidate> all = candidates(func, wide_target(), constant, {.most = 64, .reorder = reorder});
    const auto chunks = [&](const Candidate& c) {
      for (Ref axis : kernel_axes(optimize_kernel(with_opts(func, c.opts), wide_target(), constant).func))
        if (axis->s(Attr::Axis) == "thread") return axis->src[0]->lo;
      return int64_t{1};
    };
    for (const Candidate& c : all) {
      EXPECT_GE(chunks(c), std::min<int64_t>(chunks(all[0]), 16)) << c.opts; // threads are offered as much
      EXPECT_EQ(c.regroups, c.opts.starts_with("winograd") != all[0].opts.starts_with("winograd")) << c.opts;
    }
    return std::count_if(all.begin(), all.end(), [](const Candidate& c) { return c.opts.starts_with("winograd"); });
  };
  EXPECT_GT(count({false, false, true}, true), 0);
  EXPECT_EQ(count({false, false, true}, false), 0); // numbers are strict
  EXPECT_EQ(count({false, false, false}, true), 0); // transformed weights are packed
}

TEST(Candidates, FoundOptsMustApplyAndPackOnlyWeights) {
  const auto message = [](Graph& g, const std::string& opts) -> std::string {
    const KernelCase k = last_kernel(g);
    try {
      optimize_plan(g.m.root, wide_target(), true, [&](Ref func, const std::vector<bool>&) {
        return func == k.func ? std::optional(FoundOpts{opts, "tuned.txt:3"}) : std::nullopt;
      });
    } catch (const CompileError& e) {
      std::string text = e.what();
      const size_t name = text.find("kernel r_");
      if (name == std::string::npos) return text;
      return text.substr(0, name) + text.substr(text.find(": ", name) + 2);
    }
    return "";
  };
  const auto graph = [](Graph& g) -> Graph& { return g.output(g.matmul(g.param({8, 16}), g.param({16, 32}))); };
  const char* note = "\n  note: remove the line, or let --beam time the kernel again";
  Graph a, b, c, d, e;
  EXPECT_EQ(message(graph(a), "split 1 16; lane 2"), "");
  EXPECT_EQ(message(graph(b), "lane 7"),
            std::string("tuned.txt:3: error TGC-E504: opt \"lane 7\": there is no such axis") + note);
  EXPECT_EQ(message(graph(c), "pack 2 1 2"),
            std::string("tuned.txt:3: error TGC-E504: opt \"pack 2\": what is packed is no weight") + note);
  EXPECT_EQ(message(graph(d), "lane 1; upcast 0; split 2 2; unroll 3; unroll 2"), "");
  EXPECT_EQ(message(e.output(e.matmul(e.param({256, 16}), e.param({16, 256}))), "lane 1; upcast 0"),
            std::string("tuned.txt:3: error TGC-E504: opts \"lane 1; upcast 0\" repeat a value more than 16384 times") +
                note);
}

TEST(Candidates, WhateverAFileSaysIsRefusedOrKeepsTheMeaning) {
  Graph g;
  g.output(g.matmul(g.param({6, 12}), g.weight({12, 20}))).done();
  const std::vector<HostTensor> inputs = random_inputs(g.m, {}, 3), want = eval(g.m, inputs);
  const KernelCase k = last_kernel(g);
  uint64_t random = 11;
  const auto next = [&](size_t n) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int64_t>(static_cast<size_t>(random >> 33) % n);
  };
  const char* names[] = {"split",  "split",  "merge", "collapse", "reorder", "thread",
                         "unroll", "upcast", "lane",  "pack",     "stage"};
  int applied = 0, refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string opts;
    for (int64_t count = 1 + next(5); count-- > 0;) {
      const std::string name = names[next(std::size(names))];
      opts += (opts.empty() ? "" : "; ") + name + " " + std::to_string(next(4));
      if (name == "split") opts += " " + std::to_string(next(9));
      if (name == "pack" || name == "stage" || name == "reorder")
        for (int64_t args = 1 + next(4); args-- > 0;) opts += " " + std::to_string(next(5));
    }
    SCOPED_TRACE(opts);
    try {
      expect_close(want, outputs(g.m, k.func, opts, inputs), "found", opts);
      ++applied;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.all()[0].code, ErrorCode::E504) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(applied, 100);
  EXPECT_GT(refused, 100);
}

TEST(Estimate, KnowsTilesThatFillRegistersFromOthers) {
  Graph g;
  const KernelCase k = last_kernel(g.output(g.matmul(g.param({96, 64}), g.weight({64, 96}))));
  const auto cycles = [&](const std::string& opts) {
    return estimate_cycles(optimize_kernel(with_opts(k.func, opts), wide_target(), k.constant).func, wide_target());
  };
  const double scalar = cycles(""), lanes = cycles("split 1 8; lane 2"),
               tile = cycles("split 1 16; lane 2; split 0 6; upcast 1"),
               spilled = cycles("split 1 16; lane 2; split 0 32; upcast 1");
  EXPECT_GT(scalar, 4 * lanes);
  EXPECT_GT(lanes, 2 * tile);
  EXPECT_GT(spilled, 1.2 * tile);
  EXPECT_GT(tile, 96 * 64 * 96 / 8 / wide_target().fma_ports); // no faster than the machine
  EXPECT_EQ(cycles("split 0 4"), cycles("split 0 4"));         // and the same each time
}
