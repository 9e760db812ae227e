// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Damaged and hostile bundles: each of some thousand mutations gives a numbered error or a model whose queries, sizes
// and verification work. Half of them have their hashes made to fit again, so that the checks behind are reached. Code
// is never run: a bundle made to harm can do in its code what it likes.
#include <sys/mman.h>

#include <random>

#include "runtime/fixture.h"

using namespace tgc;
using namespace tgc::test;

namespace {

/// Refuses what a hostile size asks for, so that sanitizers' allocators are not asked.
void* small_only(void*, size_t bytes, size_t alignment) {
  if (bytes > (64u << 20)) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void release(void*, void* memory, size_t) { std::free(memory); }

/// Uses everything of a loaded model but its code.
void exercise(const tgrt_model* model) {
  tgrt_verify(model, nullptr);
  for (int kind = 0; kind < 2; ++kind)
    for (uint32_t i = 0; i < tgrt_tensor_count(model, kind) && i < 100; ++i) {
      tgrt_tensor_info info;
      ASSERT_EQ(tgrt_get_tensor(model, kind, i, &info), 0);
      ASSERT_LT(std::strlen(info.name), size_t{1} << 20);
      for (uint32_t axis = 0; axis < info.rank && axis < 100; ++axis) tgrt_model_dim(model, kind, i, axis, nullptr);
    }
  tgrt_meta(model, "target");
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  tgrt_context* raw = nullptr;
  tgrt_error error{};
  if (tgrt_create_context(model, &options, &raw, &error) != 0) return;
  const RunContext context(raw);
  const int64_t dims[] = {3, 4};
  tgrt_set_shape(context.get(), 0, dims, 2, nullptr);
  tgrt_prepare(context.get(), &error);
  tgrt_arena_bytes(context.get(), nullptr);
}

/// Whether it loaded.
bool try_load(Aligned& bytes) {
  const tgrt_allocator allocator = {nullptr, small_only, release};
  tgrt_load_options options{};
  options.struct_size = sizeof options;
  options.allocator = &allocator;
  tgrt_model* raw = nullptr;
  tgrt_error error{};
  const int rc = tgrt_load_memory(bytes.data(), bytes.size(), &options, &raw, &error);
  if (rc != 0) {
    EXPECT_EQ(raw, nullptr);
    EXPECT_EQ(error.code, rc);
    EXPECT_EQ(std::string(error.text).substr(0, 5), "TGR-E");
    EXPECT_STRNE(tgrt_error_title(rc), "");
    return false;
  }
  const Model model(raw);
  exercise(model.get());
  return true;
}

uint64_t interesting(std::mt19937_64& random) {
  static constexpr uint64_t kValues[] = {0,          1,          2,          8,         63,
                                         64,         0x7f,       0xff,       0xffff,    0x7fffffff,
                                         0xffffffff, 0x80000000, UINT64_MAX, INT64_MAX, uint64_t{1} << 40,
                                         65536};
  return kValues[random() % std::size(kValues)];
}

} // namespace

TEST(Damage, EveryTruncationIsAnError) {
  TGRT_NEED_CC(affine_bundle());
  const std::string whole = read_file(affine_bundle());
  for (size_t bytes = 0; bytes < whole.size(); bytes += bytes < 600 ? 7 : 1999) {
    Aligned cut(whole.substr(0, bytes));
    EXPECT_FALSE(try_load(cut)) << bytes;
  }
}

TEST(Damage, FlippedBitsInHeaderPlanAndCodeAreErrors) {
  TGRT_NEED_CC(affine_bundle());
  const std::string whole = read_file(affine_bundle());
  Aligned bytes(whole);
  std::mt19937_64 random(1);
  const tgrt_section code = bytes.section(TGRT_SECTION_CODE), plan = bytes.section(TGRT_SECTION_PLAN);
  for (int i = 0; i < 600; ++i) {
    const uint64_t start = i % 3 == 0 ? 0 : i % 3 == 1 ? plan.offset : code.offset;
    const uint64_t size = i % 3 == 0 ? sizeof(tgrt_header) : i % 3 == 1 ? plan.bytes : code.bytes;
    const uint64_t at = start + random() % size;
    const auto bit = static_cast<unsigned char>(1u << random() % 8);
    bytes.data()[at] ^= bit;
    EXPECT_FALSE(try_load(bytes)) << "byte " << at;
    bytes.data()[at] ^= bit;
  }
  EXPECT_TRUE(try_load(bytes));
}

TEST(Damage, HostilePlansAndImagesNeverCrashTheLoader) {
  TGRT_NEED_CC(affine_bundle());
  const std::string whole = read_file(affine_bundle());
  Aligned bytes(whole);
  std::mt19937_64 random(2);
  int loaded = 0;
  for (int i = 0; i < 3000; ++i) {
    const tgrt_section plan = bytes.section(TGRT_SECTION_PLAN), code = bytes.section(TGRT_SECTION_CODE);
    // The plan, its fixed part, or the image's headers: one to three words of them.
    const uint64_t start = i % 3 == 2 ? code.offset : plan.offset;
    const uint64_t size = i % 3 == 2 ? 64 + 56 * 9 : i % 3 == 1 ? sizeof(tgrt_plan) : plan.bytes;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      const uint64_t width = uint64_t{1} << random() % 4, at = start + random() % (size / width) * width;
      const uint64_t value = random() % 2 ? interesting(random) : random() >> random() % 64;
      std::memcpy(bytes.data() + at, &value, width);
    }
    bytes.rehash();
    loaded += try_load(bytes);
    std::memcpy(bytes.data(), whole.data(), whole.size());
  }
  EXPECT_GT(loaded, 100); // some changes are harmless; if none were, the hashes would not have been reached
  EXPECT_LT(loaded, 2500);
}

TEST(Damage, HostileHeadersNeverCrashTheLoader) {
  TGRT_NEED_CC(affine_bundle());
  const std::string whole = read_file(affine_bundle());
  Aligned bytes(whole);
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t width = uint64_t{1} << random() % 4, at = random() % (sizeof(tgrt_header) / width) * width;
    const uint64_t value = interesting(random);
    std::memcpy(bytes.data() + at, &value, width);
    bytes.rehash();
    try_load(bytes);
    std::memcpy(bytes.data(), whole.data(), sizeof(tgrt_header));
  }
}

TEST(Damage, FlippedWeightsNeverCrashARun) {
  TGRT_NEED_CC(affine_bundle());
  Aligned bytes(read_file(affine_bundle()));
  const tgrt_section weights = bytes.section(TGRT_SECTION_WEIGHTS);
  for (uint64_t i = 0; i < weights.bytes; ++i) {
    bytes.data()[weights.offset + i] ^= 0x81;
    const Model model = load(bytes);
    ASSERT_TRUE(model);
    EXPECT_EQ(tgrt_verify(model.get(), nullptr), TGRT_E_WEIGHTS);
    run_affine(new_context(model).get(), sample(2));
    bytes.data()[weights.offset + i] ^= 0x81;
  }
}

TEST(Damage, NothingIsReadPastInputs) {
  TGRT_NEED_CC(affine_bundle());
  // The input ends where a page without access begins.
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  char* two = static_cast<char*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(two, MAP_FAILED);
  ASSERT_EQ(::mprotect(two + page, page, PROT_NONE), 0);
  const Model model = load(affine_bundle());
  const RunContext context = new_context(model);
  const int64_t dims[] = {3, 4};
  tgrt_error error{};
  ASSERT_EQ(tgrt_set_shape(context.get(), 0, dims, 2, &error), 0);
  ASSERT_EQ(tgrt_bind_input(context.get(), 0, two + page - 48, 48, &error), 0) << error.text;
  EXPECT_EQ(tgrt_run(context.get(), &error), 0) << error.text;
  ::munmap(two, 2 * page);
}
