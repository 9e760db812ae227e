// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "tgc/pipeline.h"
#include "tgc/tuning.h"

namespace tgc {

/// Times opt lists of one kernel (lowered stages, no opts) on this machine, one thread, on random operands as large as
/// the model's, and returns the best one: the heuristic's, unless another is faster by more than noise and computes the
/// same bits (or, where it regroups sums, the same numbers up to rounding). Nothing when there is only one list.
///   model: for the target; options: numerics, jobs and cache; most: lists beside the heuristic's
/// errors: CompileError E405 when this machine cannot run the target's code.
std::optional<TunedKernel> search_opts(Ref func, const std::vector<bool>& constant, const CompileOptions& options,
                                       int most);

/// `--tuned` and `--beam`: makes a compile ask a database for opts, and add what it does not hold.
class Tuner {
public:
  /// Reads the database `path`, which need not exist if `most` > 0: then kernels that it does not know are timed, with
  /// as many lists beside the heuristic's, and it is written after each. Hooks `options`, which must outlive it
  /// unmoved, as must `this`. errors: as TuningDatabase::read.
  Tuner(std::string path, int most, CompileOptions& options);
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  int found() const { return found_; }
  int unknown() const { return unknown_; } ///< asked for, not found and not timed
  int timed() const { return timed_; }

private:
  std::optional<FoundOpts> find(Ref func, const std::vector<bool>& constant);
  std::optional<TunedKernel> search(Ref func, const std::vector<bool>& constant, const std::string& key);

  const std::string path_;
  const int most_;
  CompileOptions& options_;
  TargetInfo target_;
  TuningDatabase database_;
  int found_ = 0, unknown_ = 0, timed_ = 0;
  size_t asked_ = 0, kernels_ = 0; ///< for progress
};

} // namespace tgc
