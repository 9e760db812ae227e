// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rule counters. They are kept per matcher, one vector in rule order, so that counting costs an increment per attempt
// and one map lookup per rewrite call; totals by rule are summed when someone asks.
#include "rewrite/context.h"

#include "rewrite/pattern.h"

namespace tgc {

std::vector<RuleCount>& PassContext::counts_of(const PatternMatcher& matcher) {
  std::vector<RuleCount>& counts = counts_[matcher.name()];
  while (counts.size() < matcher.rules().size()) counts.push_back({matcher.rules()[counts.size()].full_name()});
  return counts;
}

std::vector<RuleCount> PassContext::rule_counts() const {
  std::map<std::string, RuleCount> total;
  for (const auto& [matcher, counts] : counts_)
    for (const RuleCount& c : counts) {
      RuleCount& sum = total[c.rule];
      sum.rule = c.rule;
      sum.attempts += c.attempts;
      sum.hits += c.hits;
    }
  std::vector<RuleCount> out;
  for (const auto& [rule, count] : total) out.push_back(count);
  return out;
}

} // namespace tgc
