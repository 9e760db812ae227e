// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a model's constants range from one number to gigabytes.
// Idea: one number (or a short run of equal ones) is a scalar constant that rules can see; anything else stays where it
// is and the weight table says where.
#include "frontend/constant.h"

#include <cstring>

#include "frontend/elements.h"
#include "frontend/tensor.h"
#include "uop/bytes_hash.h"

namespace tgc {
namespace {

constexpr size_t kLargestSplat = 4096; // elements compared to find a constant in disguise

bool all_equal(std::span<const std::byte> bytes, size_t element) {
  return bytes.size() <= element || std::memcmp(bytes.data(), bytes.data() + element, bytes.size() - element) == 0;
}

bool same_bytes(const WeightData& a, const WeightData& b) {
  return a.length == b.length && (a.data == b.data || std::memcmp(a.data, b.data, a.length) == 0);
}

std::string hex(uint64_t value) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

} // namespace

Ref add_constant(Module& module, const std::string& name, const ConstantData& tensor) {
  Context& ctx = *module.ctx;
  const FileBytes& data = tensor.data;
  DType dtype = tensor.dtype;
  tensor::Dims shape = tensor::index_dims(ctx, tensor.dims);
  size_t element = static_cast<size_t>(byte_size(dtype));
  WeightData entry;
  entry.data = data.bytes.data();
  entry.length = data.bytes.size();
  if (data.bytes.empty()) return tensor::full(ctx, shape, dtype, 0);
  if (data.bytes.size() / element <= kLargestSplat && all_equal(data.bytes, element)) {
    Element value = weight_element(ctx, entry, dtype, 0);
    Ref scalar = value.index ? ctx.constant_int(dtype, *dim_int(value.index)) : ctx.constant(dtype, value.value);
    return tensor::broadcast_to(scalar, shape);
  }
  entry.kind = data.path.empty() ? WeightData::Kind::Inline : WeightData::Kind::Mapped;
  entry.file = data.path;
  entry.offset = data.offset;
  entry.owner = data.owner;
  entry.hash = tensor.hash != 0 ? tensor.hash : hash_bytes(data.bytes);
  std::string key = name + "@" + hex(entry.hash);
  // Equal names and hashes are no proof of equal bytes.
  for (bool stands_for_it = false; !stands_for_it;) {
    const auto [at, is_new] = module.weights.emplace(key, entry);
    stands_for_it = is_new || same_bytes(at->second, entry);
    if (!stands_for_it) key += "'";
  }
  return ctx.make(Ops::Weight, dtype, shape, {{Attr::Key, key}});
}

} // namespace tgc
