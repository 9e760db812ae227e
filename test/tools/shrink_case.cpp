// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: a random graph that fails is too large to look at. Idea: a list of variants of it, the most drastic first;
// whoever shrinks takes the first that still fails and starts over. A variant is the same graph with one output, with a
// node replaced by a new input that has its value (all above it is gone) or by an operand of equal shape, with one
// number of all its dims made smaller, or with plainer input values. Illegal variants are not made: the builders say
// so.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "tools/random_graph.h"
#include "uop/diag.h"
#include "uop/text.h"

namespace tgc {
namespace {

constexpr int64_t kNewSlot = 1000;   // of the input that a cut makes, before slots are numbered again
constexpr int64_t kFewElements = 32; // inputs are simplified element by element up to this size

std::string hex(const HostTensor& t) {
  std::string out = "0x";
  char two[3];
  for (std::byte b : t.data) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(b));
    out += two;
  }
  return out;
}

/// A case taken apart: values that are outputs, and tensors by slot.
struct Parts {
  GraphCase whole; ///< owns the nodes; inputs are below
  std::vector<Ref> values;
  std::vector<Agree> agree;
  std::map<int64_t, HostTensor> inputs;

  Context& ctx() { return *whole.module.ctx; }
};

Parts take_apart(const GraphCase& c) {
  Parts parts;
  parts.whole = parse_case(print_case(c));
  for (Ref store : parts.whole.module.root->src[0]->src) parts.values.push_back(store->src[1]);
  parts.agree = parts.whole.agree;
  for (size_t i = 0; i < parts.whole.inputs.size(); ++i) parts.inputs[static_cast<int64_t>(i)] = parts.whole.inputs[i];
  return parts;
}

/// `values` with nodes replaced; sources of replaced nodes are not visited again.
std::vector<Ref> rebuild(Context& ctx, const std::vector<Ref>& values, std::map<uint32_t, Ref> replaced) {
  for (Ref node : toposort(values)) {
    if (replaced.contains(node->id)) continue;
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(replaced.at(s->id));
    replaced[node->id] = ctx.with_src(node, src);
  }
  std::vector<Ref> made;
  for (Ref v : values) made.push_back(replaced.at(v->id));
  return made;
}

HostTensor cropped(const HostTensor& t, const std::vector<int64_t>& shape) {
  HostTensor out = zeros(t.dtype, shape);
  const int64_t bytes = byte_size(t.dtype);
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t from = 0, rest = i;
    for (size_t axis = shape.size(), stride = 1; axis-- > 0; stride *= static_cast<size_t>(t.shape[axis])) {
      from += rest % shape[axis] * static_cast<int64_t>(stride);
      rest /= shape[axis];
    }
    std::copy_n(t.data.begin() + from * bytes, bytes, out.data.begin() + i * bytes);
  }
  return out;
}

/// Numbers the inputs that are still read, and gives each its tensor in its shape.
GraphCase put_together(Parts parts) {
  Context& ctx = parts.ctx();
  std::map<int64_t, Ref> params;
  std::set<std::string> weights;
  for (Ref node : toposort(parts.values)) {
    if (node->is(Ops::Param)) params[node->i(Attr::Slot)] = node;
    if (node->is(Ops::Weight)) weights.insert(node->s(Attr::Key));
  }
  GraphCase& c = parts.whole;
  c.inputs.clear();
  std::map<uint32_t, Ref> renamed;
  std::vector<Ref> inputs;
  for (const auto& [slot, param] : params) {
    std::vector<int64_t> shape;
    for (Ref d : param->shape) shape.push_back(eval_index(d, c.vars));
    const int64_t number = static_cast<int64_t>(inputs.size());
    c.inputs.push_back(cropped(parts.inputs.at(slot), shape));
    inputs.push_back(ctx.make(Ops::Param, param->dtype, param->shape,
                              {{Attr::Slot, number}, {Attr::Name, "x" + std::to_string(number)}}));
    renamed[param->id] = inputs.back();
  }
  std::erase_if(c.module.weights, [&](const auto& w) { return !weights.contains(w.first); });
  std::vector<Ref> stores;
  int64_t slot = static_cast<int64_t>(inputs.size());
  for (Ref v : rebuild(ctx, parts.values, renamed)) {
    const Ref out = ctx.make(Ops::Param, v->dtype, v->shape,
                             {{Attr::Slot, slot++}, {Attr::Name, "y" + std::to_string(stores.size())}});
    stores.push_back(ctx.make(Ops::Store, DType::Void, {out, v}));
  }
  c.module.root = make_func("main", ctx.make(Ops::Sink, DType::Void, stores), inputs);
  c.agree = parts.agree;
  return std::move(parts.whole);
}

/// `node` becomes an input that has its value.
void cut(Parts& parts, Ref node) {
  Context& ctx = parts.ctx();
  Module& module = parts.whole.module;
  const Ref whole = module.root;
  const int64_t outputs = static_cast<int64_t>(parts.inputs.size());
  const Ref out = ctx.make(Ops::Param, node->dtype, node->shape, {{Attr::Slot, outputs}});
  const Ref store = ctx.make(Ops::Store, DType::Void, {out, node});
  module.root = make_func("main", ctx.make(Ops::Sink, DType::Void, {store}));
  parts.inputs[kNewSlot] = eval(module, parts.whole.inputs, parts.whole.vars)[0];
  module.root = whole;
  const Ref param = ctx.make(Ops::Param, node->dtype, node->shape, {{Attr::Slot, kNewSlot}});
  parts.values = rebuild(ctx, parts.values, {{node->id, param}});
}

/// Every dim of `from` elements gets `to`.
void resize(Parts& parts, int64_t from, int64_t to) {
  std::map<uint32_t, Ref> replaced;
  for (Ref node : toposort(parts.values)) {
    if (node->dtype == DType::Index && const_int(node) == from) replaced[node->id] = parts.ctx().index(to);
    if (!node->is(Ops::Weight)) continue;
    for (Ref d : node->shape)
      if (dim_int(d) == from) throw CompileError(Diagnostic{ErrorCode::E101, "", "a weight has its bytes", ""});
  }
  parts.values = rebuild(parts.ctx(), parts.values, replaced);
}

/// The variants, one closure each; none is made yet.
using Change = std::function<void(Parts&)>;
std::vector<Change> changes(const GraphCase& c) {
  std::vector<Change> list;
  const size_t outputs = c.agree.size();
  for (size_t i = 0; i < outputs && outputs > 1; ++i)
    list.push_back([i](Parts& p) {
      p.values = {p.values[i]};
      p.agree = {p.agree[i]};
    });
  // Nodes are named by their position: the copy that a change works on has the same order.
  const GraphCase copy = parse_case(print_case(c));
  const std::vector<Ref> nodes = toposort(copy.module.root);
  const auto by_position = [](Parts& p, size_t at) { return toposort(p.whole.module.root)[at]; };
  std::set<int64_t, std::greater<>> numbers;
  for (size_t at = nodes.size(); at-- > 0;) {
    const Ref node = nodes[at];
    if (const auto n = node->dtype == DType::Index ? const_int(node) : std::nullopt) numbers.insert(*n);
    if (node->dtype == DType::Index || node->dtype == DType::Void || node->is(Ops::Const) || node->is(Ops::Param))
      continue;
    list.push_back([at, by_position](Parts& p) { cut(p, by_position(p, at)); });
    for (size_t s = 0; s < node->src.size(); ++s)
      if (node->src[s]->dtype == node->dtype && shapes_equal(node->src[s]->shape, node->shape))
        list.push_back([at, s, by_position](Parts& p) {
          const Ref replaced = by_position(p, at);
          p.values = rebuild(p.ctx(), p.values, {{replaced->id, replaced->src[s]}});
        });
  }
  for (int64_t n : numbers)
    for (int64_t smaller : {int64_t{1}, n / 2, n - 1})
      if (smaller >= 1 && smaller < n) list.push_back([n, smaller](Parts& p) { resize(p, n, smaller); });
  for (const auto& var : c.vars)
    list.push_back([name = var.first, value = var.second](Parts& p) {
      std::map<uint32_t, Ref> pinned;
      for (Ref node : toposort(p.values))
        if (node->is(Ops::Var)) pinned[node->id] = p.ctx().index(value);
      if (pinned.empty()) throw CompileError(Diagnostic{ErrorCode::E101, "", "no dim is symbolic", ""});
      p.values = rebuild(p.ctx(), p.values, pinned);
    });
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const int64_t slot = static_cast<int64_t>(i), n = c.inputs[i].numel(), size = byte_size(c.inputs[i].dtype);
    const auto is_zero = [&](int64_t from, int64_t count) {
      return std::all_of(c.inputs[i].data.begin() + from * size, c.inputs[i].data.begin() + (from + count) * size,
                         [](std::byte b) { return b == std::byte{0}; });
    };
    const auto clear = [&](int64_t from, int64_t count) {
      if (is_zero(from, count)) return;
      list.push_back(
          [=](Parts& p) { std::fill_n(p.inputs.at(slot).data.begin() + from * size, count * size, std::byte{0}); });
    };
    clear(0, n);
    for (int64_t at = 0; at < n && n <= kFewElements; ++at) clear(at, 1);
  }
  return list;
}

} // namespace

std::string print_case(const GraphCase& c) {
  const std::string text = print(c.module);
  const size_t line = text.find('\n') + 1;
  std::string notes;
  for (const auto& [name, value] : c.vars) notes += "; dim " + name + " = " + std::to_string(value) + "\n";
  for (size_t i = 0; i < c.inputs.size(); ++i)
    notes += "; input " + std::to_string(i) + " = " + hex(c.inputs[i]) + "\n";
  notes += "; agree";
  for (Agree a : c.agree) notes += " " + std::to_string(static_cast<int>(a));
  return text.substr(0, line) + notes + "\n" + text.substr(line);
}

GraphCase parse_case(const std::string& text) {
  GraphCase c;
  c.module = parse(text, "case");
  std::map<int64_t, Ref> params;
  for (Ref node : toposort(c.module.root))
    if (node->is(Ops::Param)) params[node->i(Attr::Slot)] = node;
  std::istringstream lines(text);
  for (std::string line, mark, kind, name, equals, value; std::getline(lines, line);) {
    std::istringstream words(line);
    if (!(words >> mark >> kind) || mark != ";") continue;
    if (kind == "dim" && words >> name >> equals >> value) c.vars[name] = std::stoll(value);
    for (int a; kind == "agree" && words >> a;) c.agree.push_back(static_cast<Agree>(a));
    if (kind != "input" || !(words >> name >> equals >> value)) continue;
    const Ref param = params.at(std::stoll(name));
    std::vector<int64_t> shape;
    for (Ref d : param->shape) shape.push_back(eval_index(d, c.vars));
    HostTensor t = zeros(param->dtype, shape);
    for (size_t i = 0; i < t.data.size() && 2 * i + 4 <= value.size(); ++i)
      t.data[i] = static_cast<std::byte>(std::stoul(value.substr(2 * i + 2, 2), nullptr, 16));
    c.inputs.push_back(std::move(t));
  }
  return c;
}

Variant shrink_variant(const GraphCase& c, int n) {
  const std::vector<Change> list = changes(c);
  Variant variant;
  variant.is_last = n >= static_cast<int>(list.size());
  if (variant.is_last) return variant;
  try {
    Parts parts = take_apart(c);
    list[static_cast<size_t>(n)](parts);
    variant.made = put_together(std::move(parts));
    variant.exists = print_case(variant.made) != print_case(c);
  } catch (const CompileError&) { // the builders refuse it
  }
  return variant;
}

} // namespace tgc
