// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string_view>

#include "rewrite/pattern.h"

namespace tgc {

/// The legal node forms of one stage, as rules: a rule that returns its root says yes, null means no opinion. A node
/// that no rule accepts is illegal.
struct Spec {
  const char* name;
  const PatternMatcher& rules;
  const char* doc;
};

/// Every spec, in stage order: tensor, plan, kernel, lowered, linear.
std::span<const Spec> specs();
/// errors: internal error when there is none of that name.
const Spec& spec(std::string_view name);

/// Checks every node of `root` (not the func bodies of Calls). `lowered` and `linear` also hold elementwise ops and
/// element types to context.target, when there is one.
/// errors: throws CompileError TGC-E103 naming the spec, the node and what made it (`after`: a pass, may be empty).
void verify(Ref root, const Spec& spec, PassContext& context, std::string_view after = {});

} // namespace tgc
