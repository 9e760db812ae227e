// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program tgc-onnx-suite: find the tests, run them in worker processes, report, compare with the scoreboard.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "tgc-onnx-suite/options.h"
#include "tgc-onnx-suite/report.h"
#include "tgc/boundary.h"
#include "uop/diag.h"

namespace tgc::suite {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  std::ofstream out(file.writing(), std::ios::binary);
  out << text;
  out.close();
  if (!out) throw CompileError(Diagnostic{ErrorCode::E502, path, "cannot be written", ""});
  file.commit();
}

Exit judge(const Options& options, std::span<const Case> cases, std::span<const Verdict> verdicts) {
  Scoreboard board = parse_scoreboard(read_text(options.scoreboard));
  const Comparison comparison = compare(board, cases, verdicts);
  for (const std::string& fault : comparison.faults) std::printf("fault: %s\n", fault.c_str());
  if (options.update) {
    board.insert(comparison.news.begin(), comparison.news.end());
    write_text(options.scoreboard, scoreboard_text(board));
  }
  std::printf("suite: scoreboard %zu tests, %zu faults, %zu new passes%s\n", board.size(), comparison.faults.size(),
              comparison.news.size(), options.update ? " (added)" : "");
  return comparison.faults.empty() ? Exit::Ok : Exit::Differ;
}

Exit run(Options options) {
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    return Exit::Ok;
  }
  options.run.progress = isatty(STDERR_FILENO) != 0;
  Backend backend = find_backend(options.backend, options.target, options.guard);
  if (!options.against.empty())
    backend = both(backend, find_backend("compiled", options.against, options.guard), options.against);
  const std::vector<Case> cases = find_cases(options.folder, options.filter);
  const std::vector<Verdict> verdicts = run_cases(cases, backend, options.run);
  if (!options.csv.empty()) write_text(options.csv, csv_text(cases, verdicts));
  std::fputs(summary_text(cases, verdicts).c_str(), stdout);
  return options.scoreboard.empty() ? Exit::Ok : judge(options, cases, verdicts);
}

} // namespace

} // namespace tgc::suite

int main(int argc, char** argv) {
  tgc::interrupt_cleanly();
  return tgc::run_guarded("tgc-onnx-suite", [&] {
    return tgc::suite::run(tgc::suite::parse_options({argv + 1, static_cast<size_t>(argc - 1)}));
  });
}
