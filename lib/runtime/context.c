/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Turns the shapes that a caller set into everything a run needs: values of the variables, dims, sizes, chunk counts,
 * and one arena of slots and scratch. All of it is closed forms of the plan, evaluated only when shapes change. A slot
 * reaches to the end of the last of its buffers, and slots lie one after the other. In guard mode each buffer lies
 * alone and has red zones. Sizes come from a model, so every sum and product is checked. */
#include <stdio.h>

#include "runtime/internal.h"

static const char* text_of(const tgrt_context* c, tgrt_text text) { return c->model->text + text; }

/* ---- variables --------------------------------------------------------------------------------------------------- */

struct side {
  char text[160];
};

/* "batch = 3 (dim 0 of input \"x\")", cut at the end of the text. */
static void var_text(const tgrt_context* c, int64_t var, struct side* side) {
  char* text = side->text;
  const size_t text_bytes = sizeof side->text;
  const tgrt_model* m = c->model;
  const char* name = text_of(c, m->vars[var].name);
  const long long value = c->vars[var];
  for (uint32_t i = 0; i < m->plan->inputs.count; ++i) {
    const struct tgrt_plan_tensor* t = &m->tensors[TGRT_INPUT][i];
    for (uint32_t axis = 0; axis < t->rank; ++axis) {
      if (c->set_dims[t->first_dim + axis] != value || tgrt_bare_var(m, m->dims[t->first_dim + axis]) != var) continue;
      snprintf(text, text_bytes, "%s = %lld (dim %u of input \"%s\")", name, value, axis, text_of(c, t->name));
      return;
    }
  }
  snprintf(text, text_bytes, "%s = %lld", name, value);
}

/* Takes values from the dims of the inputs that are bare variables. */
static int bind_vars(tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  for (uint32_t i = 0; i < m->plan->inputs.count; ++i) {
    const struct tgrt_plan_tensor* t = &m->tensors[TGRT_INPUT][i];
    for (uint32_t axis = 0; axis < t->rank; ++axis) {
      const int64_t given = c->set_dims[t->first_dim + axis];
      const int64_t var = tgrt_bare_var(m, m->dims[t->first_dim + axis]);
      if (given == TGRT_UNSET || var < 0) continue;
      if (c->vars[var] == TGRT_UNSET) c->vars[var] = given;
      if (c->vars[var] == given) continue;
      struct side known;
      var_text(c, var, &known);
      return tgrt_fail(error, TGRT_E_SHAPE, "input \"%s\": dim %u is %lld, but %s", text_of(c, t->name), axis,
                       (long long)given, known.text);
    }
  }
  return 0;
}

/* Gives variables values by the equalities of which one side is known and the other is a variable without one. */
static void solve_vars(tgrt_context* c) {
  const tgrt_model* m = c->model;
  for (int again = 1; again;) {
    again = 0;
    for (uint32_t i = 0; i < m->plan->checks.count; ++i) {
      const struct tgrt_plan_check* check = &m->checks[i];
      if (check->relation != TGRT_CHECK_EQUAL) continue;
      const int left_known = tgrt_is_known(m, check->left, c->vars),
                right_known = tgrt_is_known(m, check->right, c->vars);
      if (left_known == right_known) continue;
      int64_t factor = 1, value;
      const int64_t var = left_known ? tgrt_scaled_var(m, check->right, &factor) : tgrt_bare_var(m, check->left);
      if (var < 0 || tgrt_eval(m, left_known ? check->left : check->right, c->vars, &value)) continue;
      if (value / factor == TGRT_UNSET) continue; /* no dim has this value */
      c->vars[var] = value / factor;
      again = 1;
    }
  }
}

static int is_defined(const tgrt_model* m, uint32_t var) {
  for (uint32_t i = 0; i < m->plan->checks.count; ++i)
    if (m->checks[i].relation == TGRT_CHECK_EQUAL && tgrt_bare_var(m, m->checks[i].left) == (int64_t)var) return 1;
  return 0;
}

/* Gives variables without a value their minimum, those last that others define. */
static void use_minima(tgrt_context* c) {
  const tgrt_model* m = c->model;
  for (int defined = 0; defined < 2; ++defined)
    for (uint32_t i = 0; i < m->plan->vars.count; ++i) {
      if (c->vars[i] != TGRT_UNSET || is_defined(m, i) != defined) continue;
      c->vars[i] = m->vars[i].min;
      solve_vars(c);
    }
}

static int check_bounds(const tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  for (uint32_t i = 0; i < m->plan->vars.count; ++i) {
    const struct tgrt_plan_var* var = &m->vars[i];
    if (c->vars[i] < var->min || c->vars[i] > var->max)
      return tgrt_fail(error, TGRT_E_VARIABLE, "dim %s = %lld is outside %lld..%lld", text_of(c, var->name),
                       (long long)c->vars[i], (long long)var->min, (long long)var->max);
  }
  return 0;
}

/* One side of a check: a variable, or a value and the variables it is made of. */
static void side_text(const tgrt_context* c, tgrt_expr expr, int64_t value, struct side* side) {
  const int64_t var = tgrt_bare_var(c->model, expr);
  if (var >= 0) {
    var_text(c, var, side);
    return;
  }
  char* text = side->text;
  const size_t text_bytes = sizeof side->text;
  int used = snprintf(text, text_bytes, "%lld", (long long)value);
  const int64_t* at = c->model->words + expr;
  const char* separator = " (for ";
  for (; *at != TGRT_EXPR_END; ++at) {
    if ((*at & 0xff) != TGRT_EXPR_VAR || used < 0 || (size_t)used >= text_bytes) continue;
    const int64_t v = *at >> 8;
    used += snprintf(text + used, text_bytes - (size_t)used, "%s%s = %lld", separator,
                     text_of(c, c->model->vars[v].name), (long long)c->vars[v]);
    separator = ", ";
  }
  if (separator[0] == ',' && (size_t)used < text_bytes) snprintf(text + used, text_bytes - (size_t)used, ")");
}

static int fail_check(const tgrt_context* c, const struct tgrt_plan_check* check, const int64_t sides[2],
                      tgrt_error* error) {
  struct side left, right;
  const char* why = text_of(c, check->text);
  int64_t factor = 1;
  side_text(c, check->left, sides[0], &left);
  side_text(c, check->right, sides[1], &right);
  if (check->relation == TGRT_CHECK_AT_MOST) {
    if (tgrt_is_constant(c->model, check->left, &factor))
      return tgrt_fail(error, TGRT_E_CHECK, "%s must be at least %s: %s", right.text, left.text, why);
    return tgrt_fail(error, TGRT_E_CHECK, "%s must be at most %s: %s", left.text, right.text, why);
  }
  if (tgrt_scaled_var(c->model, check->right, &factor) >= 0 && factor > 1)
    return tgrt_fail(error, TGRT_E_CHECK, "%s must be a multiple of %lld: %s", left.text, (long long)factor, why);
  return tgrt_fail(error, TGRT_E_CHECK, "%s must equal %s: %s", left.text, right.text, why);
}

static int evaluate_checks(const tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  for (uint32_t i = 0; i < m->plan->checks.count; ++i) {
    const struct tgrt_plan_check* check = &m->checks[i];
    int64_t sides[2];
    if (tgrt_eval(m, check->left, c->vars, &sides[0]) || tgrt_eval(m, check->right, c->vars, &sides[1]))
      return tgrt_fail(error, TGRT_E_OVERFLOW, "a condition on the dims passes 2^63: %s", text_of(c, check->text));
    const int holds = check->relation == TGRT_CHECK_EQUAL ? sides[0] == sides[1] : sides[0] <= sides[1];
    if (!holds) return fail_check(c, check, sides, error);
  }
  return 0;
}

static int evaluate_vars(tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  const uint32_t count = m->plan->vars.count;
  if (count > 0) memcpy(c->vars, c->set_vars, count * sizeof *c->vars);
  int rc = bind_vars(c, error);
  if (rc) return rc;
  solve_vars(c);
  if (c->flags & TGRT_CONTEXT_MINIMA) use_minima(c);
  for (uint32_t i = 0; i < count; ++i) {
    const struct tgrt_plan_var* var = &m->vars[i];
    if (c->vars[i] == TGRT_UNSET && var->min == var->max) c->vars[i] = var->min;
    if (c->vars[i] == TGRT_UNSET)
      return tgrt_fail(error, TGRT_E_UNSET, "dim %s (%lld..%lld) has no value", text_of(c, var->name),
                       (long long)var->min, (long long)var->max);
  }
  rc = evaluate_checks(c, error); /* before bounds, which may be narrower for a check's reason */
  return rc ? rc : check_bounds(c, error);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* "[batch,3,4]": the model's names where a dim is a variable (with_names), else values. Cut at the end of `text`. */
static void shape_text(const tgrt_context* c, const struct tgrt_plan_tensor* t, const int64_t* dims, char* text,
                       size_t text_bytes) {
  size_t used = 0;
  for (uint32_t axis = 0; axis <= t->rank && used < text_bytes; ++axis) {
    const char* separator = axis == 0 ? "[" : ",";
    int n;
    if (axis == t->rank)
      n = snprintf(text + used, text_bytes - used, axis == 0 ? "[]" : "]");
    else {
      const int64_t var = dims ? -1 : tgrt_bare_var(c->model, c->model->dims[t->first_dim + axis]);
      const int64_t value = dims ? dims[axis] : c->dims[t->first_dim + axis];
      if (var >= 0)
        n = snprintf(text + used, text_bytes - used, "%s%s=%lld", separator, text_of(c, c->model->vars[var].name),
                     (long long)value);
      else
        n = snprintf(text + used, text_bytes - used, "%s%lld", separator, (long long)value);
    }
    used += n > 0 ? (size_t)n : 0;
  }
}

static int compare_shape(const tgrt_context* c, const struct tgrt_plan_tensor* t, tgrt_error* error) {
  for (uint32_t axis = 0; axis < t->rank; ++axis) {
    const int64_t given = c->set_dims[t->first_dim + axis];
    if (given == TGRT_UNSET || given == c->dims[t->first_dim + axis]) continue;
    char found[128], wanted[256];
    shape_text(c, t, c->set_dims + t->first_dim, found, sizeof found);
    shape_text(c, t, NULL, wanted, sizeof wanted);
    return tgrt_fail(error, TGRT_E_SHAPE, "input \"%s\" has the shape %s, the model needs %s", text_of(c, t->name),
                     found, wanted);
  }
  return 0;
}

/* Bytes of a tensor; dims are evaluated. */
static int tensor_bytes(const tgrt_context* c, const struct tgrt_plan_tensor* t, size_t* bytes) {
  int64_t n = tgrt_dtype_bytes(t->dtype);
  for (uint32_t axis = 0; axis < t->rank; ++axis) {
    const int64_t dim = c->dims[t->first_dim + axis];
    if (dim < 0 || __builtin_mul_overflow(n, dim, &n)) return 1;
  }
  *bytes = (size_t)n;
  return 0;
}

static int evaluate_tensors(tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  for (int kind = 0; kind < 2; ++kind) {
    for (uint32_t i = 0; i < tgrt_stored_count(m, kind); ++i) {
      const struct tgrt_plan_tensor* t = &m->tensors[kind][i];
      int rc = 0;
      for (uint32_t axis = 0; axis < t->rank && !rc; ++axis)
        rc = tgrt_eval(m, m->dims[t->first_dim + axis], c->vars, &c->dims[t->first_dim + axis]);
      if (rc || tensor_bytes(c, t, &c->tensors[kind][i].bytes))
        return tgrt_fail(error, TGRT_E_OVERFLOW, "%s \"%s\": its size is negative or passes 2^63 bytes",
                         kind == TGRT_INPUT ? "input" : "output", text_of(c, t->name));
      rc = kind == TGRT_INPUT ? compare_shape(c, t, error) : 0;
      if (rc) return rc;
    }
  }
  return 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Advances *next past `bytes` bytes, aligned, with red zones in guard mode. Whether it overflows. */
static int place(const tgrt_context* c, size_t* next, size_t bytes, size_t* offset) {
  const size_t zone = c->flags & TGRT_CONTEXT_GUARD ? TGRT_RED_ZONE : 0;
  *offset = *next + zone;
  if (__builtin_add_overflow(*next, bytes, next) || *next > SIZE_MAX / 4) return 1;
  *next = (*next + 2 * zone + TGRT_DATA_ALIGN - 1) / TGRT_DATA_ALIGN * TGRT_DATA_ALIGN;
  return 0;
}

static int place_buffers(tgrt_context* c, size_t* next) {
  const tgrt_model* m = c->model;
  const int guard = (c->flags & TGRT_CONTEXT_GUARD) != 0;
  for (uint32_t s = 0; s < m->plan->slot_count; ++s) c->slots[s] = 0;
  for (uint32_t i = 0; i < m->plan->buffers.count; ++i) {
    const uint32_t slot = m->buffers[i].slot;
    int64_t bytes;
    if (tgrt_eval(m, m->buffers[i].bytes, c->vars, &bytes) || bytes < 0) return 1;
    c->buffers[i].bytes = (size_t)bytes;
    if (guard && place(c, next, (size_t)bytes, &c->buffers[i].offset)) return 1;
    size_t end;
    if (__builtin_add_overflow((size_t)bytes, (size_t)m->buffers[i].at, &end)) return 1;
    if (c->slots[slot] < end) c->slots[slot] = end;
  }
  if (guard) return 0;
  for (uint32_t s = 0; s < m->plan->slot_count; ++s)
    if (place(c, next, c->slots[s], &c->slots[s])) return 1;
  for (uint32_t i = 0; i < m->plan->buffers.count; ++i)
    c->buffers[i].offset = c->slots[m->buffers[i].slot] + (size_t)m->buffers[i].at;
  return 0;
}

/* Estimates saturate; they only guide. */
static int64_t estimate(const tgrt_context* c, tgrt_expr expr) {
  int64_t value;
  return tgrt_eval(c->model, expr, c->vars, &value) || value < 0 || value > INT64_MAX / 2 ? INT64_MAX / 2 : value;
}

static int evaluate_kernels(tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  int64_t scratch = 0;
  for (uint32_t k = 0; k < m->plan->kernels.count; ++k) {
    const struct tgrt_plan_kernel* kernel = &m->kernels[k];
    int64_t bytes;
    if (tgrt_eval(m, kernel->chunks, c->vars, &c->chunks[k]) || c->chunks[k] < 0 ||
        tgrt_eval(m, kernel->scratch_bytes, c->vars, &bytes) || bytes < 0)
      return tgrt_fail(error, TGRT_E_OVERFLOW, "kernel %s: its size is negative or passes 2^63",
                       text_of(c, kernel->name));
    if (bytes > scratch) scratch = bytes;
    c->flops[k] = estimate(c, kernel->flops);
    c->bytes[k] = estimate(c, kernel->bytes);
  }
  c->scratch_bytes = (size_t)scratch;
  return 0;
}

/* Scratch of the threads: 128 bytes apart at least, so that no two share a cache line or its prefetched neighbour. */
static int place_scratch(tgrt_context* c, size_t* next) {
  size_t end = *next, total;
  if (place(c, &end, c->scratch_bytes, &c->scratch_offset)) return 1;
  c->scratch_stride = end - *next + (c->scratch_bytes > 0 ? 128 : 0);
  if (__builtin_mul_overflow(c->scratch_stride, (size_t)c->pool.count, &total) || total > SIZE_MAX / 4) return 1;
  *next += total;
  return 0;
}

static int grow(tgrt_context* c, unsigned char** block, size_t* capacity, size_t bytes, tgrt_error* error) {
  if (bytes <= *capacity) return 0;
  if (*block) c->allocator.release(c->allocator.user, *block, *capacity);
  *capacity = 0;
  *block = c->allocator.allocate(c->allocator.user, bytes, TGRT_DATA_ALIGN);
  if (!*block) return tgrt_fail(error, TGRT_E_NO_MEMORY, "%zu bytes of buffers cannot be allocated", bytes);
  *capacity = bytes;
  return 0;
}

static int lay_out(tgrt_context* c, tgrt_error* error) {
  size_t arena = 0, io = 0;
  int overflow = place_buffers(c, &arena) || place_scratch(c, &arena);
  for (int kind = 0; kind < 2; ++kind)
    for (uint32_t i = 0; i < tgrt_stored_count(c->model, kind) && !overflow; ++i)
      overflow = place(c, &io, c->tensors[kind][i].bytes, &c->tensors[kind][i].offset);
  if (overflow) return tgrt_fail(error, TGRT_E_OVERFLOW, "the buffers' sizes are negative or pass the address space");
  c->arena_bytes = arena;
  c->io_bytes = io;
  const int rc = grow(c, &c->arena, &c->arena_capacity, arena + TGRT_DATA_ALIGN, error);
  return rc ? rc : grow(c, &c->io, &c->io_capacity, io + TGRT_DATA_ALIGN, error);
}

int tgrt_evaluate(tgrt_context* c, tgrt_error* error) {
  c->prepared = 0;
  c->resolved = 0;
  int rc = evaluate_vars(c, error);
  if (!rc) rc = evaluate_tensors(c, error);
  if (!rc) rc = evaluate_kernels(c, error);
  if (!rc) rc = lay_out(c, error);
  if (!rc) tgrt_prepare_steps(c);
  if (!rc && (c->flags & TGRT_CONTEXT_GUARD)) tgrt_guard_fill(c);
  c->prepared = rc == 0;
  return rc;
}
