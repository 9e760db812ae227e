// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: an operator's handler should read like its specification, yet every misuse of a node must be an error with a
// name, never wrong numbers.
// Idea: handlers ask an OpContext for operands and attributes; it types and checks each request and remembers which
// attributes were read. Tables of handlers are found by file name.
#include "frontend/onnx/op.h"

#include <algorithm>
#include <cmath>

#include "frontend/elements.h"
#include "frontend/gather.h"
#include "uop/diag.h"

namespace tgc::onnx {

#define TGC_OP_FAMILY(name) extern const OpTable kOnnxOps_##name;
#include "frontend/op_families.inc"
#undef TGC_OP_FAMILY

namespace {
constexpr const OpTable* kTables[] = {
#define TGC_OP_FAMILY(name) &kOnnxOps_##name,
#include "frontend/op_families.inc"
#undef TGC_OP_FAMILY
};

const char* kind_name(AttrKind kind) {
  switch (kind) {
  case AttrKind::Float: return "a float";
  case AttrKind::Int: return "an int";
  case AttrKind::String: return "a string";
  case AttrKind::Tensor: return "a tensor";
  case AttrKind::Floats: return "floats";
  case AttrKind::Ints: return "ints";
  case AttrKind::Strings: return "strings";
  case AttrKind::Tensors: return "tensors";
  case AttrKind::Other: return "of a kind that is not supported";
  }
  return "";
}
} // namespace

std::span<const OpTable* const> op_tables() { return kTables; }

const OpRow* find_op(const std::string& op, int64_t opset) {
  for (const OpTable* table : kTables)
    for (const OpRow& row : table->rows)
      if (op == row.op && row.first <= opset && opset <= row.last) return &row;
  return nullptr;
}

std::string supported_opsets(const std::string& op) {
  std::string out;
  for (const OpTable* table : kTables)
    for (const OpRow& row : table->rows)
      if (op == row.op)
        out += (out.empty() ? "opsets " : ", ") + std::to_string(row.first) + ".." + std::to_string(row.last);
  return out;
}

// ---- operands -------------------------------------------------------------------------------------------------------

Ref OpContext::in(size_t i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  return inputs_[i];
}

Ref OpContext::in_float(size_t i) const {
  Ref x = in(i);
  if (!is_float(x->dtype)) fail("input " + std::to_string(i) + " has type " + name(x->dtype) + ", not a float type");
  return x;
}

void OpContext::out(size_t i, Ref value) {
  if (i < outputs_.size()) outputs_[i] = value;
}

void OpContext::finish() {
  for (const Attribute& a : node_.attributes)
    if (!read_.count(a.name)) fail("attribute " + a.name + " is not one of this operator's attributes");
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i] && !node_.outputs[i].empty())
      unsupported("output " + std::to_string(i) + " (\"" + node_.outputs[i] + "\") is not supported");
}

Ref OpContext::positions(Ref indices, Ref extent) {
  Ref p = tensor::positions(indices, extent);
  require_inside(p, extent);
  return p;
}

void OpContext::require_inside(Ref positions, Ref extent) {
  std::optional<std::vector<Element>> known = known_elements(*weights_.module, positions);
  bool inside = known.has_value();
  for (const Element& e : known.value_or(std::vector<Element>())) {
    Ref left = dim_sub(extent, e.index); // from there to the end
    if (e.index->hi < 0 || left->hi < 1)
      fail("index " + tensor::dim_text(e.index) + " is outside [0, " + tensor::dim_text(extent) + ")");
    inside &= e.index->lo >= 0 && left->lo >= 1;
  }
  if (!inside) traps_.push_back(tensor::outside(positions, extent));
}

void OpContext::fail(const std::string& message, const std::string& note) const {
  tensor::fail(ErrorCode::E203, message, note);
}

void OpContext::unsupported(const std::string& message, const std::string& note) const {
  tensor::fail(ErrorCode::E202, message, note);
}

// ---- attributes -----------------------------------------------------------------------------------------------------

const Attribute* OpContext::find(const char* name, AttrKind kind) {
  read_.insert(name);
  for (const Attribute& a : node_.attributes) {
    if (a.name != name) continue;
    if (a.kind != kind)
      fail(std::string("attribute ") + name + " is " + kind_name(a.kind) + ", not " + kind_name(kind));
    return &a;
  }
  return nullptr;
}

bool OpContext::has_attr(const char* name) {
  return std::any_of(node_.attributes.begin(), node_.attributes.end(),
                     [&](const Attribute& a) { return a.name == name; });
}

namespace {
[[noreturn]] void missing(const OpContext& c, const char* name) {
  c.fail(std::string("attribute ") + name + " is missing");
}
} // namespace

int64_t OpContext::attr(const char* name, std::optional<int64_t> fallback) {
  if (const Attribute* a = find(name, AttrKind::Int)) return a->i;
  return fallback ? *fallback : (missing(*this, name), 0);
}

double OpContext::attr_float(const char* name, std::optional<double> fallback) {
  if (const Attribute* a = find(name, AttrKind::Float)) return static_cast<double>(a->f);
  return fallback ? static_cast<double>(static_cast<float>(*fallback)) : (missing(*this, name), 0);
}

std::string OpContext::attr_string(const char* name, std::optional<std::string> fallback) {
  if (const Attribute* a = find(name, AttrKind::String)) return a->s;
  return fallback ? *fallback : (missing(*this, name), "");
}

std::vector<int64_t> OpContext::attr_ints(const char* name, std::optional<std::vector<int64_t>> fallback) {
  if (const Attribute* a = find(name, AttrKind::Ints)) return a->ints;
  return fallback ? *fallback : (missing(*this, name), std::vector<int64_t>());
}

const Tensor& OpContext::attr_tensor(const char* name) {
  if (const Attribute* a = find(name, AttrKind::Tensor)) return a->tensors[0];
  missing(*this, name);
}

void OpContext::require(const char* name, int64_t value, int64_t fallback) {
  int64_t actual = attr(name, fallback);
  if (actual != value)
    unsupported(std::string(name) + "=" + std::to_string(actual) + " is not supported, only " + std::to_string(value));
}

// ---- operands known at import ---------------------------------------------------------------------------------------

namespace {
[[noreturn]] void not_known(const OpContext& c, size_t i, const std::string& note) {
  const std::string input = "input " + std::to_string(i) + " (\"" + c.node().inputs[i] + "\")";
  std::optional<int64_t> count = dim_int(numel(c.ctx(), c.in(i)->shape));
  if (count.value_or(0) > kMostKnownElements)
    c.unsupported(input + " has " + std::to_string(*count) + " elements, the limit is " +
                  std::to_string(kMostKnownElements) + " for an operand known at compile time");
  c.unsupported(input + " must be known at compile time", note);
}
} // namespace

tensor::Dims OpContext::known_dims(size_t i) {
  Ref x = in(i);
  if (!is_int(x->dtype) && x->dtype != DType::Bool)
    fail("input " + std::to_string(i) + " has type " + name(x->dtype) + ", not an integer type");
  std::optional<std::vector<Element>> elements = known_elements(*weights_.module, x);
  if (!elements) not_known(*this, i, "make it an initializer, or pin the dims it depends on with --dim NAME=VALUE");
  tensor::Dims dims;
  for (const Element& e : *elements) dims.push_back(e.index);
  return dims;
}

std::vector<int64_t> OpContext::known_ints(size_t i) {
  std::vector<int64_t> out;
  for (Ref d : known_dims(i)) {
    std::optional<int64_t> n = dim_int(d);
    if (!n)
      unsupported("input " + std::to_string(i) + " (\"" + node_.inputs[i] + "\") depends on a symbolic dim",
                  "pin the dim with --dim NAME=VALUE");
    out.push_back(*n);
  }
  return out;
}

std::optional<std::vector<int64_t>> OpContext::try_known_ints(size_t i) {
  std::optional<std::vector<Element>> elements = known_elements(*weights_.module, in(i));
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  for (const Element& e : *elements) {
    std::optional<int64_t> n = e.index ? dim_int(e.index) : std::nullopt;
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

std::optional<std::vector<double>> OpContext::try_known_floats(size_t i) {
  std::optional<std::vector<Element>> elements = known_elements(*weights_.module, in(i));
  if (!elements) return std::nullopt;
  std::vector<double> out;
  for (const Element& e : *elements) {
    std::optional<int64_t> n = e.index ? dim_int(e.index) : std::nullopt;
    if (e.index && !n) return std::nullopt;
    out.push_back(n ? static_cast<double>(*n) : e.value);
  }
  return out;
}

std::vector<double> OpContext::known_floats(size_t i) {
  std::optional<std::vector<double>> known = try_known_floats(i);
  if (!known) not_known(*this, i, "make it an initializer");
  return *known;
}

double OpContext::known_number(size_t i) {
  std::vector<double> all = known_floats(i);
  if (all.size() != 1) fail("input " + std::to_string(i) + " must have one element, has " + std::to_string(all.size()));
  return all[0];
}

int64_t OpContext::known_extent(Ref dim) const {
  std::optional<int64_t> n = dim_int(dim);
  if (!n) unsupported("an extent is symbolic: " + tensor::dim_text(dim), "pin the dim with --dim NAME=VALUE");
  return *n;
}

std::optional<std::vector<int64_t>> OpContext::axes(const char* name, int64_t since, size_t i) {
  if (opset_ >= since) return has(i) ? std::optional(known_ints(i)) : std::nullopt;
  if (has(i)) fail(std::string("takes ") + name + " as an attribute before opset " + std::to_string(since));
  const Attribute* a = find(name, AttrKind::Ints);
  return a ? std::optional(a->ints) : std::nullopt;
}

} // namespace tgc::onnx
