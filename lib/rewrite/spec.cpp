// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is legal at each stage, as rule tables, and the check between passes.
//
// Arity, dtypes and shapes were checked when a node was made; a spec adds what a stage restricts: which ops there are,
// which form of an op with several (Store, Reduce, End), and what sources may be. Checks that need a node's users are
// written on the user. Bodies of called funcs belong to another stage and are verified on their own.
#include "rewrite/spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rewrite/node_map.h"
#include "rewrite/node_text.h"
#include "uop/target.h"

namespace tgc {
namespace {
constexpr Cap X{0};

Ref yes(Match& m) { return m.root(); }
Ref yes_if(bool legal, Match& m) { return legal ? m.root() : Ref(); }

bool is_elementwise(OpClass c) {
  return c == OpClass::Unary || c == OpClass::Binary || c == OpClass::Compare || c == OpClass::Ternary;
}
Pat of_class(bool (*wanted)(OpClass)) {
  OpMask ops;
  for (int o = 0; o < kNumOps; ++o) ops.set(static_cast<size_t>(o), wanted(info(static_cast<Ops>(o)).cls));
  return Pat(ops, {}, true);
}
Pat movement() {
  return of_class([](OpClass c) { return c == OpClass::Movement; });
}
Pat elementwise() { return of_class(is_elementwise); }

bool is_space(Ref buffer, std::string_view space) { return buffer->s(Attr::Space) == space; }
bool is_storage(Ref x) {
  while (x->is(Ops::After)) x = x->src[0];
  return x->is(Ops::Param) || x->is(Ops::Weight) || x->is(Ops::Buffer);
}
bool all_ranges(Refs nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](Ref r) { return r->is(Ops::Range); });
}

/// Explicit expand at tensor level: every source has the shape of the result.
Ref equal_shapes(Match& m) {
  const Ref x = m.root();
  if (x->is(Ops::Fma) || x->is(Ops::Dot4)) return {};
  return yes_if(std::all_of(x->src.begin(), x->src.end(), [&](Ref s) { return shapes_equal(s->shape, x->shape); }), m);
}

/// A dim of a shape, or a bound of a range: an Index scalar made of constants, Vars and arithmetic.
Ref index_scalar(Match& m) { return yes_if(m.root()->rank() == 0, m); }

Ref func_of_sink(Match& m) { return yes_if(m.root()->src[0]->is(Ops::Sink), m); }
Ref func_of_linear(Match& m) { return yes_if(m.root()->src[0]->is(Ops::Linear), m); }

/// eq(dim, dim) or le(dim, dim).
Ref dim_check(Match& m) {
  const Ref condition = m.root()->src[0];
  const bool compares = condition->is(Ops::Eq) || condition->is(Ops::Le);
  return yes_if(compares && condition->rank() == 0 && condition->src[0]->dtype == DType::Index, m);
}

Ref effects_only(Match& m) {
  const auto effect = [](Ref s) { return s->dtype == DType::Void; };
  return yes_if(std::all_of(m.root()->src.begin(), m.root()->src.end(), effect), m);
}

/// A whole tensor is stored to a param; whether inputs were not valid is one bool.
Ref tensor_store(Match& m) {
  const Ref param = m[X];
  return yes_if(param->is(Ops::Param) && (!is_trap(param) || (param->dtype == DType::Bool && param->rank() == 0)), m);
}

/// An output is stored once, and no value reads it.
Ref tensor_sink(Match& m) {
  if (!effects_only(m)) return {};
  NodeMap<bool> stored;
  for (Ref effect : m.root()->src)
    if (effect->is(Ops::Store) && std::exchange(stored[effect->src[0]], true)) return {};
  for (Ref node : toposort(m.root())) {
    if (node->is(Ops::Call) || node->is(Ops::After)) continue;
    for (size_t i = node->is(Ops::Store) ? 1 : 0; i < node->src.size(); ++i)
      if (is_trap(node->src[i]) || stored.find(node->src[i])) return {};
  }
  return m.root();
}

const PatternMatcher& tensor_rules() {
  static const PatternMatcher rules(
      "spec-tensor",
      {
          {"leaf", op_any_sources({Ops::Const, Ops::Param, Ops::Weight, Ops::Var, Ops::Iota}), yes},
          {"movement", movement(), yes},
          {"elementwise", elementwise(), equal_shapes},
          {"reduce", op(Ops::Reduce, {any()}), [](Match& m) { return yes_if(m.root()->has(Attr::Axes), m); }},
          {"gather", op_any_sources({Ops::Gather}), yes},
          {"store", op(Ops::Store, {X, any()}), tensor_store},
          {"call", op_any_sources({Ops::Call}), [](Match& m) { return yes_if(m.root()->src[0]->is(Ops::Func), m); }},
          {"control", op_any_sources({Ops::Tuple, Ops::Get, Ops::After}), yes},
          {"check", op_any_sources({Ops::Check}), dim_check},
          {"sink", op_any_sources({Ops::Sink}), tensor_sink},
          {"func", op_any_sources({Ops::Func}), func_of_sink},
      });
  return rules;
}

/// What the kernel declares for its slot is what the call passes. Symbolic sizes are not compared.
bool fits(Ref param, Refs arguments) {
  const int64_t slot = param->i(Attr::Slot);
  if (slot < 0 || slot >= static_cast<int64_t>(arguments.size())) return false;
  const Ref argument = arguments[static_cast<size_t>(slot)];
  const auto declared = static_shape(param->shape), passed = static_shape(argument->shape);
  if (param->dtype != argument->dtype) return false;
  const auto product = [](const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (int64_t dim : dims) n *= dim;
    return n;
  };
  return !declared || !passed || product(*declared) == product(*passed);
}

Ref plan_call(Match& m) {
  const Refs src = m.root()->src;
  if (!src[0]->is(Ops::Func) || !std::all_of(src.begin() + 1, src.end(), is_storage)) return {};
  const std::vector<Ref> body = toposort(src[0]);
  return yes_if(
      std::all_of(body.begin(), body.end(), [&](Ref x) { return !x->is(Ops::Param) || fits(x, src.subspan(1)); }), m);
}

const PatternMatcher& plan_rules() {
  static const PatternMatcher rules(
      "spec-plan",
      {
          {"leaf", op_any_sources({Ops::Const, Ops::Param, Ops::Weight, Ops::Var}), yes},
          {"buffer", op_any_sources({Ops::Buffer}), [](Match& m) { return yes_if(is_space(m.root(), "global"), m); }},
          {"dims", index(elementwise()), index_scalar},
          {"condition", op_any_sources({Ops::Eq, Ops::Le}), index_scalar},
          {"check", op_any_sources({Ops::Check}), dim_check},
          {"call", op_any_sources({Ops::Call}), plan_call},
          {"after", op_any_sources({Ops::After}), [](Match& m) { return yes_if(is_storage(m.root()->src[0]), m); }},
          {"linear", op_any_sources({Ops::Linear}), effects_only},
          {"func", op_any_sources({Ops::Func}), func_of_linear},
      });
  return rules;
}

/// Kernel arguments are flat; their size is an Index scalar.
Ref flat_param(Match& m) { return yes_if(m.root()->rank() == 1, m); }
Ref private_buffer(Match& m) { return yes_if(is_space(m.root(), "scratch") || is_space(m.root(), "reg"), m); }

bool is_access(Ref x, size_t gate) {
  return is_storage(x->src[0]) && x->src[1]->dtype == DType::Index &&
         (x->src.size() <= gate || x->src[gate]->dtype == DType::Bool);
}
Ref kernel_load(Match& m) { return yes_if(is_access(m.root(), 2), m); }
/// A kernel has one result: its argument 0. Who orders calls relies on it.
Ref kernel_store(Match& m) {
  Ref to = m.root()->src[0];
  while (to->is(Ops::After)) to = to->src[0];
  const bool is_result = !to->is(Ops::Param) || to->i(Attr::Slot) == 0;
  return yes_if(m.root()->src.size() >= 3 && is_access(m.root(), 3) && is_result, m);
}

/// Registers turned around: the lanes and another dim change places.
Ref turned(Match& m) {
  std::vector<int64_t> axes = m.root()->ints(Attr::Axes);
  const int64_t last = static_cast<int64_t>(axes.size()) - 1;
  if (last < 1 || axes.back() == last) return {};
  std::swap(axes[static_cast<size_t>(axes.back())], axes.back());
  return yes_if(std::is_sorted(axes.begin(), axes.end()), m);
}

Ref graph_end(Match& m) {
  const Refs src = m.root()->src;
  return yes_if(src.size() >= 2 && src[0]->dtype == DType::Void && all_ranges(src.subspan(1)), m);
}

/// The caller divides a thread range, so its extent is what the caller can compute: made of constants and Vars.
Ref kernel_range(Match& m) {
  const Ref extent = m.root()->src[0];
  const std::vector<Ref> nodes = toposort(extent);
  const bool is_known = std::all_of(nodes.begin(), nodes.end(), [](Ref x) {
    return x->is(Ops::Const) || x->is(Ops::Var) || (x->dtype == DType::Index && is_elementwise(x->cls()));
  });
  return yes_if(extent->rank() == 0 && (is_known || m.root()->s(Attr::Axis) != "thread"), m);
}

std::vector<Rule> kernel_common() {
  return {
      {"leaf", op_any_sources({Ops::Const, Ops::Var, Ops::Iota}), yes},
      {"range", op(Ops::Range, {any()}), kernel_range},
      {"param", op_any_sources({Ops::Param}), flat_param},
      {"buffer", op_any_sources({Ops::Buffer}), private_buffer},
      {"load", op_any_sources({Ops::Load}), kernel_load},
      {"store", op_any_sources({Ops::Store}), kernel_store},
      {"after", op_any_sources({Ops::After}), yes},
      {"permute", op_any_sources({Ops::Permute}), turned},
  };
}

const PatternMatcher& kernel_rules() {
  static const PatternMatcher rules = [] {
    std::vector<Rule> all = kernel_common();
    all.push_back({"elementwise", elementwise(), yes});
    all.push_back({"reduce", op_any_sources({Ops::Reduce}),
                   [](Match& m) { return yes_if(all_ranges(m.root()->src.subspan(1)), m); }});
    all.push_back({"stage", op_any_sources({Ops::Stage}),
                   [](Match& m) { return yes_if(all_ranges(m.root()->src.subspan(1)), m); }});
    all.push_back({"pick", op_any_sources({Ops::Pick}), yes});
    all.push_back({"end", op_any_sources({Ops::End}), graph_end});
    all.push_back({"sink", op_any_sources({Ops::Sink}), effects_only});
    all.push_back({"func", op_any_sources({Ops::Func}), func_of_sink});
    return PatternMatcher("spec-kernel", std::move(all));
  }();
  return rules;
}

/// Elementwise ops and types that the target has; comparisons and conversions count by their source's type. Index and
/// bool values are always representable.
Ref on_target(Match& m) {
  const Ref x = m.root();
  const TargetInfo* target = m.ctx().target;
  if (!target) return x;
  const auto has_type = [&](Ref v) {
    return v->dtype == DType::Index || v->dtype == DType::Bool || target->supports(v->dtype);
  };
  return yes_if(target->supports(x->op) && has_type(x) && std::all_of(x->src.begin(), x->src.end(), has_type), m);
}
const PatternMatcher& lowered_rules() {
  static const PatternMatcher rules = [] {
    std::vector<Rule> all = kernel_common();
    all.push_back({"elementwise", elementwise(), on_target});
    all.push_back({"reduce", op_any_sources({Ops::Reduce}),
                   [](Match& m) { return yes_if(all_ranges(m.root()->src.subspan(1)), m); }});
    all.push_back({"end", op_any_sources({Ops::End}), graph_end});
    all.push_back({"sink", op_any_sources({Ops::Sink}), effects_only});
    all.push_back({"func", op_any_sources({Ops::Func}), func_of_sink});
    return PatternMatcher("spec-lowered", std::move(all));
  }();
  return rules;
}

bool runs_before_use(Ref x) {
  return x->is(Ops::Const) || x->is(Ops::Param) || x->is(Ops::Var) || x->is(Ops::Iota) || x->is(Ops::Buffer);
}

/// Every source of an instruction stands before it or is a leaf, and loops nest: `end` closes the innermost open range.
Ref in_order(Match& m) {
  NodeMap<bool> done;
  std::vector<Ref> open;
  for (Ref x : m.root()->src) {
    for (Ref s : x->src)
      if (!runs_before_use(s) && !done.find(s)) return {};
    done[x] = true;
    if (x->is(Ops::Range)) open.push_back(x);
    if (!x->is(Ops::End)) continue;
    if (open.empty() || !(open.back() == x->src[0])) return {};
    open.pop_back();
  }
  return yes_if(open.empty(), m);
}

Ref executable_range(Match& m) {
  const std::string& axis = m.root()->s(Attr::Axis);
  return yes_if(kernel_range(m) && (axis == "loop" || axis == "thread" || axis == "reduce"), m);
}

const PatternMatcher& linear_rules() {
  static const PatternMatcher rules = [] {
    std::vector<Rule> all = kernel_common();
    all[1].action = executable_range;
    all.push_back({"end", op(Ops::End, {X}), [](Match& m) { return yes_if(m[X]->is(Ops::Range), m); }});
    all.push_back({"elementwise", elementwise(), on_target});
    all.push_back({"reduce", op_any_sources({Ops::Reduce}),
                   [](Match& m) { return yes_if(all_ranges(m.root()->src.subspan(1)), m); }});
    all.push_back({"linear", op_any_sources({Ops::Linear}), in_order});
    all.push_back({"func", op_any_sources({Ops::Func}), func_of_linear});
    return PatternMatcher("spec-linear", std::move(all));
  }();
  return rules;
}
} // namespace

std::span<const Spec> specs() {
  static const std::array<Spec, 5> all = {{
      {"tensor", tensor_rules(),
       "tensor graph: movement, elementwise over equal shapes, reductions over axes; each output stored once, unread"},
      {"plan", plan_rules(), "scheduled module: a linear of calls of kernels on params, weights and global buffers"},
      {"kernel", kernel_rules(),
       "one kernel over ranges: loads, stores to scratch or param 0, reductions over ranges, stages"},
      {"lowered", lowered_rules(), "one kernel without stages, in ops that the target has"},
      {"linear", linear_rules(), "one kernel as a sequence: sources first, loops opened by range and closed by end"},
  }};
  return all;
}

const Spec& spec(std::string_view name) {
  for (const Spec& s : specs())
    if (name == s.name) return s;
  internal_error(__FILE__, __LINE__, "no spec is named " + std::string(name));
}

void verify(Ref root, const Spec& spec, PassContext& context, std::string_view after) {
  PatternMatcher::Session session = spec.rules.session(context);
  for (Ref node : toposort(root)) {
    if (spec.rules.accepts(node, session)) continue;
    const std::string made = after.empty() ? "" : "after pass \"" + std::string(after) + "\": ";
    throw CompileError(Diagnostic{ErrorCode::E103, "",
                                  made + "spec \"" + spec.name + "\" does not allow " + node_text(node, 3) +
                                      " of type " + name(node->dtype) + shape_text(node->shape),
                                  std::string("the spec is: ") + spec.doc});
  }
}

} // namespace tgc
