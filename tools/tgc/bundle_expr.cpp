// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dims and sizes are expressions over the model's variables; the runtime evaluates them with a small stack machine.
// This file compiles an Index expression to that machine's words. The deeper operand of a commutative op goes first, so
// that the stack grows with the logarithm of a sum's length, not with its nesting. Shared sub-expressions are repeated:
// sizes are short. Source of the idea: Sethi and Ullman, The generation of optimal code for arithmetic expressions
// (1970).
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tgc/bundle_parts.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr size_t kMaxWords = 1 << 14; // a shared sub-expression that doubles must not fill the memory

std::optional<tgrt_expr_op> binary_op(Ops op) {
  switch (op) {
  case Ops::Add: return TGRT_EXPR_ADD;
  case Ops::Sub: return TGRT_EXPR_SUB;
  case Ops::Mul: return TGRT_EXPR_MUL;
  case Ops::FloorDiv: return TGRT_EXPR_FLOORDIV;
  case Ops::FloorMod: return TGRT_EXPR_FLOORMOD;
  case Ops::Min: return TGRT_EXPR_MIN;
  case Ops::Max: return TGRT_EXPR_MAX;
  default: return std::nullopt;
  }
}

std::optional<int64_t> constant_value(Ref x) {
  if (x->lo == x->hi) return x->lo;
  return const_int(x);
}

bool is_commutative(Ops op) { return op == Ops::Add || op == Ops::Mul || op == Ops::Min || op == Ops::Max; }

[[noreturn]] void beyond(const std::string& what) {
  throw CompileError(Diagnostic{ErrorCode::E207, "", what, "choose smaller or fewer symbolic dims: --dim NAME=VALUE"});
}

int64_t word(tgrt_expr_op op, int64_t operand) {
  constexpr int64_t kLimit = INT64_C(1) << 55;
  if (operand < -kLimit || operand >= kLimit)
    beyond("a size of " + std::to_string(operand) + " bytes or elements passes the limit of 2^55");
  return static_cast<int64_t>(static_cast<uint64_t>(operand) << 8) | op;
}

/// Stack entries needed by each node of `expr`, by UOp::id.
std::unordered_map<uint32_t, int> stack_needs(Ref expr) {
  std::unordered_map<uint32_t, int> needs;
  for (const Ref node : toposort(expr)) {
    int need = 1;
    if (!constant_value(node) && node->src.size() == 2) {
      int first = needs.at(node->src[0]->id), second = needs.at(node->src[1]->id);
      if (is_commutative(node->op) && first < second) std::swap(first, second);
      need = std::max(first, second + 1);
    }
    if (node->is(Ops::Neg)) need = needs.at(node->src[0]->id) + 1;
    needs[node->id] = need;
  }
  return needs;
}

} // namespace

ExprPool::ExprPool(const std::vector<BundleContents::Var>& vars) {
  for (size_t i = 0; i < vars.size(); ++i) vars_[vars[i].name] = static_cast<int64_t>(i);
}

tgrt_expr ExprPool::add(Ref expr) {
  std::vector<int64_t> code;
  struct Item {
    Ref node; // null: emit `emit`
    int64_t emit = 0;
  };
  std::vector<Item> todo;
  std::unordered_map<uint32_t, int> needs;
  if (expr) {
    needs = stack_needs(expr);
    if (needs.at(expr->id) > TGRT_EXPR_STACK) beyond("the expression of a size is nested too deeply");
    todo.push_back({expr});
  } else {
    code.push_back(word(TGRT_EXPR_CONST, 0));
  }
  while (!todo.empty()) {
    const Item item = todo.back();
    todo.pop_back();
    const Ref node = item.node;
    if (code.size() >= kMaxWords) beyond("the expression of a size is too long");
    if (!node) {
      code.push_back(item.emit);
    } else if (const std::optional<int64_t> value = constant_value(node)) {
      code.push_back(word(TGRT_EXPR_CONST, *value));
    } else if (node->is(Ops::Var)) {
      const auto found = vars_.find(node->s(Attr::Name));
      TGC_CHECK(found != vars_.end(), "size expression uses the unlisted variable " + node->s(Attr::Name));
      code.push_back(word(TGRT_EXPR_VAR, found->second));
    } else if (node->is(Ops::Neg)) {
      code.push_back(word(TGRT_EXPR_CONST, 0));
      todo.push_back({Ref(), TGRT_EXPR_SUB});
      todo.push_back({node->src[0]});
    } else {
      const std::optional<tgrt_expr_op> op = binary_op(node->op);
      TGC_CHECK(op.has_value(), std::string("size expression has the op ") + name(node->op));
      const bool swapped = is_commutative(node->op) && needs.at(node->src[0]->id) < needs.at(node->src[1]->id);
      todo.push_back({Ref(), *op});
      todo.push_back({node->src[swapped ? 0 : 1]});
      todo.push_back({node->src[swapped ? 1 : 0]});
    }
  }
  code.push_back(TGRT_EXPR_END);
  const auto [entry, added] = known_.try_emplace(code, static_cast<tgrt_expr>(words_.size()));
  if (added) words_.insert(words_.end(), code.begin(), code.end());
  return entry->second;
}

} // namespace tgc
