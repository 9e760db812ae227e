// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The simplifier as a whole: which tables it is made of, and in which order.
// Cheap rules come first; division comes after sums, so that dividends are canonical when it looks at them.
#include "rewrite/rules/symbolic.h"

#include "rewrite/rewrite.h"
#include "rewrite/rules/tables.h"

namespace tgc {

const PatternMatcher& symbolic() {
  static const PatternMatcher rules = const_fold() + identities() + boolean() + index_linear() + divmod() + gates();
  return rules;
}

Ref simplify(Ref root) {
  PassContext context;
  return graph_rewrite(root, symbolic(), context, {.name = "simplify"});
}

} // namespace tgc
