// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes of weights, for folding and for the reference interpreter. The bundle writer streams them itself.
#include "tgc/weights.h"

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <new>

#include "frontend/bytes.h"
#include "uop/diag.h"

namespace tgc {
namespace {

[[noreturn]] void unreadable(const Module& module, const std::string& key, const std::string& why) {
  throw CompileError(Diagnostic{
      .code = ErrorCode::E206, .where = module.source, .message = "weight \"" + key + "\": " + why, .note = ""});
}

} // namespace

const WeightData& weight_data(const Module& module, const std::string& key, uint64_t bytes) {
  auto found = module.weights.find(key);
  if (found == module.weights.end()) unreadable(module, key, "is not in the weight table");
  const WeightData& data = found->second;
  const bool splat = data.kind == WeightData::Kind::Splat;
  if (bytes > 0 && (!data.data || data.length == 0 || (splat ? bytes % data.length != 0 : data.length != bytes)))
    unreadable(module, key,
               "holds " + std::to_string(data.length) + " bytes where " + std::to_string(bytes) + " are needed");
  return data;
}

void copy_weight(const WeightData& data, std::span<std::byte> to) {
  for (size_t at = 0; at < to.size(); at += data.length) std::memcpy(to.data() + at, data.data, data.length);
}

HostTensor weight_tensor(const Module& module, Ref weight, const std::vector<int64_t>& shape) {
  HostTensor out = zeros(weight->dtype, shape);
  copy_weight(weight_data(module, weight->s(Attr::Key), out.data.size()), out.data);
  return out;
}

std::shared_ptr<std::byte> make_block(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  ::madvise(at, bytes, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(at), [bytes](std::byte* block) { ::munmap(block, bytes); }};
}

WeightData inline_weight(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  WeightData out;
  out.kind = WeightData::Kind::Inline;
  out.data = bytes.data();
  out.length = bytes.size();
  out.owner = std::move(owner);
  return out;
}

WeightData inline_weight(std::vector<std::byte> bytes) {
  auto owned = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return inline_weight(*owned, owned);
}

void open_weights(Module& module) {
  std::map<std::string, FileBytes> files;
  for (auto& [key, weight] : module.weights) {
    if (weight.kind != WeightData::Kind::Mapped || weight.data) continue;
    if (!files.contains(weight.file)) files[weight.file] = open_bytes(weight.file);
    const FileBytes& file = files[weight.file];
    if (weight.offset > file.bytes.size() || weight.length > file.bytes.size() - weight.offset)
      unreadable(module, key, weight.file + " is shorter than the range it names");
    FileBytes range = file.range(weight.offset, weight.length);
    weight.data = range.bytes.data();
    weight.owner = range.owner;
  }
}

} // namespace tgc
