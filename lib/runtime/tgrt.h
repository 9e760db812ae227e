/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* libtgrt: loads a bundle made by tgc and runs it. C99 and C++; libc only.
 *
 *   tgrt_model* model;
 *   tgrt_context* context;
 *   tgrt_error error;
 *   if (tgrt_load_file("m.bundle", NULL, &model, &error) != 0) { puts(error.text); … }
 *   if (tgrt_create_context(model, NULL, &context, &error) != 0) …
 *   float* x = tgrt_data(context, TGRT_INPUT, 0, &error);   // fill it
 *   if (tgrt_run(context, &error) != 0) …
 *   const float* y = tgrt_data(context, TGRT_OUTPUT, 0, &error);
 *
 * A model is immutable and may be used by any number of threads and contexts; it must outlive them. A context is used
 * by one thread at a time. The library has no globals and reads no environment. Functions that return int return 0, or
 * the number of an error, which they also describe in *error (may be NULL). Option structs may be NULL or zero but for
 * struct_size, which is the sizeof that the caller was compiled with (E101). */
#ifndef TGRT_H
#define TGRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* the rest of the library is hidden */

enum {
  TGRT_OK = 0,
#define TGRT_ERROR(Number, Name, ...) TGRT_E_##Name = Number,
#include "tgrt_errors.def"
};

typedef struct tgrt_model tgrt_model;
typedef struct tgrt_context tgrt_context;

typedef struct tgrt_error {
  int code;        /* TGRT_E_… */
  char text[1020]; /* "TGR-E210: what was found. What to do." */
} tgrt_error;

/* Both functions must be thread-safe if contexts are created from several threads. */
typedef struct tgrt_allocator {
  void* user;
  void* (*allocate)(void* user, size_t bytes, size_t alignment); /* NULL when out of memory */
  void (*release)(void* user, void* memory, size_t bytes);
} tgrt_allocator;

/* A caller's threads. run, called once for each run of the model (for each step when there is a profile), calls
 * body(arg, t) once for every t in [0, count), concurrently or not, and returns when all have returned. Each body works
 * until the whole run is done. A pool of one thread is not called: the run is the caller's own. */
typedef struct tgrt_thread_pool {
  void* user;
  uint32_t count;
  void (*run)(void* user, void (*body)(void* arg, uint32_t thread), void* arg);
} tgrt_thread_pool;

typedef struct tgrt_step_event {
  size_t struct_size;
  uint32_t step;      /* number within the run */
  const char* kernel; /* its name; lives as long as the model */
  const char* origin; /* the model's nodes, may be "" */
  uint64_t nanoseconds;
  int64_t flops, bytes; /* operations of this shape, and bytes that it must move at least, as the compiler counts */
} tgrt_step_event;

/* ---- models ------------------------------------------------------------------------------------------------------ */

enum {
  TGRT_LOAD_PERF_MAP = 1, /* write /tmp/perf-PID.map, so that `perf` knows the kernels' names */
  TGRT_LOAD_INSPECT = 2,  /* accept code for other CPUs and map none: such a model has no contexts */
};

typedef struct tgrt_load_options {
  size_t struct_size;
  uint32_t flags;                  /* TGRT_LOAD_… */
  const char* device;              /* one of tgrt_device_name; NULL: the first that can run the bundle */
  const tgrt_allocator* allocator; /* copied; also the default of the model's contexts. NULL: aligned_alloc */
} tgrt_load_options;

/* Maps the bundle at `path` and checks its header, plan and code; weights are read when first used. A bundle is code:
 * load only those you trust. The file may be replaced by a rename while loaded, but not written to. */
int tgrt_load_file(const char* path, const tgrt_load_options* options, tgrt_model** model, tgrt_error* error);

/* The same for a bundle in memory, of `bytes` bytes at a 64-byte aligned address. The memory is used in place: it must
 * stay unchanged until tgrt_free_model. */
int tgrt_load_memory(const void* bundle, size_t bytes, const tgrt_load_options* options, tgrt_model** model,
                     tgrt_error* error);

/* Every context of the model must be freed before. NULL is allowed. */
void tgrt_free_model(tgrt_model* model);

/* Reads the whole bundle and checks the hash of every section, weights included. */
int tgrt_verify(const tgrt_model* model, tgrt_error* error);

enum { TGRT_INPUT = 0, TGRT_OUTPUT = 1 }; /* `kind` below; tensors of a kind are numbered from 0 in the model's order */

typedef struct tgrt_tensor_info {
  const char* name; /* lives as long as the model */
  uint32_t dtype;   /* enum tgrt_dtype in tgrt_bundle.h: 1 bool, 2..9 i8 u8 i16 u16 i32 u32 i64 u64, 10 f16, 11 bf16,
                       12 f32, 13 f64 */
  uint32_t element_bytes;
  uint32_t rank;
} tgrt_tensor_info;

uint32_t tgrt_tensor_count(const tgrt_model* model, int kind);
/* Zeroes *info and returns TGRT_E_ARGUMENT when there is no such tensor. */
int tgrt_get_tensor(const tgrt_model* model, int kind, uint32_t index, tgrt_tensor_info* info);
/* Number of the tensor called `name`, or -1. */
int tgrt_find_tensor(const tgrt_model* model, int kind, const char* name);
/* Dim `axis` of the model's shape: its value if it is fixed, else -1, with *name (may be NULL) the variable that it is,
 * or NULL when it is another expression. */
int64_t tgrt_model_dim(const tgrt_model* model, int kind, uint32_t index, uint32_t axis, const char** name);

/* Variables of the model's shapes, sorted by name; bounds are inclusive. */
uint32_t tgrt_var_count(const tgrt_model* model);
int tgrt_get_var(const tgrt_model* model, uint32_t index, const char** name, int64_t* min, int64_t* max);
/* Value of a key that the compiler recorded ("tool", "source", "target", "numerics"), or NULL. */
const char* tgrt_meta(const tgrt_model* model, const char* key);
/* Section of a tgrt_bundle.h kind, in place, or NULL. Kind 0 is the header. */
const void* tgrt_section_data(const tgrt_model* model, uint32_t kind, size_t* bytes);

/* Devices of this build: NULL past the last. tgrt_describe_device writes one line ("ok: x86-64, 8 CPUs, avx2 …") and
 * returns whether the device can be used. */
const char* tgrt_device_name(uint32_t index);
int tgrt_describe_device(uint32_t index, char* text, size_t text_bytes);

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

enum {
  TGRT_CONTEXT_GUARD = 1,  /* debug: no two buffers share memory, each lies between red zones and starts as NaN; checked
                              after every step. Slow; inputs and outputs are copied. */
  TGRT_CONTEXT_MINIMA = 2, /* variables that nothing gives a value take their minimum, instead of error E303 */
};

typedef struct tgrt_context_options {
  size_t struct_size;
  uint32_t flags;                  /* TGRT_CONTEXT_… */
  uint32_t threads;                /* threads that a run uses, the caller's included; 0: the CPUs of the process */
  const tgrt_allocator* allocator; /* copied; NULL: the model's */
  const tgrt_thread_pool* pool;    /* copied; replaces the context's own threads and their number */
  void (*profile)(void* user, const tgrt_step_event* event); /* called after each step, on the caller's thread;
                                                                steps then run one after the other */
  void* profile_user;
} tgrt_context_options;

/* Results never depend on the number of threads. */
int tgrt_create_context(const tgrt_model* model, const tgrt_context_options* options, tgrt_context** context,
                        tgrt_error* error);
void tgrt_free_context(tgrt_context* context);

/* Shapes. Models without variables need none of this. A dim that is a variable gives it its value; where several inputs
 * have it they must agree when the context is next prepared. Variables that the model needs to be equal, or to be a sum
 * or a multiple of others, give each other their values, and are checked then (E306). Settings stay until changed or
 * reset. */
int tgrt_set_shape(tgrt_context* context, uint32_t input, const int64_t* dims, uint32_t rank, tgrt_error* error);
int tgrt_set_var(tgrt_context* context, const char* name, int64_t value, tgrt_error* error);
void tgrt_reset_shapes(tgrt_context* context);

/* Evaluates all sizes for the shapes set and allocates the arena. The functions below do it when it is needed; a call
 * of one's own only decides when. Memory grows and is never given back before tgrt_free_context. */
int tgrt_prepare(tgrt_context* context, tgrt_error* error);

/* Zero copy: the run reads its input from, or writes its output to, the caller's memory of exactly the tensor's bytes,
 * aligned to its element. NULL returns to the context's own memory. No output may overlap an input or another output,
 * bound or not (E305). */
int tgrt_bind_input(tgrt_context* context, uint32_t index, const void* data, size_t bytes, tgrt_error* error);
int tgrt_bind_output(tgrt_context* context, uint32_t index, void* data, size_t bytes, tgrt_error* error);

/* Where the tensor's elements are, row-major: the bound memory, or else the context's, 64-byte aligned, valid until the
 * shapes change. NULL on error. */
void* tgrt_data(tgrt_context* context, int kind, uint32_t index, tgrt_error* error);
/* Its bytes for the shapes set; 0 on error. */
size_t tgrt_bytes(tgrt_context* context, int kind, uint32_t index, tgrt_error* error);
/* Its `rank` dims for the shapes set. */
int tgrt_shape(tgrt_context* context, int kind, uint32_t index, int64_t* dims, tgrt_error* error);
/* Bytes of intermediate buffers and scratch; 0 on error. */
size_t tgrt_arena_bytes(tgrt_context* context, tgrt_error* error);

/* Runs the model once. With shapes as in the run before, it allocates nothing and calls the system for nothing but to
 * wait for threads. */
int tgrt_run(tgrt_context* context, tgrt_error* error);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Title and general advice of an error number; "" for others. */
const char* tgrt_error_title(int code);
const char* tgrt_error_remedy(int code);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
