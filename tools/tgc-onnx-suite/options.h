// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>

#include "tgc-onnx-suite/case.h"

namespace tgc::suite {

struct Options {
  std::string folder; ///< holds node/, simple/, …
  std::string csv;    ///< empty: no CSV
  std::string filter, backend = "compiled", target = "cpu";
  std::string against;    ///< a second target that must give the same bits; empty: none
  std::string scoreboard; ///< empty: none
  bool update = false;    ///< write the scoreboard with the new passes
  bool guard = false;     ///< run in guard mode
  bool help = false;
  RunOptions run;
};

/// errors: UsageError.
Options parse_options(std::span<const char* const> args);
std::string help_text();

} // namespace tgc::suite
