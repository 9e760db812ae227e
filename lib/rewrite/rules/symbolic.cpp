// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identities.
#include "rewrite/rules/symbolic.h"

#include "rewrite/rewrite.h"

namespace tgc {
namespace {
constexpr Cap X{0}, Y{1}, Z{2}, C{3};

PatternMatcher identities() {
  return PatternMatcher("symbolic",
                        {
                            {"int-add-0", ints(X + 0), [](Match& m) { return m[X]; }},
                            {"int-mul-1", ints(X * 1), [](Match& m) { return m[X]; }},
                            {"where-same", where(any(), X, X), [](Match& m) { return m[X]; }},
                        },
                        kSameValue);
}
} // namespace

const PatternMatcher& symbolic() {
  static const PatternMatcher rules = identities();
  return rules;
}

Ref simplify(Ref root) {
  PassContext context;
  return graph_rewrite(root, symbolic(), context, {.name = "simplify"});
}

Ref simplify_given(Ref root, Ref) { return simplify(root); }

} // namespace tgc
