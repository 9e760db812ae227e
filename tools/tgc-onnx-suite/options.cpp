// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of tgc-onnx-suite: `--name=value` or `--name value`, one folder. Twelve options do not need a
// package.
#include "tgc-onnx-suite/options.h"

#include "nearest_name.h"

#include <charconv>
#include <thread>

#include "tgc/options.h"

namespace tgc::suite {

namespace {

struct Row {
  const char* name;
  const char* doc;
  std::string Options::* text; ///< one of text, number and flag is set
  int RunOptions::* number;
  bool Options::* flag;
};

constexpr Row kRows[] = {
    {"--csv", "FILE       write suite,test,status,detail", &Options::csv, nullptr, nullptr},
    {"--filter", "GLOB    only tests that match: 'test_conv*' or 'light/*'", &Options::filter, nullptr, nullptr},
    {"--backend", "NAME   compiled (default) or eval, the reference interpreter", &Options::backend, nullptr, nullptr},
    {"--target", "TARGET  as tgc --target (default: cpu)", &Options::target, nullptr, nullptr},
    {"--against", "TARGET  compile for TARGET too; outputs that differ in a bit are wrong", &Options::against, nullptr,
     nullptr},
    {"--guard", "run in guard mode: red zones and NaN around every buffer", nullptr, nullptr, &Options::guard},
    {"--scoreboard", "FILE  fail when a listed test no longer passes, or any is wrong or crashes", &Options::scoreboard,
     nullptr, nullptr},
    {"--update", "add the tests that newly pass to the scoreboard", nullptr, nullptr, &Options::update},
    {"--jobs", "N         worker processes (default: one per core)", nullptr, &RunOptions::jobs, nullptr},
    {"--batch", "N        tests per worker process (default: 64)", nullptr, &RunOptions::batch, nullptr},
    {"--timeout", "SECONDS  per test (default: 120)", nullptr, &RunOptions::timeout_s, nullptr},
    {"--help", "print this page", nullptr, nullptr, &Options::help},
};

int positive(const std::string& option, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw UsageError(option + " \"" + text + "\": expected a number from 1");
  }
  return value;
}

const Row& find_row(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) {
    if (name == row.name) return row;
    names.push_back(row.name);
  }
  const std::string_view near = nearest_name(name, names);
  const std::string hint = near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?";
  throw UsageError("unknown option \"" + name + "\"" + hint);
}

} // namespace

Options parse_options(std::span<const char* const> args) {
  Options options;
  options.run.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string arg = args[i];
    if (arg.empty() || arg[0] != '-') {
      if (!options.folder.empty()) throw UsageError("unexpected argument \"" + arg + "\"; one DIR is taken");
      options.folder = arg;
      continue;
    }
    const size_t equals = arg.find('=');
    const std::string option = arg.substr(0, equals);
    const Row& row = find_row(option);
    if (row.flag != nullptr) {
      if (equals != std::string::npos) throw UsageError(option + " takes no value");
      options.*row.flag = true;
      continue;
    }
    if (equals == std::string::npos && i + 1 == args.size()) throw UsageError(option + ": a value is missing");
    const std::string value = equals == std::string::npos ? args[++i] : arg.substr(equals + 1);
    if (row.text != nullptr) options.*row.text = value;
    if (row.number != nullptr) options.run.*row.number = positive(option, value);
  }
  if (options.folder.empty() && !options.help) throw UsageError("no DIR given");
  if (options.guard && options.backend == "eval") throw UsageError("--guard goes with the backend compiled");
  if (options.update && options.scoreboard.empty()) throw UsageError("--update needs --scoreboard FILE");
  return options;
}

std::string help_text() {
  std::string text =
      "Runs the ONNX backend tests: DIR/{node,simple,pytorch-converted,pytorch-operator,light}/TEST/model.onnx\n"
      "Usage: tgc-onnx-suite DIR [options]\n\nOptions:\n";
  for (const Row& row : kRows) text += std::string("  ") + row.name + " " + row.doc + "\n";
  return text + "\nExit codes: 0 ok, 1 input error, 2 usage, 3 internal error, 4 worse than the scoreboard.\n";
}

} // namespace tgc::suite
