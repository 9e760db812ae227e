// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>

#include "frontend/frontend.h"
#include "render/renderer.h"
#include "rewrite/pass.h"
#include "schedule/optimize.h"
#include "tgc/bundle_writer.h"
#include "uop/diag.h"
#include "uop/module.h"

namespace tgc {

/// How to compile; the defaults are the fast and right choice.
struct CompileOptions {
  std::string target = "cpu";
  ImportOptions import = {};
  Numerics numerics = Numerics::Standard;
  int jobs = 1;
  PassOptions passes = {}; ///< of graph and kernel passes alike
  std::set<std::string> disabled_rules = {};
  ObjectCache* cache = nullptr; ///< of compiled kernels; null: none
  FindOpts find_opts = {};      ///< what is known of kernels' opts; null: nothing
  std::function<void(const Pass&, const Module&, double seconds)> after_pass =
      {}; ///< after a pass over the graph or all kernels
};

/// A model between stages. `module` is what the last stage left.
struct Compilation {
  Module module;
  const Renderer* renderer = nullptr;
  TargetInfo target;
  std::vector<std::string> vars;     ///< of the whole module, sorted: the order of kernel arguments
  bool from_text = false;            ///< kernels were not made here, but read: they are not run while compiling
  std::vector<KernelSource> sources; ///< run-time kernels, in plan order
};

/// Runs `action`; its errors about the model that name no place get the model's path. errors: those of `action`.
void in_model(const Compilation& compilation, const std::function<void()>& action);

/// import: reads a model (ONNX, JSON or .uop text; "-" is standard input) and resolves the target.
Compilation start_compilation(const std::string& path, const CompileOptions& options);
Compilation start_compilation(Module module, const CompileOptions& options);

/// Whether the options let `pass` run.
bool selected(const PassOptions& options, const Pass& pass);
/// schedule and rewrite: runs the pass table from wherever the module stands (a tensor graph, or the text of a later
/// stage with passes.start_before) to passes.stop_after or the end.
void run_pipeline(Compilation& compilation, const CompileOptions& options);

/// Weights that calls make at compile time are computed, by compiled kernels where this machine can run the target's
/// code and else by `eval` (the bits are the same), and their calls removed.
void fold_constants(Compilation& compilation, int jobs = 1, ObjectCache* cache = nullptr);
/// Only removes the calls: for looking at what is left.
void drop_constant_calls(Compilation& compilation);

/// render: the text of every kernel of a linear plan.
void render(Compilation& compilation);

/// compile and collect what a bundle holds. The module must outlive the result.
BundleContents assemble(const Compilation& compilation, const CompileOptions& options);

/// All stages: a model file to a bundle file. errors: CompileError.
void compile_file(const std::string& model, const std::string& bundle, const CompileOptions& options);
/// The same, with errors as values.
Result<bool> compile_model(const std::string& model, const std::string& bundle, const CompileOptions& options);

} // namespace tgc
