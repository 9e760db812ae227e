// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass table. A pass is a function from one root to one root that states what must hold before it and what holds
// after it; the loop in rewrite/pass.cpp does the rest (verify, time, print, stop). Scheduling passes see the whole
// graph; from "expand" on a pass sees one kernel.
#include "tgc/passes.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "rewrite/lower/linearize.h"
#include "rewrite/lower/stage.h"
#include "rewrite/lower/words.h"
#include "rewrite/rewrite.h"
#include "rewrite/rules/decompose.h"
#include "rewrite/rules/symbolic.h"
#include "rewrite/rules/widen_half.h"
#include "schedule/byte_products.h"
#include "schedule/constants.h"
#include "schedule/memory_plan.h"
#include "schedule/optimize.h"
#include "schedule/rangeify.h"

namespace tgc {
namespace {

Ref simplify_pass(Ref root, PassContext& context) {
  return graph_rewrite(root, symbolic(), context, {.name = "symbolic"});
}

// clang-format off
constexpr Pass kGraphPasses[] = {
    {"widen-half",     "rewrite", [](Ref root, PassContext& c) { return widen_half(root, c); },
     "tensor", "tensor", true,  "computes f16 and bf16 in f32, rounded where stored, compared or converted"},
    {"byte-products",  "schedule", [](Ref root, PassContext& c) { return byte_products(root, c); },
     "tensor", "tensor", true,  "makes sums of products of quantised values sums over u8 and i8"},
    {"rangeify",       "schedule", [](Ref root, PassContext& c) { return rangeify(root, default_fusion, c.origin); },
     "tensor", "plan",   false, "decides which values live in memory and cuts the graph into kernels over ranges"},
    {"mark-constants", "schedule", [](Ref root, PassContext&) { return mark_constants(root); },
     "plan",   "plan",   true,  "turns buffers computed from weights alone into weights made at compile time"},
    {"plan-memory",    "schedule", [](Ref root, PassContext&) { return plan_memory(root); },
     "plan",   "plan",   true,  "lets buffers whose lives do not overlap share a slot of the arena"},
    {"lower-stage",    "schedule", [](Ref root, PassContext&) { return map_kernels(root, lower_stage); },
     "plan",   "plan",   false, "gives staged values scratch storage"},
    {"optimize",       "schedule", [](Ref root, PassContext& c) { 
       return optimize_plan(root, *c.target, c.numerics != Numerics::Strict, c.state<FindOpts>()); },
     "plan",   "plan",   true,  "splits, orders, tiles, threads and packs for the target (opts)"},
};
constexpr Pass kKernelPasses[] = {
    {"form-words",    "rewrite", [](Ref kernel, PassContext&) { return form_words(kernel); },
     "kernel",  "kernel",  false, "loads four bytes as one element and multiplies them by dot4"},
    {"expand",        "rewrite", [](Ref kernel, PassContext&) { return expand(kernel); },
     "kernel",  "kernel",  false, "turns upcast and lane ranges into dims of shaped values"},
    {"simplify",      "rewrite", simplify_pass,
     "kernel",  "kernel",  true,  "folds constants and canonicalises index arithmetic"},
    {"lower-access",  "rewrite", [](Ref kernel, PassContext&) { return lower_access(kernel); },
     "kernel",  "kernel",  false, "marks contiguous vector loads and stores"},
    {"decompose",     "rewrite", decompose,
     "kernel",  "lowered", false, "expresses ops and types the target lacks by those it has; fuses multiply-adds"},
    {"order-sums",    "rewrite", [](Ref kernel, PassContext&) { return order_sums(kernel); },
     "lowered", "lowered", true,  "re-associates index sums so that outer loops' terms can be hoisted"},
    {"narrow-masks",  "rewrite", [](Ref kernel, PassContext&) { return narrow_masks(kernel); },
     "lowered", "lowered", true,  "compares lane positions in 32 bits"},
    {"linearize",     "rewrite", [](Ref kernel, PassContext& c) { 
       return linearize(kernel, c.numerics != Numerics::Strict && c.target->supports(Ops::Fma)); },
     "lowered", "linear",  false, "orders the instructions and makes loops and accumulators explicit"},
};
// clang-format on

} // namespace

std::span<const Pass> graph_passes() { return kGraphPasses; }
std::span<const Pass> kernel_passes() { return kKernelPasses; }

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (std::span<const Pass> table : {graph_passes(), kernel_passes()})
    for (const Pass& pass : table) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> rule_names(const TargetInfo& target) {
  std::vector<std::string> names;
  const PatternMatcher all = symbolic() + decompositions(target);
  for (const Rule& rule : all.rules()) names.push_back(rule.full_name());
  return names;
}

Ref map_kernels(Ref plan, const std::function<Ref(Ref)>& change) {
  Context& ctx = *plan->ctx;
  std::vector<std::pair<Ref, Ref>> changed;
  for (Ref kernel : kernels_of(plan)) changed.emplace_back(kernel, change(kernel));
  std::vector<Ref> calls;
  for (Ref call : plan->src[0]->src) {
    std::vector<Ref> src(call->src.begin(), call->src.end());
    src[0] = std::find_if(changed.begin(), changed.end(), [&](const auto& c) { return c.first == src[0]; })->second;
    calls.push_back(ctx.with_src(call, src));
  }
  return with_body(plan, ctx.make(Ops::Linear, DType::Void, calls));
}

std::vector<Ref> kernels_of(Ref plan) {
  std::vector<Ref> kernels;
  std::vector<bool> seen(plan->ctx->size());
  for (Ref call : plan->src[0]->src) {
    if (seen[call->src[0]->id]) continue;
    seen[call->src[0]->id] = true;
    kernels.push_back(call->src[0]);
  }
  return kernels;
}

} // namespace tgc
