// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX models written field by field, so that tests state models (wrong ones too) without a protobuf library.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tgc {

/// A protobuf message under construction.
struct Wire {
  std::string bytes;

  static std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    return out + static_cast<char>(value);
  }
  Wire& number(int field, int64_t value) {
    bytes += varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
    return *this;
  }
  Wire& text(int field, const std::string& value) {
    bytes += varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
    return *this;
  }
  Wire& add(int field, const Wire& message) { return text(field, message.bytes); }
  Wire& real(int field, float value) {
    char raw[4];
    std::memcpy(raw, &value, 4);
    bytes += varint(static_cast<uint64_t>(field) << 3 | 5) + std::string(raw, 4);
    return *this;
  }
};

inline Wire attr(const std::string& name, int64_t value) { return Wire().text(1, name).number(3, value).number(20, 2); }
inline Wire attr(const std::string& name, float value) { return Wire().text(1, name).real(2, value).number(20, 1); }
inline Wire attr(const std::string& name, const std::string& value) {
  return Wire().text(1, name).text(4, value).number(20, 3);
}
inline Wire attr(const std::string& name, const std::vector<int64_t>& values) {
  Wire w = Wire().text(1, name);
  for (int64_t v : values) w.number(8, v);
  return w.number(20, 7);
}
inline Wire attr_tensor(const std::string& name, const Wire& tensor) {
  return Wire().text(1, name).add(5, tensor).number(20, 4);
}

struct NodeSpec {
  std::string op;
  std::vector<std::string> inputs = {}, outputs = {};
  std::vector<Wire> attributes = {};
  std::string name = {}, domain = {};
};
inline Wire node(const NodeSpec& s) {
  Wire w;
  for (const std::string& in : s.inputs) w.text(1, in);
  for (const std::string& out : s.outputs) w.text(2, out);
  if (!s.name.empty()) w.text(3, s.name);
  w.text(4, s.op);
  for (const Wire& a : s.attributes) w.add(5, a);
  if (!s.domain.empty()) w.text(7, s.domain);
  return w;
}

/// A TensorProto without data.
inline Wire tensor_head(const std::string& name, int type, const std::vector<int64_t>& dims) {
  Wire w;
  for (int64_t d : dims) w.number(1, d);
  return w.number(2, type).text(8, name);
}
inline Wire tensor_floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  std::string raw(values.size() * 4, '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return tensor_head(name, 1, dims).text(9, raw);
}
inline Wire tensor_ints(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  Wire w = tensor_head(name, 7, dims);
  for (int64_t v : values) w.number(7, v);
  return w;
}
inline Wire tensor_external(const std::string& name, const std::vector<int64_t>& dims, const std::string& location,
                            const std::string& offset, const std::string& length) {
  Wire w = tensor_head(name, 1, dims);
  w.add(13, Wire().text(1, "location").text(2, location));
  if (!offset.empty()) w.add(13, Wire().text(1, "offset").text(2, offset));
  if (!length.empty()) w.add(13, Wire().text(1, "length").text(2, length));
  return w.number(14, 1);
}

/// A dim: a number, or a name when `param` is not empty.
struct DimSpec {
  int64_t value = 0;
  std::string param;
  DimSpec(int64_t v) : value(v) {}
  DimSpec(const char* name) : param(name) {}
};
inline Wire value_info(const std::string& name, int type, const std::vector<DimSpec>& dims) {
  Wire shape;
  for (const DimSpec& d : dims) shape.add(1, d.param.empty() ? Wire().number(1, d.value) : Wire().text(2, d.param));
  return Wire().text(1, name).add(2, Wire().add(1, Wire().number(1, type).add(2, shape)));
}

struct ModelSpec {
  std::vector<Wire> nodes, initializers, inputs, outputs;
  int64_t opset = 13;
  std::vector<std::pair<std::string, int64_t>> other_domains = {};
  std::vector<Wire> functions = {};
};
inline std::string model(const ModelSpec& s) {
  Wire graph;
  for (const Wire& n : s.nodes) graph.add(1, n);
  graph.text(2, "g");
  for (const Wire& t : s.initializers) graph.add(5, t);
  for (const Wire& v : s.inputs) graph.add(11, v);
  for (const Wire& v : s.outputs) graph.add(12, v);
  Wire m = Wire().number(1, 7).add(7, graph).add(8, Wire().text(1, "").number(2, s.opset));
  for (const auto& [domain, version] : s.other_domains) m.add(8, Wire().text(1, domain).number(2, version));
  for (const Wire& f : s.functions) m.add(25, f);
  return m.bytes;
}

} // namespace tgc
