// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shapes: the rule of each op, and arithmetic on dims. A dim is an Index scalar: a constant or an expression over Vars.
// Sums and products of dims are kept as canonical polynomials (sorted monomials with integer coefficients over atoms:
// Vars and whatever is not +, -, *), so two dims that are equal as polynomials are the same node. Division by a
// monomial that divides every term is exact; by a number, what it divides is taken out; any other division is an atom.
#include <algorithm>
#include <map>

#include "uop/diag.h"
#include "uop/infer.h"

namespace tgc {
namespace {

struct MonomialLess {
  bool operator()(const std::vector<Ref>& a, const std::vector<Ref>& b) const {
    if (a.size() != b.size()) return a.size() > b.size(); // highest degree first, the constant last
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), structural_less);
  }
};
using Poly = std::map<std::vector<Ref>, int64_t, MonomialLess>;

[[noreturn]] void dim_overflow() {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E207, .where = "", .message = "a shape has 2^63 or more elements", .note = ""});
}

void accumulate(Poly& sum, const std::vector<Ref>& monomial, int64_t coefficient) {
  int64_t& slot = sum[monomial];
  if (__builtin_add_overflow(slot, coefficient, &slot)) dim_overflow();
  if (slot == 0) sum.erase(monomial);
}

/// Adds -coefficient * monomial.
void deduct(Poly& sum, const std::vector<Ref>& monomial, int64_t coefficient) {
  int64_t& slot = sum[monomial];
  if (__builtin_sub_overflow(slot, coefficient, &slot)) dim_overflow();
  if (slot == 0) sum.erase(monomial);
}

/// Text can hold dims that no model has; these bounds keep their polynomials small.
constexpr size_t kMaxTerms = 1024;
constexpr int kMaxDimNodes = 4096;

[[noreturn]] void dim_too_large() {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E207, .where = "", .message = "a dim is too large an expression", .note = ""});
}

Poly multiply(const Poly& a, const Poly& b) {
  if (a.size() * b.size() > kMaxTerms) dim_too_large();
  Poly out;
  for (const auto& [ma, ca] : a)
    for (const auto& [mb, cb] : b) {
      std::vector<Ref> m = ma;
      m.insert(m.end(), mb.begin(), mb.end());
      std::sort(m.begin(), m.end(), structural_less);
      int64_t c = 0;
      if (__builtin_mul_overflow(ca, cb, &c)) dim_overflow();
      accumulate(out, m, c);
    }
  return out;
}

/// Every visit of a node, also of one shared, takes one from `budget`.
Poly to_poly(Ref dim, int& budget) {
  if (--budget < 0) dim_too_large();
  if (std::optional<int64_t> c = dim_int(dim)) return *c == 0 ? Poly{} : Poly{{{}, *c}};
  if (dim->is(Ops::Mul)) return multiply(to_poly(dim->src[0], budget), to_poly(dim->src[1], budget));
  if (dim->is(Ops::Add) || dim->is(Ops::Sub)) {
    Poly sum = to_poly(dim->src[0], budget);
    const auto combine = dim->is(Ops::Add) ? accumulate : deduct;
    for (const auto& [m, c] : to_poly(dim->src[1], budget)) combine(sum, m, c);
    return sum;
  }
  return Poly{{{dim}, 1}};
}

Poly to_poly(Ref dim) {
  int budget = kMaxDimNodes;
  return to_poly(dim, budget);
}

Ref from_poly(Context& ctx, const Poly& poly) {
  Ref sum;
  for (const auto& [monomial, coefficient] : poly) {
    Ref term;
    for (Ref atom : monomial) term = term ? ctx.make(Ops::Mul, DType::Index, {term, atom}) : atom;
    Ref c = ctx.index(coefficient);
    if (!term)
      term = c;
    else if (coefficient != 1)
      term = ctx.make(Ops::Mul, DType::Index, {term, c});
    sum = sum ? ctx.make(Ops::Add, DType::Index, {sum, term}) : term;
  }
  return sum ? sum : ctx.index(0);
}

/// `poly` divided by the monomial (atoms, coefficient) if that divides every term.
std::optional<Poly> divide(const Poly& poly, const std::vector<Ref>& atoms, int64_t coefficient) {
  Poly out;
  for (const auto& [monomial, c] : poly) {
    const bool overflows = c == INT64_MIN && coefficient == -1;
    if (overflows || c % coefficient != 0 || monomial.size() < atoms.size()) return std::nullopt;
    std::vector<Ref> rest = monomial;
    for (Ref atom : atoms) {
      auto at = std::find(rest.begin(), rest.end(), atom);
      if (at == rest.end()) return std::nullopt;
      rest.erase(at);
    }
    out[rest] = c / coefficient;
  }
  return out;
}

const std::vector<int64_t>& ints(const Draft& d, Attr key) { return std::get<std::vector<int64_t>>(*d.find(key)); }

std::vector<Ref> copy(Refs refs) { return {refs.begin(), refs.end()}; }

void check_axes(const Draft& d, const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t a : axes) {
    if (a < 0 || a >= rank || seen[static_cast<size_t>(a)])
      illegal_node(d.op, "axis " + std::to_string(a) + " is out of range or repeated for rank " + std::to_string(rank));
    seen[static_cast<size_t>(a)] = true;
  }
}

/// Right-aligned broadcast: size 1 stretches.
void broadcast_into(const Draft& d, std::vector<Ref>& out, Refs shape) {
  while (out.size() < shape.size()) out.insert(out.begin(), d.ctx.index(1));
  for (size_t i = 0; i < shape.size(); ++i) {
    Ref& dim = out[out.size() - shape.size() + i];
    if (dims_equal(dim, shape[i]) || is_const(shape[i], 1)) continue;
    if (!is_const(dim, 1))
      illegal_node(d.op, "shapes " + shape_text(d.src[0]->shape) + " and " + shape_text(shape) + " do not broadcast");
    dim = shape[i];
  }
}

std::vector<Ref> broadcast_all(const Draft& d, Refs sources) {
  std::vector<Ref> out;
  for (Ref s : sources) broadcast_into(d, out, s->shape);
  return out;
}

std::vector<Ref> dims_after_source(const Draft& d, bool same_rank) {
  std::vector<Ref> dims(d.src.begin() + 1, d.src.end());
  if (same_rank && dims.size() != d.src[0]->shape.size())
    illegal_node(d.op,
                 "rank " + std::to_string(dims.size()) + " given for a source of shape " + shape_text(d.src[0]->shape));
  return dims;
}

std::vector<Ref> reshape_shape(const Draft& d) {
  std::vector<Ref> dims = dims_after_source(d, false);
  if (!dims_equal(numel(d.ctx, d.src[0]->shape), numel(d.ctx, dims)))
    illegal_node(d.op, shape_text(d.src[0]->shape) + " does not have the element count of " + shape_text(dims));
  return dims;
}

std::vector<Ref> expand_shape(const Draft& d) {
  std::vector<Ref> dims = dims_after_source(d, true);
  for (size_t i = 0; i < dims.size(); ++i)
    if (!dims_equal(dims[i], d.src[0]->shape[i]) && !is_const(d.src[0]->shape[i], 1))
      illegal_node(d.op, shape_text(d.src[0]->shape) + " does not expand to " + shape_text(dims));
  return dims;
}

/// Pad and Shrink: two operands per dim.
std::vector<Ref> box_shape(const Draft& d) {
  size_t rank = d.src[0]->shape.size();
  if (d.src.size() != 1 + 2 * rank)
    illegal_node(d.op, "needs " + std::to_string(2 * rank) + " operands for shape " + shape_text(d.src[0]->shape) +
                           ", got " + std::to_string(d.src.size() - 1));
  std::vector<Ref> out;
  for (size_t i = 0; i < rank; ++i) {
    Ref dim = d.src[0]->shape[i], first = d.src[1 + i], second = d.src[1 + rank + i];
    if (first->lo < 0 || second->lo < 0)
      illegal_node(d.op, "operands must not be negative (dim " + std::to_string(i) + ")");
    if (d.op == Ops::Shrink) {
      Ref left = dim_sub(dim, dim_add(first, second));
      if (left->hi < 0)
        illegal_node(d.op, "offset + size passes dim " + std::to_string(i) + " of " + shape_text(d.src[0]->shape));
      out.push_back(second);
    } else {
      out.push_back(dim_add(dim_add(dim, first), second));
    }
  }
  return out;
}

std::vector<Ref> permute_shape(const Draft& d) {
  const std::vector<int64_t>& axes = ints(d, Attr::Axes);
  check_axes(d, axes, d.src[0]->rank());
  if (static_cast<int>(axes.size()) != d.src[0]->rank())
    illegal_node(d.op, "needs one axis per dim of " + shape_text(d.src[0]->shape));
  std::vector<Ref> out;
  for (int64_t a : axes) out.push_back(d.src[0]->shape[static_cast<size_t>(a)]);
  return out;
}

std::vector<Ref> reduce_shape(const Draft& d) {
  if (!d.find(Attr::Axes)) return copy(d.src[0]->shape);
  const std::vector<int64_t>& axes = ints(d, Attr::Axes);
  check_axes(d, axes, d.src[0]->rank());
  bool keep = d.find(Attr::Keep) && std::get<int64_t>(*d.find(Attr::Keep)) != 0;
  std::vector<Ref> out;
  for (int64_t i = 0; i < d.src[0]->rank(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced)
      out.push_back(d.src[0]->shape[static_cast<size_t>(i)]);
    else if (keep)
      out.push_back(d.ctx.index(1));
  }
  return out;
}

std::vector<Ref> load_shape(const Draft& d) {
  Ref buffer = d.src[0];
  if (buffer->is(Ops::After)) buffer = buffer->src[0];
  if (buffer->is(Ops::Buffer) && buffer->s(Attr::Space) == "reg") return copy(buffer->shape);
  std::vector<Ref> out = copy(d.src[1]->shape);
  if (const AttrValue* lanes = d.find(Attr::Lanes)) {
    if (out.empty()) out.push_back(d.ctx.index(1));
    if (!is_const(out.back(), 1)) illegal_node(d.op, "lanes needs an index whose last dim is 1");
    out.back() = d.ctx.index(std::get<int64_t>(*lanes));
  }
  for (Ref s : d.src.subspan(2)) broadcast_into(d, out, s->shape);
  return out;
}

std::vector<Ref> gather_shape(const Draft& d) {
  const Ref data = d.src[0], index = d.src[1];
  const int64_t dim = std::get<int64_t>(*d.find(Attr::Dim));
  if (!is_int(index->dtype)) illegal_node(d.op, std::string("positions are ") + name(index->dtype));
  bool fits = data->rank() == index->rank() && dim >= 0 && dim < data->rank();
  for (int64_t i = 0; fits && i < data->rank(); ++i)
    fits = i == dim || dims_equal(data->shape[static_cast<size_t>(i)], index->shape[static_cast<size_t>(i)]);
  if (!fits)
    illegal_node(d.op, "positions " + shape_text(index->shape) + " along dim " + std::to_string(dim) + " do not fit " +
                           shape_text(data->shape));
  return copy(index->shape);
}

std::vector<Ref> iota_shape(const Draft& d) {
  auto attr = [&d](Attr key, int64_t fallback) { return d.find(key) ? std::get<int64_t>(*d.find(key)) : fallback; };
  int64_t rank = attr(Attr::Rank, 1), dim = attr(Attr::Dim, 0);
  if (rank < 1 || rank > 64 || dim < 0 || dim >= rank) illegal_node(d.op, "dim must lie in a rank of 1..64");
  std::vector<Ref> out(static_cast<size_t>(rank), d.ctx.index(1));
  out[static_cast<size_t>(dim)] = d.src[0];
  return out;
}

} // namespace

const AttrValue* Draft::find(Attr key) const {
  for (const AttrItem& a : attrs)
    if (a.key == key) return &a.value;
  return nullptr;
}

std::vector<Ref> infer_shape(const Draft& d) {
  switch (info(d.op).shape) {
  case ShapeRule::Scalar:
  case ShapeRule::Get: return {};
  case ShapeRule::Dims: return copy(d.src);
  case ShapeRule::Iota: return iota_shape(d);
  case ShapeRule::Reshape: return reshape_shape(d);
  case ShapeRule::Permute: return permute_shape(d);
  case ShapeRule::Expand: return expand_shape(d);
  case ShapeRule::Pad:
  case ShapeRule::Shrink: return box_shape(d);
  case ShapeRule::Same:
    if (d.op == Ops::Flip) check_axes(d, ints(d, Attr::Axes), d.src[0]->rank());
    return copy(d.src[0]->shape);
  case ShapeRule::Broadcast: return broadcast_all(d, d.src);
  case ShapeRule::Reduce: return reduce_shape(d);
  case ShapeRule::Load: return load_shape(d);
  case ShapeRule::Gather: return gather_shape(d);
  case ShapeRule::Pick: {
    std::vector<Ref> out = copy(d.src[0]->shape);
    for (Ref s : d.src.subspan(1)) broadcast_into(d, out, s->shape);
    return out;
  }
  }
  return {};
}

std::optional<int64_t> dim_int(Ref dim) { return const_int(dim); }

Ref dim_add(Ref a, Ref b) {
  Poly sum = to_poly(a);
  for (const auto& [m, c] : to_poly(b)) accumulate(sum, m, c);
  return from_poly(*a->ctx, sum);
}

Ref dim_sub(Ref a, Ref b) {
  Poly sum = to_poly(a);
  for (const auto& [m, c] : to_poly(b)) deduct(sum, m, c);
  return from_poly(*a->ctx, sum);
}

Ref dim_mul(Ref a, Ref b) { return from_poly(*a->ctx, multiply(to_poly(a), to_poly(b))); }

namespace {

int64_t floor_quotient(int64_t a, int64_t d) { return a / d - (a % d < 0 ? 1 : 0); }

/// x = d*quotient + rest, exactly: `quotient` gets what d divides and of the constant all but 0..d-1, x becomes the
/// rest.
Poly take_quotient(Poly& x, int64_t d) {
  Poly quotient, rest;
  for (const auto& [monomial, c] : x) {
    const bool divides = monomial.empty() || c % d == 0;
    const int64_t left = !divides ? c : c % d < 0 ? c % d + d : c % d;
    const int64_t whole = divides ? floor_quotient(c, d) : 0;
    if (whole != 0) quotient[monomial] = whole;
    if (left != 0) rest[monomial] = left;
  }
  x = rest;
  return quotient;
}

/// floor(a / d), d > 0. A division inside the division is one: floor((floor(x / e) + c) / d) = floor((x + c*e) /
/// (e*d)).
Ref floordiv_by(Ref a, int64_t d) {
  Context& ctx = *a->ctx;
  Ref sum = ctx.index(0);
  for (Poly x = to_poly(a);; x = to_poly(a)) {
    sum = dim_add(sum, from_poly(ctx, take_quotient(x, d)));
    a = from_poly(ctx, x);
    if (x.empty()) return sum;
    const auto& [monomial, coefficient] = *x.begin();
    const int64_t constant = x.contains({}) ? x.at({}) : 0;
    const bool one_atom = x.size() == (constant != 0 ? 2U : 1U) && monomial.size() == 1 && coefficient == 1;
    if (x.size() == 1 && monomial.empty()) return sum; // 0 <= constant < d
    const Ref inner = one_atom && monomial[0]->is(Ops::FloorDiv) ? monomial[0] : Ref();
    const int64_t e = inner ? dim_int(inner->src[1]).value_or(0) : 0;
    int64_t both = 0, shift = 0;
    if (e <= 0 || __builtin_mul_overflow(e, d, &both) || __builtin_mul_overflow(e, constant, &shift))
      return dim_add(sum, ctx.make(Ops::FloorDiv, DType::Index, {a, ctx.index(d)}));
    a = dim_add(inner->src[0], ctx.index(shift));
    d = both;
  }
}

} // namespace

Ref dim_floordiv(Ref a, Ref b) {
  Poly divisor = to_poly(b);
  if (divisor.size() == 1)
    if (std::optional<Poly> exact = divide(to_poly(a), divisor.begin()->first, divisor.begin()->second))
      return from_poly(*a->ctx, *exact);
  if (std::optional<int64_t> d = dim_int(b); d && *d > 0) return floordiv_by(a, *d);
  return a->ctx->make(Ops::FloorDiv, DType::Index, {a, b});
}

bool dims_equal(Ref a, Ref b) { return a == b || dim_int(dim_sub(a, b)) == 0; }

bool shapes_equal(Refs a, Refs b) { return std::equal(a.begin(), a.end(), b.begin(), b.end(), dims_equal); }

Ref numel(Context& ctx, Refs shape) {
  Ref n = ctx.index(1);
  for (Ref dim : shape) n = dim_mul(n, dim);
  return n;
}

std::optional<std::vector<int64_t>> static_shape(Refs shape) {
  std::vector<int64_t> out;
  for (Ref dim : shape) {
    std::optional<int64_t> n = dim_int(dim);
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

} // namespace tgc
