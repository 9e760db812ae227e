// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Applies opts to the kernels of a plan: those that a kernel carries as text, else those that heuristic.h chooses; of a
// kernel of several nests, to each nest and then to all of it. Equal kernels with equal operands constant are done
// once.
#include "schedule/optimize.h"

#include <algorithm>
#include <cstdio>

#include "schedule/defer.h"
#include "schedule/heuristic.h"
#include "schedule/nests.h"
#include "schedule/winograd.h"
#include "uop/diag.h"

namespace tgc {
namespace {

Ref with_opts(Ref func, const std::string& opts) {
  Attrs attrs = {{Attr::Name, func->s(Attr::Name)}, {Attr::Opts, opts}};
  return func->ctx->make(Ops::Func, DType::Void, func->src, attrs);
}

void apply_opts(OptKernel& kernel, std::string_view text) {
  if (text.find_first_not_of(' ') == std::string_view::npos) return;
  for (const Opt& opt : parse_opts(text)) apply_opt(kernel, opt);
}

/// Opts for a kernel of several nests, chosen for each as for a kernel of its own.
OptKernel optimize_nests(Ref func, const std::vector<Opt>& open, const TargetInfo& target, const Wishes& wishes) {
  OptKernel kernel{func, {}};
  for (const Opt& opt : open) apply_opt(kernel, opt);
  std::string text = to_string(open);
  std::vector<Ref> nests = nests_of(kernel.func);
  for (Ref& part : nests) {
    const Chosen chosen = choose_nest_opts(part, target, wishes);
    part = chosen.kernel.func;
    text += " | " + to_string(chosen.opts);
  }
  const Chosen joined = choose_joint_opts(join_nests(kernel.func, nests), target);
  kernel.func = with_opts(joined.kernel.func, text + " | " + to_string(joined.opts));
  return kernel;
}

/// The opts that a kernel carries, applied: a list, or one that opens several nests, of each nest and of all.
OptKernel apply_given(Ref func) {
  const std::string& text = func->s(Attr::Opts);
  OptKernel kernel{func, {}};
  if (text.find('|') == std::string::npos) {
    apply_opts(kernel, text);
    if (nests_of(kernel.func).size() > 1)
      throw CompileError(Diagnostic{.code = ErrorCode::E302,
                                    .where = "",
                                    .message = "opts \"" + text + "\" open nests and list no opts for them",
                                    .note = "add a list for each nest and one for all, separated by |"});
    return kernel;
  }
  std::vector<std::string> lists(1);
  for (char c : text) c == '|' ? lists.emplace_back() : lists.back() += c;
  apply_opts(kernel, lists[0]);
  std::vector<Ref> nests = nests_of(kernel.func);
  if (lists.size() != nests.size() + 2)
    throw CompileError(Diagnostic{.code = ErrorCode::E302,
                                  .where = "",
                                  .message = std::to_string(lists.size()) + " lists of opts for a kernel of " +
                                             std::to_string(nests.size()) + " nests",
                                  .note = "give the opt that opens the nests, a list for each and one for all, "
                                          "separated by |"});
  for (size_t i = 0; i < nests.size(); ++i) {
    OptKernel nest{nests[i], {}};
    apply_opts(nest, lists[i + 1]);
    if (!nest.packings.empty())
      throw CompileError(
          Diagnostic{.code = ErrorCode::E302,
                     .where = "",
                     .message = "opt \"pack\" in nest " + std::to_string(i) + ": other nests may read the operand too",
                     .note = "stage copies an operand at run time"});
    nests[i] = nest.func;
  }
  kernel.func = join_nests(kernel.func, nests);
  apply_opts(kernel, lists.back());
  kernel.func = with_opts(kernel.func, text);
  return kernel;
}

/// The same kernel under another name: one func called with different operands constant becomes several.
Ref renamed(Ref func, const std::string& suffix) {
  Attrs attrs = *func->attrs;
  for (AttrItem& a : attrs)
    if (a.key == Attr::Name) a.value = std::get<std::string>(a.value) + suffix;
  return func->ctx->make(Ops::Func, DType::Void, func->src, attrs);
}

/// Whether an axis is of a kind that only opts make.
bool has_applied_opts(Ref func) {
  const std::vector<Ref> axes = kernel_axes(func);
  return std::any_of(axes.begin(), axes.end(), [](Ref r) {
    const std::string& axis = r->s(Attr::Axis);
    return axis != "loop" && axis != "reduce";
  });
}

[[noreturn]] void refuse_found(const FoundOpts& found, const std::string& why) {
  throw CompileError(Diagnostic{.code = ErrorCode::E504,
                                .where = found.where,
                                .message = why,
                                .note = "remove the line, or let --beam time the kernel again"});
}

/// Elements that the widest value of a kernel has for one element of the unoptimised one.
double width(Ref func) {
  double widest = 1;
  for (Ref node : toposort(func)) {
    double wide = 1;
    for (Ref r : node->ranges) {
      const std::string& axis = r->s(Attr::Axis);
      if (axis == "upcast" || axis == "lane" || axis == "unroll" || axis == "word")
        wide *= static_cast<double>(r->src[0]->hi);
    }
    widest = std::max(widest, wide);
  }
  return widest;
}

OptKernel apply_found(Ref func, const std::vector<bool>& constant, const FoundOpts& found) {
  OptKernel kernel;
  try {
    kernel = apply_given(with_opts(func, found.opts));
  } catch (const CompileError& e) {
    refuse_found(found, "kernel " + func->s(Attr::Name) + ": " + e.all()[0].message);
  }
  for (const OptKernel::Packing& packing : kernel.packings)
    if (const auto slot = static_cast<size_t>(packing.slot); slot >= constant.size() || !constant[slot])
      refuse_found(found, "kernel " + func->s(Attr::Name) + ": opt \"pack " + std::to_string(packing.slot) +
                              "\": what is packed is no weight");
  if (width(kernel.func) > static_cast<double>(kMaxWidth))
    refuse_found(found, "kernel " + func->s(Attr::Name) + ": opts \"" + found.opts + "\" repeat a value more than " +
                            std::to_string(kMaxWidth) + " times");
  return kernel;
}

void require_weight(Ref call, int64_t slot) {
  if (slot + 1 < static_cast<int64_t>(call->src.size()) && call->src[static_cast<size_t>(slot) + 1]->is(Ops::Weight))
    return;
  throw CompileError(Diagnostic{.code = ErrorCode::E302,
                                .where = "kernel " + call->src[0]->s(Attr::Name),
                                .message = "opt \"pack " + std::to_string(slot) + "\": the call passes no weight there",
                                .note = "stage copies an operand at run time"});
}

} // namespace

std::vector<Opt> choose_opening(Ref func, const std::vector<bool>& constant, bool reorder) {
  if (choose_nest_rows(func)) {
    std::vector<Opt> opts;
    if (Ref deferred = reorder ? with_deferred_division(func) : Ref()) {
      opts.push_back({Opt::Kind::Defer, {}});
      func = deferred;
    }
    const auto rows = choose_nest_rows(func);
    Opt& nest = opts.emplace_back(Opt{Opt::Kind::Nest, {}});
    if (rows->axis) nest.args = {*rows->axis, rows->rows};
    if (rows->lanes) nest.args.push_back(1);
    return opts;
  }
  if (!reorder) return {};
  const auto blocks = choose_winograd(func, constant);
  if (blocks) return {Opt{Opt::Kind::Winograd, {blocks->rows, blocks->parts}}};
  return {};
}

OptKernel optimize_as(Ref func, const TargetInfo& target, const std::vector<bool>& constant,
                      const std::pair<std::vector<Opt>, Wishes>& how) {
  const auto& [open, wishes] = how;
  if (!open.empty()) return optimize_nests(func, open, target, wishes);
  Chosen chosen = choose_opts(func, target, constant, wishes);
  chosen.kernel.func = with_opts(chosen.kernel.func, to_string(chosen.opts));
  return chosen.kernel;
}

OptKernel optimize_kernel(Ref func, const TargetInfo& target, const std::vector<bool>& constant, bool reorder) {
  if (!func->has(Attr::Opts))
    return optimize_as(func, target, constant, {choose_opening(func, constant, reorder), {.reorder = reorder}});
  try {
    return apply_given(func);
  } catch (const CompileError& e) {
    std::vector<Diagnostic> all = e.all();
    for (Diagnostic& d : all) {
      d.where = "kernel " + func->s(Attr::Name);
      if (d.note.empty() && has_applied_opts(func))
        d.note = "the kernel's opts are applied already, as in what --emit=plan prints: --start-before=form-words";
    }
    throw CompileError(all);
  }
}

Ref optimize_plan(Ref plan, const TargetInfo& target, bool reorder, const FindOpts& find) {
  Context& ctx = *plan->ctx;
  std::vector<Ref> calls;
  std::vector<std::pair<std::pair<Ref, std::vector<bool>>, OptKernel>> done;
  for (Ref call : plan->src[0]->src) {
    std::vector<bool> constant;
    for (Ref argument : call->src.subspan(1)) constant.push_back(argument->is(Ops::Weight));
    std::pair<Ref, std::vector<bool>> key{call->src[0], constant};
    auto known = std::find_if(done.begin(), done.end(), [&](const auto& d) { return d.first == key; });
    if (known == done.end()) {
      const std::optional<FoundOpts> found =
          find && !call->src[0]->has(Attr::Opts) ? find(call->src[0], constant) : std::nullopt;
      OptKernel kernel = found ? apply_found(call->src[0], constant, *found)
                               : optimize_kernel(call->src[0], target, constant, reorder);
      auto variants =
          std::count_if(done.begin(), done.end(), [&](const auto& d) { return d.first.first == key.first; });
      if (variants > 0) kernel.func = renamed(kernel.func, "_v" + std::to_string(variants));
      for (const OptKernel::Packing& packing : kernel.packings) require_weight(call, packing.slot);
      done.emplace_back(key, std::move(kernel));
      known = done.end() - 1;
    }
    std::vector<Ref> src(call->src.begin(), call->src.end());
    src[0] = known->second.func;
    for (const OptKernel::Packing& packing : known->second.packings) {
      Ref& argument = src[static_cast<size_t>(packing.slot) + 1];
      Ref size = packing.func->src[0]->src[0]->src[0]->src[0];
      char digits[24];
      std::snprintf(digits, sizeof digits, "/%016llx", static_cast<unsigned long long>(packing.func->hash));
      Ref packed = ctx.make(Ops::Weight, argument->dtype, {size}, {{Attr::Key, argument->s(Attr::Key) + digits}});
      Ref pack = optimize_kernel(packing.func, target, {false, true}).func;
      Ref pack_call = ctx.make(Ops::Call, DType::Void, {pack, packed, argument});
      if (std::find(calls.begin(), calls.end(), pack_call) == calls.end()) calls.push_back(pack_call);
      argument = packed;
    }
    calls.push_back(ctx.with_src(call, src));
  }
  return with_body(plan, ctx.make(Ops::Linear, DType::Void, calls));
}

} // namespace tgc
