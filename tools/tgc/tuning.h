// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewrite/context.h"
#include "uop/target.h"
#include "uop/uop.h"

namespace tgc {

/// What one line of a tuning database says: of all opts timed for this kernel, these were the fastest.
struct TunedKernel {
  std::string opts;               ///< as a kernel carries them
  int64_t ns = 0, default_ns = 0; ///< one run with them, and one with the heuristic's; at least 1
  int line = 0;                   ///< of the file it was read from; 0: none
};

/// Names a kernel by what it computes: a digest of its text without name and opts, of which operands are `constant`,
/// and of the numerics, which decide what opts may do. 16 hexadecimal digits. requires: no opts.
std::string kernel_key(Ref func, const std::vector<bool>& constant, Numerics numerics);
/// Names what code is made for: "cpu:llvm:sapphirerapids:" and a digest of its features and sizes.
std::string target_key(const TargetInfo& target);

/// A tuning database (docs/tuning.md): text, one line per kernel and target,
///   tuned1 KERNEL TARGET ns N was N opts OPTS
/// Lines may be in any order and repeated: of two for one kernel and target the faster counts. So files are merged by
/// `cat` or `sort -u`. Empty lines and those that begin with # are skipped, as are a byte order mark and a carriage
/// return at the end of a line.
class TuningDatabase {
public:
  /// errors: CompileError TGC-E504 with the line, for all that is wrong; E501 if the file cannot be read.
  static TuningDatabase read(const std::string& path);
  static TuningDatabase parse(std::string_view text, const std::string& path);

  /// Makes `tuned` what the file says of this kernel, and returns all that it says then. There need be no file. Any
  /// number of processes may add at once: no line is lost, and the file has all or nothing of each.
  /// errors: as read(); CompileError E502 when it cannot be written, or not within some seconds for others.
  static TuningDatabase add(const std::string& path, const std::string& kernel, const std::string& target,
                            TunedKernel tuned);

  const TunedKernel* find(const std::string& kernel, const std::string& target) const;
  /// In place of what was known, if anything.
  void set(const std::string& kernel, const std::string& target, TunedKernel tuned);
  size_t size() const { return kernels_.size(); }
  /// Sorted: equal contents are equal bytes.
  std::string text() const;

private:
  void write(const std::string& path) const;

  std::map<std::pair<std::string, std::string>, TunedKernel> kernels_; ///< by kernel and target
};

} // namespace tgc
