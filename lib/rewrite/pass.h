// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rewrite/pattern.h"

namespace tgc {

/// One row of a pass table: the one source for --print-after, --stop-after, --start-before, --disable-pass,
/// --time-passes, --list-passes and plugin insertion points. A pass maps one root: a module's func, or one kernel's.
struct Pass {
  const char* name;  ///< a verb, unique in its table
  const char* stage; ///< the room's word: "schedule", "rewrite"
  Ref (*function)(Ref root, PassContext& context);
  const char* needs;       ///< name of the spec that must hold before; null: no claim
  const char* establishes; ///< name of the spec that holds afterwards; null: whatever held before still does
  bool optional;           ///< may be disabled: results stay correct without it
  const char* doc;         ///< one sentence
};

/// Rules run to their fixpoint before or after the named pass.
struct ExtraRules {
  std::string pass;
  bool before = false;
  const PatternMatcher* rules = nullptr; ///< not owned
};

struct PassOptions {
  std::set<std::string> disabled = {}; ///< optional passes that do not run
  std::set<std::string> only = {};     ///< if not empty: no other pass runs
  std::string start_before = {};       ///< first pass to run; empty: the first
  std::string stop_after = {};         ///< last pass to run; empty: the last
  std::vector<ExtraRules> extra = {};  ///< in order
  bool verify = true;                  ///< check specs between passes
};

/// What a caller wants to see; each may be empty.
struct PassHooks {
  std::function<void(const Pass& pass, Ref root)> before;
  std::function<void(const Pass& pass, Ref before, Ref after, double seconds)> after;
};

/// Runs `table` on `root`: for each pass that the options select, verify what it needs, call hooks, run and time it,
/// verify what it establishes. errors: CompileError TGC-E503 naming an unknown pass, or one that cannot be disabled;
/// TGC-E103 from verification; whatever a pass throws.
Ref run_passes(std::span<const Pass> table, Ref root, PassContext& context, const PassOptions& options = {},
               const PassHooks& hooks = {});

} // namespace tgc
