/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The CPU device. It maps the code section's PT_LOAD segments itself: no dynamic linker is involved, so a bundle works
 * from memory, in static programs and on any system for which os_<name>.c exists. Pages come from the file where its
 * offsets allow (then they are shared by all processes), else they are copied; none is ever writable once executable.
 * The linker's writable segment holds only its own tables and is left out. Source: System V ABI, program loading. */
#include <stdio.h>

#include "runtime/internal.h"
#include "runtime/tgrt_elf.h"

enum { MAX_SPAN = 1 << 30 };

static int bad_code(tgrt_error* error, const char* what) {
  return tgrt_fail(error, TGRT_E_CODE, "section \"code\": %s", what);
}

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* The image of a bundle, checked to be readable. */
struct image {
  const unsigned char* data;
  uint64_t bytes, file_offset;
  const struct tgrt_elf_segment* segments;
  uint32_t count;
};

static int is_mapped(const struct tgrt_elf_segment* s) {
  return s->type == TGRT_PT_LOAD && !(s->flags & TGRT_PF_W) && s->memsz > 0;
}

static int read_image(const tgrt_model* model, struct image* image, tgrt_error* error) {
  const struct tgrt_section* section = tgrt_find_section(model, TGRT_SECTION_CODE);
  image->data = (const unsigned char*)model->header + section->offset;
  image->bytes = section->bytes;
  image->file_offset = section->offset;
  const struct tgrt_elf_header* elf = (const struct tgrt_elf_header*)(const void*)image->data;
  if (image->bytes < sizeof *elf || memcmp(elf->ident, "\177ELF\2\1", 6) != 0 || elf->type != TGRT_ELF_DYN)
    return bad_code(error, "not a 64-bit shared object");
  if (elf->machine != model->header->machine) return bad_code(error, "another architecture than the header says");
  if (elf->phentsize != sizeof(struct tgrt_elf_segment) || elf->phoff % 8 != 0 || elf->phoff > image->bytes ||
      elf->phnum > (image->bytes - elf->phoff) / sizeof(struct tgrt_elf_segment))
    return bad_code(error, "its segment table lies outside");
  image->segments = (const struct tgrt_elf_segment*)(const void*)(image->data + elf->phoff);
  image->count = elf->phnum;
  return 0;
}

/* Segments must ascend and share no page; `span` is the end of the last. */
static int check_segments(const struct image* image, size_t page, size_t* span, tgrt_error* error) {
  *span = 0;
  for (uint32_t i = 0; i < image->count; ++i) {
    const struct tgrt_elf_segment* s = &image->segments[i];
    if (!is_mapped(s)) continue;
    if (s->filesz > s->memsz || s->offset > image->bytes || s->filesz > image->bytes - s->offset ||
        s->vaddr > MAX_SPAN || s->memsz > MAX_SPAN)
      return bad_code(error, "a segment lies outside");
    if (s->vaddr / page * page < *span) return bad_code(error, "segments overlap");
    *span = round_up(s->vaddr + s->memsz, page);
  }
  return *span > 0 ? 0 : bad_code(error, "nothing to map");
}

static int map_segment(const tgrt_model* model, const struct image* image, const struct tgrt_elf_segment* s) {
  const size_t page = tgrt_os_page();
  const size_t lead = s->vaddr % page; /* bytes of the first page before the segment */
  unsigned char* to = model->code_base + (s->vaddr - lead);
  const uint64_t from = image->file_offset + s->offset;
  const size_t bytes = round_up(lead + s->memsz, page);
  const int executable = (s->flags & TGRT_PF_X) != 0;
  const size_t in_file = round_up(lead + s->filesz, page);
  if (model->file.handle >= 0 && from % page == lead && in_file == bytes)
    return tgrt_os_map(to, bytes, executable, &model->file, from - lead);
  if (s->offset < lead) return 1;
  return tgrt_os_copy(to, bytes, executable, image->data + s->offset - lead, lead + s->filesz);
}

/* Every kernel must start inside an executable segment. */
static int check_kernels(const tgrt_model* model, const struct image* image, tgrt_error* error) {
  for (uint32_t k = 0; k < model->plan->kernels.count; ++k) {
    const uint64_t address = model->kernels[k].address;
    int found = 0;
    for (uint32_t i = 0; i < image->count && !found; ++i) {
      const struct tgrt_elf_segment* s = &image->segments[i];
      found = is_mapped(s) && (s->flags & TGRT_PF_X) && address >= s->vaddr && address - s->vaddr < s->filesz;
    }
    if (!found)
      return tgrt_fail(error, TGRT_E_CODE, "kernel %s: its address is not in the code",
                       model->text + model->kernels[k].name);
  }
  return 0;
}

static void unload(tgrt_model* model) {
  tgrt_os_unmap(model->code_base, model->code_span);
  model->code_base = NULL;
}

static int load(tgrt_model* model, tgrt_error* error) {
  if (!tgrt_find_section(model, TGRT_SECTION_CODE)) {
    if (model->plan->kernels.count == 0) return 0;
    return bad_code(error, "missing, but the plan has kernels");
  }
  struct image image = {NULL, 0, 0, NULL, 0};
  size_t span = 0;
  int rc = read_image(model, &image, error);
  if (!rc) rc = check_segments(&image, tgrt_os_page(), &span, error);
  if (!rc) rc = check_kernels(model, &image, error);
  if (rc) return rc;
  model->code_base = tgrt_os_reserve(span);
  if (!model->code_base) return tgrt_fail(error, TGRT_E_NO_MEMORY, "%zu bytes of address space for code", span);
  model->code_span = span;
  for (uint32_t i = 0; i < image.count; ++i) {
    if (!is_mapped(&image.segments[i]) || map_segment(model, &image, &image.segments[i]) == 0) continue;
    unload(model);
    return bad_code(error, "the system refuses to map it");
  }
  return 0;
}

static int describe(char* text, size_t text_bytes) {
  struct tgrt_cpu cpu;
  tgrt_cpu_detect(&cpu);
  int used = snprintf(text, text_bytes, "%s, %u CPUs:", tgrt_machine_name(cpu.machine), tgrt_os_cpu_count());
  for (unsigned bit = 0; bit < 128 && used >= 0 && (size_t)used < text_bytes; ++bit) {
    if (!(cpu.features[bit / 64] >> (bit % 64) & 1)) continue;
    used += snprintf(text + used, text_bytes - (size_t)used, " %s", tgrt_cpu_feature_name(cpu.machine, bit));
  }
  return 1;
}

static void run(tgrt_context* context, uint32_t index, uint32_t thread, int64_t begin, int64_t end) {
  if (begin == end) return; /* it writes nothing, and what it reads may be empty too */
  const tgrt_model* model = context->model;
  const struct tgrt_plan_step* step = &model->steps[index];
  const uintptr_t address = (uintptr_t)(model->code_base + model->kernels[step->kernel].address);
  tgrt_kernel_fn kernel;
  memcpy(&kernel, &address, sizeof address); /* ISO C has no cast from data to function */
  const struct tgrt_kernel_args args = {context->bufs + step->first_arg, context->vars,
                                        context->arena + context->scratch_offset + thread * context->scratch_stride};
  kernel(&args, begin, end);
}

const struct tgrt_device tgrt_dev_cpu = {"cpu", describe, load, unload, run};
