// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: exporters describe operators by functions that the model brings along, nested and with attributes.
// Idea: a call is replaced by the function's nodes with names of their own, until no calls are left. Formal names
// become the call's, other names get the call's name as a prefix; an attribute that stands for one of the function's
// takes the call's value, else the function's default, else it is absent. Nodes keep the opset of their function. Calls
// multiply what a small file holds, so depth, nodes and bytes are bounded.
// Source: onnx.proto, FunctionProto. Which wins when a function has the name of an operator is left to runtimes: here
// the model's function.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "frontend/onnx/model.h"
#include "uop/diag.h"

namespace tgc::onnx {

int64_t opset_of(const Model& model, const Node& node) {
  if (node.opset) return *node.opset;
  auto found = model.opsets.find(node.domain);
  if (found != model.opsets.end()) return found->second;
  return node.domain.empty() ? 1 : 0; // models of IR version 1 and 2 import nothing
}

std::string full_op(const Node& node) { return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type; }

std::string place_of(const std::string& file, const Model& model, const Node& node, size_t index) {
  std::string label = node.name.empty() ? "node #" + std::to_string(index) : "node \"" + node.name + "\"";
  return file + ": " + label + " (" + full_op(node) + ", opset " + std::to_string(opset_of(model, node)) + ")";
}

namespace {

constexpr int kMostNested = 256;                 ///< calls within calls
constexpr size_t kMostBytes = size_t{512} << 20; ///< of what all calls make

size_t size_of(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += sizeof(std::string) + text.size();
  return bytes;
}

size_t size_of(const Attribute& a);

/// Bytes that a copy takes, about. The elements of tensors are not copied.
size_t size_of(const Node& node) {
  size_t bytes = sizeof node + node.name.size() + node.op_type.size() + node.domain.size() + node.overload.size();
  bytes += size_of(node.inputs) + size_of(node.outputs);
  for (const Attribute& a : node.attributes) bytes += size_of(a);
  return bytes;
}

size_t size_of(const Attribute& a) {
  size_t bytes = sizeof a + a.name.size() + a.s.size() + a.floats.size() * sizeof(float);
  bytes += a.ints.size() * sizeof(int64_t) + size_of(a.strings);
  for (const Tensor& t : a.tensors) bytes += sizeof t + t.name.size() + t.dims.size() * sizeof(int64_t);
  for (const Node& n : a.nodes) bytes += size_of(n);
  return bytes;
}

class Inliner {
public:
  Inliner(Model& model, const std::string& file, int64_t most_nodes)
      : model_(model), file_(file), most_nodes_(static_cast<size_t>(most_nodes)) {}
  void run();

private:
  /// A node to place, and the call that it comes from (-1: none).
  struct Pending {
    Node node;
    int call;
  };
  struct Call {
    const Function* function;
    int parent, depth;
  };
  using Names = std::map<std::string, std::string>;

  Model& model_;
  const std::string& file_;
  size_t most_nodes_;
  std::map<std::tuple<std::string, std::string, std::string>, const Function*> functions_;
  std::set<std::string> taken_;
  std::map<std::string, size_t> copies_; ///< of each name that was taken
  size_t bytes_ = 0;
  std::vector<Call> calls_;
  std::vector<Pending> pending_; ///< the next one last
  Diagnostics errors_;

  void index_functions();
  const Function* function_of(const Node& node) const;
  bool is_open(const Function* function, int call) const;
  bool fits(const Node& node, const Function& function);
  void enter(const Node& call, const Function& function, int parent);
  void expand(const Node& call, const Function& function);
  void charge(const Node& call, size_t bytes);
  Names actual_names(const Node& call, const Function& function);
  std::string fresh(const std::string& name);
  void error(const Node& node, std::string message, std::string note = "") {
    errors_.error({ErrorCode::E204, place_of(file_, model_, node, 0), std::move(message), std::move(note)});
  }
};

void Inliner::index_functions() {
  for (const Function& f : model_.functions)
    if (!functions_.emplace(std::tuple(f.domain, f.name, f.overload), &f).second)
      errors_.error({ErrorCode::E204, file_,
                     "two functions are named " + (f.domain.empty() ? "" : f.domain + ".") + f.name +
                         (f.overload.empty() ? "" : ", overload " + f.overload),
                     ""});
}

const Function* Inliner::function_of(const Node& node) const {
  auto found = functions_.find({node.domain, node.op_type, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

/// Whether `function` is among the callers of a node of `call`.
bool Inliner::is_open(const Function* function, int call) const {
  for (; call >= 0; call = calls_[static_cast<size_t>(call)].parent)
    if (calls_[static_cast<size_t>(call)].function == function) return true;
  return false;
}

bool Inliner::fits(const Node& node, const Function& function) {
  auto check = [&](bool holds, const std::string& message) {
    if (!holds) error(node, message);
    return holds;
  };
  bool ok = check(node.inputs.size() <= function.inputs.size(), "has " + std::to_string(node.inputs.size()) +
                                                                    " inputs, the function takes " +
                                                                    std::to_string(function.inputs.size()));
  ok &= check(node.outputs.size() <= function.outputs.size(), "has " + std::to_string(node.outputs.size()) +
                                                                  " outputs, the function makes " +
                                                                  std::to_string(function.outputs.size()));
  if (node.attributes.empty()) return ok;
  std::set<std::string_view> known(function.attributes.begin(), function.attributes.end());
  for (const Attribute& a : function.defaults) known.insert(a.name);
  for (const Attribute& a : node.attributes)
    ok &= check(known.count(a.name) > 0, "attribute " + a.name + " is not one of the function's attributes");
  return ok;
}

/// `name`, or `name'2` and so on if other values have it.
std::string Inliner::fresh(const std::string& name) {
  if (taken_.insert(name).second) return name;
  for (size_t& copies = copies_.emplace(name, 1).first->second;;) {
    std::string unique = name + "'" + std::to_string(++copies);
    if (taken_.insert(unique).second) return unique;
  }
}

void Inliner::charge(const Node& call, size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMostBytes)
    throw CompileError(
        Diagnostic{ErrorCode::E207, place_of(file_, model_, call, 0),
                   "inlining the model's functions takes more than " + std::to_string(kMostBytes >> 20) + " MiB",
                   "export the model without local functions, or with shorter names"});
}

/// Opens the call, whose function's signature every step below walks.
void Inliner::enter(const Node& call, const Function& function, int parent) {
  const int depth = parent < 0 ? 1 : calls_[static_cast<size_t>(parent)].depth + 1;
  if (depth > kMostNested)
    throw CompileError(Diagnostic{ErrorCode::E207, place_of(file_, model_, call, 0),
                                  "calls of functions are nested more than " + std::to_string(kMostNested) + " deep",
                                  "export the model without local functions"});
  calls_.push_back({&function, parent, depth});
  charge(call, size_of(function.inputs) + size_of(function.outputs) + size_of(function.attributes) +
                   function.defaults.size() * sizeof(Attribute));
}

/// What every name of the function's body is called in the graph. Formal operands that the call leaves out are "".
Inliner::Names Inliner::actual_names(const Node& call, const Function& function) {
  Names names{{"", ""}};
  for (size_t i = 0; i < function.inputs.size(); ++i)
    names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
  for (size_t i = 0; i < function.outputs.size() && i < call.outputs.size(); ++i)
    if (!call.outputs[i].empty()) names.emplace(function.outputs[i], call.outputs[i]); // an input passed on: see expand
  for (const Node& n : function.nodes)
    for (const std::string& out : n.outputs)
      if (!names.count(out)) names[out] = fresh(call.name + "/" + out);
  return names;
}

using Given = std::map<std::string_view, const Attribute*>;

/// The values of the function's attributes.
Given given_attributes(const Node& call, const Function& function) {
  Given given;
  for (const std::vector<Attribute>* source : {&call.attributes, &function.defaults})
    for (const Attribute& a : *source) given.emplace(a.name, &a);
  return given;
}

void Inliner::expand(const Node& call, const Function& function) {
  const int self = static_cast<int>(calls_.size()) - 1;
  const Names names = actual_names(call, function);
  const Given given = given_attributes(call, function);
  auto actual = [&](const std::string& name) {
    auto found = names.find(name);
    return found == names.end() ? call.name + "/" + name : found->second; // made by no node: reported later
  };
  for (size_t i = call.outputs.size(); i-- > 0;) {
    const std::string& formal = function.outputs[i];
    if (call.outputs[i].empty() || actual(formal) == call.outputs[i]) continue;
    Node copy; // two outputs of one name, or an input that is an output
    copy.name = call.name + "/" + formal;
    copy.op_type = "Identity";
    copy.inputs = {actual(formal)};
    copy.outputs = {call.outputs[i]};
    pending_.push_back({copy, self});
  }
  for (size_t i = function.nodes.size(); i-- > 0;) {
    Node n = function.nodes[i];
    n.name = call.name + "/" + (n.name.empty() ? "#" + std::to_string(i) : n.name);
    for (std::string& in : n.inputs) in = actual(in);
    for (std::string& out : n.outputs) out = actual(out);
    std::erase_if(n.attributes, [&](const Attribute& a) { return !a.reference.empty() && !given.count(a.reference); });
    for (Attribute& a : n.attributes) {
      if (a.reference.empty()) continue;
      const Attribute& value = *given.at(a.reference);
      charge(call, size_of(value));
      const std::string name = std::exchange(a, value).name;
      a.name = name;
    }
    charge(call, size_of(n));
    auto opset = function.opsets.find(n.domain);
    if (opset != function.opsets.end()) n.opset = opset->second;
    pending_.push_back({std::move(n), self});
  }
}

void Inliner::run() {
  index_functions();
  errors_.checkpoint();
  for (const Tensor& t : model_.initializers) taken_.insert(t.name);
  for (const ValueInfo& v : model_.inputs) taken_.insert(v.name);
  for (size_t i = model_.nodes.size(); i-- > 0;) {
    Node& n = model_.nodes[i];
    if (n.name.empty()) n.name = "#" + std::to_string(i);
    taken_.insert(n.outputs.begin(), n.outputs.end());
    pending_.push_back({std::move(n), -1});
  }
  std::vector<Node> placed;
  while (!pending_.empty()) {
    Pending next = std::move(pending_.back());
    pending_.pop_back();
    const Function* function = function_of(next.node);
    if (!function) {
      placed.push_back(std::move(next.node));
    } else if (is_open(function, next.call)) {
      error(next.node, "the function calls itself");
    } else if (fits(next.node, *function)) {
      enter(next.node, *function, next.call);
      expand(next.node, *function);
    }
    if (placed.size() + pending_.size() > most_nodes_ || calls_.size() > most_nodes_)
      throw CompileError(Diagnostic{ErrorCode::E207, file_,
                                    "inlining its functions gives more than " + std::to_string(most_nodes_) + " nodes",
                                    ""});
  }
  model_.nodes = std::move(placed);
  errors_.checkpoint();
}

} // namespace

void inline_functions(Model& model, const std::string& file, int64_t most_nodes) {
  if (!model.functions.empty()) Inliner(model, file, most_nodes).run();
}

} // namespace tgc::onnx
