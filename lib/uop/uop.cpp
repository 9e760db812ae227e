// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nodes and their one factory. A Context interns nodes in an open-addressing table keyed by a content hash, so equal
// nodes are one pointer; the same hash is the structural order that everything visible is sorted by. Nodes, source
// lists and shapes live in a bump arena and die with the Context: a compile is short-lived and frees nothing early.
// Everything derived (dtype, shape, bounds, open ranges) is computed here from the sources, once. Nothing is folded.
// Idea: tinygrad/uop/ops.py (UOp and its metaclass cache).
#include "uop/uop.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <memory_resource>

#include "uop/diag.h"
#include "uop/infer.h"

namespace tgc {
namespace {

constexpr OpInfo kOps[] = {
#define TGC_OP(Name, text, min_src, max_src, cls, dtype, shape, attrs, doc)                                            \
  {text, min_src, max_src, OpClass::cls, DTypeRule::dtype, ShapeRule::shape, attrs, doc},
#include "uop/ops.def"
};
constexpr AttrInfo kAttrs[] = {
#define TGC_ATTR(Name, text, type) {text, AttrType::type},
#include "uop/attrs.def"
};
constexpr int kNumAttrs = static_cast<int>(std::size(kAttrs));

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return h ^ (h >> 27);
}

uint64_t hash_value(const AttrValue& value) {
  uint64_t h = value.index() + 1;
  if (const int64_t* i = std::get_if<int64_t>(&value)) return mix(h, static_cast<uint64_t>(*i));
  if (const double* d = std::get_if<double>(&value)) return mix(h, std::bit_cast<uint64_t>(*d));
  if (const std::string* s = std::get_if<std::string>(&value)) {
    for (char c : *s) h = mix(h, static_cast<unsigned char>(c));
    return mix(h, s->size());
  }
  for (int64_t i : std::get<std::vector<int64_t>>(value)) h = mix(h, static_cast<uint64_t>(i));
  return mix(h, std::get<std::vector<int64_t>>(value).size());
}

/// Equality of attributes with doubles compared by bits: -0 differs from 0, NaN equals NaN.
bool same_value(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const double* d = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*d) == std::bit_cast<uint64_t>(std::get<double>(b));
  return a == b;
}

bool same_attrs(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const AttrItem& x, const AttrItem& y) {
    return x.key == y.key && same_value(x.value, y.value);
  });
}

/// Does the space-separated attribute list of an op hold `name`, and is it optional there?
enum class Listed : uint8_t { No, Required, Optional };
Listed find_listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    std::string_view word = list.substr(0, end);
    bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    if (word == name) return optional ? Listed::Optional : Listed::Required;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return Listed::No;
}

bool type_fits(AttrType type, const AttrValue& v) {
  switch (type) {
  case AttrType::Int: return std::holds_alternative<int64_t>(v);
  case AttrType::Number: return std::holds_alternative<int64_t>(v) || std::holds_alternative<double>(v);
  case AttrType::String: return std::holds_alternative<std::string>(v);
  case AttrType::Ints: return std::holds_alternative<std::vector<int64_t>>(v);
  }
  return false;
}

void check_attrs(Ops op, const Attrs& attrs) {
  for (size_t i = 0; i < attrs.size(); ++i) {
    const AttrInfo& a = info(attrs[i].key);
    if (find_listed(info(op).attrs, a.name) == Listed::No)
      illegal_node(op, std::string("takes no attribute ") + a.name);
    if (!type_fits(a.type, attrs[i].value))
      illegal_node(op, std::string("attribute ") + a.name + " has the wrong type");
    if (i > 0 && attrs[i - 1].key == attrs[i].key)
      illegal_node(op, std::string("attribute ") + a.name + " is given twice");
  }
  for (int k = 0; k < kNumAttrs; ++k) {
    if (find_listed(info(op).attrs, kAttrs[k].name) != Listed::Required) continue;
    bool present =
        std::any_of(attrs.begin(), attrs.end(), [k](const AttrItem& a) { return static_cast<int>(a.key) == k; });
    if (!present) illegal_node(op, std::string("needs attribute ") + kAttrs[k].name);
  }
}

/// A Const's value in its one form: int64 for integers and bool, rounded double with one NaN for floats.
AttrValue canonical_value(DType dtype, const AttrValue& value) {
  if (!is_float(dtype)) {
    if (!std::holds_alternative<int64_t>(value))
      illegal_node(Ops::Const, std::string("a float value given for ") + name(dtype));
    return wrap_to(dtype, std::get<int64_t>(value));
  }
  double v =
      std::holds_alternative<double>(value) ? std::get<double>(value) : static_cast<double>(std::get<int64_t>(value));
  return std::isnan(v) ? std::numeric_limits<double>::quiet_NaN() : round_to(dtype, v);
}

bool is_byte(DType t) { return t == DType::I8 || t == DType::U8; }

DType infer_dtype(Ops op, DType given, Refs src) {
  switch (info(op).dtype) {
  case DTypeRule::Given: return given;
  case DTypeRule::Src0: return src[0]->dtype;
  case DTypeRule::Src1: return src[1]->dtype;
  case DTypeRule::Bool: return DType::Bool;
  case DTypeRule::Void: return DType::Void;
  case DTypeRule::Index: return DType::Index;
  case DTypeRule::Loaded: return given == DType::I32 && is_byte(src[0]->dtype) ? given : src[0]->dtype;
  }
  return DType::Void;
}

void check_source_types(Ops op, DType dtype, Refs src) {
  auto need = [&](bool ok, const char* what) {
    if (!ok) illegal_node(op, what);
  };
  OpClass cls = info(op).cls;
  if (cls == OpClass::Binary || cls == OpClass::Compare)
    need(src[0]->dtype == src[1]->dtype, "sources have different dtypes");
  if (cls == OpClass::Binary || cls == OpClass::Compare || cls == OpClass::Unary)
    need(src[0]->dtype != DType::Void, "source has no value");
  if (op == Ops::Where) need(src[0]->dtype == DType::Bool && src[1]->dtype == src[2]->dtype, "needs (bool, T, T)");
  if (op == Ops::Dot4)
    need(dtype == DType::I32 && src[1]->dtype == dtype && src[2]->dtype == dtype, "sources must be i32");
  if (op == Ops::Fma) need(src[1]->dtype == dtype && src[2]->dtype == dtype, "sources have different dtypes");
  if (op == Ops::Bitcast) need(byte_size(src[0]->dtype) == byte_size(dtype), "changes the element size");
  if (info(op).shape == ShapeRule::Dims || (cls == OpClass::Movement && op != Ops::Permute && op != Ops::Flip)) {
    Refs dims = info(op).shape == ShapeRule::Dims ? src : src.subspan(1);
    for (Ref d : dims) need(d->dtype == DType::Index && d->rank() == 0, "dims must be index scalars");
  }
  if (op == Ops::Reduce || op == Ops::Stage || op == Ops::End)
    for (Ref r : src.subspan(1)) need(r->is(Ops::Range), "sources after the first must be ranges");
}

bool range_less(Ref a, Ref b) {
  int64_t x = a->i(Attr::Id), y = b->i(Attr::Id);
  return x != y ? x < y : a->hash < b->hash;
}

/// Union of the sources' open ranges, minus what the op closes.
std::vector<Ref> infer_ranges(Ops op, Refs src) {
  std::vector<Ref> out;
  if (op == Ops::Func || op == Ops::Linear) return out;
  for (Ref s : src)
    for (Ref r : s->ranges) {
      auto at = std::lower_bound(out.begin(), out.end(), r, range_less);
      if (at == out.end() || !(*at == r)) out.insert(at, r);
    }
  if (op == Ops::Reduce || op == Ops::Stage || op == Ops::End)
    for (Ref closed : src.subspan(1)) std::erase(out, closed);
  return out;
}

} // namespace

void illegal_node(Ops op, const std::string& message) {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E101, .where = "", .message = std::string(name(op)) + ": " + message, .note = ""});
}

const OpInfo& info(Ops op) { return kOps[static_cast<int>(op)]; }
const AttrInfo& info(Attr attr) { return kAttrs[static_cast<int>(attr)]; }

std::optional<Ops> parse_op(std::string_view text) {
  for (int i = 0; i < kNumOps; ++i)
    if (text == kOps[i].name) return static_cast<Ops>(i);
  return std::nullopt;
}

std::optional<Attr> parse_attr(std::string_view text) {
  for (int i = 0; i < kNumAttrs; ++i)
    if (text == kAttrs[i].name) return static_cast<Attr>(i);
  return std::nullopt;
}

const AttrValue* UOp::find(Attr key) const {
  for (const AttrItem& a : *attrs)
    if (a.key == key) return &a.value;
  return nullptr;
}

namespace {
const AttrValue& required(const UOp& u, Attr key) {
  const AttrValue* v = u.find(key);
  TGC_CHECK(v, std::string(name(u.op)) + " has no attribute " + info(key).name);
  return *v;
}
} // namespace

int64_t UOp::i(Attr key) const { return std::get<int64_t>(required(*this, key)); }
int64_t UOp::i(Attr key, int64_t fallback) const { return has(key) ? i(key) : fallback; }
const std::string& UOp::s(Attr key) const { return std::get<std::string>(required(*this, key)); }
std::string UOp::s(Attr key, std::string fallback) const { return has(key) ? s(key) : std::move(fallback); }
const std::vector<int64_t>& UOp::ints(Attr key) const { return std::get<std::vector<int64_t>>(required(*this, key)); }

struct Context::Impl {
  std::pmr::monotonic_buffer_resource arena{1 << 16};
  std::deque<Attrs> attrs;
  std::vector<const UOp*> nodes; // by id
  std::vector<const UOp*> table; // open addressing, power-of-two size
  Attrs no_attrs;

  Refs copy(Refs refs) {
    if (refs.empty()) return {};
    auto* mem = static_cast<Ref*>(arena.allocate(refs.size_bytes(), alignof(Ref)));
    std::uninitialized_copy(refs.begin(), refs.end(), mem);
    return {mem, refs.size()};
  }
  void grow() {
    std::vector<const UOp*> bigger(std::max<size_t>(1024, table.size() * 2), nullptr);
    for (const UOp* u : table)
      if (u) {
        size_t at = u->hash & (bigger.size() - 1);
        while (bigger[at]) at = (at + 1) & (bigger.size() - 1);
        bigger[at] = u;
      }
    table.swap(bigger);
  }
};

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;
size_t Context::size() const { return impl_->nodes.size(); }
Ref Context::node(uint32_t id) const { return impl_->nodes[id]; }

Ref Context::make(Ops op, DType dtype, std::initializer_list<Ref> src, Attrs attrs) {
  return make(op, dtype, Refs(src.begin(), src.size()), std::move(attrs));
}

Ref Context::make(Ops op, DType given, Refs src, Attrs attrs) {
  const OpInfo& op_info = info(op);
  int count = static_cast<int>(src.size());
  if (count < op_info.min_src || (op_info.max_src >= 0 && count > op_info.max_src))
    illegal_node(op, "does not take " + std::to_string(count) + " sources");
  for (Ref s : src)
    TGC_CHECK(s && s->ctx == this, std::string(op_info.name) + ": a source is null or of another Context");
  DType dtype = infer_dtype(op, given, src);
  std::sort(attrs.begin(), attrs.end(), [](const AttrItem& a, const AttrItem& b) { return a.key < b.key; });
  if (op == Ops::Const && attrs.size() == 1) attrs[0].value = canonical_value(dtype, attrs[0].value);

  uint64_t hash = mix(static_cast<uint64_t>(op) * 64 + static_cast<uint64_t>(dtype), attrs.size());
  for (const AttrItem& a : attrs) hash = mix(mix(hash, static_cast<uint64_t>(a.key)), hash_value(a.value));
  for (Ref s : src) hash = mix(hash, s->hash);

  Impl& impl = *impl_;
  if (impl.nodes.size() * 2 >= impl.table.size()) impl.grow();
  size_t at = hash & (impl.table.size() - 1);
  for (; impl.table[at]; at = (at + 1) & (impl.table.size() - 1)) {
    const UOp* u = impl.table[at];
    if (u->hash == hash && u->op == op && u->dtype == dtype &&
        std::equal(src.begin(), src.end(), u->src.begin(), u->src.end()) && same_attrs(*u->attrs, attrs))
      return u;
  }

  check_attrs(op, attrs);
  check_source_types(op, dtype, src);
  Draft draft{op, dtype, src, attrs, *this};
  std::vector<Ref> shape = infer_shape(draft); // may intern dims, so `at` is looked up again below
  IntRange bounds = infer_bounds(draft);
  std::vector<Ref> ranges = infer_ranges(op, src);
  const Attrs* kept = &impl.no_attrs;
  if (!attrs.empty()) kept = &impl.attrs.emplace_back(std::move(attrs));
  void* mem = impl.arena.allocate(sizeof(UOp), alignof(UOp));
  UOp* node = new (mem) UOp{.op = op,
                            .dtype = dtype,
                            .id = static_cast<uint32_t>(impl.nodes.size()),
                            .hash = hash,
                            .src = impl.copy(src),
                            .shape = impl.copy(shape),
                            .attrs = kept,
                            .ctx = this,
                            .lo = bounds.lo,
                            .hi = bounds.hi,
                            .ranges = {}};
  if (op == Ops::Range) ranges.insert(std::lower_bound(ranges.begin(), ranges.end(), Ref(node), range_less), node);
  node->ranges = impl.copy(ranges);
  if ((impl.nodes.size() + 1) * 2 >= impl.table.size()) impl.grow();
  for (at = hash & (impl.table.size() - 1); impl.table[at];) at = (at + 1) & (impl.table.size() - 1);
  impl.table[at] = node;
  impl.nodes.push_back(node);
  return node;
}

Ref Context::with_src(Ref node, Refs src) {
  if (std::equal(src.begin(), src.end(), node->src.begin(), node->src.end())) return node;
  return make(node->op, node->dtype, src, *node->attrs);
}

Ref Context::index(int64_t value) { return make(Ops::Const, DType::Index, Refs{}, {{Attr::Value, value}}); }

Ref Context::constant(DType dtype, double value) {
  if (is_float(dtype)) return make(Ops::Const, dtype, Refs{}, {{Attr::Value, value}});
  return make(Ops::Const, dtype, Refs{}, {{Attr::Value, static_cast<int64_t>(value)}});
}

Ref Context::constant_int(DType dtype, int64_t bits) { return make(Ops::Const, dtype, Refs{}, {{Attr::Value, bits}}); }

Ref Context::var(std::string name, int64_t min, int64_t max) {
  return make(Ops::Var, DType::Index, Refs{}, {{Attr::Name, std::move(name)}, {Attr::Min, min}, {Attr::Max, max}});
}

Ref Context::range(Ref extent, int64_t id, std::string axis) {
  return make(Ops::Range, DType::Index, {extent}, {{Attr::Id, id}, {Attr::Axis, std::move(axis)}});
}

bool is_const(Ref x) { return x->is(Ops::Const); }

bool is_const(Ref x, double value) {
  if (!x->is(Ops::Const)) return false;
  if (std::optional<double> f = const_float(x)) return *f == value;
  return static_cast<double>(*const_int(x)) == value;
}

std::optional<int64_t> const_int(Ref x) {
  if (!x->is(Ops::Const) || is_float(x->dtype)) return std::nullopt;
  return x->i(Attr::Value);
}

std::optional<double> const_float(Ref x) {
  if (!x->is(Ops::Const) || !is_float(x->dtype)) return std::nullopt;
  return std::get<double>(*x->find(Attr::Value));
}

Ref const_like(Ref x, double value) { return x->ctx->constant(x->dtype, value); }

Ref unary(Ops op, Ref a) { return a->ctx->make(op, a->dtype, {a}); }
Ref binary(Ops op, Ref a, Ref b) { return a->ctx->make(op, a->dtype, {a, b}); }
Ref operator+(Ref a, Ref b) { return binary(Ops::Add, a, b); }
Ref operator-(Ref a, Ref b) { return binary(Ops::Sub, a, b); }
Ref operator*(Ref a, Ref b) { return binary(Ops::Mul, a, b); }
Ref operator+(Ref a, double b) { return a + const_like(a, b); }
Ref operator-(Ref a, double b) { return a - const_like(a, b); }
Ref operator*(Ref a, double b) { return a * const_like(a, b); }
Ref operator-(Ref a) { return unary(Ops::Neg, a); }
Ref floordiv(Ref a, Ref b) { return binary(Ops::FloorDiv, a, b); }
Ref floormod(Ref a, Ref b) { return binary(Ops::FloorMod, a, b); }
Ref lt(Ref a, Ref b) { return binary(Ops::Lt, a, b); }
Ref logical_and(Ref a, Ref b) { return binary(Ops::And, a, b); }
Ref where(Ref cond, Ref a, Ref b) { return a->ctx->make(Ops::Where, a->dtype, {cond, a, b}); }
Ref cast(Ref a, DType dtype) { return a->ctx->make(Ops::Cast, dtype, {a}); }
Ref bitcast(Ref a, DType dtype) { return a->ctx->make(Ops::Bitcast, dtype, {a}); }

std::vector<Ref> toposort(Ref root, bool enter_funcs) { return toposort(Refs(&root, 1), enter_funcs); }

std::vector<Ref> toposort(Refs roots, bool enter_funcs) {
  struct Frame {
    Ref node;
    size_t next;
  };
  std::vector<Ref> order;
  std::vector<Frame> stack;
  std::vector<bool> seen(roots.empty() ? 0 : roots[0]->ctx->size());
  for (Ref root : roots) {
    if (seen[root->id]) continue;
    seen[root->id] = true;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Frame& top = stack.back();
      Ref node = top.node;
      if (node->is(Ops::Call) && top.next == 0 && !enter_funcs) top.next = 1;
      if (top.next == node->src.size()) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      Ref s = node->src[top.next++];
      if (seen[s->id]) continue;
      seen[s->id] = true;
      stack.push_back({s, 0});
    }
  }
  return order;
}

int64_t elements_per_load(Ref load) { return byte_size(load->dtype) / byte_size(load->src[0]->dtype); }

Ref make_func(std::string name, Ref body, Refs params) {
  std::vector<Ref> src = {body};
  std::vector<bool> reached(body->ctx->size());
  for (Ref node : toposort(body)) reached[node->id] = true;
  for (Ref param : params)
    if (!reached[param->id]) src.push_back(param);
  return body->ctx->make(Ops::Func, DType::Void, src, {{Attr::Name, std::move(name)}});
}

Ref with_body(Ref func, Ref body) {
  std::vector<Ref> params, src;
  for (Ref node : toposort(func))
    if (node->is(Ops::Param)) params.push_back(node);
  std::sort(params.begin(), params.end(), [](Ref a, Ref b) { return a->i(Attr::Slot) < b->i(Attr::Slot); });
  const Ref fresh = make_func(func->s(Attr::Name), body, params);
  src.assign(fresh->src.begin(), fresh->src.end());
  for (Ref kept : func->src.subspan(1))
    if (!kept->is(Ops::Param)) src.push_back(kept); // checks
  return func->ctx->with_src(func, src);
}

bool structural_less(Ref a, Ref b) {
  if (a == b) return false;
  if (a->op != b->op) return a->op < b->op;
  if (a->dtype != b->dtype) return a->dtype < b->dtype;
  const Attrs &x = *a->attrs, &y = *b->attrs;
  if (x.size() != y.size()) return x.size() < y.size();
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].key != y[i].key) return x[i].key < y[i].key;
    if (!same_value(x[i].value, y[i].value)) {
      if (x[i].value < y[i].value) return true;
      if (y[i].value < x[i].value) return false;
      return hash_value(x[i].value) < hash_value(y[i].value); // 0 against -0, or a NaN
    }
  }
  if (a->hash != b->hash) return a->hash < b->hash;
  return std::lexicographical_compare(a->src.begin(), a->src.end(), b->src.begin(), b->src.end(), structural_less);
}

Ref import(Context& to, Ref root) {
  if (root->ctx == &to) return root;
  std::vector<Ref> copies(root->ctx->size());
  for (Ref node : toposort(root, true)) {
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(copies[s->id]);
    copies[node->id] = to.make(node->op, node->dtype, src, *node->attrs);
  }
  return copies[root->id];
}

namespace {

constexpr int kMaxDimText = 32; // nodes of a dim that are spelt out, and so the depth of the recursion

struct Spelling {
  std::string text;
  int binding = 2; ///< of the outermost operator: 0 sums, 1 products, 2 atoms
};

std::string spelt(const Spelling& s, int binding) { return s.binding < binding ? "(" + s.text + ")" : s.text; }

Spelling spell(Ref dim, int& budget) {
  if (std::optional<int64_t> n = dim_int(dim)) return {std::to_string(*n), *n < 0 ? 0 : 2};
  if (dim->is(Ops::Var)) return {dim->s(Attr::Name)};
  if (dim->cls() != OpClass::Binary || (budget -= 2) < 0) return {std::string(name(dim->op)) + "(...)"};
  const Spelling a = spell(dim->src[0], budget), b = spell(dim->src[1], budget);
  switch (dim->op) {
  case Ops::Add: return {a.text + (b.text[0] == '-' ? "" : "+") + b.text, 0};
  case Ops::Sub: return {a.text + "-" + spelt(b, 1), 0};
  case Ops::Mul:
    if (dim_int(dim->src[1]) == -1) return {"-" + spelt(a, 1), 0};
    if (dim_int(dim->src[1]).value_or(0) < 0) return {"-" + spelt(a, 1) + "*" + b.text.substr(1), 0};
    return {spelt(a, 1) + "*" + spelt(b, 2), 1};
  case Ops::FloorDiv: return {spelt(a, 1) + "/" + spelt(b, 2), 1};
  case Ops::FloorMod: return {spelt(a, 1) + "%" + spelt(b, 2), 1};
  default: return {std::string(name(dim->op)) + "(" + a.text + "," + b.text + ")"};
  }
}

} // namespace

std::string shape_text(Refs shape) {
  std::string text = "[";
  for (Ref dim : shape) {
    int budget = kMaxDimText;
    text += (text.size() > 1 ? "," : "") + spell(dim, budget).text;
  }
  return text + "]";
}

} // namespace tgc
