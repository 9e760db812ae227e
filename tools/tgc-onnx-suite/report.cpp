// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the suite says: a CSV for machines, a table for people, and the scoreboard that keeps a passing test passing.
// A test of the scoreboard that is not in the corpus at hand (an older or filtered one) is not judged.
#include "tgc-onnx-suite/report.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tgc::suite {

namespace {

constexpr size_t kStatuses = 4;

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string key(const Case& test) { return test.suite + "," + test.name; }

struct Row {
  std::string suite;
  std::array<size_t, kStatuses> count{};
};

std::string row_text(const Row& row) {
  size_t total = 0;
  for (size_t n : row.count) total += n;
  char line[128];
  std::snprintf(line, sizeof line, "suite: %-18s%6zu%7zu%13zu%7zu%7zu\n", row.suite.c_str(), row.count[0], row.count[1],
                row.count[2], row.count[3], total);
  return line;
}

} // namespace

std::string csv_text(std::span<const Case> cases, std::span<const Verdict> verdicts) {
  std::string text = "suite,test,status,detail\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    text += key(cases[i]) + "," + name(verdicts[i].status) + "," + csv_field(verdicts[i].detail) + "\n";
  }
  return text;
}

std::string summary_text(std::span<const Case> cases, std::span<const Verdict> verdicts) {
  std::vector<Row> rows;
  Row all{"total", {}};
  for (size_t i = 0; i < cases.size(); ++i) {
    if (rows.empty() || rows.back().suite != cases[i].suite) rows.push_back({cases[i].suite, {}});
    const size_t status = static_cast<size_t>(verdicts[i].status);
    ++rows.back().count[status];
    ++all.count[status];
  }
  std::string text = "suite:                     pass  wrong  unsupported  crash  total\n";
  for (const Row& row : rows) text += row_text(row);
  return text + row_text(all);
}

Scoreboard parse_scoreboard(const std::string& text) {
  Scoreboard board;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!line.empty() && line[0] != '#' && line != "suite,test") board.insert(line);
    at = end + 1;
  }
  return board;
}

std::string scoreboard_text(const Scoreboard& board) {
  std::string text = "suite,test\n";
  for (const std::string& line : board) text += line + "\n";
  return text;
}

Comparison compare(const Scoreboard& board, std::span<const Case> cases, std::span<const Verdict> verdicts) {
  Comparison result;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    const std::string test = key(cases[i]);
    if (board.contains("!" + test)) continue;
    const bool listed = board.contains(test);
    if (verdict.status == Status::Pass) {
      if (!listed) result.news.push_back(test);
      continue;
    }
    if (!listed && verdict.status == Status::Unsupported) continue;
    result.faults.push_back(test + ": " + name(verdict.status) + (listed ? " (passed before): " : ": ") +
                            verdict.detail);
  }
  return result;
}

} // namespace tgc::suite
