/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Fork and join, once for each run. `epoch` counts the forks. Each fork has one part per thread, and each part is
 * claimed once: by its own thread if that arrives in time, else by one that has nothing left to do. So a worker that
 * the system does not schedule delays nobody. Both sides spin before they sleep, for runs that follow each other at
 * once; between runs that do not, nobody spins. Workers are never pinned: it hurts on shared machines. */
#include <stdatomic.h>

#include "runtime/internal.h"

/* A thread (number 0 is the caller's) and its part. */
struct worker {
  _Alignas(64) _Atomic uint32_t claimed; /* the last epoch whose part is claimed: the current one, or that before */
  struct tgrt_pool* pool;
  struct tgrt_os_thread thread;
  uint32_t index;
};

struct tgrt_pool {
  _Alignas(64) _Atomic uint32_t epoch;
  _Atomic uint32_t sleepers, stop;
  _Alignas(64) _Atomic uint32_t pending; /* parts that have not ended */
  _Atomic uint32_t joiner_sleeps;
  _Alignas(64) void (*body)(void* arg, uint32_t thread);
  void* arg;
  tgrt_allocator allocator;
  size_t bytes;
  uint32_t count; /* threads, the caller's included */
  struct worker workers[];
};

/* Spins until *word differs from `seen`, or the patience ends; returns what it saw last. */
static uint32_t spin(_Atomic uint32_t* word, uint32_t seen) {
  for (unsigned i = 0; i < TGRT_SPINS; ++i) {
    const uint32_t now = atomic_load_explicit(word, memory_order_acquire);
    if (now != seen) return now;
    tgrt_spin(i);
  }
  return seen;
}

static uint32_t await_fork(struct tgrt_pool* pool, uint32_t seen) {
  uint32_t now = spin(&pool->epoch, seen);
  if (now != seen) return now;
  atomic_fetch_add(&pool->sleepers, 1);
  while ((now = atomic_load(&pool->epoch)) == seen) tgrt_os_wait(&pool->epoch, seen);
  atomic_fetch_sub(&pool->sleepers, 1);
  return now;
}

static void await_join(struct tgrt_pool* pool) {
  uint32_t left = atomic_load(&pool->pending);
  for (uint32_t now; left != 0 && (now = spin(&pool->pending, left)) != left; left = now) {
  }
  if (left == 0) return;
  atomic_store(&pool->joiner_sleeps, 1);
  while ((left = atomic_load(&pool->pending)) != 0) tgrt_os_wait(&pool->pending, left);
  atomic_store(&pool->joiner_sleeps, 0);
}

/* Claims and runs parts of `epoch`, its own first. Who holds a claim may read body and arg: the fork cannot end. */
static void run_parts(struct tgrt_pool* pool, uint32_t self, uint32_t epoch) {
  for (uint32_t i = 0; i < pool->count; ++i) {
    const uint32_t part = self + i < pool->count ? self + i : self + i - pool->count;
    uint32_t before = epoch - 1;
    if (!atomic_compare_exchange_strong(&pool->workers[part].claimed, &before, epoch)) continue;
    pool->body(pool->arg, part);
    if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->joiner_sleeps)) tgrt_os_wake(&pool->pending);
  }
}

static void* work(void* arg) {
  struct worker* self = arg;
  struct tgrt_pool* pool = self->pool;
  for (uint32_t seen = 0;;) {
    seen = await_fork(pool, seen);
    if (atomic_load(&pool->stop)) return NULL;
    run_parts(pool, self->index, seen);
  }
}

static uint32_t next_epoch(struct tgrt_pool* pool) {
  const uint32_t epoch = atomic_fetch_add(&pool->epoch, 1) + 1;
  if (atomic_load(&pool->sleepers) > 0) tgrt_os_wake(&pool->epoch);
  return epoch;
}

void tgrt_pool_run(void* opaque, void (*body)(void* arg, uint32_t thread), void* arg) {
  struct tgrt_pool* pool = opaque;
  pool->body = body;
  pool->arg = arg;
  atomic_store(&pool->pending, pool->count);
  run_parts(pool, 0, next_epoch(pool));
  await_join(pool);
}

void tgrt_pool_free(struct tgrt_pool* pool) {
  if (!pool) return;
  atomic_store(&pool->stop, 1);
  next_epoch(pool);
  for (uint32_t i = 1; i < pool->count; ++i) tgrt_os_join(&pool->workers[i].thread);
  const tgrt_allocator allocator = pool->allocator;
  allocator.release(allocator.user, pool, pool->bytes);
}

int tgrt_pool_create(const tgrt_allocator* allocator, uint32_t count, struct tgrt_pool** result, tgrt_error* error) {
  const size_t bytes = sizeof(struct tgrt_pool) + count * sizeof(struct worker);
  struct tgrt_pool* pool = allocator->allocate(allocator->user, bytes, _Alignof(struct tgrt_pool));
  if (!pool) return tgrt_fail(error, TGRT_E_NO_MEMORY, "the thread pool's %zu bytes cannot be allocated", bytes);
  memset(pool, 0, bytes);
  pool->allocator = *allocator;
  pool->bytes = bytes;
  uint32_t started = 1;
  for (; started < count; ++started) {
    struct worker* worker = &pool->workers[started];
    worker->pool = pool;
    worker->index = started;
    if (tgrt_os_start(&worker->thread, work, worker) != 0) break;
  }
  pool->count = started; /* before the first fork, so no worker has read it */
  if (started < count) {
    tgrt_pool_free(pool);
    return tgrt_fail(error, TGRT_E_NO_THREADS, "thread %u of %u cannot be started", started + 1, count);
  }
  *result = pool;
  return 0;
}
