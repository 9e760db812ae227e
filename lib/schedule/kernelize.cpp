// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts kernels out of the scheduled graph. A kernel is closed: storage becomes params numbered by argument position,
// and ranges are renumbered from 0 in nesting order (rangeify creates outer ranges before inner ones), so kernels that
// compute the same thing on different buffers become the same interned func and are compiled once.
#include "schedule/kernelize.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <unordered_map>

#include "rewrite/rewrite.h"

namespace tgc {
namespace {

bool is_storage(Ref node) { return node->is(Ops::Param) || node->is(Ops::Weight) || node->is(Ops::Buffer); }

/// Storage by what it is once its dims are simplified, as they are in kernels: the graph knows it by one node.
std::unordered_map<uint32_t, Ref> named_storage(Ref root, const std::vector<KernelDraft>& kernels) {
  std::unordered_map<uint32_t, Ref> out;
  const auto add = [&](Ref node) {
    if (is_storage(node)) out.try_emplace(simplify(node)->id, node);
  };
  for (const KernelDraft& draft : kernels) add(draft.out);
  for (Ref node : toposort(root)) add(node);
  return out;
}

/// "r_16_28_28_9_4f1a2203": kind (e elementwise, r reduce), extents in nesting order ("x" if symbolic), content hash.
std::string kernel_name(Ref sink, const std::vector<Ref>& ranges) {
  bool reduces = std::any_of(ranges.begin(), ranges.end(), [](Ref r) { return r->s(Attr::Axis) == "reduce"; });
  std::string text = reduces ? "r" : "e";
  for (Ref r : ranges) {
    std::optional<int64_t> n = dim_int(r->src[0]);
    text += n ? "_" + std::to_string(*n) : r->src[0]->is(Ops::Var) ? "_" + r->src[0]->s(Attr::Name) : "_x";
  }
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  char digits[16];
  std::snprintf(digits, sizeof digits, "_%08llx", static_cast<unsigned long long>(sink->hash & 0xffffffff));
  return text + digits;
}

} // namespace

Ref make_plan(Ref root, const std::vector<KernelDraft>& kernels) {
  Context& ctx = *root->ctx;
  std::vector<Ref> calls;
  const std::unordered_map<uint32_t, Ref> named = named_storage(root, kernels);
  for (const KernelDraft& draft : kernels) {
    Ref whole = ctx.make(Ops::Store, DType::Void, {draft.out, draft.index, draft.value}), store = simplify(whole);
    std::vector<Ref> arguments = {store->src[0]}, ranges;
    for (Ref node : toposort(store)) {
      if (is_storage(node) && !(node == arguments[0])) arguments.push_back(node);
      if (node->is(Ops::Range)) ranges.push_back(node);
    }
    std::sort(ranges.begin(), ranges.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
    std::vector<std::pair<Ref, Ref>> replace;
    for (size_t i = 0; i < arguments.size(); ++i) {
      Ref flat = numel(ctx, arguments[i]->shape);
      replace.emplace_back(arguments[i],
                           ctx.make(Ops::Param, arguments[i]->dtype, {flat}, {{Attr::Slot, static_cast<int64_t>(i)}}));
    }
    std::vector<Ref> renumbered;
    for (size_t i = 0; i < ranges.size(); ++i) {
      renumbered.push_back(ctx.range(ranges[i]->src[0], static_cast<int64_t>(i), ranges[i]->s(Attr::Axis)));
      replace.emplace_back(ranges[i], renumbered.back());
    }
    Ref sink = ctx.make(Ops::Sink, DType::Void, {substitute(store, replace)});
    Ref kernel = make_func(kernel_name(sink, renumbered), sink);
    std::vector<Ref> call = {kernel};
    for (Ref argument : arguments) call.push_back(named.at(argument->id));
    Attrs attrs;
    if (!draft.origin.empty()) attrs.push_back({Attr::Origin, draft.origin});
    calls.push_back(ctx.make(Ops::Call, DType::Void, call, attrs));
  }
  return with_body(root, ctx.make(Ops::Linear, DType::Void, calls));
}

} // namespace tgc
