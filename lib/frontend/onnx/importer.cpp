// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: turn an untrusted ONNX graph into one function of UOps, and tell its author everything that is wrong at
// once. Idea: the model's own functions are inlined; then names (each value made once, every use has a maker), then
// operators (all unsupported nodes in one list), then an order (ONNX promises one; a sort finds cycles and forgives
// disorder), then each node's handler. A node that fails poisons its outputs; nodes that depend on it are skipped
// without further noise. A node that needs more of the dims than is known adds it to the table of dims, and the import
// starts again. Not handled: subgraphs, sequences, optionals: reported as unsupported where a node needs them.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "frontend/constant.h"
#include "frontend/dims.h"
#include "frontend/frontend.h"
#include "frontend/onnx/op.h"
#include "frontend/onnx_reader.h"
#include "uop/diag.h"

namespace tgc::onnx {
namespace {

constexpr size_t kListed = 50;                   // unsupported nodes listed one by one; the rest are only counted
constexpr int64_t kMostBytes = int64_t{1} << 55; // of one value: what a bundle can state

/// Refuses a shape whose constant dims alone make it too large.
void check_size(const std::string& what, DType dtype, Refs shape) {
  int64_t bytes = byte_size(dtype);
  bool fits = true, is_empty = false;
  for (Ref dim : shape) {
    const int64_t extent = dim_int(dim).value_or(1);
    is_empty |= extent == 0;
    fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes) && bytes < kMostBytes;
  }
  if (!fits && !is_empty)
    tensor::fail(ErrorCode::E207, what + " of shape " + shape_text(shape) + " has 2^55 bytes or more",
                 "check the dims and the operands that decide it");
}

class Importer {
public:
  /// What outlives one attempt: the model, what is known of its dims, what was read of its weights.
  struct Source {
    Model model;
    const FileBytes& file;
    DimTable dims;
    WeightCache weights = {};
  };
  Importer(Source& source, std::string name, const ImportOptions& options)
      : model_(source.model), options_(options), name_(std::move(name)),
        weights_{&module_, source.file, options.folder, &source.weights}, dims_(source.dims) {
    module_.source = name_;
  }
  /// Nothing: the table of dims has changed.
  std::optional<Module> run();

private:
  Model& model_;
  const ImportOptions& options_;
  std::string name_;
  Module module_;
  Weights weights_;
  Diagnostics errors_;
  std::map<std::string, Ref> values_; ///< null: its maker failed
  DimTable& dims_;
  bool assumed_ = false;                ///< `dims_` has changed
  std::map<std::string, size_t> maker_; ///< node that makes each value
  std::vector<Ref> params_;
  std::vector<std::pair<std::string, Ref>> traps_; ///< the node, and whether its inputs were not valid
  std::map<std::string, int64_t> unsupported_;     ///< nodes that no table has, by operator
  size_t listed_ = 0;                              ///< all of them

  Context& ctx() { return *module_.ctx; }
  std::string where(const Node& node, size_t index) const;
  std::string without_file(const std::string& place) const;
  int64_t opset(const Node& node) const;
  void error(ErrorCode code, std::string place, std::string message, std::string note = "") {
    errors_.error({code, place.empty() ? name_ : std::move(place), std::move(message), std::move(note)});
  }
  template <typename Action> void guarded(const std::string& place, Action action);

  void check_limits();
  void add_constants();
  void add_inputs();
  void add_input(const ValueInfo& input);
  tensor::Dims input_dims(const ValueInfo& input, DType dtype);
  void assume(const tensor::Undecided& condition, const std::string& place);
  void check_dim_options();
  void check_names();
  void check_operators();
  void check_operator(const Node& node, size_t index, const std::string& inside);
  std::vector<size_t> order();
  void check_result(Ref result);
  void build(size_t index);
  void finish();
};

std::string Importer::where(const Node& node, size_t index) const { return place_of(name_, model_, node, index); }

int64_t Importer::opset(const Node& node) const { return opset_of(model_, node); }

/// For texts in a bundle, which is the same whatever its model is called.
std::string Importer::without_file(const std::string& place) const {
  return place.starts_with(name_ + ": ") ? place.substr(name_.size() + 2) : place;
}

/// Adds a node's condition to the table, or reports it.
void Importer::assume(const tensor::Undecided& condition, const std::string& place) {
  const DimTable::Outcome outcome = dims_.assume(condition, without_file(place) + ": " + condition.all()[0].message);
  assumed_ |= outcome == DimTable::Outcome::Assumed;
  Diagnostic d = condition.all()[0];
  d.where = place;
  if (outcome == DimTable::Outcome::Impossible) d.code = ErrorCode::E203;
  if (outcome != DimTable::Outcome::Assumed) errors_.error(d);
}

/// Runs `action`; its errors are collected under `place`, with IR errors as errors of the node.
template <typename Action> void Importer::guarded(const std::string& place, Action action) {
  try {
    action();
  } catch (const tensor::Undecided& condition) {
    assume(condition, place);
  } catch (const CompileError& e) {
    for (Diagnostic d : e.all()) {
      if (d.where.empty()) d.where = place;
      if (d.code == ErrorCode::E101) d.code = ErrorCode::E203;
      errors_.error(d);
    }
  }
}

void Importer::check_limits() {
  if (static_cast<int64_t>(model_.nodes.size()) > options_.limits.nodes)
    error(ErrorCode::E207, "",
          std::to_string(model_.nodes.size()) + " nodes, the limit is " + std::to_string(options_.limits.nodes));
  if (model_.ir_version >= 3 && model_.opsets.empty())
    error(ErrorCode::E204, "", "the model imports no operator set",
          "the file may be cut short; export or download it again");
  auto main = model_.opsets.find("");
  if (main != model_.opsets.end() && (main->second < 1 || main->second > kLatestOpset))
    error(ErrorCode::E202, "", "the model uses ai.onnx opset " + std::to_string(main->second),
          "opsets 1 to " + std::to_string(kLatestOpset) + " are known; export with one of them");
  for (const std::string& name : model_.sparse_initializers)
    error(ErrorCode::E205, "", "initializer \"" + name + "\" is sparse", "export it as a dense tensor");
  errors_.checkpoint();
}

void Importer::add_constants() {
  for (const Tensor& t : model_.initializers) {
    if (t.name.empty()) {
      error(ErrorCode::E204, "", "an initializer has no name");
    } else if (values_.count(t.name)) {
      error(ErrorCode::E204, "", "two initializers are named \"" + t.name + "\"");
    } else {
      values_[t.name] = Ref();
      guarded(name_, [&] { values_[t.name] = constant(weights_, t); });
    }
  }
}

tensor::Dims Importer::input_dims(const ValueInfo& input, DType dtype) {
  tensor::Dims dims;
  const int64_t slot = static_cast<int64_t>(params_.size());
  for (size_t i = 0; i < input.shape->size(); ++i) {
    const Dim& d = (*input.shape)[i];
    const bool is_open = !d.value || *d.value == -1,
               has_name = !d.param.empty() && d.param != "?"; // as exporters write
    if (!is_open && *d.value < 0)
      tensor::fail(ErrorCode::E204, "input \"" + input.name + "\" has dim " + std::to_string(*d.value),
                   "a dim known only at run time has a name, or is -1");
    const std::string name = has_name ? d.param : input.name + "_dim" + std::to_string(i);
    dims.push_back(is_open ? dims_.input_dim(ctx(), name, slot, static_cast<int64_t>(i)) : ctx().index(*d.value));
  }
  check_size("input \"" + input.name + "\"", dtype, dims);
  numel(ctx(), dims);
  return dims;
}

void Importer::add_input(const ValueInfo& input) {
  if (!input.is_tensor)
    tensor::fail(ErrorCode::E205, "input \"" + input.name + "\" is not a tensor",
                 "sequences, maps and optionals are not supported");
  if (auto bound = options_.bindings.find(input.name); bound != options_.bindings.end()) {
    values_[input.name] = add_constant(module_, input.name, bound->second);
    return;
  }
  std::optional<DType> dtype = find_dtype(input.type);
  if (!dtype)
    tensor::fail(ErrorCode::E205,
                 "input \"" + input.name + "\" has element type " + type_name(input.type) + ", which is not supported");
  if (!input.shape)
    tensor::fail(ErrorCode::E204, "input \"" + input.name + "\" has no shape, not even a rank",
                 "export the model with input shapes");
  if (static_cast<int>(input.shape->size()) > options_.limits.rank)
    tensor::fail(ErrorCode::E207, "input \"" + input.name + "\" has rank " + std::to_string(input.shape->size()) +
                                      ", the limit is " + std::to_string(options_.limits.rank));
  int64_t slot = static_cast<int64_t>(params_.size());
  Ref param = ctx().make(Ops::Param, *dtype, input_dims(input, *dtype), {{Attr::Slot, slot}, {Attr::Name, input.name}});
  params_.push_back(param);
  values_[input.name] = param;
}

void Importer::add_inputs() {
  std::set<std::string> seen;
  for (const ValueInfo& input : model_.inputs) {
    if (!seen.insert(input.name).second) error(ErrorCode::E204, "", "two inputs are named \"" + input.name + "\"");
    if (values_.count(input.name)) continue; // an initializer listed as an input (IR version 3) stays a constant
    values_[input.name] = Ref();
    guarded(name_, [&] { add_input(input); });
  }
  check_dim_options();
}

void Importer::check_dim_options() {
  std::string known;
  const std::vector<std::string> names = dims_.names();
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  for (const auto& [name, bounds] : options_.dims)
    if (std::find(names.begin(), names.end(), name) == names.end())
      error(ErrorCode::E209, "", "there is no dim \"" + name + "\" to set",
            known.empty() ? "the model has no symbolic dims" : "the model's symbolic dims are: " + known);
}

void Importer::check_names() {
  for (size_t i = 0; i < model_.nodes.size(); ++i)
    for (const std::string& out : model_.nodes[i].outputs) {
      if (out.empty()) continue;
      if (!values_.count(out) && maker_.emplace(out, i).second) continue;
      error(ErrorCode::E204, where(model_.nodes[i], i), "output \"" + out + "\" is already the name of another value");
    }
  for (size_t i = 0; i < model_.nodes.size(); ++i)
    for (const std::string& in : model_.nodes[i].inputs)
      if (!in.empty() && !values_.count(in) && !maker_.count(in))
        error(ErrorCode::E204, where(model_.nodes[i], i),
              "input \"" + in + "\" is made by no node and is no input of the graph");
  std::set<std::string> seen;
  if (model_.outputs.empty()) error(ErrorCode::E204, "", "the graph has no outputs");
  for (const ValueInfo& out : model_.outputs) {
    if (!values_.count(out.name) && !maker_.count(out.name))
      error(ErrorCode::E204, "", "graph output \"" + out.name + "\" is made by no node");
    if (!seen.insert(out.name).second) error(ErrorCode::E204, "", "two graph outputs are named \"" + out.name + "\"");
  }
}

/// Reports `node`, number `index` of its graph, and the nodes of its subgraphs that no table has. `inside` says whose
/// subgraph it is in, if any. Depth is bounded by that of the file's messages.
void Importer::check_operator(const Node& node, size_t index, const std::string& inside) {
  std::string op = full_op(node), note = inside, known = node.domain.empty() ? supported_opsets(node.op_type) : "";
  if (!node.domain.empty() || !find_op(node.op_type, opset(node))) {
    if (!known.empty())
      note = "supported in " + known;
    else if (!node.domain.empty() && !model_.opsets.count(node.domain))
      note = "the model does not import domain " + node.domain;
    ++unsupported_[op];
    if (++listed_ <= kListed) error(ErrorCode::E202, where(node, index), "operator " + op + " is not supported", note);
  }
  for (const Attribute& a : node.attributes)
    for (size_t i = 0; i < a.nodes.size(); ++i)
      check_operator(a.nodes[i], i,
                     "it is in " + a.name + " of node " +
                         (node.name.empty() ? "#" + std::to_string(index) : "\"" + node.name + "\""));
}

void Importer::check_operators() {
  for (size_t i = 0; i < model_.nodes.size(); ++i) check_operator(model_.nodes[i], i, "");
  if (unsupported_.empty()) return;
  std::string summary;
  for (const auto& [op, count] : unsupported_)
    summary += (summary.empty() ? "" : ", ") + op + " " + std::to_string(count);
  error(ErrorCode::E202, "",
        std::to_string(listed_) +
            (listed_ == 1 ? " node needs an unsupported operator: " : " nodes need unsupported operators: ") + summary);
}

/// Node numbers, makers first, otherwise as in the file.
std::vector<size_t> Importer::order() {
  std::vector<size_t> missing(model_.nodes.size()), done;
  std::vector<std::vector<size_t>> users(model_.nodes.size());
  for (size_t i = 0; i < model_.nodes.size(); ++i)
    for (const std::string& in : model_.nodes[i].inputs)
      if (auto made = maker_.find(in); made != maker_.end()) {
        ++missing[i];
        users[made->second].push_back(i);
      }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] == 0) ready.push(i);
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    done.push_back(i);
    for (size_t user : users[i])
      if (--missing[user] == 0) ready.push(user);
  }
  if (done.size() == model_.nodes.size()) return done;
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] > 0) {
      error(ErrorCode::E204, where(model_.nodes[i], i),
            "the node depends on its own output: the graph has a cycle through it or before it");
      break;
    }
  return {};
}

void Importer::check_result(Ref result) {
  if (result->rank() > options_.limits.rank)
    tensor::fail(ErrorCode::E207, "the result has rank " + std::to_string(result->rank()) + ", the limit is " +
                                      std::to_string(options_.limits.rank));
  check_size("the result", result->dtype, result->shape);
}

void Importer::build(size_t index) {
  const Node& node = model_.nodes[index];
  std::vector<Ref> inputs;
  for (const std::string& in : node.inputs) {
    inputs.push_back(in.empty() ? Ref() : values_[in]);
    if (!in.empty() && !inputs.back()) {
      for (const std::string& out : node.outputs) values_[out] = Ref();
      return; // its maker has been reported
    }
  }
  size_t first = ctx().size();
  std::vector<Ref> outputs(node.outputs.size());
  guarded(where(node, index), [&] {
    const OpRow& row = *find_op(node.op_type, opset(node));
    OpContext context(node, opset(node), inputs, weights_);
    size_t given = inputs.size();
    if (static_cast<int>(given) < row.min_inputs || (row.max_inputs >= 0 && static_cast<int>(given) > row.max_inputs))
      context.fail("has " + std::to_string(given) + " inputs, takes " + std::to_string(row.min_inputs) +
                   (row.max_inputs < 0 ? " or more" : " to " + std::to_string(row.max_inputs)));
    row.handler(context);
    context.finish();
    for (Ref out : context.outputs())
      if (out) check_result(out);
    outputs = context.outputs();
    for (Ref trap : context.traps()) traps_.emplace_back(without_file(where(node, index)), trap);
  });
  for (size_t i = 0; i < outputs.size(); ++i) values_[node.outputs[i]] = outputs[i];
  for (size_t id = first; id < ctx().size(); ++id)
    module_.origin[static_cast<uint32_t>(id)] = node.name.empty() ? node.op_type : node.name;
  if (static_cast<int64_t>(ctx().size()) > options_.limits.graph_size)
    tensor::fail(ErrorCode::E207, "the graph has more than " + std::to_string(options_.limits.graph_size) + " nodes");
}

void Importer::finish() {
  std::vector<Ref> effects;
  int64_t slot = static_cast<int64_t>(params_.size());
  for (const ValueInfo& out : model_.outputs) {
    Ref value = values_[out.name];
    if (!value) continue; // reported
    if (out.is_tensor && out.type != 0 && find_dtype(out.type) != value->dtype)
      error(ErrorCode::E204, "",
            "graph output \"" + out.name + "\" is declared " + type_name(out.type) + ", but its value is " +
                name(value->dtype));
    Ref param = ctx().make(Ops::Param, value->dtype, value->shape, {{Attr::Slot, slot++}, {Attr::Name, out.name}});
    effects.push_back(ctx().make(Ops::Store, DType::Void, {param, value}));
  }
  for (const auto& [node, trap] : traps_) {
    Ref param = ctx().make(Ops::Param, DType::Bool, Refs(),
                           {{Attr::Slot, slot++}, {Attr::Name, node}, {Attr::Space, std::string("trap")}});
    effects.push_back(ctx().make(Ops::Store, DType::Void, {param, trap}));
  }
  errors_.checkpoint();
  Ref sink = ctx().make(Ops::Sink, DType::Void, effects);
  const std::vector<Ref> checks = dims_.checks(ctx());
  params_.insert(params_.end(), checks.begin(), checks.end());
  module_.root = make_func("main", sink, params_);
}

std::optional<Module> Importer::run() {
  check_limits();
  inline_functions(model_, name_, options_.limits.nodes);
  add_constants();
  add_inputs();
  check_names();
  check_operators();
  errors_.checkpoint();
  for (size_t index : order()) build(index);
  if (assumed_) return std::nullopt; // errors may vanish with it
  errors_.checkpoint();
  finish();
  return std::move(module_);
}

} // namespace
} // namespace tgc::onnx

namespace tgc {

Module import_onnx(const FileBytes& file, const std::string& name, const ImportOptions& options) {
  try {
    onnx::Importer::Source source{onnx::read_model(file.bytes), file, DimTable(options.dims)};
    for (int round = 0; round < kMaxDimRounds; ++round)
      if (std::optional<Module> module = onnx::Importer(source, name, options).run()) return std::move(*module);
    tensor::fail(ErrorCode::E207, "the conditions on symbolic dims have no end", "pin the dims: --dim NAME=VALUE");
  } catch (const CompileError& e) { // errors of the file as a whole carry no place
    std::vector<Diagnostic> all = e.all();
    for (Diagnostic& d : all)
      if (d.where.empty()) d.where = name;
    throw CompileError(std::move(all));
  }
}

} // namespace tgc
