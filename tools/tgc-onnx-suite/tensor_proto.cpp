// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the test tensors: one serialised onnx.TensorProto per file (onnx/onnx.proto: dims = 1, data_type = 2,
// float_data = 4, int32_data = 5, int64_data = 7, raw_data = 9, double_data = 10, uint64_data = 11). Forty lines of
// wire format keep the judge independent of the importer that it judges. Strings, sequences, external data and types
// that DType does not have are refused. The same wire format gives the names of a model's inputs.
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "tgc-onnx-suite/case.h"

namespace tgc::suite {

namespace {

using Bytes = std::span<const unsigned char>;

struct Malformed {};

uint64_t take_varint(Bytes& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in.empty()) throw Malformed{};
    const uint64_t byte = in[0];
    in = in.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw Malformed{};
}

Bytes take_bytes(Bytes& in, uint64_t count) {
  if (count > in.size()) throw Malformed{};
  const Bytes taken = in.first(static_cast<size_t>(count));
  in = in.subspan(static_cast<size_t>(count));
  return taken;
}

/// One field: its number and its payload. A varint or fixed value that is not length-delimited is in `value`.
struct Field {
  uint64_t number = 0;
  bool delimited = false;
  uint64_t value = 0;
  Bytes bytes;
};

Field take_field(Bytes& in) {
  Field field;
  const uint64_t key = take_varint(in);
  field.number = key >> 3;
  switch (key & 7) {
  case 0: field.value = take_varint(in); return field;
  case 1: field.bytes = take_bytes(in, 8); break;
  case 2:
    field.delimited = true;
    field.bytes = take_bytes(in, take_varint(in));
    return field;
  case 5: field.bytes = take_bytes(in, 4); break;
  default: throw Malformed{};
  }
  std::memcpy(&field.value, field.bytes.data(), field.bytes.size());
  return field;
}

/// Appends the varints of a packed or unpacked repeated field.
void append_varints(const Field& field, std::vector<uint64_t>& to) {
  if (!field.delimited) return to.push_back(field.value);
  for (Bytes rest = field.bytes; !rest.empty();) to.push_back(take_varint(rest));
}

struct Message {
  std::vector<uint64_t> dims, integers;
  int data_type = 0;
  std::vector<unsigned char> fixed; ///< raw_data, float_data or double_data
  bool has_strings = false, external = false;
};

Message parse(Bytes in) {
  Message m;
  while (!in.empty()) {
    const Field field = take_field(in);
    switch (field.number) {
    case 1: append_varints(field, m.dims); break;
    case 2: m.data_type = static_cast<int>(field.value); break;
    case 4:
    case 9:
    case 10: m.fixed.insert(m.fixed.end(), field.bytes.begin(), field.bytes.end()); break;
    case 5:
    case 7:
    case 11: append_varints(field, m.integers); break;
    case 6: m.has_strings = true; break;
    case 13: m.external = true; break;
    default: break;
    }
  }
  return m;
}

std::optional<DType> dtype_of(int data_type) {
  constexpr DType kTypes[] = {DType::Void, DType::F32, DType::U8,   DType::I8,   DType::U16, DType::I16,
                              DType::I32,  DType::I64, DType::Void, DType::Bool, DType::F16, DType::F64,
                              DType::U32,  DType::U64, DType::Void, DType::Void, DType::BF16};
  if (data_type <= 0 || data_type >= static_cast<int>(std::size(kTypes))) return std::nullopt;
  const DType type = kTypes[data_type];
  return type == DType::Void ? std::nullopt : std::optional(type);
}

HostTensor to_tensor(const Message& m) {
  const std::optional<DType> dtype = dtype_of(m.data_type);
  if (!dtype || m.has_strings || m.external) {
    throw std::runtime_error("tensor of data_type " + std::to_string(m.data_type) + " is not supported");
  }
  HostTensor tensor{*dtype, {}, {}};
  uint64_t count = 1;
  for (uint64_t dim : m.dims) {
    tensor.shape.push_back(static_cast<int64_t>(dim));
    if (dim > (uint64_t{1} << 40)) throw Malformed{};
    count *= dim;
    if (count > (uint64_t{1} << 40)) throw Malformed{};
  }
  const size_t size = static_cast<size_t>(info(*dtype).bytes);
  if (m.integers.empty()) {
    if (m.fixed.size() != count * size) throw Malformed{};
    tensor.data.resize(m.fixed.size());
    if (!m.fixed.empty()) std::memcpy(tensor.data.data(), m.fixed.data(), m.fixed.size());
    return tensor;
  }
  if (m.integers.size() != count) throw Malformed{};
  tensor.data.resize(count * size);
  for (size_t i = 0; i < count; ++i) std::memcpy(tensor.data.data() + i * size, &m.integers[i], size);
  return tensor;
}

std::vector<unsigned char> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<unsigned char> bytes;
  unsigned char buffer[1 << 16];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    bytes.insert(bytes.end(), buffer, buffer + got);
  }
  return bytes;
}

/// The string in field `number` of a message, "" when absent.
std::string string_field(Bytes in, uint64_t number) {
  std::string text;
  while (!in.empty()) {
    const Field field = take_field(in);
    if (field.number == number) text.assign(field.bytes.begin(), field.bytes.end());
  }
  return text;
}

} // namespace

std::vector<std::string> input_names(const std::string& model) {
  const std::vector<unsigned char> bytes = read_file(model);
  std::vector<std::string> inputs;
  std::set<std::string> initializers;
  try {
    for (Bytes file = bytes; !file.empty();) {
      const Field graph = take_field(file);
      if (graph.number != 7) continue; // ModelProto.graph
      for (Bytes rest = graph.bytes; !rest.empty();) {
        const Field field = take_field(rest);
        if (field.number == 5) initializers.insert(string_field(field.bytes, 8)); // GraphProto.initializer.name
        if (field.number == 11) inputs.push_back(string_field(field.bytes, 1));   // GraphProto.input.name
      }
    }
  } catch (const Malformed&) {
    throw std::runtime_error(model + ": is not an ONNX model");
  }
  std::erase_if(inputs, [&](const std::string& name) { return initializers.contains(name); });
  return inputs;
}

HostTensor read_tensor_proto(const std::string& path) {
  const std::vector<unsigned char> bytes = read_file(path);
  try {
    return to_tensor(parse(bytes));
  } catch (const Malformed&) {
    throw std::runtime_error(path + ": is not a TensorProto");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

} // namespace tgc::suite
