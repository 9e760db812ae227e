// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constant folding of whole kernels. Scheduling has already put every value computed from weights into kernels like any
// other; here the ones with nothing but weights as inputs have their output declared a weight. Size is the policy: a
// folded weight may not be larger than its sources together, so broadcasting never inflates a bundle; and work: a
// kernel that loops longer than any layout change of real weights stays for run time, so that no model stalls the
// compiler.
#include "schedule/constants.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace tgc {
namespace {

std::optional<double> bytes(Ref storage) {
  std::optional<int64_t> n = dim_int(numel(*storage->ctx, storage->shape));
  if (!n) return std::nullopt;
  return static_cast<double>(*n) * byte_size(storage->dtype);
}

constexpr double kMaxTrips = 1 << 28; // loop iterations of one kernel, seconds of work

/// At least as many as the iterations of the kernel's innermost loop.
double trips(Ref kernel) {
  double n = 1;
  for (Ref node : toposort(kernel))
    if (node->is(Ops::Range)) n *= static_cast<double>(std::max<int64_t>(1, node->hi + 1));
  return n;
}

bool reads_var(Ref kernel) {
  std::vector<Ref> order = toposort(kernel);
  return std::any_of(order.begin(), order.end(), [](Ref n) { return n->is(Ops::Var); });
}

bool folds(Ref call) {
  if (!call->src[1]->is(Ops::Buffer) || call->src.size() < 3) return false;
  double source = 0;
  for (Ref argument : call->src.subspan(2)) {
    if (!argument->is(Ops::Weight)) return false;
    source += bytes(argument).value_or(0);
  }
  std::optional<double> result = bytes(call->src[1]);
  return result && *result <= source && !reads_var(call->src[0]) && trips(call->src[0]) <= kMaxTrips;
}

} // namespace

bool is_constant_call(Ref call) { return call->src[1]->is(Ops::Weight); }

Ref mark_constants(Ref plan) {
  Context& ctx = *plan->ctx;
  const auto writers = [&](Ref storage) {
    const Refs calls = plan->src[0]->src;
    return std::count_if(calls.begin(), calls.end(), [&](Ref call) { return call->src[1] == storage; });
  };
  std::vector<std::pair<Ref, Ref>> replaced;
  std::vector<Ref> calls;
  for (Ref call : plan->src[0]->src) {
    std::vector<Ref> src(call->src.begin(), call->src.end());
    for (Ref& s : src)
      for (const auto& [from, to] : replaced)
        if (s == from) s = to;
    Ref changed = ctx.with_src(call, src);
    if (folds(changed) && writers(call->src[1]) == 1) {
      char key[32];
      std::snprintf(key, sizeof key, "fold/%016llx", static_cast<unsigned long long>(changed->hash));
      Ref weight = ctx.make(Ops::Weight, src[1]->dtype, src[1]->shape, {{Attr::Key, std::string(key)}});
      replaced.emplace_back(src[1], weight);
      src[1] = weight;
      changed = ctx.with_src(call, src);
    }
    calls.push_back(changed);
  }
  return with_body(plan, ctx.make(Ops::Linear, DType::Void, calls));
}

} // namespace tgc
