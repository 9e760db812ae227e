// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: ONNX is protobuf; the rest of the compiler should not know.
// Idea: the wire scan (onnx/wire.h) takes the weights out, libprotobuf parses what is left with the onnx.proto that
// libonnx-dev installs, and this file copies it into plain structs. Newer models parse too: ONNX only ever adds fields,
// and element types are plain numbers. This is the only file that includes protobuf. Not handled: graph attributes
// (only their nodes are read), sparse tensors, sequences and strings; they arrive as "Other" or with a defect, and the
// importer reports the nodes that need them.
#include "frontend/onnx_reader.h"

#include <climits>
#include <cstring>

#include "frontend/bytes.h"
#include "frontend/onnx/wire.h"
#include "onnx.pb.h"
#include "uop/diag.h"

namespace tgc::onnx {
namespace {

namespace pb = ::onnx;

[[noreturn]] void not_a_model(const std::string& why) {
  throw CompileError(Diagnostic{.code = ErrorCode::E201,
                                .where = "",
                                .message = why,
                                .note = "the file is not a complete ONNX model; export or download it again"});
}

/// Appends the low `size` bytes of each value.
template <typename Values> void append(std::string& out, const Values& values, size_t size) {
  for (auto value : values) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    for (size_t i = 0; i < size; ++i) out += static_cast<char>(bits >> (8 * i));
  }
}

void read_external(const pb::TensorProto& from, Tensor& to) {
  to.source = Tensor::Source::External;
  to.length = -1;
  for (const auto& entry : from.external_data()) {
    const std::string& value = entry.value();
    if (entry.key() == "location") to.location = value;
    if (entry.key() != "offset" && entry.key() != "length") continue;
    bool digits = !value.empty() && value.size() <= 18 && value.find_first_not_of("0123456789") == std::string::npos;
    if (!digits)
      to.defect = "external data has " + entry.key() + "=\"" + value + "\", which is not a number";
    else if (entry.key() == "offset")
      to.offset = std::stoull(value);
    else
      to.length = std::stoll(value);
  }
}

std::string typed_elements(const pb::TensorProto& from, Tensor& to) {
  std::string out;
  switch (to.type) {
  case kFloat: append(out, from.float_data(), 4); break;
  case kDouble: append(out, from.double_data(), 8); break;
  case kInt64: append(out, from.int64_data(), 8); break;
  case kInt32: append(out, from.int32_data(), 4); break;
  case kUint32: append(out, from.uint64_data(), 4); break;
  case kUint64: append(out, from.uint64_data(), 8); break;
  case kInt16:
  case kUint16:
  case kFloat16:
  case kBfloat16: append(out, from.int32_data(), 2); break;
  case kInt8:
  case kUint8:
  case kBool: append(out, from.int32_data(), 1); break;
  default: to.defect = "element type " + type_name(to.type) + " is not supported";
  }
  return out;
}

Tensor convert(const pb::TensorProto& from) {
  Tensor to;
  to.name = from.name();
  to.type = from.data_type();
  to.dims.assign(from.dims().begin(), from.dims().end());
  if (from.has_segment()) to.defect = "segmented tensors are not supported";
  if (from.data_location() == pb::TensorProto::EXTERNAL) {
    read_external(from, to);
  } else if (from.has_raw_data()) { // {offset, length}, left by strip_raw_data
    const auto* reference = reinterpret_cast<const std::byte*>(from.raw_data().data());
    to.source = Tensor::Source::Raw;
    to.offset = load_unsigned(reference, 8);
    to.length = load_signed(reference + 8, 8);
  } else {
    to.source = Tensor::Source::Typed;
    to.typed = bytes_of(typed_elements(from, to));
  }
  return to;
}

/// Models of IR version 1 state no type: it is the field that is set.
AttrKind attribute_kind(const pb::AttributeProto& a) {
  switch (a.type()) {
  case pb::AttributeProto::FLOAT: return AttrKind::Float;
  case pb::AttributeProto::INT: return AttrKind::Int;
  case pb::AttributeProto::STRING: return AttrKind::String;
  case pb::AttributeProto::TENSOR: return AttrKind::Tensor;
  case pb::AttributeProto::FLOATS: return AttrKind::Floats;
  case pb::AttributeProto::INTS: return AttrKind::Ints;
  case pb::AttributeProto::STRINGS: return AttrKind::Strings;
  case pb::AttributeProto::TENSORS: return AttrKind::Tensors;
  case pb::AttributeProto::UNDEFINED: break;
  default: return AttrKind::Other;
  }
  if (a.has_f()) return AttrKind::Float;
  if (a.has_i()) return AttrKind::Int;
  if (a.has_s()) return AttrKind::String;
  if (a.has_t()) return AttrKind::Tensor;
  if (a.floats_size()) return AttrKind::Floats;
  if (a.strings_size()) return AttrKind::Strings;
  if (a.ints_size()) return AttrKind::Ints;
  return AttrKind::Other;
}

Node convert(const pb::NodeProto& from);

Attribute convert(const pb::AttributeProto& from) {
  Attribute to;
  to.name = from.name();
  to.reference = from.ref_attr_name();
  to.kind = to.reference.empty() ? attribute_kind(from) : AttrKind::Other;
  to.f = from.f();
  to.i = from.i();
  to.s = from.s();
  to.floats.assign(from.floats().begin(), from.floats().end());
  to.ints.assign(from.ints().begin(), from.ints().end());
  to.strings.assign(from.strings().begin(), from.strings().end());
  if (to.kind == AttrKind::Tensor) to.tensors.push_back(convert(from.t()));
  if (to.kind == AttrKind::Tensors)
    for (const auto& t : from.tensors()) to.tensors.push_back(convert(t));
  for (const auto& node : from.g().node()) to.nodes.push_back(convert(node));
  for (const auto& graph : from.graphs())
    for (const auto& node : graph.node()) to.nodes.push_back(convert(node));
  return to;
}

std::string plain_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Fields newer than the packaged onnx.proto are read from what the parser kept as unknown.
template <typename Proto> std::string overload_of(const Proto& from, uint32_t field) {
  if constexpr (requires { from.overload(); }) return from.overload();
  std::vector<std::string> found = length_delimited_fields(from.unknown_fields(), field);
  return found.empty() ? "" : found.back();
}

template <typename Proto> std::vector<pb::AttributeProto> defaults_of(const Proto& from) {
  std::vector<pb::AttributeProto> found;
  if constexpr (requires { from.attribute_proto(); }) {
    found.assign(from.attribute_proto().begin(), from.attribute_proto().end());
  } else {
    constexpr uint32_t kAttributeProto = 11;
    for (const std::string& bytes : length_delimited_fields(from.unknown_fields(), kAttributeProto))
      if (!found.emplace_back().ParseFromString(bytes))
        not_a_model("a field does not have the type that onnx.proto gives it");
  }
  return found;
}

Node convert(const pb::NodeProto& from) {
  Node to;
  to.name = from.name();
  to.op_type = from.op_type();
  to.domain = plain_domain(from.domain());
  to.inputs.assign(from.input().begin(), from.input().end());
  to.outputs.assign(from.output().begin(), from.output().end());
  for (const auto& a : from.attribute()) to.attributes.push_back(convert(a));
  to.overload = overload_of(from, 8);
  return to;
}

Function convert(const pb::FunctionProto& from) {
  Function to;
  to.name = from.name();
  to.domain = plain_domain(from.domain());
  to.overload = overload_of(from, 13);
  to.inputs.assign(from.input().begin(), from.input().end());
  to.outputs.assign(from.output().begin(), from.output().end());
  to.attributes.assign(from.attribute().begin(), from.attribute().end());
  for (const pb::AttributeProto& a : defaults_of(from)) to.defaults.push_back(convert(a));
  for (const auto& opset : from.opset_import()) to.opsets[plain_domain(opset.domain())] = opset.version();
  for (const auto& node : from.node()) to.nodes.push_back(convert(node));
  return to;
}

ValueInfo convert(const pb::ValueInfoProto& from) {
  ValueInfo to;
  to.name = from.name();
  to.is_tensor = from.type().has_tensor_type();
  const auto& tensor = from.type().tensor_type();
  to.type = tensor.elem_type();
  if (!tensor.has_shape()) return to;
  to.shape.emplace();
  for (const auto& d : tensor.shape().dim()) {
    Dim dim;
    if (d.has_dim_value()) dim.value = d.dim_value();
    if (d.has_dim_param()) dim.param = d.dim_param();
    to.shape->push_back(dim);
  }
  return to;
}

template <typename Proto> Proto parse(std::span<const std::byte> bytes, Message root) {
  std::string skeleton = strip_raw_data(bytes, root);
  Proto proto;
  if (skeleton.size() > INT_MAX || !proto.ParseFromArray(skeleton.data(), static_cast<int>(skeleton.size())))
    not_a_model("a field does not have the type that onnx.proto gives it");
  return proto;
}

} // namespace

Model read_model(std::span<const std::byte> bytes) {
  if (bytes.empty()) not_a_model("the file is empty");
  auto proto = parse<pb::ModelProto>(bytes, Message::Model);
  if (!proto.has_graph()) not_a_model("it holds no graph");
  Model model;
  model.ir_version = proto.ir_version();
  for (const auto& opset : proto.opset_import()) model.opsets[plain_domain(opset.domain())] = opset.version();
  for (const auto& f : proto.functions()) model.functions.push_back(convert(f));
  for (const auto& node : proto.graph().node()) model.nodes.push_back(convert(node));
  for (const auto& t : proto.graph().initializer()) model.initializers.push_back(convert(t));
  for (const auto& t : proto.graph().sparse_initializer()) model.sparse_initializers.push_back(t.values().name());
  for (const auto& v : proto.graph().input()) model.inputs.push_back(convert(v));
  for (const auto& v : proto.graph().output()) model.outputs.push_back(convert(v));
  return model;
}

Tensor read_tensor(std::span<const std::byte> bytes) { return convert(parse<pb::TensorProto>(bytes, Message::Tensor)); }

} // namespace tgc::onnx
