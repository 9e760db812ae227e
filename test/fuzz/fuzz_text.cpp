// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as `.uop` text: what parses prints as text that parses to the same, is checked against the specs of every
// stage, and if it is small its value is computed; each may end in a CompileError.
#include <cstdlib>

#include "rewrite/spec.h"
#include "uop/diag.h"
#include "uop/eval.h"
#include "uop/text.h"

namespace {

constexpr int64_t kSmall = 4096; // elements of any node that is evaluated

void check_specs(tgc::Ref root) {
  tgc::PassContext context;
  for (const char* stage : {"tensor", "plan", "kernel", "lowered", "linear"}) try {
      tgc::verify(root, tgc::spec(stage), context);
    } catch (const tgc::CompileError&) {
    }
}

bool is_small(tgc::Ref root) {
  const std::vector<tgc::Ref> nodes = tgc::toposort(root, true);
  int64_t trips = static_cast<int64_t>(nodes.size());
  for (tgc::Ref node : nodes) {
    const int64_t extent = node->is(tgc::Ops::Range) ? node->src[0]->hi : tgc::numel(*node->ctx, node->shape)->hi;
    if (extent > kSmall) return false;
    if (node->is(tgc::Ops::Range)) trips *= std::max<int64_t>(1, extent);
    if (trips > 16 * kSmall) return false;
  }
  return true;
}

void evaluate(const tgc::Module& module) {
  tgc::VarValues vars;
  std::vector<tgc::HostTensor> inputs;
  for (tgc::Ref node : tgc::toposort(module.root, true))
    if (node->is(tgc::Ops::Var)) vars[node->s(tgc::Attr::Name)] = node->lo;
  for (tgc::Ref node : tgc::toposort(module.root)) {
    if (!node->is(tgc::Ops::Param) || node->i(tgc::Attr::Slot) < 0 || node->i(tgc::Attr::Slot) > 16) continue;
    std::vector<int64_t> shape;
    for (tgc::Ref dim : node->shape) shape.push_back(tgc::eval_index(dim, vars));
    inputs.resize(std::max(inputs.size(), static_cast<size_t>(node->i(tgc::Attr::Slot)) + 1));
    inputs[static_cast<size_t>(node->i(tgc::Attr::Slot))] = tgc::zeros(node->dtype, shape);
  }
  tgc::eval(module, inputs, vars);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tgc::Module module = tgc::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
    const std::string text = tgc::print(module);
    if (tgc::print(tgc::parse(text, "printed")) != text) std::abort();
    check_specs(module.root);
    if (is_small(module.root)) evaluate(module);
  } catch (const tgc::CompileError&) {
  }
  return 0;
}
