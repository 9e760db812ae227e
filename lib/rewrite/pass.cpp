// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one loop that runs passes. A table says what runs; options only select and add. Extra rules run as passes of
// their own around the named one, inside its verification, so that a plugin's rule is held to the same specs. Printing,
// timing tables and snapshots are the caller's, through hooks.
#include "rewrite/pass.h"

#include <chrono>

#include "rewrite/rewrite.h"
#include "rewrite/spec.h"

namespace tgc {
namespace {

const Pass* find(std::span<const Pass> table, const std::string& name) {
  for (const Pass& p : table)
    if (name == p.name) return &p;
  return nullptr;
}

void check_name(std::span<const Pass> table, const std::string& name) {
  if (find(table, name)) return;
  std::string names;
  for (const Pass& p : table) names += (names.empty() ? "" : ", ") + std::string(p.name);
  throw CompileError(Diagnostic{ErrorCode::E503, "", "there is no pass \"" + name + "\"", "the passes are: " + names});
}

void check(std::span<const Pass> table, const PassOptions& options) {
  for (const std::string& name : options.disabled) {
    check_name(table, name);
    if (!find(table, name)->optional)
      throw CompileError(Diagnostic{ErrorCode::E503, "", "pass \"" + name + "\" cannot be disabled",
                                    "later passes need what it establishes"});
  }
  for (const std::string& name : options.only) check_name(table, name);
  for (const ExtraRules& extra : options.extra) check_name(table, extra.pass);
  if (!options.start_before.empty()) check_name(table, options.start_before);
  if (!options.stop_after.empty()) check_name(table, options.stop_after);
}

Ref run_extra(const Pass& pass, bool before, Ref root, PassContext& context, const PassOptions& options) {
  for (const ExtraRules& extra : options.extra)
    if (extra.before == before && extra.pass == pass.name)
      root = graph_rewrite(root, *extra.rules, context, {.name = extra.rules->name().c_str()});
  return root;
}

Ref run_one(const Pass& pass, Ref root, PassContext& context, const PassOptions& options, const PassHooks& hooks) {
  if (options.verify && pass.needs) verify(root, spec(pass.needs), context);
  if (hooks.before) hooks.before(pass, root);
  const auto start = std::chrono::steady_clock::now();
  Ref out = run_extra(pass, true, root, context, options);
  out = pass.function(out, context);
  out = run_extra(pass, false, out, context, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (options.verify && pass.establishes) verify(out, spec(pass.establishes), context, pass.name);
  if (hooks.after) hooks.after(pass, root, out, seconds.count());
  return out;
}
} // namespace

Ref run_passes(std::span<const Pass> table, Ref root, PassContext& context, const PassOptions& options,
               const PassHooks& hooks) {
  check(table, options);
  bool started = options.start_before.empty();
  for (const Pass& pass : table) {
    started = started || options.start_before == pass.name;
    const bool selected = options.only.empty() || options.only.count(pass.name) != 0;
    if (started && selected && options.disabled.count(pass.name) == 0)
      root = run_one(pass, root, context, options, hooks);
    if (options.stop_after == pass.name) break;
  }
  return root;
}

} // namespace tgc
