// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opts are tried, not predicted: what opt.h refuses is dropped, so that those who choose need not know its conditions.
#include "schedule/opt_trial.h"

#include "rewrite/lower/expand.h"
#include "schedule/movement.h"
#include "uop/diag.h"

namespace tgc {
bool OptTrial::attempt(Opt::Kind kind, std::vector<int64_t> args) {
  OptKernel trial = k_;
  try {
    apply_opt(trial, Opt{kind, args});
  } catch (const CompileError&) {
    return false;
  }
  k_ = std::move(trial);
  opts_.push_back(Opt{kind, std::move(args)});
  look();
  return true;
}

bool OptTrial::move_outermost(int64_t at) {
  std::vector<int64_t> order = {at};
  for (int64_t i = 0; i < static_cast<int64_t>(axes_.size()); ++i)
    if (i != at) order.push_back(i);
  return attempt(Opt::Kind::Reorder, order);
}

void OptTrial::look() {
  axes_ = kernel_axes(k_.func);
  loads_.clear();
  stores_.clear();
  closed_.clear();
  contraction_ = Ref();
  for (Ref node : toposort(k_.func)) {
    if (node->is(Ops::Load)) loads_.push_back(node);
    if (node->is(Ops::Store)) stores_.push_back(node);
    if (!node->is(Ops::Reduce) && !node->is(Ops::End)) continue;
    for (Ref r : node->src.subspan(1)) closed_.push_back(r);
    if (node->is(Ops::Reduce) && node->s(Attr::Kind) == "add" && product_of(node->src[0])) contraction_ = node;
  }
}

std::vector<Ref> OptTrial::output_loops() const { // by nesting
  std::vector<Ref> loops;
  std::copy_if(axes_.begin(), axes_.end(), std::back_inserter(loops), [&](Ref axis) { return is_loop(axis); });
  return loops;
}

int64_t OptTrial::stride(Ref axis) const { return coefficient(k_.func->src[0]->src[0]->src[1], axis).value_or(0); }

void OptTrial::follow_memory() {
  std::vector<Ref> loops = output_loops();
  for (Ref axis : loops)
    if (stride(axis) == 0 || !may_stand_inside(axis)) return;
  std::stable_sort(loops.begin(), loops.end(), [&](Ref a, Ref b) { return stride(a) > stride(b); });
  std::vector<int64_t> order;
  for (Ref axis : loops) order.push_back(position(axis));
  for (Ref axis : axes_)
    if (!is_loop(axis)) order.push_back(position(axis));
  if (!std::is_sorted(order.begin(), order.end())) attempt(Opt::Kind::Reorder, order);
}

bool OptTrial::may_stand_inside(Ref axis) const {
  const std::vector<Ref> nodes = toposort(k_.func);
  return std::all_of(nodes.begin(), nodes.end(), [&](Ref node) {
    const bool is_slow = node->is(Ops::Reduce) || node->is(Ops::After) || node->is(Ops::Exp) || node->is(Ops::Log) ||
                         node->is(Ops::Tanh) || node->is(Ops::Erf) || node->is(Ops::Sin) || node->is(Ops::Cos) ||
                         node->is(Ops::Pow) || node->is(Ops::Sqrt) || (node->is(Ops::Div) && is_float(node->dtype));
    return !is_slow || depends(node, axis);
  });
}

} // namespace tgc
