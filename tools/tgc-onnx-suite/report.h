// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "tgc-onnx-suite/case.h"

namespace tgc::suite {

/// The verdicts as CSV: suite,test,status,detail, one row per case.
std::string csv_text(std::span<const Case> cases, std::span<const Verdict> verdicts);

/// A table of suites by status with totals, as printed.
std::string summary_text(std::span<const Case> cases, std::span<const Verdict> verdicts);

/// The scoreboard: the tests that pass, as "suite,test" lines. It may only grow. A line "!suite,test" says that the
/// test's own data is faulty, and that it is not judged.
using Scoreboard = std::set<std::string>;
Scoreboard parse_scoreboard(const std::string& text);
std::string scoreboard_text(const Scoreboard& board);

/// The verdicts against the scoreboard.
struct Comparison {
  std::vector<std::string> faults; ///< one line per listed test that no longer passes and per wrong or crashed test
  std::vector<std::string> news;   ///< tests that pass and are not listed
};
Comparison compare(const Scoreboard& board, std::span<const Case> cases, std::span<const Verdict> verdicts);

} // namespace tgc::suite
