// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any header, plan and code as a bundle: a numbered error, or a model whose every query works. An input is a bundle
// without the gaps between its sections (packed_bundle.h); hashes are made to fit, so that what is behind them is
// reached. Code is never run: a bundle made to harm can do what it likes in it.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/packed_bundle.h"
#include "runtime/tgrt.h"

namespace {

/// Refuses what a hostile size asks for.
void* small_only(void*, size_t bytes, size_t alignment) {
  if (bytes > (size_t{64} << 20)) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void release(void*, void* memory, size_t) { std::free(memory); }

void make_context(const tgrt_model* model) {
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  tgrt_context* context = nullptr;
  if (tgrt_create_context(model, &options, &context, nullptr) != 0) return;
  const int64_t dims[] = {3, 4, 1, 2};
  for (uint32_t rank = 0; rank < 5; ++rank) tgrt_set_shape(context, 0, dims, rank, nullptr);
  tgrt_prepare(context, nullptr);
  tgrt_arena_bytes(context, nullptr);
  tgrt_free_context(context);
}

void exercise(const tgrt_model* model) {
  tgrt_verify(model, nullptr);
  for (int kind = 0; kind < 2; ++kind)
    for (uint32_t i = 0; i < std::min(tgrt_tensor_count(model, kind), 100u); ++i) {
      tgrt_tensor_info info;
      if (tgrt_get_tensor(model, kind, i, &info) != 0 || std::strlen(info.name) > tgc::kMostBundleBytes) std::abort();
      for (uint32_t axis = 0; axis < std::min(info.rank, 100u); ++axis) tgrt_model_dim(model, kind, i, axis, nullptr);
    }
  tgrt_meta(model, "target");
  make_context(model);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<unsigned char> whole = tgc::unpack_bundle({data, size});
  if (whole.empty()) return 0;
  const std::unique_ptr<void, void (*)(void*)> file(std::aligned_alloc(64, (whole.size() + 63) / 64 * 64), std::free);
  std::memcpy(file.get(), whole.data(), whole.size());
  const tgrt_allocator allocator = {nullptr, small_only, release};
  tgrt_load_options options{};
  options.struct_size = sizeof options;
  options.allocator = &allocator;
  tgrt_model* model = nullptr;
  tgrt_error error{};
  const int code = tgrt_load_memory(file.get(), whole.size(), &options, &model, &error);
  if (code == 0) exercise(model);
  if (code != 0 && (model || error.code != code || *tgrt_error_title(code) == 0)) std::abort();
  tgrt_free_model(model);
  return 0;
}
