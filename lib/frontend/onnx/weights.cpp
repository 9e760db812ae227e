// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a model's constants may lie in its own bytes, in typed fields, or in other files, and any size in it may
// lie. Idea: whatever the source, find a checked byte range for the weight table. Not handled: strings, complex
// numbers, 8-bit floats and 4-bit types (E205).
#include <algorithm>
#include <filesystem>

#include "frontend/constant.h"
#include "frontend/onnx/op.h"
#include "uop/diag.h"

namespace tgc::onnx {
namespace {

constexpr size_t kMaxRank = 16;

struct TypeRow {
  int32_t type;
  const char* name;
  DType dtype; ///< Void: known to ONNX, not to tgc
};
constexpr TypeRow kTypes[] = {
    {1, "float", DType::F32},
    {2, "uint8", DType::U8},
    {3, "int8", DType::I8},
    {4, "uint16", DType::U16},
    {5, "int16", DType::I16},
    {6, "int32", DType::I32},
    {7, "int64", DType::I64},
    {8, "string", DType::Void},
    {9, "bool", DType::Bool},
    {10, "float16", DType::F16},
    {11, "double", DType::F64},
    {12, "uint32", DType::U32},
    {13, "uint64", DType::U64},
    {14, "complex64", DType::Void},
    {15, "complex128", DType::Void},
    {16, "bfloat16", DType::BF16},
    {17, "float8e4m3fn", DType::Void},
    {18, "float8e4m3fnuz", DType::Void},
    {19, "float8e5m2", DType::Void},
    {20, "float8e5m2fnuz", DType::Void},
    {21, "uint4", DType::Void},
    {22, "int4", DType::Void},
    {23, "float4e2m1", DType::Void},
    {24, "float8e8m0", DType::Void},
    {25, "uint2", DType::Void},
    {26, "int2", DType::Void},
};

/// Bytes that `dims` elements of `dtype` take.
uint64_t checked_size(const std::string& name, const std::vector<int64_t>& dims, DType dtype) {
  if (dims.size() > kMaxRank)
    tensor::fail(ErrorCode::E207,
                 "tensor \"" + name + "\" has rank " + std::to_string(dims.size()) + ", the limit is 16");
  uint64_t bytes = static_cast<uint64_t>(byte_size(dtype));
  for (int64_t d : dims) {
    if (d < 0) tensor::fail(ErrorCode::E204, "tensor \"" + name + "\" has dim " + std::to_string(d));
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes) || bytes >= uint64_t{1} << 62)
      tensor::fail(ErrorCode::E207, "tensor \"" + name + "\" has more than 2^62 bytes");
  }
  return bytes;
}

[[noreturn]] void bad_external(const Tensor& t, const std::string& why, const std::string& note) {
  tensor::fail(ErrorCode::E206, "tensor \"" + t.name + "\": external data \"" + t.location + "\" " + why, note);
}

/// The external file's bytes; its path must stay in the model's folder once links are resolved.
const FileBytes& open_external(Weights& weights, const Tensor& t) {
  namespace fs = std::filesystem;
  if (auto found = weights.cache->opened.find(t.location); found != weights.cache->opened.end()) return found->second;
  std::error_code error;
  fs::path folder = fs::canonical(weights.folder.empty() ? "." : weights.folder, error);
  if (error) bad_external(t, "has no folder: " + weights.folder + " cannot be opened", "name the folder it lies in");
  if (t.location.empty() || t.location.find('\0') != std::string::npos || fs::path(t.location).is_absolute())
    bad_external(t, "is not a path relative to the model", "external data must lie in the model's folder");
  fs::path path = fs::weakly_canonical(folder / t.location, error);
  auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (error || end != folder.end())
    bad_external(t, "leaves the model's folder", "external data must lie in the model's folder");
  if (!fs::is_regular_file(path, error)) bad_external(t, "is not a file", "put the file beside the model");
  return weights.cache->opened.emplace(t.location, open_bytes(path.string())).first->second;
}

FileBytes external_bytes(Weights& weights, const Tensor& t) {
  const FileBytes& file = open_external(weights, t);
  uint64_t size = file.bytes.size();
  uint64_t length = t.length < 0 ? size - std::min(size, t.offset) : static_cast<uint64_t>(t.length);
  if (t.offset > size || length > size - t.offset)
    bad_external(t,
                 "has " + std::to_string(size) + " bytes; range " + std::to_string(t.offset) + "+" +
                     std::to_string(length) + " passes its end",
                 "download the data again");
  return file.range(t.offset, length);
}

FileBytes tensor_bytes(Weights& weights, const Tensor& t) {
  switch (t.source) {
  case Tensor::Source::Raw: return weights.file.range(t.offset, static_cast<uint64_t>(t.length));
  case Tensor::Source::Typed: return t.typed;
  case Tensor::Source::External: return external_bytes(weights, t);
  }
  return {};
}

} // namespace

std::string type_name(int32_t type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.name;
  return "type " + std::to_string(type);
}

std::optional<DType> find_dtype(int32_t type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type && row.dtype != DType::Void) return row.dtype;
  return std::nullopt;
}

DType dtype_of(int32_t type) {
  std::optional<DType> found = find_dtype(type);
  if (!found) tensor::fail(ErrorCode::E205, "element type " + type_name(type) + " is not supported");
  return *found;
}

Ref constant(Weights& weights, const Tensor& t) {
  DType dtype = dtype_of(t.type);
  if (!t.defect.empty()) tensor::fail(ErrorCode::E206, "tensor \"" + t.name + "\": " + t.defect);
  uint64_t size = checked_size(t.name, t.dims, dtype);
  FileBytes data = tensor_bytes(weights, t);
  if (data.bytes.size() != size)
    tensor::fail(ErrorCode::E204, "tensor \"" + t.name + "\" of type " + type_name(t.type) + " and shape " +
                                      shape_text(tensor::index_dims(*weights.module->ctx, t.dims)) + " needs " +
                                      std::to_string(size) + " bytes, has " + std::to_string(data.bytes.size()));
  uint64_t& hash = weights.cache->hashes[{data.bytes.data(), data.bytes.size()}];
  Ref value = add_constant(*weights.module, t.name, {dtype, t.dims, data, hash});
  if (value->is(Ops::Weight)) hash = weights.module->weights.at(value->s(Attr::Key)).hash;
  return value;
}

} // namespace tgc::onnx
