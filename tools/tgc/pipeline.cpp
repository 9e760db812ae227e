// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The five stages, as functions over one Compilation: import → schedule → rewrite → render → bundle. Each stage's
// result is a Module that prints as text and can be read back, so a compile may start and stop anywhere.
#include "tgc/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "rewrite/spec.h"
#include "tgc/bundle_contents.h"
#include "tgc/passes.h"
#include "tgc/weights.h"

namespace tgc {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Position of `name` in `passes`, or -1.
int find_pass(std::span<const Pass> passes, const std::string& name) {
  auto at = std::find_if(passes.begin(), passes.end(), [&](const Pass& p) { return name == p.name; });
  return at == passes.end() ? -1 : static_cast<int>(at - passes.begin());
}

/// `options` reduced to what concerns one table and one pass of it.
PassOptions only_pass(const PassOptions& options, const Pass& pass) {
  PassOptions one;
  one.verify = options.verify;
  one.start_before = one.stop_after = pass.name;
  for (const ExtraRules& e : options.extra)
    if (e.pass == pass.name) one.extra.push_back(e);
  return one;
}

void check_pass_names(const PassOptions& options) {
  auto check = [](const std::string& name, bool disabling) {
    int graph = find_pass(graph_passes(), name), kernel = find_pass(kernel_passes(), name);
    if (name.empty()) return;
    std::string message;
    if (graph < 0 && kernel < 0)
      message = "there is no pass \"" + name + "\"";
    else if (disabling &&
             !(graph >= 0 ? graph_passes()[static_cast<size_t>(graph)] : kernel_passes()[static_cast<size_t>(kernel)])
                  .optional)
      message = "pass \"" + name + "\" cannot be disabled";
    if (!message.empty())
      throw CompileError(
          Diagnostic{.code = ErrorCode::E503, .where = "", .message = message, .note = "tgc --list-passes lists them"});
  };
  check(options.start_before, false);
  check(options.stop_after, false);
  for (const std::string& name : options.disabled) check(name, true);
  for (const std::string& name : options.only) check(name, false);
}

/// Names, sorted. errors: CompileError TGC-E204 when two variables share one.
std::vector<std::string> module_vars(const Module& module) {
  std::vector<std::string> names;
  for (Ref node : toposort(module.root, true))
    if (node->is(Ops::Var)) names.push_back(node->s(Attr::Name));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw CompileError(Diagnostic{.code = ErrorCode::E204,
                                  .where = module.source,
                                  .message = "there are two variables \"" + *twice + "\" with different bounds",
                                  .note = "give every var of this name the same bounds"});
  return names;
}

bool is_plan(Ref root) { return root->src[0]->is(Ops::Linear); }

void run_passes_between(Compilation& c, const CompileOptions& options) {
  PassContext context;
  context.target = &c.target;
  context.numerics = options.numerics;
  context.disabled_rules = options.disabled_rules;
  FindOpts find_opts = options.find_opts;
  context.set_state(find_opts);
  bool running = options.passes.start_before.empty() && !is_plan(c.module.root);
  if (options.passes.start_before.empty() && is_plan(c.module.root))
    throw CompileError(Diagnostic{.code = ErrorCode::E503,
                                  .where = c.module.source,
                                  .message = "the text is of a later stage than import",
                                  .note = "say where to go on: --start-before=PASS"});
  const std::string& start = options.passes.start_before;
  const int first = find_pass(graph_passes(), start);
  const bool takes_graph = first >= 0 && std::strcmp(graph_passes()[static_cast<size_t>(first)].needs, "tensor") == 0;
  if (!start.empty() && !takes_graph && !is_plan(c.module.root))
    throw CompileError(Diagnostic{.code = ErrorCode::E503,
                                  .where = c.module.source,
                                  .message = "pass \"" + start + "\" takes a plan, the input is a tensor graph",
                                  .note = "--stop-after prints the text that a later pass takes"});
  c.from_text = is_plan(c.module.root);
  // Text that enters among the kernel passes meets no pass that needs the plan it is part of.
  if (find_pass(kernel_passes(), start) >= 0) verify(c.module.root, spec("plan"), context);
  for (std::span<const Pass> table : {graph_passes(), kernel_passes()})
    for (const Pass& pass : table) {
      running |= options.passes.start_before == pass.name;
      if (!running) continue;
      const bool last = options.passes.stop_after == pass.name;
      if (!selected(options.passes, pass)) {
        if (last) return;
        continue;
      }
      auto began = std::chrono::steady_clock::now();
      PassOptions one = only_pass(options.passes, pass);
      auto run = [&](Ref root) { return run_passes(table, root, context, one); };
      bool graph = table.data() == graph_passes().data();
      context.origin = graph ? &c.module.origin : nullptr; // kernels name no nodes
      c.module.root = graph ? run(c.module.root) : map_kernels(c.module.root, run);
      if (options.after_pass) options.after_pass(pass, c.module, seconds_since(began));
      if (last) return;
    }
}

} // namespace

bool selected(const PassOptions& options, const Pass& pass) {
  if (!options.only.empty() && pass.optional) return options.only.contains(pass.name);
  return !options.disabled.contains(pass.name);
}

Compilation start_compilation(Module module, const CompileOptions& options) {
  Compilation c;
  TargetSpec spec = parse_target(options.target);
  c.renderer = &find_renderer(spec);
  c.target = c.renderer->target(spec);
  c.module = std::move(module);
  open_weights(c.module);
  c.vars = module_vars(c.module);
  return c;
}

Compilation start_compilation(const std::string& path, const CompileOptions& options) {
  return start_compilation(import_model(path, options.import), options);
}

void in_model(const Compilation& c, const std::function<void()>& action) {
  try {
    action();
  } catch (const CompileError& error) {
    std::vector<Diagnostic> all = error.all();
    for (Diagnostic& d : all) {
      // Options, targets and tools are no matter of the model.
      const int number = static_cast<int>(d.code);
      const bool is_other = number >= 500 || d.code == ErrorCode::E401 || d.code == ErrorCode::E404;
      if (!is_other && !d.where.starts_with(c.module.source))
        d.where = c.module.source + (d.where.empty() ? "" : ": ") + d.where;
    }
    throw CompileError(std::move(all));
  }
}

void run_pipeline(Compilation& c, const CompileOptions& options) {
  check_pass_names(options.passes);
  in_model(c, [&] { run_passes_between(c, options); });
}

void render(Compilation& c) {
  c.vars = module_vars(c.module); // a pass may have simplified one away
  c.sources.clear();
  in_model(c, [&] {
    for (Ref kernel : kernels_of(c.module.root))
      c.sources.push_back({kernel->s(Attr::Name), c.renderer->render(kernel, c.target, c.vars)});
  });
}

BundleContents assemble(const Compilation& c, const CompileOptions& options) {
  BundleContents contents = bundle_contents(c, options);
  in_model(c, [&] {
    if (c.sources.empty()) return;
    CompiledCode code = c.renderer->compile(c.sources, c.target, options.jobs, options.cache);
    contents.code.assign(reinterpret_cast<const char*>(code.image.data()), code.image.size());
  });
  return contents;
}

void compile_file(const std::string& model, const std::string& bundle, const CompileOptions& options) {
  Compilation c = start_compilation(model, options);
  run_pipeline(c, options);
  fold_constants(c, options.jobs, options.cache);
  render(c);
  in_model(c, [&] { write_bundle(assemble(c, options), bundle); });
}

Result<bool> compile_model(const std::string& model, const std::string& bundle, const CompileOptions& options) {
  try {
    compile_file(model, bundle, options);
    return true;
  } catch (const CompileError& e) {
    return e.all();
  }
}

} // namespace tgc
