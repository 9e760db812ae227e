// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graphs under construction for the tests of scheduling, and the check that each of them keeps its meaning: evaluated
// as a tensor graph, as scheduled kernels, as optimised kernels and as linear kernels, all four agree.
#pragma once

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

namespace tgc {

inline TargetInfo wide_target(bool fma = false) {
  TargetInfo t;
  t.device = "cpu";
  t.vector_bytes = 32;
  t.vector_registers = 16;
  t.ops.set();
  t.ops.set(static_cast<size_t>(Ops::Fma), fma);
  t.dtypes.set();
  return t;
}

inline Ref map_kernels(Ref plan, const std::function<Ref(Ref)>& change) {
  Context& ctx = *plan->ctx;
  std::vector<Ref> calls;
  for (Ref call : plan->src[0]->src) {
    std::vector<Ref> src(call->src.begin(), call->src.end());
    src[0] = change(src[0]);
    calls.push_back(ctx.make(Ops::Call, DType::Void, src));
  }
  return ctx.make(Ops::Func, DType::Void, {ctx.make(Ops::Linear, DType::Void, calls)}, *plan->attrs);
}

inline std::vector<HostTensor> random_inputs(const Module& m, const VarValues& vars, unsigned seed) {
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

inline void expect_close(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b, const char* stage,
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
inline size_t check(Graph& graph, const VarValues& vars = {}) {
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

} // namespace tgc
