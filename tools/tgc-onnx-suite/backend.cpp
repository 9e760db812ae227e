// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can run a test: the compiler with libtgrt, and the reference interpreter on the graph that the importer makes.
// Some tests feed as run-time inputs what a compiler must know (the shape operand of Reshape, the axes of ReduceSum,
// the limits of Range). A model that cannot be imported otherwise is imported with its small integer inputs bound to
// the test's values, then with all its small inputs; when neither helps, the first error stands.
#include <algorithm>
#include <memory>
#include <set>

#include "frontend/frontend.h"
#include "render/temporary.h"
#include "tgc-onnx-suite/case.h"
#include "tgc/options.h"
#include "tgc/pipeline.h"
#include "tgc/run_bundle.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace tgc::suite {

namespace {

constexpr int64_t kSmall = 64; // elements of an operand that describes a shape

/// An imported model and the tensors of its remaining inputs, by slot.
struct Loaded {
  Module module;
  std::vector<HostTensor> inputs;
  VarValues vars;
};

BoundInput bound(const HostTensor& tensor) {
  const char* first = reinterpret_cast<const char*>(tensor.data.data());
  return {tensor.dtype, tensor.shape, bytes_of(std::string(first, tensor.data.size()))};
}

/// The params that are only read, by slot.
std::vector<Ref> input_params(const Module& module) {
  std::vector<Ref> params;
  std::set<uint32_t> written;
  for (Ref node : toposort(module.root)) {
    if (node->is(Ops::Param)) params.push_back(node);
    if (node->is(Ops::Store)) written.insert(node->src[0]->id);
  }
  std::erase_if(params, [&](Ref param) { return written.contains(param->id); });
  std::sort(params.begin(), params.end(), [](Ref a, Ref b) { return a->i(Attr::Slot) < b->i(Attr::Slot); });
  return params;
}

Port port_of(Ref param) {
  Port port{param->dtype, {}};
  for (Ref dim : param->shape) port.shape.push_back(dim_int(dim).value_or(-1));
  return port;
}

void bind_vars(Ref param, const HostTensor& tensor, VarValues& vars) {
  if (param->dtype != tensor.dtype) throw std::runtime_error("an input's type is not the model's");
  if (param->shape.size() != tensor.shape.size()) throw std::runtime_error("an input's rank is not the model's");
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (param->shape[axis]->is(Ops::Var)) vars[param->shape[axis]->s(Attr::Name)] = tensor.shape[axis];
  }
}

/// Which of the inputs are bound at import.
enum class Binding { None, SmallIntegers, Small };

Loaded load(const std::string& model, const Feed& feed, Binding binding) {
  const std::vector<std::string> names = feed.has_files() ? input_names(model) : std::vector<std::string>{};
  ImportOptions options;
  std::vector<HostTensor> free;
  for (size_t i = 0; binding != Binding::None && i < std::min(names.size(), feed.files()); ++i) {
    HostTensor tensor = feed.file(i);
    const bool small = tensor.numel() <= kSmall && tensor.shape.size() <= 1;
    const bool integer = info(tensor.dtype).kind != DTypeKind::Float;
    if (small && (integer || binding == Binding::Small)) options.bindings[names[i]] = bound(tensor);
  }
  Loaded loaded{import_model(model, options), {}, {}};
  std::vector<size_t> positions;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!options.bindings.contains(names[i])) positions.push_back(i);
  }
  const std::vector<Ref> params = input_params(loaded.module);
  for (size_t slot = 0; slot < params.size(); ++slot) {
    if (feed.has_files() && slot >= positions.size()) throw std::runtime_error("more inputs than the model declares");
    loaded.inputs.push_back(feed.has_files() ? feed.file(positions[slot]) : feed.ramp(port_of(params[slot])));
    bind_vars(params[slot], loaded.inputs.back(), loaded.vars);
  }
  return loaded;
}

Loaded load(const std::string& model, const Feed& feed) {
  try {
    return load(model, feed, Binding::None);
  } catch (const CompileError& first) {
    for (Binding binding : {Binding::SmallIntegers, Binding::Small}) {
      try {
        return load(model, feed, binding);
      } catch (const std::runtime_error&) {
        continue;
      }
    }
    throw first;
  }
}

std::vector<HostTensor> run_eval(const std::string& model, const Feed& feed) {
  const Loaded loaded = load(model, feed);
  std::vector<HostTensor> outputs = eval(loaded.module, loaded.inputs, loaded.vars);
  for (Ref store : loaded.module.root->src[0]->src)
    if (is_trap(store->src[0])) outputs.pop_back();
  return outputs;
}

/// The bundle's file is gone when it is used.
ModelHandle load_contents(const BundleContents& contents) {
  TemporaryFolder folder;
  const std::string path = folder.file("bundle");
  write_bundle(contents, path);
  return load_bundle(path);
}

/// How to compile and run.
struct How {
  std::string target;
  bool guard;
};

std::vector<HostTensor> run_compiled(const std::string& model, const Feed& feed, const How& how) {
  Loaded loaded = load(model, feed);
  CompileOptions options;
  options.target = how.target;
  Compilation compilation = start_compilation(std::move(loaded.module), options);
  run_pipeline(compilation, options);
  fold_constants(compilation);
  render(compilation);
  return run_bundle(load_contents(assemble(compilation, options)).get(), loaded.inputs,
                    {.threads = 1, .guard = how.guard});
}

} // namespace

Backend find_backend(std::string_view name, const std::string& target, bool guard) {
  if (name == "eval") return run_eval;
  if (name == "compiled") {
    return [how = How{target, guard}](const std::string& model, const Feed& feed) {
      return run_compiled(model, feed, how);
    };
  }
  throw UsageError("--backend \"" + std::string(name) + "\": expected compiled or eval");
}

} // namespace tgc::suite
