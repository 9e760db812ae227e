/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The CPU that we run on: its instruction set extensions, with the operating system's support for their registers, and
 * its floating point state. Source: Intel SDM volume 1 chapters 11.5 and 13, volume 2 CPUID; Arm ARM, FPCR.
 * On AArch64 no optional feature is checked: bundles for it use the baseline only. */
#include "runtime/internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

enum { EAX, EBX, ECX, EDX };

struct feature {
  unsigned bit;
  const char* name;
  uint32_t leaf, subleaf, reg, reg_bit, os;
};
static const struct feature kFeatures[] = {
#define TGRT_X86(Bit, Name, Leaf, Subleaf, Reg, RegBit, Os) {Bit, Name, Leaf, Subleaf, Reg, RegBit, Os},
#include "runtime/features.def"
};

/* Which register files the system saves: the XCR0 register, 0 without XSAVE. */
static uint64_t enabled_state(void) {
  uint32_t r[4] = {0, 0, 0, 0};
  if (!__get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] >> 27 & 1)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

void tgrt_cpu_detect(struct tgrt_cpu* cpu) {
  static const uint64_t kState[] = {0, 0x6, 0xe6, 0x60000}; /* of features.def's last column */
  *cpu = (struct tgrt_cpu){62, {0, 0}};
  const uint64_t state = enabled_state();
  for (size_t i = 0; i < sizeof kFeatures / sizeof kFeatures[0]; ++i) {
    const struct feature* f = &kFeatures[i];
    uint32_t r[4] = {0, 0, 0, 0};
    if (!__get_cpuid_count(f->leaf, f->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX])) continue;
    if ((r[f->reg] >> f->reg_bit & 1) && (state & kState[f->os]) == kState[f->os])
      cpu->features[f->bit / 64] |= UINT64_C(1) << (f->bit % 64);
  }
}

const char* tgrt_cpu_feature_name(uint16_t machine, unsigned bit) {
  for (size_t i = 0; i < sizeof kFeatures / sizeof kFeatures[0]; ++i)
    if (machine == 62 && kFeatures[i].bit == bit) return kFeatures[i].name;
  return NULL;
}

uint64_t tgrt_cpu_enter(void) {
  const uint32_t before = _mm_getcsr();
  _mm_setcsr(0x1f80); /* the default: all exceptions masked, round to nearest, FTZ and DAZ off */
  return before;
}
void tgrt_cpu_leave(uint64_t state) { _mm_setcsr((uint32_t)state); }
void tgrt_cpu_pause(void) { _mm_pause(); }

#elif defined(__aarch64__)

void tgrt_cpu_detect(struct tgrt_cpu* cpu) { *cpu = (struct tgrt_cpu){183, {0, 0}}; }
const char* tgrt_cpu_feature_name(uint16_t machine, unsigned bit) {
  (void)machine, (void)bit;
  return NULL;
}
uint64_t tgrt_cpu_enter(void) {
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
  return before;
}
void tgrt_cpu_leave(uint64_t state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
void tgrt_cpu_pause(void) { __asm__ volatile("isb"); }

#else
#error "libtgrt needs x86-64 or AArch64"
#endif

const char* tgrt_machine_name(uint16_t machine) {
  switch (machine) {
  case 62: return "x86-64";
  case 183: return "aarch64";
  default: return "an unknown CPU";
  }
}
