// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a model's symbolic dims depend on each other (s = a + b, h = 2 * half, 7 <= h), so a sample of them cannot
// be chosen one by one. Idea: as the runtime does, values are given to the free Vars and the equalities give the
// others theirs; a guess that breaks a bound or a check is followed by another, in which more of the numbers may be
// large. Guesses are seeded, so a failure repeats. Not handled: conditions that some thousand guesses do not meet.
#include "tgc/sample_dims.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "uop/diag.h"

namespace tgc {
namespace {

constexpr int kGuesses = 2048;

class Sampler {
public:
  explicit Sampler(Ref root) {
    for (Ref node : toposort(root, true)) {
      if (node->is(Ops::Var)) vars_.push_back(node);
      if (node->is(Ops::Check)) checks_.push_back(node->src[0]);
    }
    std::sort(vars_.begin(), vars_.end(), [](Ref a, Ref b) { return a->s(Attr::Name) < b->s(Attr::Name); });
    std::stable_partition(vars_.begin(), vars_.end(), [&](Ref var) { return !is_defined(var); });
  }
  std::optional<VarValues> guess(const std::function<int64_t(int64_t lo, int64_t hi)>& choose) const;

private:
  std::vector<Ref> vars_, checks_; ///< those that no equality gives a value first; the conditions

  bool is_defined(Ref var) const {
    return std::any_of(checks_.begin(), checks_.end(), [&](Ref c) { return c->is(Ops::Eq) && c->src[0] == var; });
  }
  void solve(VarValues& values) const;
  bool holds(const VarValues& values) const;
};

bool is_known(Ref dim, const VarValues& values) {
  const std::vector<Ref> nodes = toposort(dim);
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](Ref x) { return !x->is(Ops::Var) || values.contains(x->s(Attr::Name)); });
}

/// Gives `side`, a Var or a multiple of one, the value that makes it `value`.
bool give(Ref side, int64_t value, VarValues& values) {
  int64_t factor = 1;
  if (side->is(Ops::Mul)) {
    factor = dim_int(side->src[1]).value_or(0);
    side = side->src[0];
  }
  if (!side->is(Ops::Var) || factor <= 0) return false;
  values[side->s(Attr::Name)] = value / factor;
  return true;
}

void Sampler::solve(VarValues& values) const {
  for (bool again = true; again;) {
    again = false;
    for (Ref check : checks_) {
      if (!check->is(Ops::Eq)) continue;
      const Ref left = check->src[0], right = check->src[1];
      const bool left_known = is_known(left, values);
      if (left_known == is_known(right, values)) continue;
      if (left_known) {
        again |= give(right, eval_index(left, values), values);
      } else if (left->is(Ops::Var)) {
        again |= give(left, eval_index(right, values), values);
      }
    }
  }
}

bool Sampler::holds(const VarValues& values) const {
  for (Ref var : vars_)
    if (const int64_t value = values.at(var->s(Attr::Name)); value < var->lo || value > var->hi) return false;
  return std::all_of(checks_.begin(), checks_.end(), [&](Ref check) {
    const int64_t left = eval_index(check->src[0], values), right = eval_index(check->src[1], values);
    return check->is(Ops::Eq) ? left == right : left <= right;
  });
}

std::optional<VarValues> Sampler::guess(const std::function<int64_t(int64_t lo, int64_t hi)>& choose) const {
  VarValues values;
  for (Ref var : vars_) {
    if (values.contains(var->s(Attr::Name))) continue;
    values[var->s(Attr::Name)] = choose(var->lo, var->hi);
    solve(values);
  }
  return holds(values) ? std::optional(values) : std::nullopt;
}

} // namespace

VarValues sample_dims(Ref root) {
  const Sampler sampler(root);
  uint64_t seed = 1;
  const auto random = [&seed] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return seed >> 33;
  };
  for (int tries = 0; tries < kGuesses; ++tries) {
    const auto choose = [&](int64_t lo, int64_t hi) {
      if (tries == 0) return std::clamp<int64_t>(2, lo, hi);
      const int64_t reach = std::min(hi - lo, int64_t{2} << random() % static_cast<uint64_t>(1 + tries / 128));
      return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(reach + 1));
    };
    if (const std::optional<VarValues> values = sampler.guess(choose)) return *values;
  }
  throw CompileError(Diagnostic{ErrorCode::E209, "",
                                "no values of the symbolic dims were found that meet the model's conditions",
                                "pin some of them: --dim NAME=VALUE"});
}

} // namespace tgc
