// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass loop: selection, order, verification, hooks, rules inserted at every point; and the specs.
#include "rewrite/pass.h"

#include <gtest/gtest.h>

#include "rewrite/rewrite.h"
#include "rewrite/rules/symbolic.h"
#include "rewrite/spec.h"
#include "uop/target.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1};

Ref append(Ref root, const char* name) { return root + root->ctx->var(name, 0, 1); }
Ref pass_a(Ref root, PassContext&) { return append(root, "a"); }
Ref pass_b(Ref root, PassContext&) { return append(root, "b"); }
Ref pass_c(Ref root, PassContext&) { return append(root, "c"); }
constexpr Pass kTable[] = {
    {"add-a", "test", pass_a, nullptr, "tensor", true, "Adds a."},
    {"add-b", "test", pass_b, "tensor", "tensor", false, "Adds b."},
    {"add-c", "test", pass_c, nullptr, nullptr, true, "Adds c."},
};

class Passes : public ::testing::Test {
protected:
  std::string run(const PassOptions& options = {}) {
    std::string ran;
    Ref root = ctx.var("x", 0, 1);
    PassHooks hooks;
    hooks.before = [&](const Pass& p, Ref) { ran += std::string("<") + p.name + " "; };
    hooks.after = [&](const Pass& p, Ref before, Ref after, double seconds) {
      EXPECT_FALSE(before == after);
      EXPECT_GE(seconds, 0);
      ran += std::string(p.name) + "> ";
    };
    result = run_passes(kTable, root, pass, options, hooks);
    return ran;
  }
  std::string error(const PassOptions& options) {
    try {
      run(options);
    } catch (const CompileError& e) {
      return e.all()[0].message;
    }
    return "no error";
  }
  Context ctx;
  PassContext pass;
  Ref result;
};

TEST_F(Passes, RunInTableOrderWithHooks) {
  EXPECT_EQ(run(), "<add-a add-a> <add-b add-b> <add-c add-c> ");
  const Ref x = ctx.var("x", 0, 1);
  EXPECT_EQ(result, append(append(append(x, "a"), "b"), "c"));
}

TEST_F(Passes, OptionsSelect) {
  EXPECT_EQ(run({.disabled = {"add-a"}}), "<add-b add-b> <add-c add-c> ");
  EXPECT_EQ(run({.only = {"add-c"}}), "<add-c add-c> ");
  EXPECT_EQ(run({.start_before = "add-b"}), "<add-b add-b> <add-c add-c> ");
  EXPECT_EQ(run({.stop_after = "add-a"}), "<add-a add-a> ");
  EXPECT_EQ(error({.disabled = {"add-b"}}), "pass \"add-b\" cannot be disabled");
  EXPECT_EQ(error({.stop_after = "nope"}), "there is no pass \"nope\"");
}

TEST_F(Passes, ACorrectExtraRuleAtEveryPointChangesNothingElse) {
  // x + y -> y + x once is correct everywhere; here x + b -> b + x marks where it ran.
  const PatternMatcher once("once", {{"commute", (Pat(X) + op(Ops::Var, {}).as(Y)).ordered(),
                                      [](Match& m) { return m[Y]->s(Attr::Name) == "a" ? m[Y] + m[X] : Ref(); }}});
  run();
  const Ref plain = simplify(result);
  for (const Pass& p : kTable)
    for (const bool before : {true, false}) {
      run({.extra = {{p.name, before, &once}}});
      EXPECT_EQ(simplify(result), plain) << p.name;
    }
  run({.stop_after = "add-a", .extra = {{"add-a", false, &once}}});
  EXPECT_EQ(result, ctx.var("a", 0, 1) + ctx.var("x", 0, 1));
}

TEST_F(Passes, WhatAPassBreaksIsNamed) {
  static constexpr Pass bad[] = {
      {"add-load", "test", [](Ref root, PassContext&) { return root + root->ctx->range(root->ctx->index(4), 0); },
       nullptr, "tensor", false, ""}};
  try {
    run_passes(bad, ctx.var("x", 0, 1), pass);
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.all()[0].code, ErrorCode::E103);
    EXPECT_EQ(e.all()[0].message,
              "after pass \"add-load\": spec \"tensor\" does not allow range(4){id=0,axis=loop} of type index[]");
  }
  EXPECT_NO_THROW(run_passes(bad, ctx.var("x", 0, 1), pass, {.verify = false}));
}

class Specs : public ::testing::Test {
protected:
  bool legal(Ref root, const char* name) {
    try {
      verify(root, spec(name), pass);
      return true;
    } catch (const CompileError&) {
      return false;
    }
  }
  Ref func(Ops body, std::vector<Ref> src) {
    return ctx.make(Ops::Func, DType::Void, {ctx.make(body, DType::Void, src)}, {{Attr::Name, std::string("k")}});
  }
  Ref param(int64_t slot, std::vector<Ref> dims) {
    return ctx.make(Ops::Param, DType::F32, dims, {{Attr::Slot, slot}});
  }
  Context ctx;
  PassContext pass;
  Ref n = ctx.index(8);
};

TEST_F(Specs, TensorGraph) {
  const Ref x = param(0, {n}), y = param(1, {n}), one = ctx.index(1);
  const Ref scalar =
      ctx.make(Ops::Expand, DType::F32, {ctx.make(Ops::Reshape, DType::F32, {ctx.constant(DType::F32, 2), one}), n});
  const Ref store = ctx.make(Ops::Store, DType::Void, {y, x * scalar});
  EXPECT_TRUE(legal(func(Ops::Sink, {store}), "tensor"));
  EXPECT_FALSE(legal(func(Ops::Sink, {ctx.make(Ops::Store, DType::Void, {y, x * 2.0})}), "tensor")); // needs expand
  EXPECT_FALSE(legal(func(Ops::Sink, {store}), "kernel"));
  EXPECT_FALSE(legal(func(Ops::Linear, {store}), "tensor"));
}

TEST_F(Specs, TensorOutputsAreStoredOnceAndUnread) {
  const Ref x = param(0, {n}), y = param(1, {n}), z = param(2, {n});
  const auto store = [&](Ref to, Ref value) { return ctx.make(Ops::Store, DType::Void, {to, value}); };
  EXPECT_TRUE(legal(func(Ops::Sink, {store(y, x), store(z, x)}), "tensor"));
  EXPECT_FALSE(legal(func(Ops::Sink, {store(y, x), store(y, x + x)}), "tensor"));
  EXPECT_FALSE(legal(func(Ops::Sink, {store(y, x), store(z, y)}), "tensor"));
  EXPECT_FALSE(legal(func(Ops::Sink, {store(y, y + x)}), "tensor"));
  const auto trap = [&](DType type, std::vector<Ref> dims) {
    return ctx.make(Ops::Param, type, dims, {{Attr::Slot, int64_t{3}}, {Attr::Space, std::string("trap")}});
  };
  const Ref bad = ctx.constant_int(DType::Bool, 1), flag = trap(DType::Bool, {});
  EXPECT_TRUE(legal(func(Ops::Sink, {store(y, x), store(flag, bad)}), "tensor"));
  EXPECT_FALSE(
      legal(func(Ops::Sink, {store(y, x), store(trap(DType::F32, {}), ctx.constant(DType::F32, 1))}), "tensor"));
  EXPECT_FALSE(legal(func(Ops::Sink, {store(y, x), store(trap(DType::F32, {n}), x)}), "tensor"));
  const Ref output = ctx.make(Ops::Param, DType::Bool, Refs(), {{Attr::Slot, int64_t{4}}});
  EXPECT_FALSE(legal(func(Ops::Sink, {store(output, flag)}), "tensor"));
}

TEST_F(Specs, KernelAndLowered) {
  const Ref x = param(1, {n}), y = param(0, {n}), i = ctx.range(n, 0);
  const Ref load = ctx.make(Ops::Load, DType::F32, {x, i});
  const Ref sum = ctx.make(Ops::Reduce, DType::F32, {load, i}, {{Attr::Kind, std::string("add")}});
  const auto kernel = [&](Ref value, Ref at) {
    return func(Ops::Sink, {ctx.make(Ops::Store, DType::Void, {y, at, value})});
  };
  EXPECT_TRUE(legal(kernel(sum, ctx.index(0)), "kernel"));
  EXPECT_TRUE(legal(kernel(sum, ctx.index(0)), "lowered"));
  const Ref second = func(Ops::Sink, {ctx.make(Ops::Store, DType::Void, {x, i, load})}); // argument 1 is read only
  EXPECT_FALSE(legal(second, "kernel"));
  EXPECT_FALSE(legal(second, "lowered"));
  const Ref staged = ctx.make(Ops::Stage, DType::F32, {load, i}, {{Attr::Space, std::string("scratch")}});
  const Ref picked = ctx.make(Ops::Pick, DType::F32, {staged, ctx.index(1)});
  EXPECT_TRUE(legal(kernel(picked, ctx.index(0)), "kernel"));
  EXPECT_FALSE(legal(kernel(picked, ctx.index(0)), "lowered"));
  EXPECT_FALSE(legal(kernel(sum, ctx.index(0)), "tensor"));
  const Ref two = ctx.index(2),
            lanes = ctx.make(Ops::Iota, DType::Index, {two}, {{Attr::Dim, int64_t{0}}, {Attr::Rank, int64_t{1}}});
  const Ref known = ctx.range(ctx.var("m", 1, 9) * 2.0, 1, "thread"), many = ctx.range(lanes, 1),
            chosen = ctx.range(
                cast(ctx.make(Ops::Load, DType::I32,
                              {ctx.make(Ops::Param, DType::I32, {n}, {{Attr::Slot, int64_t{2}}}), ctx.index(0)}),
                     DType::Index),
                1, "thread");
  EXPECT_TRUE(legal(kernel(load, known), "kernel"));
  EXPECT_FALSE(legal(kernel(load, many), "kernel")) << "an extent by lane";
  EXPECT_FALSE(legal(kernel(load, chosen), "kernel")) << "the caller cannot divide it";
  const Ref exp = kernel(unary(Ops::Exp, load), i);
  EXPECT_TRUE(legal(exp, "lowered"));
  TargetInfo target;
  target.dtypes.set(static_cast<size_t>(DType::F32));
  pass.target = &target;
  EXPECT_FALSE(legal(exp, "lowered")); // the target has no exp
  target.ops.set(static_cast<size_t>(Ops::Exp));
  EXPECT_TRUE(legal(exp, "lowered"));
  target.dtypes.reset();
  EXPECT_FALSE(legal(exp, "lowered")); // nor f32
}

TEST_F(Specs, LinearOrderAndNesting) {
  const Ref x = param(1, {n}), y = param(0, {n}), i = ctx.range(n, 0), j = ctx.range(n, 1);
  const Ref at = i + j, load = ctx.make(Ops::Load, DType::F32, {x, at});
  const Ref store = ctx.make(Ops::Store, DType::Void, {y, at, load});
  const Ref end_i = ctx.make(Ops::End, DType::Void, {i}), end_j = ctx.make(Ops::End, DType::Void, {j});
  EXPECT_TRUE(legal(func(Ops::Linear, {i, j, at, load, store, end_j, end_i}), "linear"));
  EXPECT_FALSE(legal(func(Ops::Linear, {i, j, load, at, store, end_j, end_i}), "linear")); // used before made
  EXPECT_FALSE(legal(func(Ops::Linear, {i, j, at, load, store, end_i, end_j}), "linear")); // crossed loops
  EXPECT_FALSE(legal(func(Ops::Linear, {i, j, at, load, store, end_j}), "linear"));        // open loop
}

TEST_F(Specs, Plan) {
  const Ref x = param(0, {n}), y = param(1, {n});
  const Ref kernel =
      func(Ops::Sink, {ctx.make(Ops::Store, DType::Void, {y, ctx.index(0), ctx.constant(DType::F32, 0)})});
  EXPECT_TRUE(legal(func(Ops::Linear, {ctx.make(Ops::Call, DType::Void, {kernel, x, y})}), "plan"));
  EXPECT_FALSE(legal(func(Ops::Linear, {ctx.make(Ops::Call, DType::Void, {kernel, x * y, y})}), "plan"));
}

} // namespace
} // namespace tgc
