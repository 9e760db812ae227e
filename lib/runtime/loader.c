/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Loads a bundle: from a path it maps the file, from memory it uses it in place. Everything that a later step relies on
 * is checked here, in the order in which a user can do something about it: is it a bundle, of this version, whole,
 * undamaged, for this CPU. Hashes guard against damage; a bundle made to harm is as dangerous as any shared library,
 * yet loading one must not crash. Weights are not read: their pages come in when kernels touch them. */
#include "runtime/internal.h"

const struct tgrt_section* tgrt_find_section(const tgrt_model* model, uint32_t kind) {
  for (uint32_t i = 0; i < model->header->section_count; ++i)
    if (model->header->sections[i].kind == kind) return &model->header->sections[i];
  return NULL;
}

static const char* section_name(uint32_t kind) {
  static const char* const kNames[] = {"?", "code", "plan", "weights", "source", "tests"};
  return kNames[kind < sizeof kNames / sizeof kNames[0] ? kind : 0];
}

static int check_header(const struct tgrt_header* header, size_t bytes, tgrt_error* error) {
  if (bytes < sizeof header->magic || memcmp(header->magic, TGRT_MAGIC, sizeof header->magic) != 0)
    return tgrt_fail(error, TGRT_E_NOT_A_BUNDLE, "it does not start as a bundle does");
  if (bytes < sizeof *header)
    return tgrt_fail(error, TGRT_E_TRUNCATED, "it has %zu bytes, a bundle's header alone %zu", bytes, sizeof *header);
  if (header->major != TGRT_MAJOR)
    return tgrt_fail(error, TGRT_E_VERSION, "its format is %u.%u, this libtgrt reads %d.x", header->major,
                     header->minor, TGRT_MAJOR);
  struct tgrt_header copy = *header;
  copy.hash = 0;
  if (header->header_bytes != sizeof *header || header->section_count > TGRT_MAX_SECTIONS ||
      tgrt_hash(&copy, sizeof copy) != header->hash)
    return tgrt_fail(error, TGRT_E_HEADER, "the header does not have the hash that it states");
  if (header->file_bytes != bytes)
    return tgrt_fail(error, TGRT_E_TRUNCATED, "it has %zu bytes, its header says %llu", bytes,
                     (unsigned long long)header->file_bytes);
  return 0;
}

static int check_section_hash(const tgrt_model* model, const struct tgrt_section* section, int code,
                              tgrt_error* error) {
  const unsigned char* data = (const unsigned char*)model->header + section->offset;
  if (tgrt_hash(data, section->bytes) == section->hash) return 0;
  return tgrt_fail(error, code, "section \"%s\" (%llu bytes at %llu) does not have the hash that the header states",
                   section_name(section->kind), (unsigned long long)section->bytes,
                   (unsigned long long)section->offset);
}

static int check_sections(const tgrt_model* model, tgrt_error* error) {
  const struct tgrt_header* header = model->header;
  uint64_t end = sizeof *header;
  for (uint32_t i = 0; i < header->section_count; ++i) {
    const struct tgrt_section* s = &header->sections[i];
    if (s->offset % TGRT_SECTION_ALIGN != 0 || s->offset < end || s->offset > header->file_bytes ||
        s->bytes > header->file_bytes - s->offset)
      return tgrt_fail(error, TGRT_E_HEADER, "section %u (%s) lies outside the file or over another", i,
                       section_name(s->kind));
    end = s->offset + s->bytes;
    if (s->kind != TGRT_SECTION_CODE && s->kind != TGRT_SECTION_PLAN) continue;
    if (tgrt_find_section(model, s->kind) != s)
      return tgrt_fail(error, TGRT_E_HEADER, "section %u (%s) is there twice", i, section_name(s->kind));
    const int rc = check_section_hash(model, s, TGRT_E_SECTION, error);
    if (rc) return rc;
  }
  return 0;
}

static int check_machine(const struct tgrt_header* header, tgrt_error* error) {
  if (header->machine == 0) return 0;
  struct tgrt_cpu cpu;
  tgrt_cpu_detect(&cpu);
  if (header->machine != cpu.machine)
    return tgrt_fail(error, TGRT_E_MACHINE, "its code is for %s, this is %s", tgrt_machine_name(header->machine),
                     tgrt_machine_name(cpu.machine));
  if (header->abi != TGRT_ABI)
    return tgrt_fail(error, TGRT_E_ABI, "its kernels have interface %u, this libtgrt %d", header->abi, TGRT_ABI);
  char missing[512] = "";
  size_t used = 0;
  for (unsigned bit = 0; bit < 128; ++bit) {
    const uint64_t mask = UINT64_C(1) << (bit % 64);
    if (!(header->features[bit / 64] & mask) || (cpu.features[bit / 64] & mask)) continue;
    const char* name = tgrt_cpu_feature_name(cpu.machine, bit);
    if (!name) name = "(unknown to this libtgrt)";
    const size_t length = strlen(name);
    if (used + length + 2 > sizeof missing) break;
    missing[used] = ' ';
    memcpy(missing + used + 1, name, length + 1);
    used += length + 1;
  }
  if (used == 0) return 0;
  return tgrt_fail(error, TGRT_E_CPU_FEATURES, "its code needs CPU features that this CPU or system lacks:%s", missing);
}

static int choose_device(tgrt_model* model, const char* wanted, tgrt_error* error) {
  for (const struct tgrt_device* const* device = tgrt_devices; *device; ++device) {
    if (wanted && strcmp(wanted, (*device)->name) != 0) continue;
    const int rc = (*device)->load(model, error);
    if (!rc) model->device = *device;
    return rc;
  }
  return tgrt_fail(error, TGRT_E_DEVICE, "device \"%s\" is not part of this libtgrt", wanted ? wanted : "");
}

static int load(tgrt_model* model, const tgrt_load_options* options, tgrt_error* error) {
  const unsigned char* base = model->file.data;
  model->header = (const struct tgrt_header*)(const void*)base;
  int rc = check_header(model->header, model->file.bytes, error);
  if (!rc) rc = check_sections(model, error);
  const int inspect = (options->flags & TGRT_LOAD_INSPECT) != 0;
  if (!rc && !inspect) rc = check_machine(model->header, error);
  if (!rc) rc = tgrt_check_plan(model, error);
  if (rc) return rc;
  const struct tgrt_section* weights = tgrt_find_section(model, TGRT_SECTION_WEIGHTS);
  model->weights = weights ? base + weights->offset : base;
  if (inspect) return 0;
  rc = choose_device(model, options->device, error);
  if (!rc && (options->flags & TGRT_LOAD_PERF_MAP)) tgrt_os_perf_map(model);
  return rc;
}

enum { FIRST_OPTIONS = offsetof(tgrt_load_options, allocator) + sizeof(void*) }; /* bytes of them in version 1 */

/* Owns `file` from here on. */
static int load_model(struct tgrt_os_file file, int from_file, const tgrt_load_options* options, tgrt_model** result,
                      tgrt_error* error) {
  tgrt_load_options given = {0};
  const int bad = tgrt_take_options(&given, sizeof given, FIRST_OPTIONS, options, error);
  tgrt_allocator allocator = {NULL, tgrt_os_allocate, tgrt_os_release};
  if (given.allocator) allocator = *given.allocator;
  tgrt_model* model = bad ? NULL : allocator.allocate(allocator.user, sizeof *model, _Alignof(tgrt_model));
  if (!model) {
    tgrt_os_close_handle(&file);
    if (from_file) tgrt_os_unmap(file.data, file.bytes);
    if (bad) return bad;
    return tgrt_fail(error, TGRT_E_NO_MEMORY, "the model's %zu bytes cannot be allocated", sizeof *model);
  }
  memset(model, 0, sizeof *model);
  model->allocator = allocator;
  model->file = file;
  model->from_file = from_file;
  const int rc = load(model, &given, error);
  tgrt_os_close_handle(&model->file);
  if (rc)
    tgrt_free_model(model);
  else
    *result = model;
  return rc;
}

int tgrt_load_file(const char* path, const tgrt_load_options* options, tgrt_model** model, tgrt_error* error) {
  if (!path || !model) return tgrt_fail(error, TGRT_E_ARGUMENT, "tgrt_load_file: path or model is NULL");
  *model = NULL;
  struct tgrt_os_file file;
  char why[256];
  if (tgrt_os_open(path, &file, why, sizeof why) != 0) return tgrt_fail(error, TGRT_E_FILE, "%.400s: %s", path, why);
  return load_model(file, 1, options, model, error);
}

int tgrt_load_memory(const void* bundle, size_t bytes, const tgrt_load_options* options, tgrt_model** model,
                     tgrt_error* error) {
  if (!bundle || !model) return tgrt_fail(error, TGRT_E_ARGUMENT, "tgrt_load_memory: bundle or model is NULL");
  *model = NULL;
  if ((uintptr_t)bundle % TGRT_DATA_ALIGN != 0)
    return tgrt_fail(error, TGRT_E_ALIGNMENT, "its address ends in 0x%02x", (unsigned)((uintptr_t)bundle & 0xff));
  const struct tgrt_os_file file = {bundle, bytes, -1};
  return load_model(file, 0, options, model, error);
}

void tgrt_free_model(tgrt_model* model) {
  if (!model) return;
  if (model->device) model->device->unload(model);
  if (model->from_file) tgrt_os_unmap(model->file.data, model->file.bytes);
  const tgrt_allocator allocator = model->allocator;
  allocator.release(allocator.user, model, sizeof *model);
}

int tgrt_verify(const tgrt_model* model, tgrt_error* error) {
  for (uint32_t i = 0; i < model->header->section_count; ++i) {
    const struct tgrt_section* section = &model->header->sections[i];
    const int code = section->kind == TGRT_SECTION_WEIGHTS ? TGRT_E_WEIGHTS : TGRT_E_SECTION;
    const int rc = check_section_hash(model, section, code, error);
    if (rc) return rc;
  }
  return 0;
}
