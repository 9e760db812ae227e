/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Every call to the operating system that libtgrt makes, for Linux. Another system is another file with these
 * functions. Waiting uses futex by number: glibc has no wrapper. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/internal.h"

enum { HUGE_PAGE = 2 << 20 };

int tgrt_os_open(const char* path, struct tgrt_os_file* file, char* why, size_t why_bytes) {
  *file = (struct tgrt_os_file){NULL, 0, -1};
  struct stat status;
  const char* reason = NULL;
  const int handle = open(path, O_RDONLY | O_CLOEXEC);
  if (handle < 0 || fstat(handle, &status) != 0)
    reason = strerror(errno);
  else if (!S_ISREG(status.st_mode))
    reason = "it is not a regular file";
  else if (status.st_size > 0) {
    void* data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, handle, 0);
    if (data == MAP_FAILED)
      reason = strerror(errno);
    else
      *file = (struct tgrt_os_file){data, (size_t)status.st_size, handle};
  }
  if (reason) snprintf(why, why_bytes, "%s", reason);
  if (handle >= 0 && file->handle < 0) close(handle);
  return reason != NULL;
}

void tgrt_os_close_handle(struct tgrt_os_file* file) {
  if (file->handle >= 0) close(file->handle);
  file->handle = -1;
}

void tgrt_os_unmap(const void* data, size_t bytes) {
  if (data) munmap((void*)(uintptr_t)data, bytes);
}

size_t tgrt_os_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

unsigned char* tgrt_os_reserve(size_t bytes) {
  void* at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

int tgrt_os_map(unsigned char* to, size_t bytes, int executable, const struct tgrt_os_file* file, size_t offset) {
  const int protection = PROT_READ | (executable ? PROT_EXEC : 0);
  return mmap(to, bytes, protection, MAP_PRIVATE | MAP_FIXED, file->handle, (off_t)offset) == MAP_FAILED;
}

int tgrt_os_copy(unsigned char* to, size_t bytes, int executable, const unsigned char* from, size_t from_bytes) {
  if (mprotect(to, bytes, PROT_READ | PROT_WRITE) != 0) return 1;
  memcpy(to, from, from_bytes);
  __builtin___clear_cache((char*)to, (char*)to + from_bytes);
  return mprotect(to, bytes, PROT_READ | (executable ? PROT_EXEC : 0)) != 0;
}

void* tgrt_os_allocate(void* user, size_t bytes, size_t alignment) {
  (void)user;
  void* memory = NULL;
  const int huge = bytes >= HUGE_PAGE;
  if (posix_memalign(&memory, huge ? HUGE_PAGE : alignment, bytes) != 0) return NULL;
  if (huge) madvise(memory, bytes, MADV_HUGEPAGE); /* a hint: fewer TLB misses in large arenas */
  return memory;
}

void tgrt_os_release(void* user, void* memory, size_t bytes) {
  (void)user;
  (void)bytes;
  free(memory);
}

uint32_t tgrt_os_cpu_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? (uint32_t)count : 1;
}

uint64_t tgrt_os_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tgrt_os_yield(void) { sched_yield(); }

void tgrt_os_wait(_Atomic uint32_t* word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void tgrt_os_wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

int tgrt_os_start(struct tgrt_os_thread* thread, void* (*body)(void*), void* arg) {
  pthread_t id;
  if (pthread_create(&id, NULL, body, arg) != 0) return 1;
  thread->id = (uintptr_t)id;
  return 0;
}

void tgrt_os_join(struct tgrt_os_thread* thread) { pthread_join((pthread_t)thread->id, NULL); }

/* The format of linux/tools/perf/Documentation/jit-interface.txt: address, size, name. */
void tgrt_os_perf_map(const tgrt_model* model) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
  const int handle = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  FILE* file = handle < 0 ? NULL : fdopen(handle, "a");
  if (!file) return;
  for (uint32_t i = 0; i < model->plan->kernels.count; ++i) {
    const struct tgrt_plan_kernel* kernel = &model->kernels[i];
    fprintf(file, "%llx %llx %s\n", (unsigned long long)(uintptr_t)(model->code_base + kernel->address),
            (unsigned long long)kernel->code_bytes, model->text + kernel->name);
  }
  fclose(file);
}
