/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Debug mode: every buffer, tensor and scratch area lies between red zones, and all of it starts as one pattern. The
 * pattern reads as NaN in every float type, so that a value which was never written shows in the results, and it is no
 * NaN that arithmetic makes, so that a stray store of one is seen. Reads past an end are seen as NaN only. */
#include "runtime/internal.h"

/* Even addresses 0xfd, odd ones 0xff: f16 and bf16 0xfffd, f32 0xfffdfffd. Blocks are 64-byte aligned. */
static unsigned char pattern(const unsigned char* at) { return (uintptr_t)at % 2 ? 0xff : 0xfd; }

static void fill(unsigned char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) from[i] = pattern(from + i);
}

void tgrt_guard_fill(tgrt_context* c) {
  fill(c->arena, c->arena_bytes);
  fill(c->io, c->io_bytes);
}

void tgrt_guard_fill_run(tgrt_context* c) {
  for (uint32_t i = 0; i < c->model->plan->buffers.count; ++i)
    fill(c->arena + c->buffers[i].offset, c->buffers[i].bytes);
  for (uint32_t i = 0; i < c->model->plan->outputs.count; ++i)
    fill(c->io + c->tensors[TGRT_OUTPUT][i].offset, c->tensors[TGRT_OUTPUT][i].bytes);
}

static unsigned char* scratch_of(const tgrt_context* c, uint32_t thread) {
  return c->arena + c->scratch_offset + thread * c->scratch_stride;
}

void tgrt_guard_fill_scratch(tgrt_context* c) {
  for (uint32_t t = 0; t < c->pool.count; ++t) fill(scratch_of(c, t), c->scratch_bytes);
}

/* Offset of the first changed byte around [at, at + bytes), relative to `at`, or 0 (which is inside). */
static long long first_change(const unsigned char* at, size_t bytes) {
  for (size_t i = 1; i <= TGRT_RED_ZONE; ++i)
    if (at[-(ptrdiff_t)i] != pattern(at - i)) return -(long long)i;
  for (size_t i = 0; i < TGRT_RED_ZONE; ++i)
    if (at[bytes + i] != pattern(at + bytes + i)) return (long long)(bytes + i);
  return bytes == 0 && at[0] != pattern(at) ? 1 : 0;
}

static int report(const tgrt_context* c, uint32_t step, const char* what, long long at, tgrt_error* error) {
  const tgrt_model* m = c->model;
  return tgrt_fail(error, TGRT_E_GUARD, "step %u, kernel %s: wrote outside %s, at byte %lld", step,
                   m->text + m->kernels[m->steps[step].kernel].name, what, at);
}

int tgrt_guard_check(const tgrt_context* c, uint32_t step, tgrt_error* error) {
  static const char* const kKinds[] = {"an input", "an output"};
  const tgrt_model* m = c->model;
  long long at = 0;
  for (uint32_t i = 0; i < m->plan->buffers.count; ++i)
    if ((at = first_change(c->arena + c->buffers[i].offset, c->buffers[i].bytes)) != 0)
      return report(c, step, "an arena buffer", at, error);
  for (int kind = 0; kind < 2; ++kind)
    for (uint32_t i = 0; i < tgrt_stored_count(m, kind); ++i)
      if ((at = first_change(c->io + c->tensors[kind][i].offset, c->tensors[kind][i].bytes)) != 0)
        return report(c, step, kKinds[kind], at, error);
  for (uint32_t t = 0; t < c->pool.count; ++t)
    if ((at = first_change(scratch_of(c, t), c->scratch_bytes)) != 0)
      return report(c, step, "a thread's scratch", at, error);
  return 0;
}
