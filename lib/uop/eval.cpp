// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluation of whole modules. A tensor graph is the values of its stores. A scheduled module is its calls in order:
// inputs, outputs, weights and arena buffers become storage, each call runs its kernel on them.
// Not handled: steps other than call; they get a diagnostic.

#include <algorithm>

#include "uop/eval_node.h"

namespace tgc {
namespace {

Ref body_of(const Module& module) {
  Ref root = module.root;
  if (!root) eval_error(module.source, "the module is empty");
  return root->is(Ops::Func) ? root->src[0] : root;
}

struct Output {
  Ref param, value;
};

// The stores of a tensor graph in slot order.
std::vector<Output> outputs_of(Ref sink) {
  std::vector<Output> out;
  for (Ref store : sink->src) {
    if (!store->is(Ops::Store) || store->src.size() != 2 || !store->src[0]->is(Ops::Param))
      eval_error("", "a graph's sink holds " + describe(store) + ", not store(param, value)");
    out.push_back({store->src[0], store->src[1]});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Output& a, const Output& b) { return a.param->i(Attr::Slot) < b.param->i(Attr::Slot); });
  return out;
}

// Storage of a scheduled module, by the node that names it.
class PlanEval {
public:
  PlanEval(const Module& module, const std::vector<HostTensor>& inputs, const VarValues& vars)
      : module_(module), inputs_(inputs), vars_(vars), dims_(vars) {}

  std::vector<HostTensor> run(Ref linear) {
    for (Ref step : linear->src) {
      if (!step->is(Ops::Call)) eval_error(module_.source, "a plan holds " + describe(step) + ", not a call");
      std::vector<BufferArg> args;
      for (Ref s : step->src.subspan(1)) args.push_back(buffer_arg(storage(s)));
      if (!args.empty() && args[0].numel == 0) continue; // it writes nothing, and what it reads may be empty too
      eval_kernel(step->src[0], args, vars_);
    }
    std::map<int64_t, HostTensor> outputs;
    for (auto& [id, tensor] : storage_) {
      Ref node = module_.ctx->node(id);
      if (node->is(Ops::Param) && node->i(Attr::Slot) >= static_cast<int64_t>(inputs_.size()))
        outputs[node->i(Attr::Slot)] = std::move(tensor);
    }
    std::vector<HostTensor> out;
    for (auto& [slot, tensor] : outputs) out.push_back(std::move(tensor));
    return out;
  }

private:
  HostTensor& storage(Ref node) {
    while (node->is(Ops::After)) node = node->src[0];
    auto [entry, is_new] = storage_.try_emplace(node->id);
    if (is_new) entry->second = create(node);
    return entry->second;
  }

  HostTensor create(Ref node) {
    GraphInputs inputs;
    inputs.module = &module_;
    inputs.params = &inputs_;
    const bool is_input = node->is(Ops::Param) && node->i(Attr::Slot) < static_cast<int64_t>(inputs_.size());
    // A weight that is not in the table is one that a call of this plan makes.
    const bool is_made = node->is(Ops::Weight) && !module_.weights.contains(node->s(Attr::Key));
    if (is_input || (node->is(Ops::Weight) && !is_made)) return to_host(leaf_value(node, inputs, dims_));
    if (!is_made && !node->is(Ops::Param) && !node->is(Ops::Buffer))
      eval_error(module_.source, describe(node) + " is no storage for a call");
    HostTensor tensor = zeros(node->dtype, dims_(node->shape));
    std::fill(tensor.data.begin(), tensor.data.end(), std::byte{0xff}); // NaN, so that reading too early shows
    return tensor;
  }

  const Module& module_;
  const std::vector<HostTensor>& inputs_;
  const VarValues& vars_;
  DimValues dims_;
  std::map<uint32_t, HostTensor> storage_;
};

} // namespace

BufferArg buffer_arg(HostTensor& tensor) { return {tensor.dtype, tensor.data.data(), tensor.numel()}; }

std::vector<HostTensor> eval(const Module& module, const std::vector<HostTensor>& inputs, const VarValues& vars) {
  const Ref body = body_of(module);
  if (body->is(Ops::Linear)) return PlanEval(module, inputs, vars).run(body);
  if (!body->is(Ops::Sink)) eval_error(module.source, "the root's body is " + describe(body) + ", not sink or linear");
  DimValues dims(vars);
  GraphInputs graph{&module, &inputs, nullptr};
  std::vector<Ref> values;
  for (const Output& o : outputs_of(body)) values.push_back(o.value);
  std::vector<HostTensor> out;
  for (const Dense& value : eval_graph(values, graph, dims)) out.push_back(to_host(value));
  return out;
}

HostTensor eval_at(const Module& module, const std::vector<HostTensor>& inputs, int output, std::span<const int64_t> at,
                   const VarValues& vars) {
  const Ref body = body_of(module);
  if (!body->is(Ops::Sink)) eval_error(module.source, "elements are sampled from tensor graphs only");
  const std::vector<Output> outputs = outputs_of(body);
  if (output < 0 || output >= static_cast<int>(outputs.size()))
    eval_error(module.source, "output " + std::to_string(output) + " of " + std::to_string(outputs.size()));
  DimValues dims(vars);
  const GraphInputs graph{&module, &inputs, nullptr};
  return to_host(eval_elements(outputs[static_cast<size_t>(output)].value, at, graph, dims));
}

} // namespace tgc
