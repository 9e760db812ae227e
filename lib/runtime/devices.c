/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The devices of this build, best first: one per file dev_<name>.c, listed by CMake. */
#include "runtime/internal.h"

#define TGRT_DEVICE(Name) extern const struct tgrt_device tgrt_dev_##Name;
#include "runtime/devices.inc"
#undef TGRT_DEVICE

const struct tgrt_device* const tgrt_devices[] = {
#define TGRT_DEVICE(Name) &tgrt_dev_##Name,
#include "runtime/devices.inc"
    NULL};

const char* tgrt_device_name(uint32_t index) {
  for (uint32_t i = 0; tgrt_devices[i]; ++i)
    if (i == index) return tgrt_devices[i]->name;
  return NULL;
}

int tgrt_describe_device(uint32_t index, char* text, size_t text_bytes) {
  if (text_bytes > 0) text[0] = 0;
  return tgrt_device_name(index) ? tgrt_devices[index]->describe(text, text_bytes) : 0;
}
