/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The few structs of 64-bit little-endian ELF that writer and loader read (System V ABI, chapters 4 and 5). */
#ifndef TGRT_ELF_H
#define TGRT_ELF_H

#include <stdint.h>

enum {
  TGRT_ELF_DYN = 3,
  TGRT_MACHINE_X86_64 = 62,
  TGRT_MACHINE_AARCH64 = 183,
  TGRT_PT_LOAD = 1,
  TGRT_PT_DYNAMIC = 2,
  TGRT_PT_INTERP = 3,
  TGRT_PT_TLS = 7,
  TGRT_PT_GNU_RELRO = 0x6474e552,
  TGRT_PF_X = 1,
  TGRT_PF_W = 2,
  TGRT_PF_R = 4,
  TGRT_SHT_DYNSYM = 11,
  TGRT_STT_FUNC = 2,
};

struct tgrt_elf_header {
  unsigned char ident[16]; /* 0x7f ELF, class 2 (64-bit), data 1 (little-endian) */
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, phoff, shoff;
  uint32_t flags;
  uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
struct tgrt_elf_segment {
  uint32_t type, flags;
  uint64_t offset, vaddr, paddr, filesz, memsz, align;
};
struct tgrt_elf_section {
  uint32_t name, type;
  uint64_t flags, addr, offset, size;
  uint32_t link, info;
  uint64_t addralign, entsize;
};
struct tgrt_elf_symbol {
  uint32_t name;
  unsigned char info, other;
  uint16_t shndx;
  uint64_t value, size;
};
struct tgrt_elf_dynamic {
  int64_t tag;
  uint64_t value;
};

#endif
