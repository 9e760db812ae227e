/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The public API on models and contexts, and the run: of all steps at once (steps.c), or of one after the other where
 * something is to be done between them. All memory of a context is one block for its tables, one arena and one block
 * for tensors; a run touches the allocator only when shapes grew. */
#include "runtime/internal.h"

enum { MAX_THREADS = 1024, DEFAULT_THREADS = 64 };

/* ---- models ------------------------------------------------------------------------------------------------------ */

uint32_t tgrt_tensor_count(const tgrt_model* model, int kind) {
  if (kind == TGRT_INPUT) return model->plan->inputs.count;
  return kind == TGRT_OUTPUT ? model->plan->outputs.count - model->plan->trap_count : 0;
}

int tgrt_get_tensor(const tgrt_model* model, int kind, uint32_t index, tgrt_tensor_info* info) {
  memset(info, 0, sizeof *info);
  if (index >= tgrt_tensor_count(model, kind)) return TGRT_E_ARGUMENT;
  const struct tgrt_plan_tensor* t = &model->tensors[kind][index];
  *info = (tgrt_tensor_info){model->text + t->name, t->dtype, tgrt_dtype_bytes(t->dtype), t->rank};
  return 0;
}

int tgrt_find_tensor(const tgrt_model* model, int kind, const char* name) {
  for (uint32_t i = 0; i < tgrt_tensor_count(model, kind); ++i)
    if (strcmp(model->text + model->tensors[kind][i].name, name) == 0) return (int)i;
  return -1;
}

int64_t tgrt_model_dim(const tgrt_model* model, int kind, uint32_t index, uint32_t axis, const char** name) {
  if (name) *name = NULL;
  if (index >= tgrt_tensor_count(model, kind) || axis >= model->tensors[kind][index].rank) return -1;
  const tgrt_expr dim = model->dims[model->tensors[kind][index].first_dim + axis];
  const int64_t var = tgrt_bare_var(model, dim);
  if (name && var >= 0) *name = model->text + model->vars[var].name;
  int64_t value;
  return tgrt_is_constant(model, dim, &value) ? value : -1;
}

uint32_t tgrt_var_count(const tgrt_model* model) { return model->plan->vars.count; }

int tgrt_get_var(const tgrt_model* model, uint32_t index, const char** name, int64_t* min, int64_t* max) {
  if (index >= model->plan->vars.count) return TGRT_E_ARGUMENT;
  *name = model->text + model->vars[index].name;
  *min = model->vars[index].min;
  *max = model->vars[index].max;
  return 0;
}

const char* tgrt_meta(const tgrt_model* model, const char* key) {
  for (uint32_t i = 0; i < model->plan->meta.count; ++i)
    if (strcmp(model->text + model->meta[i].key, key) == 0) return model->text + model->meta[i].value;
  return NULL;
}

const void* tgrt_section_data(const tgrt_model* model, uint32_t kind, size_t* bytes) {
  if (kind == 0) {
    *bytes = sizeof *model->header;
    return model->header;
  }
  const struct tgrt_section* section = tgrt_find_section(model, kind);
  *bytes = section ? section->bytes : 0;
  return section ? (const unsigned char*)model->header + section->offset : NULL;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Takes `count` elements of `size` bytes from the block; with block NULL only counts. */
static void* take(unsigned char* block, size_t* used, size_t count, size_t size) {
  void* at = block ? block + *used : NULL;
  *used += (count * size + 63) / 64 * 64;
  return at;
}

/* Places the context's tables behind it in `block`; returns the bytes of all. Counts are 32-bit, and threads few, so
 * nothing overflows. */
static size_t place_tables(tgrt_context* c, const struct tgrt_plan* p, unsigned char* block) {
  size_t used = sizeof *c;
  c->set_vars = take(block, &used, p->vars.count, sizeof(int64_t));
  c->vars = take(block, &used, p->vars.count, sizeof(int64_t));
  c->set_dims = take(block, &used, p->dims.count, sizeof(int64_t));
  c->dims = take(block, &used, p->dims.count, sizeof(int64_t));
  c->chunks = take(block, &used, p->kernels.count, sizeof(int64_t));
  c->flops = take(block, &used, p->kernels.count, sizeof(int64_t));
  c->bytes = take(block, &used, p->kernels.count, sizeof(int64_t));
  c->buffers = take(block, &used, p->buffers.count, sizeof(struct tgrt_storage));
  c->slots = take(block, &used, p->slot_count, sizeof(size_t));
  for (int kind = 0; kind < 2; ++kind) {
    const uint32_t count = kind == TGRT_INPUT ? p->inputs.count : p->outputs.count;
    c->tensors[kind] = take(block, &used, count, sizeof(struct tgrt_storage));
    c->bound[kind] = take(block, &used, count, sizeof(void*));
    c->bound_bytes[kind] = take(block, &used, count, sizeof(size_t));
  }
  c->bufs = take(block, &used, p->args.count, sizeof(void*));
  c->steps = take(block, &used, p->steps.count, sizeof(struct tgrt_step_state));
  c->shares = take(block, &used, (size_t)p->steps.count * c->pool.count, sizeof(uint64_t));
  return used;
}

/* The caller's pool, or the number of threads of the context's own. */
static int choose_pool(const tgrt_context_options* options, tgrt_thread_pool* pool, tgrt_error* error) {
  if (options->pool) {
    *pool = *options->pool;
    if (pool->run && pool->count >= 1 && pool->count <= MAX_THREADS) return 0;
    return tgrt_fail(error, TGRT_E_ARGUMENT, "the thread pool has no run function, or not 1..%d threads", MAX_THREADS);
  }
  uint32_t count = options->threads;
  if (count == 0) count = tgrt_os_cpu_count() < DEFAULT_THREADS ? tgrt_os_cpu_count() : DEFAULT_THREADS;
  if (count > MAX_THREADS) return tgrt_fail(error, TGRT_E_ARGUMENT, "%u threads; the limit is %d", count, MAX_THREADS);
  *pool = (tgrt_thread_pool){NULL, count, tgrt_pool_run};
  return 0;
}

enum { FIRST_OPTIONS = offsetof(tgrt_context_options, profile_user) + sizeof(void*) }; /* bytes of them in version 1 */

int tgrt_create_context(const tgrt_model* model, const tgrt_context_options* options, tgrt_context** result,
                        tgrt_error* error) {
  if (!model || !result) return tgrt_fail(error, TGRT_E_ARGUMENT, "tgrt_create_context: model or context is NULL");
  *result = NULL;
  if (!model->device) return tgrt_fail(error, TGRT_E_ARGUMENT, "the model was loaded with TGRT_LOAD_INSPECT");
  tgrt_context_options given = {0};
  int rc = tgrt_take_options(&given, sizeof given, FIRST_OPTIONS, options, error);
  if (rc) return rc;
  const tgrt_allocator allocator = given.allocator ? *given.allocator : model->allocator;
  tgrt_context counted;
  counted.pool = (tgrt_thread_pool){NULL, 0, NULL};
  rc = choose_pool(&given, &counted.pool, error);
  if (rc) return rc;
  const size_t bytes = place_tables(&counted, model->plan, NULL);
  tgrt_context* c = allocator.allocate(allocator.user, bytes, _Alignof(tgrt_context));
  if (!c) return tgrt_fail(error, TGRT_E_NO_MEMORY, "the context's %zu bytes cannot be allocated", bytes);
  memset(c, 0, bytes);
  c->pool = counted.pool;
  place_tables(c, model->plan, (unsigned char*)c);
  c->model = model;
  c->allocator = allocator;
  c->context_bytes = bytes;
  c->flags = given.flags;
  c->profile = given.profile;
  c->profile_user = given.profile_user;
  tgrt_reset_shapes(c);
  if (!given.pool) rc = tgrt_pool_create(&allocator, c->pool.count, &c->own_pool, error);
  if (!given.pool) c->pool.user = c->own_pool;
  if (rc)
    tgrt_free_context(c);
  else
    *result = c;
  return rc;
}

void tgrt_free_context(tgrt_context* c) {
  if (!c) return;
  const tgrt_allocator allocator = c->allocator;
  tgrt_pool_free(c->own_pool);
  if (c->arena) allocator.release(allocator.user, c->arena, c->arena_capacity);
  if (c->io) allocator.release(allocator.user, c->io, c->io_capacity);
  allocator.release(allocator.user, c, c->context_bytes);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

void tgrt_reset_shapes(tgrt_context* c) {
  for (uint32_t i = 0; i < c->model->plan->vars.count; ++i) c->set_vars[i] = TGRT_UNSET;
  for (uint32_t i = 0; i < c->model->plan->dims.count; ++i) c->set_dims[i] = TGRT_UNSET;
  c->prepared = 0;
}

int tgrt_set_shape(tgrt_context* c, uint32_t input, const int64_t* dims, uint32_t rank, tgrt_error* error) {
  const tgrt_model* m = c->model;
  if (input >= m->plan->inputs.count)
    return tgrt_fail(error, TGRT_E_ARGUMENT, "input %u; the model has %u", input, m->plan->inputs.count);
  const struct tgrt_plan_tensor* t = &m->tensors[TGRT_INPUT][input];
  if (rank != t->rank)
    return tgrt_fail(error, TGRT_E_SHAPE, "input \"%s\" has %u dims, the model needs %u", m->text + t->name, rank,
                     t->rank);
  for (uint32_t axis = 0; axis < rank; ++axis) {
    if (c->set_dims[t->first_dim + axis] == dims[axis]) continue;
    c->set_dims[t->first_dim + axis] = dims[axis];
    c->prepared = 0;
  }
  return 0;
}

int tgrt_set_var(tgrt_context* c, const char* name, int64_t value, tgrt_error* error) {
  for (uint32_t i = 0; i < c->model->plan->vars.count; ++i) {
    if (strcmp(c->model->text + c->model->vars[i].name, name) != 0) continue;
    if (c->set_vars[i] != value) c->prepared = 0;
    c->set_vars[i] = value;
    return 0;
  }
  return tgrt_fail(error, TGRT_E_ARGUMENT, "the model has no dim called %.200s", name);
}

int tgrt_prepare(tgrt_context* c, tgrt_error* error) { return c->prepared ? 0 : tgrt_evaluate(c, error); }

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static int check_tensor(const tgrt_context* c, int kind, uint32_t index, tgrt_error* error) {
  const uint32_t count = tgrt_tensor_count(c->model, kind);
  if (index < count) return 0;
  return tgrt_fail(error, TGRT_E_ARGUMENT, "%s %u; the model has %u", kind == TGRT_INPUT ? "input" : "output", index,
                   count);
}

static int bind(tgrt_context* c, int kind, uint32_t index, uintptr_t data, size_t bytes, tgrt_error* error) {
  const int rc = check_tensor(c, kind, index, error);
  if (rc) return rc;
  const struct tgrt_plan_tensor* t = &c->model->tensors[kind][index];
  const uint32_t element = tgrt_dtype_bytes(t->dtype);
  if (data % element != 0)
    return tgrt_fail(error, TGRT_E_BUFFER, "\"%s\": its address is not a multiple of %u bytes",
                     c->model->text + t->name, element);
  c->bound[kind][index] = (void*)data;
  c->bound_bytes[kind][index] = bytes;
  c->resolved = 0;
  return 0;
}

int tgrt_bind_input(tgrt_context* c, uint32_t index, const void* data, size_t bytes, tgrt_error* error) {
  return bind(c, TGRT_INPUT, index, (uintptr_t)data, bytes, error);
}

int tgrt_bind_output(tgrt_context* c, uint32_t index, void* data, size_t bytes, tgrt_error* error) {
  return bind(c, TGRT_OUTPUT, index, (uintptr_t)data, bytes, error);
}

static int is_ready(tgrt_context* c, int kind, uint32_t index, tgrt_error* error) {
  return check_tensor(c, kind, index, error) == 0 && tgrt_prepare(c, error) == 0;
}

void* tgrt_data(tgrt_context* c, int kind, uint32_t index, tgrt_error* error) {
  if (!is_ready(c, kind, index, error)) return NULL;
  return c->bound[kind][index] ? c->bound[kind][index] : c->io + c->tensors[kind][index].offset;
}

size_t tgrt_bytes(tgrt_context* c, int kind, uint32_t index, tgrt_error* error) {
  return is_ready(c, kind, index, error) ? c->tensors[kind][index].bytes : 0;
}

int tgrt_shape(tgrt_context* c, int kind, uint32_t index, int64_t* dims, tgrt_error* error) {
  int rc = check_tensor(c, kind, index, error);
  if (!rc) rc = tgrt_prepare(c, error);
  if (rc) return rc;
  const struct tgrt_plan_tensor* t = &c->model->tensors[kind][index];
  for (uint32_t axis = 0; axis < t->rank; ++axis) dims[axis] = c->dims[t->first_dim + axis];
  return 0;
}

size_t tgrt_arena_bytes(tgrt_context* c, tgrt_error* error) { return tgrt_prepare(c, error) == 0 ? c->arena_bytes : 0; }

/* ---- run --------------------------------------------------------------------------------------------------------- */

/* Where a tensor is, bound or not. */
static uintptr_t place_of(const tgrt_context* c, int kind, uint32_t i) {
  return c->bound[kind][i] ? (uintptr_t)c->bound[kind][i] : (uintptr_t)(c->io + c->tensors[kind][i].offset);
}

/* Whether an output shares memory with another tensor. What is not bound has memory of its own, but may have been given
 * to what is. */
static int check_overlaps(const tgrt_context* c, uint32_t output, tgrt_error* error) {
  const char* text = c->model->text;
  const uintptr_t at = place_of(c, TGRT_OUTPUT, output);
  const size_t bytes = c->tensors[TGRT_OUTPUT][output].bytes;
  for (int kind = 0; bytes && kind < 2; ++kind) {
    const uint32_t count = kind == TGRT_OUTPUT ? output : tgrt_tensor_count(c->model, kind);
    for (uint32_t i = 0; i < count; ++i) {
      const uintptr_t other = place_of(c, kind, i);
      const size_t other_bytes = c->tensors[kind][i].bytes;
      const int is_bound = c->bound[TGRT_OUTPUT][output] || c->bound[kind][i];
      if (!is_bound || !other_bytes || at >= other + other_bytes || other >= at + bytes) continue;
      return tgrt_fail(error, TGRT_E_BUFFER, "output \"%s\" shares memory with \"%s\"",
                       text + c->model->tensors[TGRT_OUTPUT][output].name, text + c->model->tensors[kind][i].name);
    }
  }
  return 0;
}

static int check_bindings(const tgrt_context* c, tgrt_error* error) {
  for (int kind = 0; kind < 2; ++kind) {
    for (uint32_t i = 0; i < tgrt_tensor_count(c->model, kind); ++i) {
      if (!c->bound[kind][i] || c->bound_bytes[kind][i] == c->tensors[kind][i].bytes) continue;
      return tgrt_fail(error, TGRT_E_BUFFER, "\"%s\": %zu bytes are bound, the tensor has %zu",
                       c->model->text + c->model->tensors[kind][i].name, c->bound_bytes[kind][i],
                       c->tensors[kind][i].bytes);
    }
  }
  for (uint32_t i = 0; i < tgrt_tensor_count(c->model, TGRT_OUTPUT); ++i) {
    const int rc = check_overlaps(c, i, error);
    if (rc) return rc;
  }
  return 0;
}

static void* address_of(const tgrt_context* c, const struct tgrt_plan_arg* arg) {
  const int guard = (c->flags & TGRT_CONTEXT_GUARD) != 0;
  switch (arg->kind) {
  case TGRT_ARG_INPUT:
  case TGRT_ARG_OUTPUT:
    if (c->bound[arg->kind][arg->index] && !guard) return c->bound[arg->kind][arg->index];
    return c->io + c->tensors[arg->kind][arg->index].offset;
  case TGRT_ARG_WEIGHT: return (void*)(uintptr_t)(c->model->weights + c->model->weight_entries[arg->index].offset);
  default: return c->arena + c->buffers[arg->index].offset;
  }
}

static int resolve(tgrt_context* c, tgrt_error* error) {
  if (c->resolved) return 0;
  const int rc = check_bindings(c, error);
  if (rc) return rc;
  for (uint32_t i = 0; i < c->model->plan->args.count; ++i) c->bufs[i] = address_of(c, &c->model->args[i]);
  c->resolved = 1;
  return 0;
}

static void run_step(tgrt_context* c, uint32_t index) {
  const tgrt_model* m = c->model;
  const uint64_t start = tgrt_os_nanoseconds();
  tgrt_run_steps(c, index, index + 1);
  const uint64_t end = tgrt_os_nanoseconds();
  const struct tgrt_plan_step* step = &m->steps[index];
  const tgrt_step_event event = {sizeof event,           index,       m->text + m->kernels[step->kernel].name,
                                 m->text + step->origin, end - start, c->flops[step->kernel],
                                 c->bytes[step->kernel]};
  if (c->profile) c->profile(c->profile_user, &event);
}

static int run_guarded(tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  tgrt_guard_fill_run(c);
  for (uint32_t i = 0; i < m->plan->inputs.count; ++i)
    if (c->bound[TGRT_INPUT][i])
      memcpy(c->io + c->tensors[TGRT_INPUT][i].offset, c->bound[TGRT_INPUT][i], c->tensors[TGRT_INPUT][i].bytes);
  int rc = 0;
  for (uint32_t i = 0; i < m->plan->steps.count && !rc; ++i) {
    tgrt_guard_fill_scratch(c);
    run_step(c, i);
    rc = tgrt_guard_check(c, i, error);
  }
  for (uint32_t i = 0; i < m->plan->outputs.count && !rc; ++i)
    if (c->bound[TGRT_OUTPUT][i])
      memcpy(c->bound[TGRT_OUTPUT][i], c->io + c->tensors[TGRT_OUTPUT][i].offset, c->tensors[TGRT_OUTPUT][i].bytes);
  return rc;
}

static int check_traps(const tgrt_context* c, tgrt_error* error) {
  const tgrt_model* m = c->model;
  for (uint32_t i = tgrt_tensor_count(m, TGRT_OUTPUT); i < m->plan->outputs.count; ++i)
    if (c->io[c->tensors[TGRT_OUTPUT][i].offset])
      return tgrt_fail(error, TGRT_E_INDEX, "%s: an index is outside its tensor",
                       m->text + m->tensors[TGRT_OUTPUT][i].name);
  return 0;
}

int tgrt_run(tgrt_context* c, tgrt_error* error) {
  int rc = tgrt_prepare(c, error);
  if (!rc) rc = resolve(c, error);
  if (rc) return rc;
  const uint64_t state = tgrt_cpu_enter();
  if (c->flags & TGRT_CONTEXT_GUARD)
    rc = run_guarded(c, error);
  else if (c->profile)
    for (uint32_t i = 0; i < c->model->plan->steps.count; ++i) run_step(c, i);
  else
    tgrt_run_steps(c, 0, c->model->plan->steps.count);
  tgrt_cpu_leave(state);
  if (rc) return rc;
  return check_traps(c, error);
}
