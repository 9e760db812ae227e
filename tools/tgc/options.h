// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/context.h"

namespace tgc {

/// Exit codes of every tool of this project.
enum class Exit : int {
  Ok = 0,
  User = 1,     ///< the input or the environment: a model that does not parse, a file that cannot be written
  Usage = 2,    ///< the command line
  Internal = 3, ///< a defect of ours
  Differ = 4,   ///< numbers differ from the reference
  Interrupted = 130,
};

/// The command line is wrong; what() is one line that says what was given and what would be right.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What `--emit=STAGE` prints, in pipeline order.
struct StageName {
  const char* name;
  const char* doc;
};
inline constexpr StageName kEmitStages[] = {
    {"uops", "the imported tensor graph"},
    {"kernels", "one function per kernel, after scheduling"},
    {"plan", "buffers, steps and the memory plan"},
    {"linear", "the instructions of each kernel, after lowering"},
    {"source", "what the renderer wrote: LLVM IR, C"},
    {"asm", "the target's assembly"},
};

/// What is compared with the reference interpreter: the bundle's outputs, also the result of every pass, or a few
/// hundred elements of each output (for large models).
enum class Verify : uint8_t { None, Outputs, Stages, Sample };

/// A `--dim`: the dimension `name` of the model lies in lo..hi (inclusive); lo == hi pins it.
struct DimBound {
  std::string name;
  int64_t lo = 0, hi = 0;
  friend bool operator==(const DimBound&, const DimBound&) = default;
};

/// The command line of tgc, one field per row of `tgc --help`. A default is what an absent option means.
struct Options {
  std::string model;     ///< path, or "-" for standard input; empty only with list_targets, list_passes, version, help
  std::string output;    ///< path; never empty when a bundle is written: MODEL's file name with ".bundle" by default
  std::string model_dir; ///< folder of external data; empty: the model's own
  std::string target = "cpu";
  std::vector<DimBound> dims; ///< in the order given, no name twice
  Numerics numerics = Numerics::Standard;

  std::string emit; ///< a name of kEmitStages; empty: write a bundle
  bool check = false;
  Verify verify = Verify::None;

  std::string tuned; ///< tuning database, or empty
  int beam = 0;      ///< opt lists to time beside the heuristic's, per kernel that `tuned` does not hold; 0: none

  std::string cache; ///< folder of compiled kernels, or "off"; empty: the user's own cache
  int jobs = 0;      ///< threads of the compiler; 0: one per core
  int verbosity = 0; ///< 1: a line per stage, 2: a line per pass and kernel
  bool time_passes = false;

  std::vector<std::string> print_after, only, disable_passes; ///< names of passes
  std::string start_before, stop_after;                       ///< names of passes, or empty
  std::vector<std::string> disable_rules;                     ///< names of rules
  bool list_passes = false, list_targets = false;
  bool help = false, version = false;
};

/// `args` without the program's name. Checks everything that needs no look at a file or the pass table.
/// errors: UsageError.
Options parse_options(std::span<const char* const> args);

/// The text of `tgc --help`.
std::string help_text();

/// Every pass that `options` names is one of `passes`, every disabled rule one of `rules`.
/// errors: UsageError naming the option, what was given and the nearest name.
void check_names(const Options& options, const std::vector<std::string>& passes, const std::vector<std::string>& rules);

} // namespace tgc
