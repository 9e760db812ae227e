// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// An ONNX model as plain data, free of protobuf: what the reader produces and the importer consumes. Names follow
// onnx.proto; nothing is checked here beyond what the wire format says.
namespace tgc::onnx {

/// Element types of TensorProto.DataType that tgc knows; others arrive as their numbers.
enum TensorType : int32_t {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16,
};
/// Spelling in messages: "float16", or "type 23".
std::string type_name(int32_t type);

struct Tensor {
  enum class Source : uint8_t {
    Raw,      ///< `offset`, `length` within the model's own bytes
    Typed,    ///< `typed`: little-endian elements, decoded from float_data and its kin
    External, ///< `location`, and `offset`, `length` (-1: to the end) within that file
  };
  std::string name;
  int32_t type = 0;
  std::vector<int64_t> dims;
  Source source = Source::Typed;
  uint64_t offset = 0;
  int64_t length = 0;
  std::string typed;
  std::string location;
  std::string defect; ///< why its data cannot be used (strings, bad external fields), else empty
};

enum class AttrKind : uint8_t { Float, Int, String, Tensor, Floats, Ints, Strings, Tensors, Other };
struct Attribute {
  std::string name;
  AttrKind kind = AttrKind::Other;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<Tensor> tensors;
};

struct Node {
  std::string name, op_type, domain; ///< domain "" also for "ai.onnx"
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
};

struct Dim {
  std::optional<int64_t> value;
  std::string param; ///< its name, when symbolic and named
};
struct ValueInfo {
  std::string name;
  bool is_tensor = false;
  int32_t type = 0;
  std::optional<std::vector<Dim>> shape;
};

struct Model {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;                      ///< by domain, "" for ai.onnx
  std::vector<std::pair<std::string, std::string>> functions; ///< (domain, name) of model-local functions
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<std::string> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs;
};

} // namespace tgc::onnx
