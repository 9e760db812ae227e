// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text form: the one serialisation of graphs, kernels, plans and linear kernels (`.uop`). Grammar in docs/ir.md.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "uop/module.h"

namespace tgc {

/// The canonical text of a module: weights, then every func, callees first, the root last. `parse` of it gives nodes of
/// equal hash and equal tables, and printing those gives the same bytes.
std::string print(const Module& module);
/// The same for one root without a module's tables: a func, or any expression (bare lines, the last is the root).
std::string print(Ref root);
/// One func without the header line and without the funcs it calls: for logs and diffs.
std::string print_func(Ref func, const std::map<uint32_t, std::string>& origin = {});

/// The module that `text` describes; `source` names it in messages and becomes Module::source. Weights given inline
/// or as splat are owned by the module; mapped ones keep only their place (no file is opened).
/// errors: CompileError TGC-E102 "source:line:column" with what was found and what was expected; TGC-E101 with the
/// same place for a node that is grammatical but illegal.
Module parse(std::string_view text, std::string source = "");

/// Whether `text` begins like the text form (how a file's kind is told).
bool is_uop_text(std::string_view text);

} // namespace tgc
