// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: weights are most of a model's bytes, and libprotobuf would copy them all; and the bytes are untrusted.
// Idea: one pass over the wire format that knows only which fields are messages. It copies everything but the contents
// of raw_data, for which it leaves {offset, length}. Since every raw_data is replaced, no model can forge a reference.
// Not handled: groups (deprecated wire types 3 and 4), which no ONNX file has: they are malformed here.
// Source: protobuf.dev/programming-guides/encoding; field numbers from onnx.proto.
#include "frontend/onnx/wire.h"

#include <cstdint>
#include <optional>

#include "uop/diag.h"

namespace tgc::onnx {
namespace {

constexpr int kMaxDepth = 96;

enum class Kind : uint8_t { Leaf, Model, Graph, Node, Attribute, Tensor, SparseTensor, Function };

struct Child {
  Kind parent;
  uint32_t field;
  Kind kind;
};
constexpr Child kChildren[] = {
    {Kind::Model, 7, Kind::Graph},
    {Kind::Model, 25, Kind::Function},
    {Kind::Graph, 1, Kind::Node},
    {Kind::Graph, 5, Kind::Tensor},
    {Kind::Graph, 15, Kind::SparseTensor},
    {Kind::Node, 5, Kind::Attribute},
    {Kind::Attribute, 5, Kind::Tensor},
    {Kind::Attribute, 6, Kind::Graph},
    {Kind::Attribute, 10, Kind::Tensor},
    {Kind::Attribute, 11, Kind::Graph},
    {Kind::Attribute, 22, Kind::SparseTensor},
    {Kind::Attribute, 23, Kind::SparseTensor},
    {Kind::SparseTensor, 1, Kind::Tensor},
    {Kind::SparseTensor, 2, Kind::Tensor},
    {Kind::Function, 7, Kind::Node},
    {Kind::Function, 11, Kind::Attribute},
};
constexpr uint32_t kRawData = 9, kTrainingInfo = 20;

Kind child_kind(Kind parent, uint32_t field) {
  for (const Child& c : kChildren)
    if (c.parent == parent && c.field == field) return c.kind;
  return Kind::Leaf;
}

[[noreturn]] void malformed(size_t at, const std::string& what) {
  throw CompileError(Diagnostic{.code = ErrorCode::E201,
                                .where = "",
                                .message = "byte " + std::to_string(at) + ": " + what,
                                .note = "the file is not a complete ONNX model; export or download it again"});
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_u64(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}

class Scanner {
public:
  explicit Scanner(std::span<const std::byte> bytes) : bytes_(bytes) {}
  /// Appends the message in [begin, end) to `out`.
  void message(Kind kind, size_t begin, size_t end, std::string& out);
  /// The next field from where the last one ended, with its contents if it is length-delimited; nothing at the end.
  struct Field {
    uint32_t number;
    bool delimited;
    size_t begin, end;
  };
  std::optional<Field> next();

private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  int depth_ = 0; ///< of the message being read

  uint64_t varint(size_t end);
  size_t take(size_t end, uint64_t length, size_t field);
  void length_delimited(Kind kind, uint32_t field, size_t end, std::string& out);
  void copy(std::string& out, size_t begin, size_t end) {
    out.append(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin);
  }
};

uint64_t Scanner::varint(size_t end) {
  size_t start = at_;
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ >= end) malformed(start, "the file ends inside a number");
    uint64_t byte = static_cast<uint64_t>(bytes_[at_++]);
    if (shift < 64) value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  malformed(start, "a number has more than 10 bytes");
}

/// Moves past `length` bytes and returns where they begin.
size_t Scanner::take(size_t end, uint64_t length, size_t field) {
  if (length > end - at_)
    malformed(field, "a field of " + std::to_string(length) + " bytes runs past the end (" + std::to_string(end - at_) +
                         " bytes are left)");
  size_t begin = at_;
  at_ += static_cast<size_t>(length);
  return begin;
}

void Scanner::length_delimited(Kind kind, uint32_t field, size_t end, std::string& out) {
  size_t start = at_;
  uint64_t length = varint(end);
  size_t begin = take(end, length, start);
  if (kind == Kind::Model && field == kTrainingInfo) return;
  put_varint(out, uint64_t{field} << 3 | 2);
  if (kind == Kind::Tensor && field == kRawData) {
    put_varint(out, 16);
    put_u64(out, begin);
    put_u64(out, length);
    return;
  }
  Kind child = child_kind(kind, field);
  if (child == Kind::Leaf) {
    put_varint(out, length);
    copy(out, begin, at_);
    return;
  }
  size_t after = at_;
  std::string body;
  ++depth_;
  message(child, begin, after, body);
  --depth_;
  at_ = after;
  put_varint(out, body.size());
  out += body;
}

void Scanner::message(Kind kind, size_t begin, size_t end, std::string& out) {
  if (depth_ > kMaxDepth)
    throw CompileError(Diagnostic{.code = ErrorCode::E207,
                                  .where = "",
                                  .message = "messages are nested deeper than " + std::to_string(kMaxDepth) + " levels",
                                  .note = "no exporter nests graphs this deep"});
  at_ = begin;
  while (at_ < end) {
    size_t start = at_;
    uint64_t tag = varint(end);
    if (tag >> 3 == 0 || tag >> 3 >= uint64_t{1} << 29) malformed(start, "field number " + std::to_string(tag >> 3));
    uint32_t field = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
    case 0: varint(end); break;
    case 1: take(end, 8, start); break;
    case 5: take(end, 4, start); break;
    case 2: length_delimited(kind, field, end, out); continue;
    default: malformed(start, "wire type " + std::to_string(tag & 7));
    }
    copy(out, start, at_);
  }
}

std::optional<Scanner::Field> Scanner::next() {
  const size_t all = bytes_.size(), start = at_;
  if (at_ >= all) return std::nullopt;
  uint64_t tag = varint(all);
  Field f{static_cast<uint32_t>(tag >> 3), (tag & 7) == 2, at_, at_};
  switch (tag & 7) {
  case 0: varint(all); break;
  case 1: take(all, 8, start); break;
  case 5: take(all, 4, start); break;
  case 2: f.begin = take(all, varint(all), start); break;
  default: return std::nullopt;
  }
  f.end = at_;
  return f;
}

} // namespace

std::vector<std::string> length_delimited_fields(const std::string& fields, uint32_t field) {
  std::vector<std::string> found;
  Scanner scanner(std::as_bytes(std::span(fields)));
  while (std::optional<Scanner::Field> f = scanner.next())
    if (f->number == field && f->delimited) found.push_back(fields.substr(f->begin, f->end - f->begin));
  return found;
}

std::string strip_raw_data(std::span<const std::byte> bytes, Message root) {
  std::string out;
  Scanner(bytes).message(root == Message::Model ? Kind::Model : Kind::Tensor, 0, bytes.size(), out);
  return out;
}

} // namespace tgc::onnx
