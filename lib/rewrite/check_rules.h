// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "rewrite/pattern.h"

namespace tgc {

struct RuleCheckOptions {
  uint64_t seed = 1;
  int wanted = 20;          ///< replacements to check
  int max_attempts = 20000; ///< random left sides to try for them
};
struct RuleCheckResult {
  int fired = 0, attempts = 0;
  std::string counterexample; ///< empty: none found. Else both sides as text, the leaf values and the two results
};

/// Tries `rule` on random instances of its pattern (leaves that match its dtypes and constants, bounded Vars and
/// Ranges) and compares both sides for many leaf values: NaN, infinities, both zeros and the ends of every type
/// included. Results must agree bit for bit, any NaN being equal to any other; rules tagged kFast or kStandard are
/// checked on ordinary values and kApproximate ones on all, both to a relative 1e-5.
RuleCheckResult check_rule(const Rule& rule, PassContext& context, const RuleCheckOptions& options = {});

} // namespace tgc
