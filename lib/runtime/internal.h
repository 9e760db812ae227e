/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the files of libtgrt share. */
#ifndef TGRT_INTERNAL_H
#define TGRT_INTERNAL_H

#include <stdarg.h>

#include "runtime/tgrt.h"
#include "runtime/tgrt_bundle.h"

/* ---- errors (error.c) -------------------------------------------------------------------------------------------- */

/* Fills *error (if not NULL) with the number, the message and the table's remedy; returns the number. */
__attribute__((format(printf, 3, 4))) int tgrt_fail(tgrt_error* error, int code, const char* format, ...);

/* Copies a caller's option struct, whose first member is its size, to one of `known` bytes of zeros; NULL leaves it. An
 * error if it is smaller than `first`, the struct's size in version 1, or larger than `known` with something in what
 * this library does not know. */
int tgrt_take_options(void* to, size_t known, size_t first, const void* options, tgrt_error* error);

/* ---- operating system (os_<name>.c) ------------------------------------------------------------------------------ */

struct tgrt_os_file {
  const unsigned char* data; /* the whole file, read-only */
  size_t bytes;
  int handle;
};
/* 0, or a reason as text in `why`. */
int tgrt_os_open(const char* path, struct tgrt_os_file* file, char* why, size_t why_bytes);
void tgrt_os_close_handle(struct tgrt_os_file* file); /* the mapping stays */
void tgrt_os_unmap(const void* data, size_t bytes);
size_t tgrt_os_page(void);
/* Address space without access; NULL on failure. */
unsigned char* tgrt_os_reserve(size_t bytes);
/* Fills [to, to + bytes), pages of a reservation: from the file at `offset` (both multiples of the page), or by copying
 * when handle is -1. Then makes it readable and, on request, executable. 0 on success. */
int tgrt_os_map(unsigned char* to, size_t bytes, int executable, const struct tgrt_os_file* file, size_t offset);
int tgrt_os_copy(unsigned char* to, size_t bytes, int executable, const unsigned char* from, size_t from_bytes);
void* tgrt_os_allocate(void* user, size_t bytes, size_t alignment);
void tgrt_os_release(void* user, void* memory, size_t bytes);
uint32_t tgrt_os_cpu_count(void);
uint64_t tgrt_os_nanoseconds(void);
void tgrt_os_yield(void);
void tgrt_os_wait(_Atomic uint32_t* word, uint32_t seen); /* returns when *word != seen, or for no reason */
void tgrt_os_wake(_Atomic uint32_t* word);                /* every waiter */
struct tgrt_os_thread {
  uintptr_t id;
};
int tgrt_os_start(struct tgrt_os_thread* thread, void* (*body)(void*), void* arg);
void tgrt_os_join(struct tgrt_os_thread* thread);
void tgrt_os_perf_map(const tgrt_model* model);

/* ---- CPU (cpu.c) ------------------------------------------------------------------------------------------------- */

struct tgrt_cpu {
  uint16_t machine;
  uint64_t features[2];
};
void tgrt_cpu_detect(struct tgrt_cpu* cpu);
const char* tgrt_cpu_feature_name(uint16_t machine, unsigned bit); /* NULL if unknown */
const char* tgrt_machine_name(uint16_t machine);
/* Round to nearest, no flush of denormals, no traps; returns the state to restore. */
uint64_t tgrt_cpu_enter(void);
void tgrt_cpu_leave(uint64_t state);
void tgrt_cpu_pause(void);

/* ---- threads (pool.c) -------------------------------------------------------------------------------------------- */

struct tgrt_pool;
/* Starts count - 1 threads; count >= 1. */
int tgrt_pool_create(const tgrt_allocator* allocator, uint32_t count, struct tgrt_pool** pool, tgrt_error* error);
void tgrt_pool_free(struct tgrt_pool* pool);
/* A tgrt_thread_pool.run. */
void tgrt_pool_run(void* pool, void (*body)(void* arg, uint32_t thread), void* arg);
/* Rounds of spinning before a thread sleeps, and what it does in each: pauses, later with a yield in each 16th (without
 * it, two threads on one CPU would burn a whole spin). Waking costs 10 us. */
enum { TGRT_SPINS = 2000 };
static inline void tgrt_spin(unsigned round) {
  if (round >= 64 && round % 16 == 0)
    tgrt_os_yield();
  else
    tgrt_cpu_pause();
}

/* A variable or dim without a value. */
#define TGRT_UNSET INT64_MIN

/* ---- models (loader.c, plan.c, expr.c) --------------------------------------------------------------------------- */

struct tgrt_device;

struct tgrt_model {
  tgrt_allocator allocator;
  struct tgrt_os_file file; /* handle -1 when loaded from memory or after loading */
  int from_file;
  const struct tgrt_header* header;
  const struct tgrt_plan* plan;
  const unsigned char* weights;
  const struct tgrt_device* device;
  unsigned char* code_base; /* where the image's address 0 is */
  size_t code_span;
  /* the plan's tables */
  const struct tgrt_plan_var* vars;
  const struct tgrt_plan_tensor* tensors[2]; /* by kind */
  const tgrt_expr* dims;
  const struct tgrt_plan_check* checks;
  const struct tgrt_plan_weight* weight_entries;
  const struct tgrt_plan_buffer* buffers;
  const struct tgrt_plan_kernel* kernels;
  const struct tgrt_plan_step* steps;
  const struct tgrt_plan_arg* args;
  const uint32_t* waits;
  const struct tgrt_plan_meta* meta;
  const int64_t* words;
  const char* text;
};

/* Tensors of a kind that have storage: those of tgrt_tensor_count, and the traps behind the outputs. */
static inline uint32_t tgrt_stored_count(const tgrt_model* m, int kind) {
  return kind == TGRT_INPUT ? m->plan->inputs.count : m->plan->outputs.count;
}
const struct tgrt_section* tgrt_find_section(const tgrt_model* model, uint32_t kind);
/* Checks the plan section and sets the model's tables. */
int tgrt_check_plan(tgrt_model* model, tgrt_error* error);
/* Checks every expression of the code pool. */
int tgrt_check_exprs(const tgrt_model* model, tgrt_error* error);
/* Whether `expr` is the start of one. */
int tgrt_is_expr(const tgrt_model* model, tgrt_expr expr);
/* Its value, or an error on overflow. */
int tgrt_eval(const tgrt_model* model, tgrt_expr expr, const int64_t* vars, int64_t* value);
/* Number of the variable that the expression is, or -1. */
int64_t tgrt_bare_var(const tgrt_model* model, tgrt_expr expr);
/* The same for a variable times a positive constant, *factor. */
int64_t tgrt_scaled_var(const tgrt_model* model, tgrt_expr expr, int64_t* factor);
/* Whether each of its variables has a value. */
int tgrt_is_known(const tgrt_model* model, tgrt_expr expr, const int64_t* vars);
/* Whether it is one constant. */
int tgrt_is_constant(const tgrt_model* model, tgrt_expr expr, int64_t* value);
uint32_t tgrt_dtype_bytes(uint32_t dtype);

/* ---- contexts (context.c, steps.c, tgrt.c) ----------------------------------------------------------------------- */

/* Storage of an arena buffer, an input or an output, in one of the context's blocks. */
struct tgrt_storage {
  size_t offset, bytes;
};

/* A step in runs of several threads (steps.c). Runs have numbers from 1 on. */
struct tgrt_step_state {
  _Alignas(64) _Atomic uint32_t ended; /* the last run in which it ended */
  _Atomic uint32_t spent;              /* the last run in which no unit was left to take */
  _Atomic uint32_t left;               /* units that have not ended */
  uint32_t units;                      /* what threads take of it: equal numbers of chunks */
};

struct tgrt_context {
  _Alignas(64) const tgrt_model* model;
  tgrt_allocator allocator;
  tgrt_thread_pool pool;
  struct tgrt_pool* own_pool;
  uint32_t flags;
  int prepared; /* sizes below fit the shapes set */
  int resolved; /* `bufs` fits the bindings */
  void (*profile)(void* user, const tgrt_step_event* event);
  void* profile_user;
  size_t context_bytes;

  int64_t* set_vars; /* by variable: as set, or TGRT_UNSET */
  int64_t* set_dims; /* by entry of the plan's dims: inputs' as set, or TGRT_UNSET */
  int64_t* vars;     /* by variable */
  int64_t* dims;     /* by entry of the plan's dims */
  int64_t* chunks;   /* by kernel, and so the next two */
  int64_t* flops;
  int64_t* bytes;
  struct tgrt_storage* buffers;    /* by buffer, in the arena */
  size_t* slots;                   /* by slot: size, then offset */
  struct tgrt_storage* tensors[2]; /* by kind and tensor, in the io block */
  void** bound[2];                 /* the caller's pointers or NULL */
  size_t* bound_bytes[2];
  void** bufs; /* by entry of the plan's args */

  struct tgrt_step_state* steps; /* by step */
  _Atomic uint64_t* shares;      /* by thread and step */
  uint32_t run;                  /* number of the last one */
  _Atomic uint32_t sleepers;     /* threads of a run that wait for a step to end */
  _Atomic uint32_t wakes;        /* what they sleep on */

  unsigned char* arena; /* buffers, then scratch of each thread */
  size_t arena_bytes, arena_capacity;
  size_t scratch_offset, scratch_stride, scratch_bytes; /* scratch_bytes: of one thread, without padding */
  unsigned char* io;
  size_t io_bytes, io_capacity;
};

/* Evaluates sizes (context.c) and lays out memory. */
int tgrt_evaluate(tgrt_context* context, tgrt_error* error);

/* Readies the steps for runs with the sizes evaluated. */
void tgrt_prepare_steps(tgrt_context* context);
/* Runs steps [first, last) on the context's threads; those before have ended. Called between tgrt_cpu_enter and
 * tgrt_cpu_leave. */
void tgrt_run_steps(tgrt_context* context, uint32_t first, uint32_t last);

/* Guard mode (guard.c). The red zone before and after each storage, in bytes. */
enum { TGRT_RED_ZONE = 256 };
void tgrt_guard_fill(tgrt_context* context);         /* everything, red zones included: after a change of shapes */
void tgrt_guard_fill_run(tgrt_context* context);     /* buffers and outputs: before a run */
void tgrt_guard_fill_scratch(tgrt_context* context); /* before a step */
/* Whether step `step` left every red zone as it was. */
int tgrt_guard_check(const tgrt_context* context, uint32_t step, tgrt_error* error);

/* ---- devices (dev_<name>.c, one table each, listed by devices.c) ------------------------------------------------- */

struct tgrt_device {
  const char* name;
  /* Writes one line about the device; whether it can be used. */
  int (*describe)(char* text, size_t text_bytes);
  /* Prepares the model's code to run; the device is the model's from here on. */
  int (*load)(tgrt_model* model, tgrt_error* error);
  void (*unload)(tgrt_model* model);
  /* Runs chunks [begin, end) of a step as one of the context's threads, maybe beside other chunks of it. Called between
   * tgrt_cpu_enter and tgrt_cpu_leave. */
  void (*run)(tgrt_context* context, uint32_t step, uint32_t thread, int64_t begin, int64_t end);
};
extern const struct tgrt_device* const tgrt_devices[]; /* ends with NULL */

#endif
