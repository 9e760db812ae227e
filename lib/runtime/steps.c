/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Runs steps on all threads of a context. There is one fork and one join for a run, not for a step: each thread walks
 * the steps by itself. A step may begin when those that it waits for (a table of the plan) have ended, and threads that
 * find nothing to do in one go on to the next that may begin. The chunks of a step are shared out evenly, always in the
 * same way, so that a thread meets the data that it wrote itself; it takes its share by halves from the front, and who
 * has none left takes halves of another's from the back. So a thread that the system does not schedule delays nobody
 * for long, and results do not depend on who ran what. What holds for one run carries its number, so that nothing is
 * cleared between runs, but once in 65535. After Blumofe and Leiserson, Scheduling Multithreaded Computations by Work
 * Stealing (1999). */
#include <stdatomic.h>

#include "runtime/internal.h"

/* A share is [front, back) of a step's units, 24 bits each, below the low 16 bits of the run's number. */
enum { UNIT_BITS = 24, MAX_UNITS = 1 << 20 };
/* Steps that a thread looks at, from the first that has not ended. */
enum { WINDOW = 16 };
/* Below so many nanoseconds of work a step stays on one thread: sharing it costs as much (measured: a step that ends on
 * another CPU is seen 0.1 to 0.3 us later, and so is each 64 bytes of its results). */
enum { SERIAL_NANOSECONDS = 1500, FLOPS_PER_NANOSECOND = 64, BYTES_PER_NANOSECOND = 32 };

/* A range of units, or of chunks. */
struct part {
  int64_t begin, end;
};

struct walk {
  tgrt_context* context;
  uint32_t first, last; /* steps [first, last) */
  uint32_t run;
};

/* floor(n * i / count) without overflow: the first of n things in part i of count. */
static int64_t first_of(int64_t n, int64_t i, int64_t count) { return n / count * i + n % count * i / count; }

static uint32_t units_of(const tgrt_context* c, uint32_t kernel) {
  const int64_t chunks = c->chunks[kernel], flops = c->flops[kernel], bytes = c->bytes[kernel];
  const int is_known = flops + bytes > 0;
  if (is_known && flops / FLOPS_PER_NANOSECOND + bytes / BYTES_PER_NANOSECOND < SERIAL_NANOSECONDS) return 1;
  if (chunks < 1) return 1;
  return chunks < MAX_UNITS ? (uint32_t)chunks : MAX_UNITS;
}

void tgrt_prepare_steps(tgrt_context* c) {
  const uint32_t count = c->model->plan->steps.count;
  for (uint32_t s = 0; s < count; ++s) {
    struct tgrt_step_state* step = &c->steps[s];
    step->units = units_of(c, c->model->steps[s].kernel);
    atomic_store(&step->left, step->units);
    atomic_store(&step->ended, 0);
    atomic_store(&step->spent, 0);
  }
  for (size_t i = 0; i < (size_t)count * c->pool.count; ++i) atomic_store(&c->shares[i], 0);
  c->run = 0;
}

static int has_ended(const struct walk* w, uint32_t step) {
  return step < w->first || atomic_load(&w->context->steps[step].ended) == w->run;
}

static int may_begin(const struct walk* w, uint32_t step) {
  const tgrt_model* m = w->context->model;
  const uint32_t* wait = m->waits + m->steps[step].first_wait;
  for (uint32_t i = 0; i < m->steps[step].wait_count; ++i)
    if (!has_ended(w, wait[i])) return 0;
  return 1;
}

/* Takes half of what is left of `owner`'s share of a step: its front for the owner, its back for others. */
static int take(const struct walk* w, uint32_t step, uint32_t owner, int is_owner, struct part* part) {
  tgrt_context* c = w->context;
  _Atomic uint64_t* share = &c->shares[(size_t)owner * c->model->plan->steps.count + step];
  const uint64_t mask = ((uint64_t)1 << UNIT_BITS) - 1, tag = (uint64_t)w->run << 2 * UNIT_BITS;
  uint64_t now = atomic_load(share), rest;
  do {
    int64_t front = (int64_t)(now >> UNIT_BITS & mask), back = (int64_t)(now & mask);
    if (now >> 2 * UNIT_BITS != tag >> 2 * UNIT_BITS) { /* nobody has taken of it in this run */
      front = first_of(c->steps[step].units, owner, c->pool.count);
      back = first_of(c->steps[step].units, owner + 1, c->pool.count);
    }
    if (front == back) return 0;
    const int64_t taken = (back - front + 1) / 2;
    *part = is_owner ? (struct part){front, front + taken} : (struct part){back - taken, back};
    rest = tag | (uint64_t)(is_owner ? part->end : front) << UNIT_BITS | (uint64_t)(is_owner ? back : part->begin);
  } while (!atomic_compare_exchange_weak(share, &now, rest));
  return 1;
}

static int take_any(const struct walk* w, uint32_t step, uint32_t thread, struct part* part) {
  const uint32_t threads = w->context->pool.count;
  for (uint32_t i = 0; i < threads; ++i)
    if (take(w, step, thread + i < threads ? thread + i : thread + i - threads, i == 0, part)) return 1;
  atomic_store_explicit(&w->context->steps[step].spent, w->run, memory_order_relaxed);
  return 0;
}

/* Runs units of a step; who runs the last lets those that wait for the step begin. */
static void run_units(const struct walk* w, uint32_t index, uint32_t thread, struct part part) {
  tgrt_context* c = w->context;
  struct tgrt_step_state* step = &c->steps[index];
  const int64_t chunks = c->chunks[c->model->steps[index].kernel];
  c->model->device->run(c, index, thread, first_of(chunks, part.begin, step->units),
                        first_of(chunks, part.end, step->units));
  const uint32_t done = (uint32_t)(part.end - part.begin);
  if (atomic_fetch_sub(&step->left, done) != done) return;
  atomic_store(&step->left, step->units); /* for the next run */
  atomic_store(&step->ended, w->run);
  if (atomic_load(&c->sleepers) == 0) return;
  atomic_fetch_add(&c->wakes, 1);
  tgrt_os_wake(&c->wakes);
}

/* Runs a part of the first step that has one for this thread; whether there was any. */
static int run_any(const struct walk* w, uint32_t thread, uint32_t first) {
  struct part part;
  for (uint32_t s = first; s < w->last && s - first < WINDOW; ++s) {
    const struct tgrt_step_state* step = &w->context->steps[s];
    if (atomic_load_explicit(&step->spent, memory_order_relaxed) == w->run || !may_begin(w, s)) continue;
    if (!take_any(w, s, thread, &part)) continue;
    run_units(w, s, thread, part);
    return 1;
  }
  return 0;
}

/* Sleeps until a step has ended, unless there is work after all. */
static void sleep_or_run(const struct walk* w, uint32_t thread, uint32_t first) {
  tgrt_context* c = w->context;
  atomic_fetch_add(&c->sleepers, 1);
  const uint32_t seen = atomic_load(&c->wakes); /* a step that ends from here on wakes: it sees the sleeper */
  if (!has_ended(w, first) && !run_any(w, thread, first)) tgrt_os_wait(&c->wakes, seen);
  atomic_fetch_sub(&c->sleepers, 1);
}

static void walk(void* arg, uint32_t thread) {
  const struct walk* w = arg;
  const uint64_t state = tgrt_cpu_enter();
  unsigned idle = 0;
  for (uint32_t first = w->first; first < w->last;) {
    if (has_ended(w, first)) {
      ++first;
      idle = 0;
    } else if (run_any(w, thread, first)) {
      idle = 0;
    } else if (idle < TGRT_SPINS) {
      tgrt_spin(idle++);
    } else {
      sleep_or_run(w, thread, first);
    }
  }
  tgrt_cpu_leave(state);
}

/* The number of a run. When the 16 bits of it that shares carry begin again, shares are cleared: one that carries the
 * same bits may be of long ago, since single steps of large plans are runs, too (profile, guard). */
static uint32_t next_run(tgrt_context* c) {
  if ((++c->run & 0xffff) != 0) return c->run;
  for (size_t i = 0; i < (size_t)c->model->plan->steps.count * c->pool.count; ++i) atomic_store(&c->shares[i], 0);
  return ++c->run; /* 0 is no run's number */
}

void tgrt_run_steps(tgrt_context* c, uint32_t first, uint32_t last) {
  if (c->pool.count == 1) {
    for (uint32_t s = first; s < last; ++s) c->model->device->run(c, s, 0, 0, c->chunks[c->model->steps[s].kernel]);
    return;
  }
  struct walk w = {c, first, last, next_run(c)};
  c->pool.run(c->pool.user, walk, &w);
}
