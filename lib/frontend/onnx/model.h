// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/bytes.h"

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
  FileBytes typed; ///< shared by copies of the tensor
  std::string location;
  std::string defect; ///< why its data cannot be used (strings, bad external fields), else empty
};

struct Node;

enum class AttrKind : uint8_t { Float, Int, String, Tensor, Floats, Ints, Strings, Tensors, Other };
struct Attribute {
  std::string name;
  std::string reference; ///< in a function's body: the attribute of the function that it stands for
  AttrKind kind = AttrKind::Other;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes; ///< of graphs, which are not supported: only to say what they would need
};

struct Node {
  std::string name, op_type, domain; ///< domain "" also for "ai.onnx"
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
  std::string overload;         ///< which of several functions of one domain and name
  std::optional<int64_t> opset; ///< of its domain, where it differs from the model's: set by inlining
};

/// A function that the model brings along: an operator given by nodes.
struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes; ///< those without a default
  std::vector<Attribute> defaults;
  std::map<std::string, int64_t> opsets;
  std::vector<Node> nodes;
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
  std::map<std::string, int64_t> opsets; ///< by domain, "" for ai.onnx
  std::vector<Function> functions;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<std::string> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs;
};

/// The version of its domain that a node means; 0 when the model does not import the domain.
int64_t opset_of(const Model& model, const Node& node);
/// "Relu" or "com.example.Magic".
std::string full_op(const Node& node);
/// How messages name a node: `m.onnx: node "n" (Op, opset 13)`, by `index` when it has no name.
std::string place_of(const std::string& file, const Model& model, const Node& node, size_t index);

/// Replaces every node that calls one of the model's functions by the function's nodes, functions within functions too.
/// Inner names become `call/name`, or `call/name'2` if that is taken. A function takes precedence over an operator of
/// the same domain and name. errors: CompileError E204 for a function that calls itself or whose call does not fit it,
/// all of them; E207 when more than `most_nodes` nodes result, calls nest deeper than 256, or the nodes take more than
/// 512 MiB.
void inline_functions(Model& model, const std::string& file, int64_t most_nodes);

} // namespace tgc::onnx
