// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: operands such as Reshape's shape must be known at import, yet exporters compute them (Shape → Gather →
// Concat) and dims may be symbolic. Idea: evaluate single elements of a tensor graph on demand: a movement op maps an
// element's position to its source's, an elementwise op combines elements. Integer elements are dim expressions, so a
// symbolic dim survives the journey. Not handled: functions whose value depends on a maths library (never the host's),
// and choices that the bounds of symbolic values do not decide; the caller reports such an operand as not constant.
#include "frontend/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "frontend/bytes.h"

namespace tgc {
namespace {

constexpr int kMaxDepth = 2000;
constexpr int64_t kMaxSteps = int64_t{1} << 18;

using Known = std::optional<Element>;
using Position = std::vector<int64_t>;

class Evaluator {
public:
  Evaluator(const Module& module, Context& ctx) : module_(module), ctx_(ctx) {}
  Known at(Ref x, const Position& position, int depth);

private:
  const Module& module_;
  Context& ctx_;
  int64_t steps_ = 0;
  std::unordered_map<uint64_t, Known> memo_;

  Known compute(Ref x, const Position& p, int depth);
  Known movement(Ref x, const Position& p, int depth);
  Known pad(Ref x, const Position& p, int depth);
  Known reduce(Ref x, const Position& p, int depth);
  Known elementwise(Ref x, const Position& p, int depth);
  Known integer_op(Ref x, Ref a, Ref b);
  Known float_op(Ref x, double a, double b);
  Known compare(Ops op, Ref a, Ref b);
  Known convert(Ref x, const Element& from);
  Known zero(DType t) { return is_float(t) ? Element{{}, 0.0} : Element{ctx_.index(0), 0}; }
  Known boolean(bool v) { return Element{ctx_.index(v), 0}; }
};

std::optional<int64_t> flat_index(Refs shape, const Position& p) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::optional<int64_t> extent = dim_int(shape[i]);
    if (!extent && i > 0) return std::nullopt;
    flat = flat * extent.value_or(0) + p[i];
  }
  return flat;
}

std::optional<Position> unflatten(Refs shape, int64_t flat) {
  Position p(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    std::optional<int64_t> extent = dim_int(shape[i]);
    if (!extent && i > 0) return std::nullopt;
    p[i] = i == 0 ? flat : flat % std::max<int64_t>(1, *extent);
    flat = i == 0 ? 0 : flat / std::max<int64_t>(1, *extent);
  }
  return p;
}

Known Evaluator::at(Ref x, const Position& p, int depth) {
  if (depth > kMaxDepth || ++steps_ > kMaxSteps) return std::nullopt;
  std::optional<int64_t> flat = flat_index(x->shape, p);
  if (!flat || *flat < 0 || *flat >= (int64_t{1} << 31)) return std::nullopt;
  uint64_t key = (static_cast<uint64_t>(x->id) << 32) | static_cast<uint64_t>(*flat);
  if (auto found = memo_.find(key); found != memo_.end()) return found->second;
  Known value = compute(x, p, depth + 1);
  memo_[key] = value;
  return value;
}

Known Evaluator::compute(Ref x, const Position& p, int depth) {
  if (x->is(Ops::Const)) {
    if (std::optional<double> v = const_float(x)) return Element{{}, *v};
    return Element{ctx_.index(*const_int(x)), 0};
  }
  if (x->dtype == DType::Index && x->shape.empty()) return Element{x, 0};
  if (x->is(Ops::Iota)) {
    for (int64_t i : p)
      if (i != 0) return Element{ctx_.index(i), 0};
    return zero(DType::Index);
  }
  if (x->is(Ops::Weight)) {
    auto found = module_.weights.find(x->s(Attr::Key));
    std::optional<int64_t> flat = flat_index(x->shape, p);
    if (found == module_.weights.end() || !found->second.data || !flat) return std::nullopt;
    return weight_element(ctx_, found->second, x->dtype, *flat);
  }
  if (x->cls() == OpClass::Movement) return movement(x, p, depth);
  if (x->is(Ops::Reduce)) return reduce(x, p, depth);
  switch (x->cls()) {
  case OpClass::Unary:
  case OpClass::Binary:
  case OpClass::Compare:
  case OpClass::Ternary: return elementwise(x, p, depth);
  default: return std::nullopt;
  }
}

Known Evaluator::pad(Ref x, const Position& p, int depth) {
  Position q = p;
  size_t rank = p.size();
  for (size_t i = 0; i < rank; ++i) {
    std::optional<int64_t> lo = dim_int(x->src[1 + i]), extent = dim_int(x->src[0]->shape[i]);
    if (!lo || !extent) return std::nullopt;
    q[i] -= *lo;
    if (q[i] < 0 || q[i] >= *extent) return zero(x->dtype);
  }
  return at(x->src[0], q, depth);
}

Known Evaluator::movement(Ref x, const Position& p, int depth) {
  Ref source = x->src[0];
  Position q(source->shape.size());
  switch (x->op) {
  case Ops::Reshape: {
    std::optional<int64_t> flat = flat_index(x->shape, p);
    std::optional<Position> from = flat ? unflatten(source->shape, *flat) : std::nullopt;
    return from ? at(source, *from, depth) : std::nullopt;
  }
  case Ops::Permute:
    for (size_t i = 0; i < p.size(); ++i) q[static_cast<size_t>(x->ints(Attr::Axes)[i])] = p[i];
    return at(source, q, depth);
  case Ops::Expand:
    for (size_t i = 0; i < p.size(); ++i) q[i] = dim_int(source->shape[i]) == 1 ? 0 : p[i];
    return at(source, q, depth);
  case Ops::Shrink:
    for (size_t i = 0; i < p.size(); ++i) {
      std::optional<int64_t> offset = dim_int(x->src[1 + i]);
      if (!offset) return std::nullopt;
      q[i] = p[i] + *offset;
    }
    return at(source, q, depth);
  case Ops::Flip: {
    q = p;
    for (int64_t axis : x->ints(Attr::Axes)) {
      std::optional<int64_t> extent = dim_int(x->shape[static_cast<size_t>(axis)]);
      if (!extent) return std::nullopt;
      q[static_cast<size_t>(axis)] = *extent - 1 - p[static_cast<size_t>(axis)];
    }
    return at(source, q, depth);
  }
  case Ops::Pad: return pad(x, p, depth);
  default: return std::nullopt;
  }
}

// Folds the source along the reduced axes in row-major order.
Known Evaluator::reduce(Ref x, const Position& p, int depth) {
  Ref source = x->src[0];
  if (x->src.size() != 1 || !x->has(Attr::Axes) || is_float(x->dtype) || x->dtype == DType::Bool) return std::nullopt;
  const std::vector<int64_t>& axes = x->ints(Attr::Axes);
  std::vector<Ref> inner;
  for (int64_t axis : axes) inner.push_back(source->shape[static_cast<size_t>(axis)]);
  std::optional<int64_t> count = dim_int(numel(ctx_, inner));
  if (!count || *count < 1) return std::nullopt;
  Known total;
  for (int64_t i = 0; i < *count; ++i) {
    Position q;
    std::optional<Position> reduced = unflatten(inner, i);
    for (int64_t axis = 0, next = 0; axis < source->rank(); ++axis) {
      auto found = std::find(axes.begin(), axes.end(), axis);
      bool is_reduced = found != axes.end();
      q.push_back(is_reduced ? (*reduced)[static_cast<size_t>(found - axes.begin())] : p[static_cast<size_t>(next)]);
      next += !is_reduced;
    }
    Known element = at(source, q, depth);
    if (!element) return std::nullopt;
    total = i == 0 ? element : integer_op(x, total->index, element->index);
    if (!total) return std::nullopt;
  }
  return total;
}

Known Evaluator::elementwise(Ref x, const Position& p, int depth) {
  std::vector<Element> in;
  for (Ref s : x->src) {
    Position q(p.end() - static_cast<std::ptrdiff_t>(s->shape.size()), p.end());
    for (size_t i = 0; i < q.size(); ++i)
      if (dim_int(s->shape[i]) == 1) q[i] = 0;
    if (x->is(Ops::Where) && in.size() == 1) { // only the chosen side need be known
      std::optional<int64_t> cond = dim_int(in[0].index);
      if (!cond) return std::nullopt;
      Ref side = x->src[*cond ? 1 : 2];
      return at(side, Position(p.end() - static_cast<std::ptrdiff_t>(side->shape.size()), p.end()), depth);
    }
    Known element = at(s, q, depth);
    if (!element) return std::nullopt;
    in.push_back(*element);
  }
  if (x->is(Ops::Cast)) return convert(x, in[0]);
  if (is_float(x->src[0]->dtype)) return float_op(x, in[0].value, in.size() > 1 ? in[1].value : 0);
  return integer_op(x, in[0].index, in.size() > 1 ? in[1].index : Ref());
}

Known Evaluator::convert(Ref x, const Element& from) {
  DType to = x->dtype;
  if (!from.index) {
    if (is_float(to)) return Element{{}, round_to(to, from.value)};
    if (to == DType::Bool) return boolean(from.value != 0);
    IntRange range = int_range(to);
    if (std::isnan(from.value)) return zero(to);
    if (from.value <= static_cast<double>(range.lo)) return Element{ctx_.index(range.lo), 0};
    if (from.value >= static_cast<double>(range.hi)) return Element{ctx_.index(range.hi), 0};
    return Element{ctx_.index(static_cast<int64_t>(from.value)), 0};
  }
  std::optional<int64_t> value = dim_int(from.index);
  if (is_float(to)) return value ? Known(Element{{}, round_to(to, static_cast<double>(*value))}) : std::nullopt;
  if (value) return Element{ctx_.index(wrap_to(to, *value)), 0};
  IntRange range = int_range(to);
  if (to == DType::Bool || from.index->lo < range.lo || from.index->hi > range.hi) return std::nullopt;
  return from;
}

Known Evaluator::compare(Ops op, Ref a, Ref b) {
  int64_t lo = 0, hi = 0;
  if (a->hi < b->lo || a->lo > b->hi) {
    lo = hi = a->hi < b->lo ? -1 : 1;
  } else if (a != b) {
    if (std::min(a->lo, b->lo) == INT64_MIN) return std::nullopt; // it has no negation
    Ref difference = dim_sub(a, b);
    lo = difference->lo;
    hi = difference->hi;
  }
  switch (op) {
  case Ops::Lt: return hi < 0 || lo >= 0 ? boolean(hi < 0) : std::nullopt;
  case Ops::Le: return hi <= 0 || lo > 0 ? boolean(hi <= 0) : std::nullopt;
  case Ops::Eq: return (lo == 0 && hi == 0) || lo > 0 || hi < 0 ? boolean(lo == 0 && hi == 0) : std::nullopt;
  case Ops::Ne: return (lo == 0 && hi == 0) || lo > 0 || hi < 0 ? boolean(lo != 0 || hi != 0) : std::nullopt;
  default: return std::nullopt;
  }
}

namespace {
/// Value of an integer op on two numbers, before wrapping to the type.
std::optional<int64_t> fold(Ops op, int64_t a, int64_t b) {
  bool division_overflows = b == -1;
  int64_t out = 0;
  switch (op) {
  case Ops::Add: __builtin_add_overflow(a, b, &out); return out;
  case Ops::Sub: __builtin_sub_overflow(a, b, &out); return out;
  case Ops::Mul: __builtin_mul_overflow(a, b, &out); return out;
  case Ops::Neg: __builtin_sub_overflow(int64_t{0}, a, &out); return out;
  case Ops::Abs: return a < 0 ? fold(Ops::Neg, a, 0) : a;
  case Ops::Div: return b == 0 ? 0 : division_overflows ? fold(Ops::Neg, a, 0) : a / b;
  case Ops::Mod: return b == 0 || division_overflows ? 0 : a % b;
  case Ops::FloorDiv:
    return b == 0 ? 0 : division_overflows ? *fold(Ops::Neg, a, 0) : a / b - (a % b != 0 && (a < 0) != (b < 0));
  case Ops::FloorMod: return b == 0 || division_overflows ? 0 : (a % b + b) % b;
  case Ops::Max: return std::max(a, b);
  case Ops::Min: return std::min(a, b);
  case Ops::And: return a & b;
  case Ops::Or: return a | b;
  case Ops::Xor: return a ^ b;
  default: return std::nullopt;
  }
}
} // namespace

Known Evaluator::integer_op(Ref x, Ref a, Ref b) {
  Ops op = x->op;
  if (op == Ops::Reduce) {
    const std::string& kind = x->s(Attr::Kind);
    op = kind == "add" ? Ops::Add : kind == "mul" ? Ops::Mul : kind == "max" ? Ops::Max : Ops::Min;
  }
  if (x->cls() == OpClass::Compare) return compare(op, a, b);
  std::optional<int64_t> u = dim_int(a), v = b ? dim_int(b) : 0;
  if (op == Ops::Not && u) return Element{ctx_.index(x->dtype == DType::Bool ? *u == 0 : ~*u), 0};
  if (u && v && x->dtype != DType::U64) {
    std::optional<int64_t> folded = fold(op, *u, *v);
    return folded ? Known(Element{ctx_.index(wrap_to(x->dtype, *folded)), 0}) : std::nullopt;
  }
  if (!b || x->dtype == DType::Bool) return std::nullopt;
  bool natural = a->lo >= 0 && b->lo >= 1;
  switch (op) { // symbolic: 64-bit wrapping cannot happen within the bounds of dims
  case Ops::Add: return Element{dim_add(a, b), 0};
  case Ops::Sub: return Element{dim_sub(a, b), 0};
  case Ops::Mul: return Element{dim_mul(a, b), 0};
  case Ops::Div:
  case Ops::FloorDiv: return natural ? Known(Element{dim_floordiv(a, b), 0}) : std::nullopt;
  case Ops::Mod:
  case Ops::FloorMod: return natural ? Known(Element{dim_sub(a, dim_mul(b, dim_floordiv(a, b))), 0}) : std::nullopt;
  case Ops::Max:
  case Ops::Min: {
    Known less = compare(Ops::Lt, a, b);
    if (!less) return std::nullopt;
    return Element{(dim_int(less->index) == 1) == (op == Ops::Max) ? b : a, 0};
  }
  default: return std::nullopt;
  }
}

Known Evaluator::float_op(Ref x, double a, double b) {
  auto number = [&](double v) { return Known(Element{{}, round_to(x->dtype, v)}); };
  switch (x->op) {
  case Ops::Add: return number(a + b);
  case Ops::Sub: return number(a - b);
  case Ops::Mul: return number(a * b);
  case Ops::Div: return number(a / b);
  case Ops::Neg: return number(-a);
  case Ops::Abs: return number(std::fabs(a));
  case Ops::Sqrt: return number(std::sqrt(a));
  case Ops::Floor: return number(std::floor(a));
  case Ops::Ceil: return number(std::ceil(a));
  case Ops::Trunc: return number(std::trunc(a));
  case Ops::Round: return number(std::nearbyint(a));
  case Ops::Max: return number(std::isnan(a) || a > b ? a : b);
  case Ops::Min: return number(std::isnan(a) || a < b ? a : b);
  case Ops::Lt: return boolean(a < b);
  case Ops::Le: return boolean(a <= b);
  case Ops::Eq: return boolean(a == b);
  case Ops::Ne: return boolean(a != b);
  default: return std::nullopt;
  }
}

double half_value(uint64_t bits) {
  int exponent = static_cast<int>(bits >> 10 & 31);
  double mantissa = static_cast<double>(bits & 1023);
  double magnitude = exponent == 31  ? (mantissa == 0 ? HUGE_VAL : std::nan(""))
                     : exponent == 0 ? std::ldexp(mantissa, -24)
                                     : std::ldexp(mantissa + 1024, exponent - 25);
  return bits >> 15 & 1 ? -magnitude : magnitude;
}

} // namespace

Element weight_element(Context& ctx, const WeightData& weight, DType dtype, int64_t i) {
  int size = byte_size(dtype);
  const std::byte* p = weight.data + (weight.kind == WeightData::Kind::Splat ? 0 : i * size);
  uint64_t bits = load_unsigned(p, size);
  switch (dtype) {
  case DType::F64: return {{}, std::bit_cast<double>(bits)};
  case DType::F32: return {{}, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))};
  case DType::BF16: return {{}, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits << 16)))};
  case DType::F16: return {{}, half_value(bits)};
  case DType::Bool: return {ctx.index(bits != 0), 0};
  default: return {ctx.index(is_signed(dtype) ? load_signed(p, size) : static_cast<int64_t>(bits)), 0};
  }
}

std::optional<std::vector<Element>> known_elements(const Module& module, Ref tensor) {
  std::optional<int64_t> count = dim_int(numel(*tensor->ctx, tensor->shape));
  if (!count || *count > kMostKnownElements) return std::nullopt;
  Evaluator evaluator(module, *tensor->ctx);
  std::vector<Element> out;
  for (int64_t i = 0; i < *count; ++i) {
    std::optional<Position> p = unflatten(tensor->shape, i);
    Known element = p ? evaluator.at(tensor, *p, 0) : std::nullopt;
    if (!element) return std::nullopt;
    out.push_back(*element);
  }
  return out;
}

} // namespace tgc
