// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "uop/diag.h"
#include "uop/uop.h"

namespace tgc {
struct TargetInfo;
class PatternMatcher;

/// Which liberties with floats a compile allows; recorded in the bundle.
enum class Numerics : uint8_t {
  Strict,   ///< none
  Standard, ///< every element keeps its meaning; order of reductions, FMA contraction and constant refactoring are free
  Fast,     ///< also x*0 -> 0, x/x -> 1 and stated approximations
};

/// How often one rule was tried (after the early reject) and how often it replaced a node.
struct RuleCount {
  std::string rule; ///< "table/rule"
  int64_t attempts = 0, hits = 0;
};

/// One replacement, for traces and visualisation.
struct RewriteEvent {
  const char* pass;        ///< RewriteOptions::name
  const std::string& rule; ///< "table/rule"
  Ref before, after;
};

/// What rule actions and passes may read and write besides the graph: policy, target and state private to a pass.
/// One compile at a time; not thread-safe.
class PassContext {
public:
  Numerics numerics = Numerics::Standard;
  const TargetInfo* target = nullptr;                ///< not owned; null while no target is chosen
  std::map<uint32_t, std::string>* origin = nullptr; ///< not owned; Module::origin, which rewrites of its nodes extend
  std::set<std::string> disabled_rules;              ///< "table/rule" names that never fire
  bool count_rules = false;                          ///< keep `counts`
  std::function<void(const RewriteEvent&)> on_rewrite; ///< called after every replacement, if set

  /// ParentFirst only: the node just rewritten (or looked at) is final and its sources are not visited.
  void stop() { stopped_ = true; }

  /// The state of type T set by the running pass. errors: internal error when there is none.
  template <typename T> T& state() {
    for (const auto& [key, object] : states_)
      if (key == key_of<T>()) return *static_cast<T*>(object);
    internal_error(__FILE__, __LINE__, "a rule asks for a state that its pass did not set");
  }
  /// Makes `object` the state of type T until another takes its place; it must outlive its use.
  template <typename T> void set_state(T& object) {
    for (auto& [key, value] : states_)
      if (key == key_of<T>()) {
        value = &object;
        return;
      }
    states_.emplace_back(key_of<T>(), &object);
  }

  /// Counts by rule, summed over every matcher that holds it; sorted by rule name.
  std::vector<RuleCount> rule_counts() const;

private:
  friend class Rewriter;
  template <typename T> static const void* key_of() {
    static const char key = 0;
    return &key;
  }
  bool take_stop() { return std::exchange(stopped_, false); }
  std::vector<RuleCount>& counts_of(const PatternMatcher& matcher);

  std::vector<std::pair<const void*, void*>> states_;
  std::map<std::string, std::vector<RuleCount>> counts_; ///< by matcher name, in rule order
  bool stopped_ = false;
};

} // namespace tgc
