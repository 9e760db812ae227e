// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a plan to the tables of a bundle. Everything is read off the plan: storage nodes are the tables' rows, calls the
// steps. Estimates count what the linear kernel does: element operations times the extents of the loops around them,
// and of each argument the bytes that must move at least: all of them, or as many as there are accesses where that is
// less.
#include "tgc/bundle_contents.h"

#include <algorithm>

#include "tgc/passes.h"

namespace tgc {
namespace {

/// Whether two arguments may share memory: one tensor, or buffers whose places overlap.
bool share_memory(const BundleContents& c, const BundleContents::Arg& a, const BundleContents::Arg& b) {
  if (a.kind != b.kind || a.index == b.index) return a.kind == b.kind;
  if (a.kind != BundleContents::Arg::Kind::Buffer) return false;
  const BundleContents::Buffer &x = c.buffers[static_cast<size_t>(a.index)],
                               &y = c.buffers[static_cast<size_t>(b.index)];
  if (x.slot != y.slot) return false;
  const auto x_bytes = dim_int(x.bytes), y_bytes = dim_int(y.bytes);
  if (!x_bytes || !y_bytes) return true;
  return x.at < y.at + static_cast<uint64_t>(*y_bytes) && y.at < x.at + static_cast<uint64_t>(*x_bytes);
}

/// Whether a step must have ended before a later one begins: one writes (its first argument) what the other reads or
/// writes. Steps that write one tensor write disjoint elements of it.
bool must_wait(const BundleContents& c, const BundleContents::Step& later, const BundleContents::Step& earlier) {
  for (size_t i = 0; i < later.args.size(); ++i)
    for (size_t j = 0; j < earlier.args.size(); ++j) {
      const auto &a = later.args[i], &b = earlier.args[j];
      if (i > 0 && j > 0) continue;
      if (i == 0 && j == 0 && a.kind == b.kind && a.index == b.index) continue;
      if (share_memory(c, a, b)) return true;
    }
  return false;
}

/// Gives each step those it must wait for, without those that these wait for.
void order_steps(BundleContents& c) {
  std::vector<std::vector<bool>> ended; // by step: what has ended when it begins
  for (size_t later = 0; later < c.steps.size(); ++later) {
    ended.emplace_back(c.steps.size());
    for (size_t earlier = later; earlier-- > 0;) {
      if (ended[later][earlier] || !must_wait(c, c.steps[later], c.steps[earlier])) continue;
      c.steps[later].waits.push_back(static_cast<int>(earlier));
      ended[later][earlier] = true;
      for (size_t i = 0; i < earlier; ++i)
        if (ended[earlier][i]) ended[later][i] = true;
    }
  }
}

struct ById {
  bool operator()(Ref a, Ref b) const { return a->id < b->id; }
};

/// Storage of the plan in order of first use, and its row in the bundle's tables.
class Contents {
public:
  explicit Contents(const Compilation& c) : c_(c), ctx_(*c.module.ctx) {}

  BundleContents run() {
    collect_vars();
    collect_tensors();
    collect_checks();
    steps(c_.module.root->src[0]->src);
    return std::move(out_);
  }

  BundleContents run_constants(const std::vector<Ref>& calls) {
    for (Ref call : calls)
      for (size_t i = 2; i <= call->src.size(); ++i)
        weight_as_tensor(call->src[i == call->src.size() ? 1 : i], i == call->src.size());
    steps(calls);
    return std::move(out_);
  }

private:
  void steps(Refs calls) {
    std::vector<Ref> kernels;
    for (Ref call : calls)
      if (std::find(kernels.begin(), kernels.end(), call->src[0]) == kernels.end()) kernels.push_back(call->src[0]);
    for (Ref kernel : kernels) out_.kernels.push_back(describe(kernel));
    for (Ref call : calls) {
      BundleContents::Step step;
      step.kernel = static_cast<int>(std::find(kernels.begin(), kernels.end(), call->src[0]) - kernels.begin());
      step.origin = call->s(Attr::Origin, "");
      for (Ref argument : call->src.subspan(1)) step.args.push_back(argument_of(argument));
      out_.steps.push_back(std::move(step));
    }
    order_steps(out_);
  }

  void weight_as_tensor(Ref weight, bool made) {
    if (rows_.contains(weight)) return;
    auto& table = made ? out_.outputs : out_.inputs;
    rows_[weight] = {made ? BundleContents::Arg::Kind::Output : BundleContents::Arg::Kind::Input,
                     static_cast<int>(table.size())};
    table.push_back({weight->s(Attr::Key), weight->dtype, {weight->shape.begin(), weight->shape.end()}});
  }

  void collect_vars() {
    for (Ref node : toposort(c_.module.root, true))
      if (node->is(Ops::Var)) out_.vars.push_back({node->s(Attr::Name), node->i(Attr::Min), node->i(Attr::Max)});
  }

  void collect_tensors() {
    std::map<int64_t, Ref> params;
    std::vector<Ref> written;
    for (Ref unread : c_.module.root->src.subspan(1))
      if (unread->is(Ops::Param)) params[unread->i(Attr::Slot)] = unread;
    for (Ref call : c_.module.root->src[0]->src)
      for (Ref argument : call->src.subspan(1)) {
        if (!argument->is(Ops::Param)) continue;
        params[argument->i(Attr::Slot)] = argument;
        if (argument == call->src[1]) written.push_back(argument);
      }
    for (const auto& [slot, param] : params) {
      bool output = std::find(written.begin(), written.end(), param) != written.end();
      auto& table = output ? out_.outputs : out_.inputs;
      rows_[param] = {output ? BundleContents::Arg::Kind::Output : BundleContents::Arg::Kind::Input,
                      static_cast<int>(table.size())};
      table.push_back({param->s(Attr::Name, (output ? "output" : "input") + std::to_string(table.size())),
                       param->dtype,
                       {param->shape.begin(), param->shape.end()}});
      if (is_trap(param)) ++out_.traps;
    }
  }

  /// requires: collect_tensors. Input slots are the inputs' numbers.
  void collect_checks() {
    for (Ref check : c_.module.root->src.subspan(1)) {
      if (!check->is(Ops::Check)) continue;
      const Ref condition = check->src[0], left = condition->src[0];
      out_.checks.push_back({left, condition->src[1], condition->is(Ops::Eq), check->s(Attr::Why)});
      if (!check->has(Attr::Sites)) continue;
      const std::vector<int64_t>& sites = check->ints(Attr::Sites);
      for (size_t i = 0; i + 1 < sites.size(); i += 2) {
        const auto input = static_cast<size_t>(sites[i]), axis = static_cast<size_t>(sites[i + 1]);
        if (input < out_.inputs.size() && axis < out_.inputs[input].dims.size()) out_.inputs[input].dims[axis] = left;
      }
    }
  }

  Ref bytes_of(Ref storage) const {
    return dim_mul(numel(ctx_, storage->shape), ctx_.index(byte_size(storage->dtype)));
  }

  BundleContents::Arg argument_of(Ref storage) {
    auto known = rows_.find(storage);
    if (known != rows_.end()) return known->second;
    BundleContents::Arg row{BundleContents::Arg::Kind::Buffer, static_cast<int>(out_.buffers.size())};
    if (storage->is(Ops::Weight)) {
      const std::string& key = storage->s(Attr::Key);
      auto data = c_.module.weights.find(key);
      if (data == c_.module.weights.end())
        throw CompileError(Diagnostic{.code = ErrorCode::E206,
                                      .where = c_.module.source,
                                      .message = "weight \"" + key + "\" has no data",
                                      .note = ""});
      const auto bytes = static_cast<uint64_t>(dim_int(bytes_of(storage)).value_or(0));
      const bool is_splat = data->second.kind == WeightData::Kind::Splat;
      const auto wanted = is_splat ? static_cast<uint64_t>(byte_size(storage->dtype)) : bytes;
      if (data->second.length != wanted)
        throw CompileError(Diagnostic{.code = ErrorCode::E206,
                                      .where = c_.module.source,
                                      .message = "weight \"" + key + "\" has " + std::to_string(data->second.length) +
                                                 " bytes, not " + std::to_string(wanted),
                                      .note = ""});
      row = {BundleContents::Arg::Kind::Weight, static_cast<int>(out_.weights.size())};
      out_.weights.push_back({key, data->second, bytes});
    } else {
      out_.buffers.push_back({bytes_of(storage), static_cast<int>(storage->i(Attr::Slot)),
                              static_cast<uint64_t>(storage->i(Attr::At, 0))});
    }
    rows_[storage] = row;
    return row;
  }

  BundleContents::Kernel describe(Ref kernel) const {
    BundleContents::Kernel k;
    k.name = kernel->s(Attr::Name);
    k.opts = kernel->s(Attr::Opts, "");
    k.scratch_bytes = scratch_bytes(kernel);
    k.chunks = ctx_.index(1);
    k.flops = k.bytes = ctx_.index(0);
    std::vector<Ref> trips = {ctx_.index(1)};
    std::map<Ref, Ref, ById> accesses; // elements, by param
    for (Ref node : kernel->src[0]->src) {
      if (node->is(Ops::Range)) {
        trips.push_back(dim_mul(trips.back(), node->src[0]));
        if (node->s(Attr::Axis) == "thread") k.chunks = node->src[0];
      } else if (node->is(Ops::End)) {
        trips.pop_back();
      } else if ((node->is(Ops::Load) || node->is(Ops::Store)) && node->src[0]->is(Ops::Param)) {
        TGC_CHECK(node->is(Ops::Load) || node->src[0]->i(Attr::Slot) == 0,
                  "kernel " + k.name + " writes argument " + std::to_string(node->src[0]->i(Attr::Slot)) +
                      "; steps are ordered as if it wrote argument 0 alone");
        const int64_t each = node->i(Attr::Lanes, 1) * (node->is(Ops::Load) ? elements_per_load(node) : 1);
        Ref at_once = dim_mul(numel(ctx_, node->src[1]->shape), ctx_.index(each));
        Ref& total = accesses.try_emplace(node->src[0], ctx_.index(0)).first->second;
        total = dim_add(total, dim_mul(trips.back(), at_once));
      } else if (node->is(Ops::Dot4)) {
        k.flops = dim_add(k.flops, dim_mul(trips.back(), dim_mul(numel(ctx_, node->shape), ctx_.index(8))));
      } else if (is_float(node->dtype) && node->cls() != OpClass::Memory && node->cls() != OpClass::Leaf &&
                 !node->is(Ops::After)) {
        Ref lanes = dim_mul(numel(ctx_, node->shape), ctx_.index(node->is(Ops::Fma) ? 2 : 1));
        k.flops = dim_add(k.flops, dim_mul(trips.back(), lanes));
      }
    }
    // A kernel whose result may be empty has no chunk then, so that it reads nothing either.
    for (Ref node : toposort(kernel))
      if (node->is(Ops::Param) && node->i(Attr::Slot) == 0 && node->shape[0]->lo < 1)
        k.chunks = dim_mul(k.chunks, binary(Ops::Min, node->shape[0], ctx_.index(1)));
    for (const auto& [param, elements] : accesses) {
      Ref accessed = dim_mul(elements, ctx_.index(byte_size(param->dtype))), all = bytes_of(param);
      k.bytes = dim_add(k.bytes, accessed->hi <= all->lo   ? accessed
                                 : all->hi <= accessed->lo ? all
                                                           : ctx_.make(Ops::Min, DType::Index, {all, accessed}));
    }
    return k;
  }

  const Compilation& c_;
  Context& ctx_;
  BundleContents out_;
  std::map<Ref, BundleContents::Arg, ById> rows_;
};

const char* numerics_name(Numerics n) {
  return n == Numerics::Strict ? "strict" : n == Numerics::Fast ? "fast" : "standard";
}

} // namespace

BundleContents constant_contents(const Compilation& c, const std::vector<Ref>& calls) {
  BundleContents out = Contents(c).run_constants(calls);
  out.features = c.target.features;
  return out;
}

BundleContents bundle_contents(const Compilation& c, const CompileOptions& options) {
  BundleContents out = Contents(c).run();
  out.features = c.target.features;
  std::string target = c.target.device + ":" + c.target.renderer + ":" + c.target.arch;
  out.meta = {{"tool", "tgc " TGC_VERSION}, {"target", target}, {"numerics", numerics_name(options.numerics)}};
  return out;
}

} // namespace tgc
