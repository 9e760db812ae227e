/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Checks a plan section: every table in bounds, every number that indexes another table in range, every text ended.
 * What passes here can be used without further checks. Kernel addresses are checked against the code by the device. */
#include "runtime/internal.h"

static int bad(tgrt_error* error, const char* table, uint32_t row, const char* what) {
  return tgrt_fail(error, TGRT_E_PLAN, "plan: %s entry %u: %s", table, row, what);
}

/* Address of a table of `size`-byte rows, or NULL. */
static const void* rows(const tgrt_model* model, struct tgrt_table table, size_t size) {
  const uint64_t end = (uint64_t)table.offset + (uint64_t)table.count * size;
  if (table.offset % 8 != 0 || table.offset < sizeof(struct tgrt_plan) || end > model->plan->plan_bytes) return NULL;
  return (const unsigned char*)model->plan + table.offset;
}

static int set_tables(tgrt_model* m, tgrt_error* error) {
  const struct tgrt_plan* p = m->plan;
  m->vars = rows(m, p->vars, sizeof *m->vars);
  m->tensors[TGRT_INPUT] = rows(m, p->inputs, sizeof(struct tgrt_plan_tensor));
  m->tensors[TGRT_OUTPUT] = rows(m, p->outputs, sizeof(struct tgrt_plan_tensor));
  m->dims = rows(m, p->dims, sizeof *m->dims);
  m->checks = rows(m, p->checks, sizeof *m->checks);
  m->weight_entries = rows(m, p->weights, sizeof *m->weight_entries);
  m->buffers = rows(m, p->buffers, sizeof *m->buffers);
  m->kernels = rows(m, p->kernels, sizeof *m->kernels);
  m->steps = rows(m, p->steps, sizeof *m->steps);
  m->args = rows(m, p->args, sizeof *m->args);
  m->waits = rows(m, p->waits, sizeof *m->waits);
  m->meta = rows(m, p->meta, sizeof *m->meta);
  m->words = rows(m, p->code, sizeof *m->words);
  m->text = rows(m, p->text, 1);
  if (!m->vars || !m->tensors[TGRT_INPUT] || !m->tensors[TGRT_OUTPUT] || !m->dims || !m->checks || !m->weight_entries ||
      !m->buffers || !m->kernels || !m->steps || !m->args || !m->waits || !m->meta || !m->words || !m->text)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: a table lies outside the section");
  if (p->text.count == 0 || m->text[p->text.count - 1] != 0)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: the last text does not end");
  return 0;
}

static int is_text(const tgrt_model* m, tgrt_text text) { return text < m->plan->text.count; }

static int check_vars(const tgrt_model* m, tgrt_error* error) {
  for (uint32_t i = 0; i < m->plan->vars.count; ++i) {
    const struct tgrt_plan_var* var = &m->vars[i];
    if (!is_text(m, var->name) || var->min > var->max) return bad(error, "vars", i, "invalid");
    if (i > 0 && strcmp(m->text + var[-1].name, m->text + var->name) >= 0) return bad(error, "vars", i, "not sorted");
  }
  for (uint32_t i = 0; i < m->plan->meta.count; ++i)
    if (!is_text(m, m->meta[i].key) || !is_text(m, m->meta[i].value)) return bad(error, "meta", i, "invalid");
  return 0;
}

static int check_tensors(const tgrt_model* m, tgrt_error* error) {
  for (uint32_t i = 0; i < m->plan->dims.count; ++i)
    if (!tgrt_is_expr(m, m->dims[i])) return bad(error, "dims", i, "not an expression");
  for (int kind = 0; kind < 2; ++kind) {
    const uint32_t count = tgrt_stored_count(m, kind);
    for (uint32_t i = 0; i < count; ++i) {
      const struct tgrt_plan_tensor* t = &m->tensors[kind][i];
      const uint32_t dims = m->plan->dims.count;
      if (!is_text(m, t->name) || tgrt_dtype_bytes(t->dtype) == 0 || t->first_dim > dims ||
          t->rank > dims - t->first_dim)
        return bad(error, kind == TGRT_INPUT ? "inputs" : "outputs", i, "invalid");
    }
  }
  if (m->plan->trap_count > m->plan->outputs.count)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: more traps than outputs");
  for (uint32_t i = m->plan->outputs.count - m->plan->trap_count; i < m->plan->outputs.count; ++i)
    if (m->tensors[TGRT_OUTPUT][i].dtype != TGRT_BOOL || m->tensors[TGRT_OUTPUT][i].rank != 0)
      return bad(error, "outputs", i, "no trap");
  for (uint32_t i = 0; i < m->plan->checks.count; ++i) {
    const struct tgrt_plan_check* c = &m->checks[i];
    if (!tgrt_is_expr(m, c->left) || !tgrt_is_expr(m, c->right) || c->relation > TGRT_CHECK_AT_MOST ||
        !is_text(m, c->text))
      return bad(error, "checks", i, "invalid");
  }
  return 0;
}

static int check_storage(const tgrt_model* m, tgrt_error* error) {
  const struct tgrt_section* weights = tgrt_find_section(m, TGRT_SECTION_WEIGHTS);
  const uint64_t limit = weights ? weights->bytes : 0;
  for (uint32_t i = 0; i < m->plan->weights.count; ++i) {
    const struct tgrt_plan_weight* w = &m->weight_entries[i];
    if (!is_text(m, w->key) || w->offset % TGRT_DATA_ALIGN != 0 || w->offset > limit || w->bytes > limit - w->offset)
      return bad(error, "weights", i, "outside the weights section");
  }
  for (uint32_t i = 0; i < m->plan->buffers.count; ++i)
    if (!tgrt_is_expr(m, m->buffers[i].bytes) || m->buffers[i].slot >= m->plan->slot_count ||
        m->buffers[i].at % TGRT_DATA_ALIGN != 0 || m->buffers[i].at > SIZE_MAX / 4)
      return bad(error, "buffers", i, "invalid");
  if (m->plan->slot_count > m->plan->buffers.count)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: more slots than buffers");
  return 0;
}

static int check_steps(const tgrt_model* m, tgrt_error* error) {
  const struct tgrt_plan* p = m->plan;
  for (uint32_t i = 0; i < p->kernels.count; ++i) {
    const struct tgrt_plan_kernel* k = &m->kernels[i];
    if (!is_text(m, k->name) || !is_text(m, k->opts) || !tgrt_is_expr(m, k->scratch_bytes) ||
        !tgrt_is_expr(m, k->chunks) || !tgrt_is_expr(m, k->flops) || !tgrt_is_expr(m, k->bytes))
      return bad(error, "kernels", i, "invalid");
  }
  const uint32_t limits[] = {p->inputs.count, p->outputs.count, p->weights.count, p->buffers.count};
  for (uint32_t i = 0; i < p->args.count; ++i)
    if (m->args[i].kind > TGRT_ARG_BUFFER || m->args[i].index >= limits[m->args[i].kind])
      return bad(error, "args", i, "refers to nothing");
  for (uint32_t i = 0; i < p->steps.count; ++i) {
    const struct tgrt_plan_step* s = &m->steps[i];
    if (s->kernel >= p->kernels.count || s->first_arg > p->args.count || s->arg_count > p->args.count - s->first_arg ||
        !is_text(m, s->origin) || s->first_wait > p->waits.count || s->wait_count > p->waits.count - s->first_wait)
      return bad(error, "steps", i, "invalid");
    for (uint32_t w = 0; w < s->wait_count; ++w)
      if (m->waits[s->first_wait + w] >= i) return bad(error, "steps", i, "waits for no earlier one");
  }
  return 0;
}

int tgrt_check_plan(tgrt_model* model, tgrt_error* error) {
  const struct tgrt_section* section = tgrt_find_section(model, TGRT_SECTION_PLAN);
  if (!section || section->bytes < sizeof(struct tgrt_plan) || section->bytes > UINT32_MAX)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: the section is missing or has an impossible size");
  model->plan = (const struct tgrt_plan*)(const void*)((const unsigned char*)model->header + section->offset);
  if (model->plan->plan_bytes != section->bytes)
    return tgrt_fail(error, TGRT_E_PLAN, "plan: it says %u bytes, its section has %llu", model->plan->plan_bytes,
                     (unsigned long long)section->bytes);
  int rc = set_tables(model, error);
  if (!rc) rc = tgrt_check_exprs(model, error);
  if (!rc) rc = check_vars(model, error);
  if (!rc) rc = check_tensors(model, error);
  if (!rc) rc = check_storage(model, error);
  if (!rc) rc = check_steps(model, error);
  return rc;
}

uint32_t tgrt_dtype_bytes(uint32_t dtype) {
  static const unsigned char kBytes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return dtype < sizeof kBytes ? kBytes[dtype] : 0;
}
