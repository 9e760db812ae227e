// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes of weights, for folding and for the reference interpreter. The bundle writer streams them itself.
#include "tgc/weights.h"

#include <cstring>
#include <memory>

#include "frontend/bytes.h"
#include "uop/bytes_hash.h"
#include "uop/diag.h"

namespace tgc {
namespace {

[[noreturn]] void unreadable(const Module& module, const std::string& key, const std::string& why) {
  throw CompileError(Diagnostic{
      .code = ErrorCode::E206, .where = module.source, .message = "weight \"" + key + "\": " + why, .note = ""});
}

} // namespace

HostTensor weight_tensor(const Module& module, Ref weight, const std::vector<int64_t>& shape) {
  const std::string& key = weight->s(Attr::Key);
  auto found = module.weights.find(key);
  if (found == module.weights.end()) unreadable(module, key, "is not in the weight table");
  const WeightData& data = found->second;
  HostTensor out = zeros(weight->dtype, shape);
  bool splat = data.kind == WeightData::Kind::Splat;
  if (!data.data || (!splat && data.length != out.data.size()) || data.length == 0)
    if (!out.data.empty())
      unreadable(module, key,
                 "holds " + std::to_string(data.length) + " bytes where " + std::to_string(out.data.size()) +
                     " are needed");
  for (size_t at = 0; at < out.data.size(); at += data.length)
    std::memcpy(out.data.data() + at, data.data, data.length);
  return out;
}

WeightData inline_weight(std::vector<std::byte> bytes) {
  auto owned = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  WeightData out;
  out.kind = WeightData::Kind::Inline;
  out.data = owned->data();
  out.length = owned->size();
  out.hash = hash_bytes({owned->data(), owned->size()});
  out.owner = owned;
  return out;
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
