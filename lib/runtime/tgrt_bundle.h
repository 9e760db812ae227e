/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The bundle format, shared by writer (tools/tgc/bundle_writer.cpp) and loader (loader.c). C11 and C++.
 *
 * One file, little-endian. A header at offset 0 names the sections; each section starts at a multiple of 64 KiB, so
 * that it can be mapped on any page size. All references are offsets: nothing is relocated, nothing is parsed.
 *
 *   code     a whole shared object as the linker wrote it: PT_LOAD segments only, no relocations, imports or data
 *   plan     struct tgrt_plan and its tables
 *   weights  raw tensors, each 64-byte aligned
 *   source   (optional) the kernels as text
 *   tests    (optional) sample data
 *
 * header.hash covers the header, and with it the hash of every section; loading checks the hashes of all sections but
 * weights, whose hash is checked on request. A change that old loaders cannot read raises `major`; one that they may
 * ignore raises `minor`. */
#ifndef TGRT_BUNDLE_H
#define TGRT_BUNDLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define TGRT_STATIC_ASSERT static_assert
extern "C" {
#else
#define TGRT_STATIC_ASSERT _Static_assert
#endif

#define TGRT_MAGIC "\x89TGC\r\n\x1a\n" /* 8 bytes; a text-mode transfer damages it */
enum {
  TGRT_MAJOR = 3,
  TGRT_MINOR = 0,
  TGRT_ABI = 1, /* of tgrt_kernel_args */
  TGRT_SECTION_ALIGN = 65536,
  TGRT_DATA_ALIGN = 64, /* of weights, arena buffers and scratch */
  TGRT_MAX_SECTIONS = 16,
  TGRT_EXPR_STACK = 32, /* deepest evaluation stack */
};

/* ---- what a kernel sees ------------------------------------------------------------------------------------------ */

/* bufs[slot]: one pointer per Param slot. vars[i]: values of the plan's variables, in its order. scratch: per thread,
 * 64-byte aligned. */
struct tgrt_kernel_args {
  void* const* bufs;
  const int64_t* vars;
  void* scratch;
};
/* Executes chunks [chunk_begin, chunk_end). System V convention on x86-64, AAPCS64 on aarch64, on every OS. */
#if defined(__x86_64__) && defined(_WIN32)
#define TGRT_KERNEL_CALL __attribute__((sysv_abi))
#else
#define TGRT_KERNEL_CALL
#endif
typedef void(TGRT_KERNEL_CALL* tgrt_kernel_fn)(const struct tgrt_kernel_args* args, int64_t chunk_begin,
                                               int64_t chunk_end);

/* ---- container --------------------------------------------------------------------------------------------------- */

enum tgrt_section_kind {
  TGRT_SECTION_CODE = 1,
  TGRT_SECTION_PLAN = 2,
  TGRT_SECTION_WEIGHTS = 3,
  TGRT_SECTION_SOURCE = 4,
  TGRT_SECTION_TESTS = 5,
};

struct tgrt_section {
  uint32_t kind;  /* enum tgrt_section_kind; unknown kinds are ignored */
  uint32_t flags; /* 0 */
  uint64_t offset, bytes;
  uint64_t hash; /* tgrt_hash of its bytes */
};

struct tgrt_header {
  char magic[8];
  uint16_t major, minor;
  uint16_t machine; /* ELF e_machine of the code: 62 x86-64, 183 aarch64; 0 without code */
  uint16_t abi;     /* TGRT_ABI */
  uint32_t section_count;
  uint32_t header_bytes; /* sizeof(struct tgrt_header) */
  uint64_t features[2];  /* bit i: CPU feature i of the machine's table in features.def */
  uint64_t file_bytes;
  uint64_t hash;                                   /* tgrt_hash of this struct with hash = 0 */
  struct tgrt_section sections[TGRT_MAX_SECTIONS]; /* sorted by offset; unused ones are zero */
};
TGRT_STATIC_ASSERT(sizeof(struct tgrt_section) == 32, "file format");
TGRT_STATIC_ASSERT(sizeof(struct tgrt_header) == 56 + 32 * TGRT_MAX_SECTIONS, "file format");

/* ---- plan -------------------------------------------------------------------------------------------------------- */

/* `count` entries at `offset` bytes from the start of the plan; offsets are multiples of 8. */
struct tgrt_table {
  uint32_t offset, count;
};

typedef uint32_t tgrt_text; /* byte offset into the plan's text pool of a NUL-terminated string */
typedef uint32_t tgrt_expr; /* word offset into the plan's code pool of an expression */

/* Values of tgc::DType; 0 is no tensor type. */
enum tgrt_dtype {
  TGRT_BOOL = 1,
  TGRT_I8,
  TGRT_U8,
  TGRT_I16,
  TGRT_U16,
  TGRT_I32,
  TGRT_U32,
  TGRT_I64,
  TGRT_U64,
  TGRT_F16,
  TGRT_BF16,
  TGRT_F32,
  TGRT_F64,
};

/* Symbolic dim, inclusive bounds; the table is sorted by name. */
struct tgrt_plan_var {
  tgrt_text name;
  uint32_t reserved;
  int64_t min, max;
};
/* Graph input or output. dims: entries [first_dim, first_dim + rank) of the dims table, outermost first, row-major.
 * An input dim that is just a variable gives it its value; every other input dim must equal the shape's. */
struct tgrt_plan_tensor {
  tgrt_text name;
  uint32_t dtype; /* enum tgrt_dtype */
  uint32_t rank, first_dim;
};
/* left = right or left <= right; text says why, for the error. An equality whose left side is a bare variable gives it
 * its value if nothing else does; one whose right side is a variable (times a constant) gives that one its own. */
enum tgrt_relation { TGRT_CHECK_EQUAL = 0, TGRT_CHECK_AT_MOST = 1 };
struct tgrt_plan_check {
  tgrt_expr left, right;
  uint32_t relation; /* enum tgrt_relation */
  tgrt_text text;
};
/* Range of the weights section; offset is a multiple of 64. */
struct tgrt_plan_weight {
  tgrt_text key;
  uint32_t reserved;
  uint64_t offset, bytes;
};
/* Intermediate buffer, `at` bytes into its slot, a multiple of 64. Buffers of one slot may overlap, never while both
 * are in use: a slot reaches to the end of the last of its buffers, and slots lie one after the other, each 64-byte
 * aligned. */
struct tgrt_plan_buffer {
  tgrt_expr bytes;
  uint32_t slot;
  uint64_t at;
};
struct tgrt_plan_kernel {
  tgrt_text name, opts;
  uint64_t address, code_bytes; /* ELF virtual address in the code section's image, and size (0 if unknown) */
  tgrt_expr scratch_bytes;      /* per thread */
  tgrt_expr chunks;             /* the kernel is called with ranges that partition [0, chunks) */
  tgrt_expr flops, bytes;       /* estimates for one run of the kernel: operations, memory traffic */
};
/* One launch: kernel over args [first_arg, first_arg + arg_count), bufs[i] = args[first_arg + i]. It may begin when the
 * steps of waits [first_wait, first_wait + wait_count) have ended, all of them earlier ones. */
struct tgrt_plan_step {
  uint32_t kernel, first_arg, arg_count;
  tgrt_text origin; /* model nodes it came from, may be empty */
  uint32_t first_wait, wait_count;
};
enum tgrt_arg_kind { TGRT_ARG_INPUT = 0, TGRT_ARG_OUTPUT, TGRT_ARG_WEIGHT, TGRT_ARG_BUFFER };
struct tgrt_plan_arg {
  uint32_t kind, index;
};
/* "tool", "source", "target", "numerics" … */
struct tgrt_plan_meta {
  tgrt_text key, value;
};

struct tgrt_plan {
  uint32_t plan_bytes; /* of the plan section */
  uint32_t slot_count;
  uint32_t trap_count; /* the last outputs are traps: bools that, when true, make the run an error with their name */
  uint32_t reserved;
  struct tgrt_table vars, inputs, outputs, dims, checks, weights, buffers, kernels, steps, args, meta;
  struct tgrt_table waits; /* uint32_t numbers of steps */
  struct tgrt_table code;  /* int64_t words */
  struct tgrt_table text;  /* bytes, the last is NUL */
};
TGRT_STATIC_ASSERT(sizeof(struct tgrt_plan_var) == 24, "file format");
TGRT_STATIC_ASSERT(sizeof(struct tgrt_plan_weight) == 24, "file format");
TGRT_STATIC_ASSERT(sizeof(struct tgrt_plan_buffer) == 16, "file format");
TGRT_STATIC_ASSERT(sizeof(struct tgrt_plan_kernel) == 40, "file format");
TGRT_STATIC_ASSERT(sizeof(struct tgrt_plan) == 16 + 8 * 14, "file format");

/* Expressions are stack code, one word an op: the low 8 bits are the op, the rest a signed operand. They end with END
 * and exactly one value. Every overflow is an error. x floordiv 0 = x floormod 0 = 0. */
enum tgrt_expr_op {
  TGRT_EXPR_END = 0,
  TGRT_EXPR_CONST = 1, /* push operand */
  TGRT_EXPR_VAR = 2,   /* push variable number operand */
  TGRT_EXPR_ADD = 3,
  TGRT_EXPR_SUB = 4,
  TGRT_EXPR_MUL = 5,
  TGRT_EXPR_FLOORDIV = 6,
  TGRT_EXPR_FLOORMOD = 7,
  TGRT_EXPR_MIN = 8,
  TGRT_EXPR_MAX = 9,
};

/* ---- hash -------------------------------------------------------------------------------------------------------- */

/* A 64-bit checksum against damage, not against forgery. Four lanes of xor, rotate, multiply over 8-byte words: each
 * step is a bijection of the lane, so any change inside one word changes the result. */
struct tgrt_hasher {
  uint64_t lane[4];
  uint64_t bytes;
};
static inline uint64_t tgrt_hash_mix(uint64_t x, uint64_t word) {
  x = (x ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return (x << 29) | (x >> 35);
}
static inline void tgrt_hash_init(struct tgrt_hasher* h) {
  for (unsigned i = 0; i < 4; ++i) h->lane[i] = UINT64_C(0xd1b54a32d192ed03) * (i + 1);
  h->bytes = 0;
}
/* Every call but the last takes a multiple of 32 bytes. */
static inline void tgrt_hash_update(struct tgrt_hasher* h, const void* data, size_t bytes) {
  const char* p = (const char*)data;
  h->bytes += bytes;
  for (; bytes > 0; p += 32) {
    uint64_t words[4] = {0, 0, 0, 0};
    const size_t n = bytes < 32 ? bytes : 32;
    if (n == 32)
      memcpy(words, p, 32);
    else
      memcpy(words, p, n);
    for (unsigned i = 0; i < 4; ++i) h->lane[i] = tgrt_hash_mix(h->lane[i], words[i]);
    bytes -= n;
  }
}
static inline uint64_t tgrt_hash_final(const struct tgrt_hasher* h) {
  uint64_t x = h->bytes;
  for (unsigned i = 0; i < 4; ++i) x = tgrt_hash_mix(x, h->lane[i]);
  x ^= x >> 32;
  x *= UINT64_C(0xd6e8feb86659fd93);
  return x ^ (x >> 32);
}
static inline uint64_t tgrt_hash(const void* data, size_t bytes) {
  struct tgrt_hasher h;
  tgrt_hash_init(&h);
  tgrt_hash_update(&h, data, bytes);
  return tgrt_hash_final(&h);
}

#ifdef __cplusplus
}
#endif
#endif
