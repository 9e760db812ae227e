// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tgc {

/// Exit codes of every tool of this project.
enum class RunExit : int { Ok = 0, User = 1, Usage = 2, Internal = 3, Differ = 4 };

/// The command line is wrong; what() is one line that says what was given and what would be right.
class RunUsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An input or the machine is at fault: "FILE: what" and what to do.
class RunError : public std::runtime_error {
public:
  explicit RunError(const std::string& what, std::string note = {})
      : std::runtime_error(what), note_(std::move(note)) {}
  const std::string& note() const { return note_; }

private:
  std::string note_;
};

/// `--input NAME=FILE,FILE…`; an empty name means the model's only input.
struct InputFiles {
  std::string name;
  std::vector<std::string> files;
};

/// The command line of tgrun, one field per row of `tgrun --help`.
struct RunOptions {
  std::string bundle;
  std::vector<InputFiles> inputs;
  std::vector<std::pair<std::string, int64_t>> dims;
  uint64_t seed = 0;    ///< of inputs that no file gives
  uint32_t threads = 0; ///< 0: one per CPU
  bool guard = false, json = false;
  std::string save; ///< folder for output_<i>.npy
  // At most one of these; none: run once and print the outputs.
  std::string test; ///< folder with input_<i>.pb and output_<i>.pb, or with such folders
  bool bench = false, profile = false, describe = false, check = false, list_devices = false;
  std::string extract; ///< folder
  double rtol = 1e-3, atol = 1e-7;
  bool help = false, version = false;
};

/// errors: RunUsageError.
RunOptions parse_run_options(std::span<const char* const> args);
std::string run_help_text();

} // namespace tgc
