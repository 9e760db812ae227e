// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <utility>

#include "rewrite/pattern.h"

namespace tgc {

enum class Order : uint8_t {
  ChildrenFirst, ///< sources to fixpoint, then the node; a replacement is itself rewritten: fixpoint per node
  ParentFirst,   ///< the node to fixpoint before its sources; an action may stop the descent with PassContext::stop()
  OncePerNode,   ///< one visit, sources first, replacements are final
};
struct RewriteOptions {
  const char* name = "rewrite";
  Order order = Order::ChildrenFirst;
  int fuel = 1000;          ///< replacements one original node may cause
  bool enter_funcs = false; ///< also rewrite the func bodies of Calls
};

/// `root` rewritten by the rules of `matcher`. Iterative, memoised per call: each distinct node is processed once.
/// errors: CompileError TGC-E104 when the fuel of a node runs out, naming the last rules and printing the cycle.
Ref graph_rewrite(Ref root, const PatternMatcher& matcher, PassContext& context, const RewriteOptions& options = {});

/// `root` with every node that is a first member replaced by the second (results are final, not matched again).
/// Does not enter the func of a Call.
Ref substitute(Ref root, std::span<const std::pair<Ref, Ref>> replacements);

/// graph_rewrite with the `symbolic()` rules: integer and index algebra with bounds, and exact float identities.
Ref simplify(Ref root);
/// `simplify` of `root` under the assumption that the boolean `fact` holds.
Ref simplify_given(Ref root, Ref fact);

} // namespace tgc
