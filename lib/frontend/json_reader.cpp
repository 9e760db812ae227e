// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a graph that a person can write, and that other tools can print, without protobuf.
// Idea: inputs, constants, nodes and outputs as JSON (docs/json-graph.md); each node is one call of a tensor builder.
// Every problem is reported with the JSON pointer of its place; a node that fails poisons its users, which stay silent.
// Not handled: weights in other files, functions, control flow. This is the only file that includes nlohmann/json.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "frontend/constant.h"
#include "frontend/dims.h"
#include "frontend/frontend.h"
#include "frontend/nn.h"
#include "uop/diag.h"
#include "uop/tensor_value.h"

namespace tgc {
namespace {

using nlohmann::json;
using namespace tensor;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxNodes = 1 << 18;
constexpr int64_t kMaxElements = int64_t{1} << 28;
constexpr int64_t kMaxExtent = int64_t{1} << 40;
constexpr size_t kMaxRank = 16;

/// A problem found inside a helper; turned into a diagnostic with the place of the enclosing object.
[[noreturn]] void bad(const std::string& path, const std::string& message, const std::string& note = "") {
  throw CompileError(Diagnostic{.code = ErrorCode::E208, .where = path, .message = message, .note = note});
}

/// One JSON value and its pointer ("/nodes/3/axes").
class Item {
public:
  Item(const json& value, std::string path) : value_(value), path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  const json& raw() const { return value_; }
  bool has(const char* key) const { return value_.contains(key); }
  Item at(const char* key) const {
    if (!has(key)) bad(path_, std::string("\"") + key + "\" is missing");
    return {value_[key], path_ + "/" + key};
  }
  Item at(size_t i) const { return {value_[i], path_ + "/" + std::to_string(i)}; }
  size_t size() const { return value_.size(); }
  Item array() const {
    if (!value_.is_array()) bad(path_, std::string("is ") + value_.type_name() + ", not an array");
    return *this;
  }
  Item object() const {
    if (!value_.is_object()) bad(path_, std::string("is ") + value_.type_name() + ", not an object");
    return *this;
  }
  std::string text() const {
    if (!value_.is_string()) bad(path_, std::string("is ") + value_.type_name() + ", not a string");
    return value_.get<std::string>();
  }
  int64_t integer(int64_t lo, int64_t hi) const {
    bool fits = value_.is_number_unsigned() ? value_.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                            : value_.is_number_integer();
    if (!fits || value_.get<int64_t>() < lo || value_.get<int64_t>() > hi)
      bad(path_, "is no integer in " + std::to_string(lo) + ".." + std::to_string(hi));
    return value_.get<int64_t>();
  }
  std::vector<int64_t> integers(int64_t lo, int64_t hi) const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < array().size(); ++i) out.push_back(at(i).integer(lo, hi));
    return out;
  }
  /// Members other than `allowed` are errors: a misspelt key must not be silently without effect.
  void only(std::initializer_list<const char*> allowed) const {
    for (const auto& [key, unused] : object().value_.items())
      if (std::none_of(allowed.begin(), allowed.end(), [&k = key](const char* a) { return k == a; }))
        bad(path_, "has the unknown member \"" + key + "\"");
  }

private:
  const json& value_;
  std::string path_;
};

class Reader {
public:
  Reader(std::string name, const ImportOptions& options, DimTable& dims)
      : name_(std::move(name)), options_(options), dims_(dims) {}
  /// Nothing: `dims` has changed.
  std::optional<Module> run(const json& root);

private:
  std::string name_;
  const ImportOptions& options_;
  Module module_;
  Diagnostics errors_;
  std::map<std::string, Ref> values_; ///< null: its maker failed
  DimTable& dims_;
  bool assumed_ = false; ///< `dims_` has changed
  int64_t slots_ = 0;
  std::vector<Ref> inputs_;

  Context& ctx() { return *module_.ctx; }
  template <typename Action> void guarded(const std::string& path, Action action);
  template <typename Action> void each(const Item& root, const char* key, Action action);

  void read_bounds(const Item& root);
  void check_dim_options();
  DType dtype(const Item& item);
  void assume(const Undecided& condition, const std::string& path);
  Ref dim_of(const Item& item, int64_t slot, int64_t axis);
  Dims dims(const Item& item, int64_t slot = -1);
  void declare(const Item& item, const std::string& name);
  void input(const Item& item);
  void constant(const Item& item);
  void node(const Item& item);
  std::optional<std::vector<Ref>> operands(const Item& item);
  Ref build(const Item& item, const std::string& op, const std::vector<Ref>& in);
  Ref movement(const Item& item, const std::string& op, Ref x);
  Ref convolution(const Item& item, const std::vector<Ref>& in);
  void output(const Item& item, std::vector<Ref>& effects, std::set<std::string>& seen);
};

/// Adds a node's condition to the table, or reports it.
void Reader::assume(const Undecided& condition, const std::string& path) {
  Diagnostic d = condition.all()[0];
  const DimTable::Outcome outcome = dims_.assume(condition, path + ": " + d.message);
  assumed_ |= outcome == DimTable::Outcome::Assumed;
  d.where = name_ + ": " + path;
  if (outcome == DimTable::Outcome::Impossible) d.code = ErrorCode::E208;
  if (outcome != DimTable::Outcome::Assumed) errors_.error(d);
}

template <typename Action> void Reader::guarded(const std::string& path, Action action) {
  try {
    action();
  } catch (const Undecided& condition) {
    assume(condition, path);
  } catch (const CompileError& e) {
    for (Diagnostic d : e.all()) {
      d.where = name_ + ": " + (d.where.empty() ? path : d.where);
      if (d.code != ErrorCode::E209 && d.code != ErrorCode::E207) d.code = ErrorCode::E208;
      errors_.error(d);
    }
  }
}

template <typename Action> void Reader::each(const Item& root, const char* key, Action action) {
  if (!root.has(key)) return;
  guarded(root.path() + "/" + key, [&] {
    Item list = root.at(key).array();
    if (list.size() > kMaxNodes)
      bad(list.path(), "has " + std::to_string(list.size()) + " entries, the limit is " + std::to_string(kMaxNodes));
    for (size_t i = 0; i < list.size(); ++i) guarded(list.at(i).path(), [&] { action(list.at(i)); });
  });
}

// ---- types and shapes -----------------------------------------------------------------------------------------------

void Reader::check_dim_options() {
  std::string known;
  const std::vector<std::string> names = dims_.names();
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  for (const auto& [name, range] : options_.dims)
    if (std::find(names.begin(), names.end(), name) == names.end())
      errors_.error({ErrorCode::E209, name_, "there is no dim \"" + name + "\" to set",
                     known.empty() ? "the model has no symbolic dims" : "the model's symbolic dims are: " + known});
}

DType Reader::dtype(const Item& item) {
  std::optional<DType> type = parse_dtype(item.text());
  if (!type || *type == DType::Void || *type == DType::Index)
    bad(item.path(), "\"" + item.text() + "\" is no element type",
        "types are bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64");
  return *type;
}

void Reader::read_bounds(const Item& root) {
  if (root.has("dims"))
    guarded("/dims", [&] {
      Item all = root.at("dims").object();
      for (const auto& [name, unused] : all.raw().items()) {
        std::vector<int64_t> range = all.at(name.c_str()).integers(1, kMaxExtent);
        if (range.size() != 2 || range[0] > range[1]) bad(all.path() + "/" + name, "is not [LO, HI] with LO <= HI");
        dims_.declare(name, {range[0], range[1]});
      }
    });
}

Ref Reader::dim_of(const Item& item, int64_t slot, int64_t axis) {
  if (!item.raw().is_string()) return ctx().index(item.integer(0, kMaxExtent));
  std::string name = item.text();
  if (name.empty()) bad(item.path(), "a dim has an empty name");
  return dims_.input_dim(ctx(), name, slot, axis);
}

Dims Reader::dims(const Item& item, int64_t slot) {
  Dims out;
  if (item.array().size() > kMaxRank) bad(item.path(), "has rank " + std::to_string(item.size()) + ", the limit is 16");
  for (size_t i = 0; i < item.size(); ++i) out.push_back(dim_of(item.at(i), slot, static_cast<int64_t>(i)));
  numel(ctx(), out);
  return out;
}

// ---- values ---------------------------------------------------------------------------------------------------------

/// Reserves a name, so that its users stay silent if its maker fails.
void Reader::declare(const Item& item, const std::string& name) {
  if (name.empty()) bad(item.path(), "a name is empty");
  if (!values_.emplace(name, Ref()).second) bad(item.path(), "\"" + name + "\" is already the name of another value");
}

void Reader::input(const Item& item) {
  int64_t slot = slots_++;
  std::string name = item.object().at("name").text();
  declare(item, name);
  item.only({"name", "type", "shape"});
  Dims shape = dims(item.at("shape"), slot);
  inputs_.push_back(ctx().make(Ops::Param, dtype(item.at("type")), shape, {{Attr::Slot, slot}, {Attr::Name, name}}));
  values_[name] = inputs_.back();
}

/// The numbers of `data`, nested to any regular depth, row-major. `extents`: of the arrays of each depth seen so far.
void flatten(const Item& data, size_t depth, std::vector<size_t>& extents, std::vector<Item>& out) {
  bool is_array = data.raw().is_array();
  if (is_array && depth == extents.size() && out.empty()) extents.push_back(data.size());
  if (is_array ? depth == extents.size() || extents[depth] != data.size() : depth < extents.size())
    bad(data.path(), "is not nested as what is before it");
  if (!is_array) return out.push_back(data);
  for (size_t i = 0; i < data.size(); ++i) flatten(data.at(i), depth + 1, extents, out);
}

double float_of(const Item& item) {
  if (item.raw().is_number()) return item.raw().get<double>();
  std::string text = item.raw().is_string() ? item.text() : "";
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  bad(item.path(), "is no number", "write numbers, \"inf\", \"-inf\" or \"nan\"");
}

void put_element(HostTensor& to, int64_t i, const Item& item) {
  if (is_float(to.dtype)) return to.set(i, float_of(item));
  IntRange range = int_range(to.dtype);
  int64_t value = item.raw().is_boolean() ? item.raw().get<bool>() : item.integer(range.lo, range.hi);
  for (int b = 0; b < byte_size(to.dtype); ++b)
    to.data[static_cast<size_t>(i * byte_size(to.dtype) + b)] =
        static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * b));
}

void Reader::constant(const Item& item) {
  std::string name = item.object().at("name").text();
  declare(item, name);
  item.only({"name", "type", "shape", "data"});
  DType type = dtype(item.at("type"));
  std::vector<int64_t> shape = item.at("shape").integers(0, kMaxExtent);
  if (shape.size() > kMaxRank)
    bad(item.path() + "/shape", "has rank " + std::to_string(shape.size()) + ", the limit is 16");
  int64_t count = *dim_int(numel(ctx(), index_dims(ctx(), shape)));
  std::vector<Item> elements;
  std::vector<size_t> extents;
  flatten(item.at("data"), 0, extents, elements);
  bool splat = elements.size() == 1 && !item.at("data").raw().is_array();
  if (!splat && static_cast<int64_t>(elements.size()) != count)
    bad(item.path() + "/data",
        "has " + std::to_string(elements.size()) + " elements, the shape has " + std::to_string(count));
  if (!splat && count > kMaxElements) bad(item.path() + "/shape", "has too many elements");
  HostTensor values = zeros(type, splat ? std::vector<int64_t>{} : shape);
  for (size_t i = 0; i < elements.size(); ++i) put_element(values, static_cast<int64_t>(i), elements[i]);
  std::string bytes(reinterpret_cast<const char*>(values.data.data()), values.data.size());
  Ref value = add_constant(module_, name, {type, values.shape, bytes_of(std::move(bytes))});
  values_[name] = splat ? broadcast_to(value, index_dims(ctx(), shape)) : value;
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

/// The values named by "in"; numbers take the type of the first operand that is a value. Nothing when one has failed.
std::optional<std::vector<Ref>> Reader::operands(const Item& item) {
  Item list = item.at("in").array();
  std::vector<Ref> in(list.size());
  Ref typed;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list.at(i).raw().is_number()) continue;
    auto found = values_.find(list.at(i).text());
    if (found == values_.end()) bad(list.at(i).path(), "\"" + list.at(i).text() + "\" is not defined above");
    if (!found->second) return std::nullopt;
    in[i] = found->second;
    if (!typed || typed->dtype == DType::Bool) typed = in[i];
  }
  if (!typed) bad(list.path(), "names no value");
  for (size_t i = 0; i < list.size(); ++i) {
    if (in[i]) continue;
    HostTensor scalar = zeros(typed->dtype, {});
    put_element(scalar, 0, list.at(i));
    in[i] = is_float(typed->dtype) ? ctx().constant(typed->dtype, scalar.at(0))
                                   : ctx().constant_int(typed->dtype, scalar.int_at(0));
  }
  return in;
}

void Reader::node(const Item& item) {
  std::string name = item.object().at("name").text();
  declare(item, name);
  std::string op = item.at("op").text();
  std::optional<std::vector<Ref>> in = operands(item);
  if (!in) return;
  size_t first = ctx().size();
  Ref value = build(item, op, *in);
  if (value->shape.size() > kMaxRank)
    bad(item.path(), "has rank " + std::to_string(value->rank()) + ", the limit is 16");
  values_[name] = value;
  for (size_t id = first; id < ctx().size(); ++id) module_.origin[static_cast<uint32_t>(id)] = name;
}

void arity(const Item& item, const std::vector<Ref>& in, size_t lo, size_t hi) {
  if (in.size() < lo || in.size() > hi)
    bad(item.path() + "/in", "has " + std::to_string(in.size()) + " operands, needs " + std::to_string(lo) +
                                 (hi > lo ? " to " + std::to_string(hi) : ""));
}

bool is_arithmetic(Ops op) {
  OpClass cls = info(op).cls;
  if (op == Ops::Cast || op == Ops::Bitcast || op == Ops::Fma || op == Ops::Dot4) return false;
  return cls == OpClass::Unary || cls == OpClass::Binary || cls == OpClass::Compare || cls == OpClass::Ternary;
}

/// Transcendental functions and roots are defined for floats only.
bool is_float_op(Ops op) {
  switch (op) {
  case Ops::Sqrt:
  case Ops::Exp:
  case Ops::Log:
  case Ops::Sin:
  case Ops::Cos:
  case Ops::Tanh:
  case Ops::Erf:
  case Ops::Floor:
  case Ops::Ceil:
  case Ops::Trunc:
  case Ops::Round:
  case Ops::Pow: return true;
  default: return false;
  }
}

Ref Reader::build(const Item& item, const std::string& op, const std::vector<Ref>& in) {
  constexpr int64_t kAxis = kMaxRank;
  if (std::optional<Ops> elementary = parse_op(op); elementary && is_arithmetic(*elementary)) {
    item.only({"op", "name", "in"});
    arity(item, in, static_cast<size_t>(info(*elementary).min_src), static_cast<size_t>(info(*elementary).max_src));
    if (is_float_op(*elementary) && !is_float(in[0]->dtype))
      bad(item.path() + "/in", op + " needs floats, not " + name(in[0]->dtype));
    return elementwise(*elementary, in);
  }
  if (op == "matmul") {
    item.only({"op", "name", "in"});
    arity(item, in, 2, 2);
    if (in[0]->dtype != in[1]->dtype) bad(item.path() + "/in", "operands have different types");
    return matmul(in[0], in[1]);
  }
  if (op == "conv") return convolution(item, in);
  if (op == "concat") {
    item.only({"op", "name", "in", "axis"});
    for (Ref part : in)
      if (part->rank() != in[0]->rank() || part->dtype != in[0]->dtype)
        bad(item.path() + "/in", "operands differ in rank or type");
    return concat(in, normalize_axis(item.at("axis").integer(-kAxis, kAxis), in[0]->rank()));
  }
  arity(item, in, 1, 1);
  if (op == "softmax") {
    item.only({"op", "name", "in", "axis"});
    if (!is_float(in[0]->dtype))
      bad(item.path() + "/in", std::string("softmax needs floats, not ") + name(in[0]->dtype));
    return softmax(in[0], normalize_axis(item.at("axis").integer(-kAxis, kAxis), in[0]->rank()));
  }
  if (op == "cast") {
    item.only({"op", "name", "in", "to"});
    return to(in[0], dtype(item.at("to")));
  }
  if (op == "reduce") {
    item.only({"op", "name", "in", "kind", "axes", "keep"});
    std::string kind = item.at("kind").text();
    if (kind != "add" && kind != "mul" && kind != "max" && kind != "min")
      bad(item.path() + "/kind", "is none of add, mul, max, min");
    std::vector<int64_t> axes = normalize_axes(item.at("axes").integers(-kAxis, kAxis), in[0]->rank());
    bool keep = item.has("keep") && item.at("keep").integer(0, 1) != 0;
    bool sums = kind == "add" || kind == "mul";
    if (sums && in[0]->dtype == DType::Bool) bad(item.path() + "/in", "bool has no sum or product");
    return sums ? (kind == "add" ? sum(in[0], axes, keep) : prod(in[0], axes, keep))
                : reduce(kind.c_str(), in[0], axes, keep);
  }
  return movement(item, op, in[0]);
}

Ref Reader::movement(const Item& item, const std::string& op, Ref x) {
  constexpr int64_t kAxis = kMaxRank;
  if (op == "reshape" || op == "expand") {
    item.only({"op", "name", "in", "shape"});
    Dims shape = dims(item.at("shape"));
    if (op == "expand") return broadcast_to(x, shape);
    require_equal(numel(ctx(), x->shape), numel(ctx(), shape),
                  shape_text(x->shape) + " does not reshape to " + shape_text(shape));
    return reshape(x, shape);
  }
  if (op == "permute" || op == "flip") {
    item.only({"op", "name", "in", "axes"});
    std::vector<int64_t> axes = item.at("axes").integers(0, kAxis);
    std::vector<int64_t> sorted = normalize_axes(axes, x->rank());
    if (op == "flip") return flip(x, sorted);
    if (axes.size() != x->shape.size()) bad(item.path() + "/axes", "needs one axis per dim of " + shape_text(x->shape));
    return permute(x, axes);
  }
  if (op == "pad" || op == "shrink") {
    bool pads = op == "pad";
    item.only(pads ? std::initializer_list<const char*>{"op", "name", "in", "lo", "hi", "value"}
                   : std::initializer_list<const char*>{"op", "name", "in", "offset", "size"});
    Item first = item.at(pads ? "lo" : "offset"), second = item.at(pads ? "hi" : "size");
    for (const Item& list : {first, second})
      if (list.array().size() != x->shape.size())
        bad(list.path(), "needs one number per dim of " + shape_text(x->shape));
    Dims a = dims(first), b = dims(second);
    for (size_t i = 0; !pads && i < a.size(); ++i)
      require_at_most(dim_add(a[i], b[i]), x->shape[i], "the part ends beyond " + shape_text(x->shape));
    if (!pads) return shrink(x, a, b);
    HostTensor value = zeros(x->dtype, {});
    if (item.has("value")) put_element(value, 0, item.at("value"));
    return pad_with(x, a, b,
                    is_float(x->dtype) ? ctx().constant(x->dtype, value.at(0))
                                       : ctx().constant_int(x->dtype, value.int_at(0)));
  }
  bad(item.path() + "/op", "\"" + op + "\" is no operator", "docs/json-graph.md lists them");
}

Ref Reader::convolution(const Item& item, const std::vector<Ref>& in) {
  item.only({"op", "name", "in", "stride", "dilation", "pad", "groups"});
  arity(item, in, 2, 3);
  if (in[0]->dtype != in[1]->dtype) bad(item.path() + "/in", "operands have different types");
  std::vector<Window> axes;
  for (size_t i = 2; i < in[1]->shape.size(); ++i) {
    std::optional<int64_t> kernel = dim_int(in[1]->shape[i]);
    if (!kernel || *kernel < 1)
      bad(item.path() + "/in", "the filter " + shape_text(in[1]->shape) + " needs constant, non-zero extents");
    axes.push_back({*kernel, 1, 1, 0, 0});
  }
  auto list = [&](const char* key, int64_t least, size_t count) {
    std::vector<int64_t> v;
    if (!item.has(key)) return v;
    v = item.at(key).integers(least, 1 << 20);
    if (v.size() != count)
      bad(item.path() + "/" + key, "has " + std::to_string(v.size()) + " numbers, needs " + std::to_string(count));
    return v;
  };
  std::vector<int64_t> stride = list("stride", 1, axes.size()), dilation = list("dilation", 1, axes.size()),
                       pads = list("pad", 0, 2 * axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!stride.empty()) axes[i].stride = stride[i];
    if (!dilation.empty()) axes[i].dilation = dilation[i];
    if (!pads.empty()) axes[i].pad_lo = pads[i], axes[i].pad_hi = pads[axes.size() + i];
  }
  Ref y = conv(in[0], in[1], axes, item.has("groups") ? item.at("groups").integer(1, 1 << 30) : 1);
  return in.size() > 2 ? add_channel(y, in[2]) : y;
}

void Reader::output(const Item& item, std::vector<Ref>& effects, std::set<std::string>& seen) {
  std::string name = item.text();
  auto found = values_.find(name);
  if (found == values_.end()) bad(item.path(), "\"" + name + "\" is not defined");
  if (!seen.insert(name).second) bad(item.path(), "\"" + name + "\" is listed twice");
  Ref value = found->second;
  if (!value) return;
  Ref param = ctx().make(Ops::Param, value->dtype, value->shape, {{Attr::Slot, slots_++}, {Attr::Name, name}});
  effects.push_back(ctx().make(Ops::Store, DType::Void, {param, value}));
}

std::optional<Module> Reader::run(const json& value) {
  module_.source = name_;
  Item root(value, "");
  guarded("/", [&] {
    root.object().only({"tgc", "name", "doc", "dims", "inputs", "constants", "nodes", "outputs"});
    if (root.at("tgc").integer(1, INT64_MAX) != 1) bad("/tgc", "is a format version other than 1");
    if (root.at("outputs").array().size() == 0) bad("/outputs", "is empty");
  });
  if (!value.is_object()) errors_.checkpoint();
  read_bounds(root);
  each(root, "inputs", [&](const Item& item) { input(item); });
  each(root, "constants", [&](const Item& item) { constant(item); });
  each(root, "nodes", [&](const Item& item) { node(item); });
  std::vector<Ref> effects;
  std::set<std::string> seen;
  each(root, "outputs", [&](const Item& item) { output(item, effects, seen); });
  check_dim_options();
  if (assumed_) return std::nullopt; // errors may vanish with it
  errors_.checkpoint();
  Ref sink = ctx().make(Ops::Sink, DType::Void, effects);
  const std::vector<Ref> checks = dims_.checks(ctx());
  inputs_.insert(inputs_.end(), checks.begin(), checks.end());
  module_.root = make_func("main", sink, inputs_);
  return std::move(module_);
}

/// Nesting is bounded before the parser sees the text: brackets outside strings.
void check_depth(std::string_view text, const std::string& name) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\')
        ++i;
      else
        quoted = text[i] != '"';
      continue;
    }
    quoted = text[i] == '"';
    depth += (text[i] == '[' || text[i] == '{') - (text[i] == ']' || text[i] == '}');
    if (depth > kMaxDepth)
      throw CompileError(Diagnostic{.code = ErrorCode::E207,
                                    .where = name,
                                    .message = "byte " + std::to_string(i) + ": nested deeper than " +
                                               std::to_string(kMaxDepth) + " levels",
                                    .note = ""});
  }
}

} // namespace

Module import_json(const FileBytes& file, const std::string& name, const ImportOptions& options) {
  std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  check_depth(text, name);
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& e) {
    throw CompileError(Diagnostic{.code = ErrorCode::E208,
                                  .where = name,
                                  .message = "byte " + std::to_string(e.byte) + ": not JSON",
                                  .note = "a JSON checker names the mistake"});
  } catch (const json::exception&) { // numbers beyond f64
    throw CompileError(Diagnostic{.code = ErrorCode::E208,
                                  .where = name,
                                  .message = "a number is out of range",
                                  .note = "write \"inf\" or \"-inf\""});
  }
  DimTable dims(options.dims);
  for (int round = 0; round < kMaxDimRounds; ++round)
    if (std::optional<Module> module = Reader(name, options, dims).run(root)) return std::move(*module);
  throw CompileError(Diagnostic{.code = ErrorCode::E207,
                                .where = name,
                                .message = "the conditions on symbolic dims have no end",
                                .note = "pin the dims: --dim NAME=VALUE"});
}

} // namespace tgc
