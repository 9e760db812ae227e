// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Patterns as values and the matcher that runs them.
//
// A pattern is built once, by operators, as a small flat tree. A matcher compiles each rule to straight-line programs:
// one step per pattern node, parents first, each step a few tests on one source of an earlier step's node. Every order
// of every commutative node becomes a program of its own, so matching never backtracks and never allocates, and all
// bindings are offered to the action until it accepts one.
// Not handled: patterns over a variable number of sources (actions read them from the node).
// The pattern language is after tinygrad's UPat (tinygrad/uop/ops.py).
#include "rewrite/pattern.h"

#include <bit>
#include <charconv>
#include <set>

namespace tgc {
namespace {
constexpr int kMaxSteps = 16;
constexpr int kMaxCommutative = 4;

bool is_commutative(Ops o) {
  switch (o) {
  case Ops::Add:
  case Ops::Mul:
  case Ops::Max:
  case Ops::Min:
  case Ops::And:
  case Ops::Or:
  case Ops::Xor:
  case Ops::Eq:
  case Ops::Ne: return true;
  default: return false;
  }
}

OpMask mask_of(std::initializer_list<Ops> ops) {
  OpMask mask;
  for (Ops o : ops) mask.set(static_cast<size_t>(o));
  return mask;
}

OpMask all_ops() { return OpMask().set(); }
DTypeMask all_dtypes() { return DTypeMask().set(); }

bool same_shape(Ref a, Ref b) {
  return a->shape.data() == b->shape.data() ? a->shape.size() == b->shape.size() : shapes_equal(a->shape, b->shape);
}

int count_commutative(const Pat& p) {
  int n = 0;
  for (const Pat::Node& node : p.nodes()) n += node.commutative;
  return n;
}

std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

bool literal_matches(double value, Ref node) {
  if (const std::optional<double> f = const_float(node))
    return std::bit_cast<uint64_t>(*f) == std::bit_cast<uint64_t>(value);
  const std::optional<int64_t> i = const_int(node);
  return i && static_cast<double>(*i) == value;
}
} // namespace

// ---- building -------------------------------------------------------------------------------------------------------
Pat::Pat(Cap capture) {
  Node n;
  n.ops = all_ops(), n.dtypes = all_dtypes(), n.capture = capture.index;
  nodes_.push_back(std::move(n));
}

Pat::Pat(double literal) {
  Node n;
  n.ops = mask_of({Ops::Const}), n.dtypes = all_dtypes(), n.literal = true, n.value = literal;
  nodes_.push_back(std::move(n));
}

Pat::Pat(OpMask ops, std::vector<Pat> sources, bool any_sources) {
  Node n;
  n.ops = ops, n.dtypes = all_dtypes(), n.any_sources = any_sources;
  n.commutative = sources.size() == 2;
  for (size_t o = 0; o < ops.size(); ++o)
    if (ops.test(o) && !is_commutative(static_cast<Ops>(o))) n.commutative = false;
  for (const Pat& source : sources) {
    const int offset = static_cast<int>(nodes_.size());
    for (Node copy : source.nodes_) {
      for (int& s : copy.src) s += offset;
      nodes_.push_back(std::move(copy));
    }
    n.src.push_back(static_cast<int>(nodes_.size()) - 1);
  }
  nodes_.push_back(std::move(n));
}

Pat Pat::as(Cap capture) const {
  Pat p = *this;
  TGC_CHECK(root().capture < 0, "a pattern node is captured twice");
  p.nodes_.back().capture = capture.index;
  return p;
}

Pat Pat::ordered() const {
  Pat p = *this;
  p.nodes_.back().commutative = false;
  return p;
}

Pat Pat::where_dtype(DTypeMask allowed) const {
  Pat p = *this;
  p.nodes_.back().dtypes &= allowed;
  return p;
}

Pat Pat::with(Attr attr, std::string value) const {
  Pat p = *this;
  p.nodes_.back().attr = static_cast<int>(attr);
  p.nodes_.back().attr_value = std::move(value);
  return p;
}

Pat any() { return Pat(all_ops(), {}, true); }
Pat cst(Cap c) { return Pat(mask_of({Ops::Const}), {}).as(c); }
Pat op(Ops o, std::vector<Pat> sources) { return Pat(mask_of({o}), std::move(sources)); }
Pat op(std::initializer_list<Ops> any_of, std::vector<Pat> sources) { return Pat(mask_of(any_of), std::move(sources)); }
Pat op_any_sources(std::initializer_list<Ops> any_of) { return Pat(mask_of(any_of), {}, true); }

DTypeMask dtype_mask(bool (*predicate)(DType)) {
  DTypeMask mask;
  for (int t = 0; t < kNumDTypes; ++t) mask.set(static_cast<size_t>(t), predicate(static_cast<DType>(t)));
  return mask;
}
Pat floats(const Pat& p) { return p.where_dtype(dtype_mask(is_float)); }
Pat ints(const Pat& p) { return p.where_dtype(dtype_mask(is_int)); }
Pat index(const Pat& p) { return of_dtype(DType::Index, p); }
Pat bools(const Pat& p) { return of_dtype(DType::Bool, p); }
Pat of_dtype(DType t, const Pat& p) { return p.where_dtype(DTypeMask().set(static_cast<size_t>(t))); }

Pat operator+(const Pat& a, const Pat& b) { return op(Ops::Add, {a, b}); }
Pat operator-(const Pat& a, const Pat& b) { return op(Ops::Sub, {a, b}); }
Pat operator*(const Pat& a, const Pat& b) { return op(Ops::Mul, {a, b}); }
Pat operator/(const Pat& a, const Pat& b) { return op(Ops::Div, {a, b}); }
Pat operator%(const Pat& a, const Pat& b) { return op(Ops::Mod, {a, b}); }
Pat operator&(const Pat& a, const Pat& b) { return op(Ops::And, {a, b}); }
Pat operator|(const Pat& a, const Pat& b) { return op(Ops::Or, {a, b}); }
Pat operator^(const Pat& a, const Pat& b) { return op(Ops::Xor, {a, b}); }
Pat operator<(const Pat& a, const Pat& b) { return op(Ops::Lt, {a, b}); }
Pat operator<=(const Pat& a, const Pat& b) { return op(Ops::Le, {a, b}); }
Pat operator-(const Pat& a) { return op(Ops::Neg, {a}); }
Pat operator~(const Pat& a) { return op(Ops::Not, {a}); }
Pat eq(const Pat& a, const Pat& b) { return op(Ops::Eq, {a, b}); }
Pat ne(const Pat& a, const Pat& b) { return op(Ops::Ne, {a, b}); }
Pat max(const Pat& a, const Pat& b) { return op(Ops::Max, {a, b}); }
Pat min(const Pat& a, const Pat& b) { return op(Ops::Min, {a, b}); }
Pat floordiv(const Pat& a, const Pat& b) { return op(Ops::FloorDiv, {a, b}); }
Pat floormod(const Pat& a, const Pat& b) { return op(Ops::FloorMod, {a, b}); }
Pat where(const Pat& c, const Pat& a, const Pat& b) { return op(Ops::Where, {c, a, b}); }
Pat cast(const Pat& a) { return op(Ops::Cast, {a}); }

// ---- printing -------------------------------------------------------------------------------------------------------
namespace {
std::string node_text(const Pat& p, int at) {
  const Pat::Node& n = p.nodes()[static_cast<size_t>(at)];
  if (n.literal) return number_text(n.value);
  const std::string capture = n.capture < 0 ? "" : "?" + std::to_string(n.capture);
  std::string text;
  if (!n.ops.all()) {
    text = capture.empty() ? "(" : capture + ":(";
    const char* separator = "";
    for (size_t o = 0; o < n.ops.size(); ++o)
      if (n.ops.test(o)) text += separator + std::string(name(static_cast<Ops>(o))), separator = "|";
    for (int s : n.src) text += " " + node_text(p, s);
    text += n.any_sources ? " ...)" : ")";
  } else {
    text = capture.empty() ? "_" : capture;
  }
  if (n.attr >= 0) text += "{" + std::string(info(static_cast<Attr>(n.attr)).name) + "=" + n.attr_value + "}";
  if (n.dtypes.all()) return text;
  const char* separator = ".";
  for (size_t t = 0; t < n.dtypes.size(); ++t)
    if (n.dtypes.test(t)) text += separator + std::string(name(static_cast<DType>(t))), separator = "|";
  return text;
}
} // namespace
std::string to_string(const Pat& pattern) { return node_text(pattern, static_cast<int>(pattern.nodes().size()) - 1); }

// ---- compiling ------------------------------------------------------------------------------------------------------
PatternMatcher::PatternMatcher(std::string name, std::vector<Rule> rules, unsigned tags)
    : name_(std::move(name)), rules_(std::move(rules)) {
  std::set<std::string> names;
  for (Rule& rule : rules_) {
    rule.tags |= tags;
    if (rule.table.empty()) rule.table = name_;
    TGC_CHECK(names.insert(rule.full_name()).second, "two rules are named " + rule.full_name());
    compile(rule);
  }
}

PatternMatcher operator+(const PatternMatcher& a, const PatternMatcher& b) {
  std::vector<Rule> rules = a.rules_;
  rules.insert(rules.end(), b.rules_.begin(), b.rules_.end());
  return PatternMatcher(a.name_ + "+" + b.name_, std::move(rules));
}

void PatternMatcher::compile(const Rule& rule) {
  const Pat::Node& root = rule.pattern.nodes().back();
  Program program;
  for (int s : root.src) {
    const OpMask& ops = rule.pattern.nodes()[static_cast<size_t>(s)].ops;
    if (ops.count() == 1) program.needs |= ops;
  }
  const int commutative = count_commutative(rule.pattern);
  TGC_CHECK(commutative <= kMaxCommutative && rule.pattern.nodes().size() <= kMaxSteps,
            "pattern too large: " + rule.full_name());
  for (unsigned swaps = 0; swaps < (1u << commutative); ++swaps) {
    const int begin = static_cast<int>(steps_.size());
    add_variant(rule.pattern, swaps);
    program.variants.emplace_back(begin, static_cast<int>(steps_.size()));
  }
  programs_.push_back(std::move(program));
  const auto number = static_cast<uint16_t>(programs_.size() - 1);
  for (size_t o = 0; o < by_op_.size(); ++o)
    if (root.ops.test(o)) by_op_[o].push_back(number);
}

void PatternMatcher::add_variant(const Pat& pattern, unsigned swaps) {
  struct Todo {
    int node, parent, source;
  };
  const size_t begin = steps_.size();
  std::vector<Todo> todo = {{static_cast<int>(pattern.nodes().size()) - 1, -1, 0}};
  std::bitset<kMaxCaptures> bound;
  int commutative = 0;
  while (!todo.empty()) {
    const Todo at = todo.back();
    todo.pop_back();
    const Pat::Node& n = pattern.nodes()[static_cast<size_t>(at.node)];
    Step step;
    step.ops = n.ops, step.dtypes = n.dtypes, step.literal = n.literal, step.value = n.value;
    step.parent = static_cast<int8_t>(at.parent), step.source = static_cast<int8_t>(at.source);
    step.num_src = n.any_sources || n.literal ? int8_t{-1} : static_cast<int8_t>(n.src.size());
    step.attr = static_cast<int8_t>(n.attr), step.attr_value = n.attr_value;
    step.capture = static_cast<int8_t>(n.capture);
    if (n.capture >= 0) {
      TGC_CHECK(n.capture < kMaxCaptures, "too many captures: " + to_string(pattern));
      step.bound = bound.test(static_cast<size_t>(n.capture));
      bound.set(static_cast<size_t>(n.capture));
    }
    const int number = static_cast<int>(steps_.size() - begin);
    const bool swap = n.commutative && ((swaps >> commutative++) & 1) != 0;
    for (size_t s = n.src.size(); s-- > 0;) todo.push_back({n.src[s], number, static_cast<int>(swap ? 1 - s : s)});
    steps_.push_back(std::move(step));
  }
}

// ---- matching -------------------------------------------------------------------------------------------------------
bool PatternMatcher::matches(const Step& step, Ref node) {
  if (!step.ops.test(static_cast<size_t>(node->op)) || !step.dtypes.test(static_cast<size_t>(node->dtype)))
    return false;
  if (step.num_src >= 0 && node->src.size() != static_cast<size_t>(step.num_src)) return false;
  if (step.literal && !literal_matches(step.value, node)) return false;
  if (step.attr < 0) return true;
  const AttrValue* value = node->find(static_cast<Attr>(step.attr));
  const std::string* text = value ? std::get_if<std::string>(value) : nullptr;
  return text && *text == step.attr_value;
}

bool PatternMatcher::matches(std::pair<int, int> variant, Ref node, Match& m) const {
  Ref at[kMaxSteps];
  for (int i = variant.first; i < variant.second; ++i) {
    const Step& step = steps_[static_cast<size_t>(i)];
    const Ref x = step.parent < 0 ? node : at[step.parent]->src[static_cast<size_t>(step.source)];
    if (!matches(step, x)) return false;
    if (step.capture >= 0) {
      Ref& slot = m.captures_[static_cast<size_t>(step.capture)];
      if (!step.bound)
        slot = x;
      else if (!(slot == x))
        return false;
    }
    at[i - variant.first] = x;
  }
  return true;
}

PatternMatcher::Session PatternMatcher::session(PassContext& context) const {
  Session s;
  s.context = &context;
  const bool strict = context.numerics == Numerics::Strict, fast = context.numerics == Numerics::Fast;
  s.off.resize(rules_.size());
  for (size_t i = 0; i < rules_.size(); ++i) {
    const bool illegal = ((rules_[i].tags & kFast) && !fast) || ((rules_[i].tags & kStandard) && strict);
    s.off[i] = illegal || (!context.disabled_rules.empty() && context.disabled_rules.count(rules_[i].full_name()) != 0);
  }
  return s;
}

/// The first result of an action, over rules and orders of sources, that `accept(rule, result)` takes.
template <typename Accept> Ref PatternMatcher::first(Ref node, Session& session, Accept accept) const {
  const std::vector<uint16_t>& candidates = by_op_[static_cast<size_t>(node->op)];
  if (candidates.empty()) return {};
  OpMask has;
  for (Ref s : node->src) has.set(static_cast<size_t>(s->op));
  const OpMask lacks = ~has;
  Match m;
  m.root_ = node;
  m.context_ = session.context;
  for (uint16_t number : candidates) {
    const Program& program = programs_[number];
    if ((program.needs & lacks).any() || session.off[number]) continue;
    if (session.counts) ++session.counts[number].attempts;
    for (const std::pair<int, int>& variant : program.variants) {
      if (!matches(variant, node, m)) continue;
      const Ref out = rules_[number].action(m);
      if (!out || !accept(rules_[number], out)) continue;
      if (session.counts) ++session.counts[number].hits;
      session.fired = number;
      return out;
    }
  }
  return {};
}

Ref PatternMatcher::apply(Ref node, Session& session) const {
  return first(node, session, [node](const Rule& rule, Ref out) {
    if (out == node) return false;
    return !(rule.tags & kSameValue) || (out->dtype == node->dtype && same_shape(out, node));
  });
}

bool PatternMatcher::accepts(Ref node, Session& session) const {
  return static_cast<bool>(first(node, session, [](const Rule&, Ref) { return true; }));
}

Ref PatternMatcher::rewrite(Ref node, PassContext& context) const {
  Session s = session(context);
  return apply(node, s);
}

} // namespace tgc
