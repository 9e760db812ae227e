/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The stack machine of closed forms (tgrt_bundle.h). The code pool is checked once, when the bundle is loaded: it is a
 * sequence of expressions that each end with END, never under- or overflow the stack and leave one value. Evaluation
 * then needs no bounds checks, only those of arithmetic. */
#include "runtime/internal.h"

static int op_of(int64_t word) { return (int)(word & 0xff); }
static int64_t operand_of(int64_t word) { return word >> 8; }

int tgrt_is_expr(const tgrt_model* model, tgrt_expr expr) {
  return expr < model->plan->code.count && (expr == 0 || model->words[expr - 1] == TGRT_EXPR_END);
}

int tgrt_check_exprs(const tgrt_model* model, tgrt_error* error) {
  const uint32_t count = model->plan->code.count;
  int depth = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t word = model->words[i];
    const int op = op_of(word);
    if (op == TGRT_EXPR_VAR && (operand_of(word) < 0 || operand_of(word) >= model->plan->vars.count))
      return tgrt_fail(error, TGRT_E_PLAN, "plan: expression word %u names a variable that does not exist", i);
    if (op == TGRT_EXPR_CONST || op == TGRT_EXPR_VAR)
      ++depth;
    else if (op >= TGRT_EXPR_ADD && op <= TGRT_EXPR_MAX && operand_of(word) == 0)
      depth = depth < 2 ? -1 : depth - 1;
    else if (word == TGRT_EXPR_END)
      depth = depth == 1 ? 0 : -1;
    else
      depth = -1;
    if (depth < 0 || depth > TGRT_EXPR_STACK)
      return tgrt_fail(error, TGRT_E_PLAN, "plan: expression word %u is not valid code", i);
  }
  if (count > 0 && model->words[count - 1] != TGRT_EXPR_END)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: the last expression does not end");
  return 0;
}

static int floor_div(int64_t a, int64_t b, int64_t* quotient) {
  if (a == INT64_MIN && b == -1) return 1;
  *quotient = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
  return 0;
}

static int floor_mod(int64_t a, int64_t b, int64_t* rest) {
  if (b == 0 || b == -1)
    *rest = 0;
  else
    *rest = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
  return 0;
}

/* a = a op b; whether it overflows. */
static int apply(int op, int64_t* a, int64_t b) {
  switch (op) {
  case TGRT_EXPR_ADD: return __builtin_add_overflow(*a, b, a);
  case TGRT_EXPR_SUB: return __builtin_sub_overflow(*a, b, a);
  case TGRT_EXPR_MUL: return __builtin_mul_overflow(*a, b, a);
  case TGRT_EXPR_FLOORDIV: return floor_div(*a, b, a);
  case TGRT_EXPR_FLOORMOD: return floor_mod(*a, b, a);
  case TGRT_EXPR_MIN: *a = b < *a ? b : *a; return 0;
  default: *a = b > *a ? b : *a; return 0;
  }
}

int tgrt_eval(const tgrt_model* model, tgrt_expr expr, const int64_t* vars, int64_t* value) {
  int64_t stack[TGRT_EXPR_STACK] = {0};
  unsigned depth = 0;
  for (const int64_t* at = model->words + expr; *at != TGRT_EXPR_END; ++at) {
    const int op = op_of(*at);
    if (op == TGRT_EXPR_CONST)
      stack[depth++] = operand_of(*at);
    else if (op == TGRT_EXPR_VAR)
      stack[depth++] = vars[operand_of(*at)];
    else if (--depth, apply(op, &stack[depth - 1], stack[depth]))
      return TGRT_E_OVERFLOW;
  }
  *value = stack[0];
  return 0;
}

int64_t tgrt_bare_var(const tgrt_model* model, tgrt_expr expr) {
  const int64_t* at = model->words + expr;
  return op_of(at[0]) == TGRT_EXPR_VAR && at[1] == TGRT_EXPR_END ? operand_of(at[0]) : -1;
}

int64_t tgrt_scaled_var(const tgrt_model* model, tgrt_expr expr, int64_t* factor) {
  const int64_t* at = model->words + expr;
  *factor = 1;
  if (op_of(at[0]) == TGRT_EXPR_VAR && op_of(at[1]) == TGRT_EXPR_CONST && at[2] == TGRT_EXPR_MUL &&
      at[3] == TGRT_EXPR_END && operand_of(at[1]) > 0)
    *factor = operand_of(at[1]);
  else
    return tgrt_bare_var(model, expr);
  return operand_of(at[0]);
}

int tgrt_is_known(const tgrt_model* model, tgrt_expr expr, const int64_t* vars) {
  for (const int64_t* at = model->words + expr; *at != TGRT_EXPR_END; ++at)
    if (op_of(*at) == TGRT_EXPR_VAR && vars[operand_of(*at)] == TGRT_UNSET) return 0;
  return 1;
}

int tgrt_is_constant(const tgrt_model* model, tgrt_expr expr, int64_t* value) {
  const int64_t* at = model->words + expr;
  *value = operand_of(at[0]);
  return op_of(at[0]) == TGRT_EXPR_CONST && at[1] == TGRT_EXPR_END;
}
