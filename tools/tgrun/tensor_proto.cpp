// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads one ONNX TensorProto from its wire format: tags, varints and lengths, each checked against what is left of the
// file. The elements are in raw_data, or in one of the typed fields, packed or one by one. Not handled: strings,
// segments, external data; each is refused by name. Source: onnx.proto, message TensorProto; the protobuf encoding
// guide.
#include <cstring>

#include "runtime/tgrt_bundle.h"
#include "tgrun/options.h"
#include "tgrun/tensor.h"

namespace tgc {

namespace {

/// dtype by ONNX's TensorProto.DataType.
constexpr uint32_t kTypes[] = {0,         TGRT_F32, TGRT_U8,  TGRT_I8,  TGRT_U16, TGRT_I16, TGRT_I32, TGRT_I64, 0,
                               TGRT_BOOL, TGRT_F16, TGRT_F64, TGRT_U32, TGRT_U64, 0,        0,        TGRT_BF16};

enum Field : uint64_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDataLocation = 14,
};

class Reader {
public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail("the file is truncated");
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail("a number has more than 64 bits");
  }
  std::string_view take(uint64_t n) {
    if (n > rest_.size()) fail("the file is truncated");
    const std::string_view bytes = rest_.substr(0, static_cast<size_t>(n));
    rest_.remove_prefix(static_cast<size_t>(n));
    return bytes;
  }
  /// The payload of a field: for wire types 1 and 5 its 8 or 4 bytes, for 2 its content.
  std::string_view payload(uint64_t wire) {
    if (wire == 1) return take(8);
    if (wire == 5) return take(4);
    if (wire == 2) return take(varint());
    fail("not an ONNX TensorProto");
  }
  [[noreturn]] void fail(const std::string& what) const { throw RunError(path_ + ": " + what); }

private:
  const std::string& path_;
  std::string_view rest_;
};

/// Elements collected so far, before they have their type: raw bytes of floats and doubles, or 64-bit integers.
struct Elements {
  bool has_raw = false;
  std::string raw;
  std::vector<uint64_t> integers;
};

void add_integers(Reader& reader, const std::string& path, uint64_t wire, std::vector<uint64_t>& to) {
  if (wire == 0) {
    to.push_back(reader.varint());
    return;
  }
  Reader packed(path, reader.payload(wire));
  while (!packed.done()) to.push_back(packed.varint());
}

void read_field(Reader& reader, const std::string& path, HostTensor& t, Elements& elements) {
  const uint64_t tag = reader.varint(), wire = tag & 7;
  switch (tag >> 3) {
  case kDims: {
    std::vector<uint64_t> dims;
    add_integers(reader, path, wire, dims);
    t.dims.insert(t.dims.end(), dims.begin(), dims.end());
    if (t.dims.size() > 64) reader.fail("more than 64 dims");
    break;
  }
  case kDataType: {
    const uint64_t type = reader.varint();
    t.dtype = type < std::size(kTypes) ? kTypes[type] : 0;
    if (t.dtype == 0) reader.fail("ONNX element type " + std::to_string(type) + " is not supported");
    break;
  }
  case kFloatData:
  case kDoubleData: elements.raw += reader.payload(wire); break;
  case kInt32Data:
  case kInt64Data:
  case kUint64Data: add_integers(reader, path, wire, elements.integers); break;
  case kName: t.name = reader.payload(wire); break;
  case kRawData:
    elements.raw = reader.payload(wire);
    elements.has_raw = true;
    break;
  case kStringData: reader.fail("tensors of strings are not supported");
  case kSegment: reader.fail("segmented tensors are not supported");
  case kDataLocation:
    if (reader.varint() == 1) reader.fail("tensors with external data are not supported here");
    break;
  default: wire == 0 ? void(reader.varint()) : void(reader.payload(wire));
  }
}

} // namespace

HostTensor parse_tensor_proto(const std::string& path, std::string_view bytes) {
  Reader reader(path, bytes);
  HostTensor t;
  Elements elements;
  while (!reader.done()) read_field(reader, path, t, elements);
  if (t.dtype == 0) reader.fail("not an ONNX TensorProto: it has no element type");
  const size_t width = dtype_bytes(t.dtype), n = checked_numel(path, t.dims, t.dtype);
  if (!elements.integers.empty() && !elements.has_raw)
    for (const uint64_t value : elements.integers) elements.raw.append(reinterpret_cast<const char*>(&value), width);
  if (elements.raw.size() != n * width)
    reader.fail("it has " + std::to_string(elements.raw.size()) + " bytes of elements, its shape " + dims_text(t.dims) +
                " of " + dtype_name(t.dtype) + " needs " + std::to_string(n * width));
  t.data.assign(elements.raw.begin(), elements.raw.end());
  return t;
}

} // namespace tgc
