// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interval arithmetic: inclusive bounds of integer, index and bool nodes, computed once when a node is made (its
// sources have theirs). Index arithmetic saturates at 64 bits; a narrower type whose exact result may leave its range
// wraps, so its bounds fall back to the whole type. u64 is treated as unknown. Floats are not tracked.
#include <algorithm>
#include <limits>

#include "uop/infer.h"

namespace tgc {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
using Wide = __int128;

int64_t saturate(Wide x) { return x < kMin ? kMin : x > kMax ? kMax : static_cast<int64_t>(x); }

/// Exact bounds if the type holds them, else the type's range.
IntRange fit(DType type, Wide lo, Wide hi) {
  IntRange all = int_range(type);
  if (type == DType::Index) return {saturate(lo), saturate(hi)};
  if (lo < all.lo || hi > all.hi) return all;
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

IntRange product(DType type, Ref a, Ref b) {
  Wide p[] = {Wide(a->lo) * b->lo, Wide(a->lo) * b->hi, Wide(a->hi) * b->lo, Wide(a->hi) * b->hi};
  return fit(type, *std::min_element(p, p + 4), *std::max_element(p, p + 4));
}

int64_t floor_div(int64_t a, int64_t b) {
  Wide q = Wide(a) / b;
  if ((Wide(a) % b != 0) && ((a < 0) != (b < 0))) --q;
  return saturate(q);
}

IntRange quotient(DType type, Ref a, Ref b, bool floor) {
  if (b->lo <= 0) return int_range(type); // only positive divisors are tracked
  auto div = [floor](int64_t x, int64_t y) { return floor ? floor_div(x, y) : x / y; };
  int64_t q[] = {div(a->lo, b->lo), div(a->lo, b->hi), div(a->hi, b->lo), div(a->hi, b->hi)};
  return {*std::min_element(q, q + 4), *std::max_element(q, q + 4)};
}

IntRange remainder(DType type, Ref a, Ref b, bool floor) {
  if (b->lo <= 0) return int_range(type);
  if (a->lo >= 0 && a->hi < b->lo) return {a->lo, a->hi};
  if (floor || a->lo >= 0) return {0, b->hi - 1};
  return {1 - b->hi, b->hi - 1};
}

IntRange compare(Ops op, Ref a, Ref b) {
  auto known = [](bool always, bool never) { return IntRange{always ? 1 : 0, never ? 0 : 1}; };
  if (a->dtype == DType::U64 || is_float(a->dtype)) return {0, 1};
  bool disjoint = a->hi < b->lo || b->hi < a->lo;
  bool same = a == b || (a->lo == a->hi && b->lo == b->hi && a->lo == b->lo);
  switch (op) {
  case Ops::Lt: return known(a->hi < b->lo, a->lo >= b->hi || a == b);
  case Ops::Le: return known(a->hi <= b->lo || a == b, a->lo > b->hi);
  case Ops::Eq: return known(same, disjoint);
  default: return known(disjoint, same);
  }
}

IntRange cast_bounds(DType to, Ref a) {
  if (to == DType::Bool) return {a->lo > 0 || a->hi < 0 ? 1 : 0, a->lo == 0 && a->hi == 0 ? 0 : 1};
  if (is_float(a->dtype) || a->dtype == DType::U64) return int_range(to);
  return fit(to, a->lo, a->hi);
}

IntRange leaf_bounds(const Draft& d) {
  auto attr = [&d](Attr key) { return std::get<int64_t>(*d.find(key)); };
  switch (d.op) {
  case Ops::Const:
    if (const AttrValue* v = d.find(Attr::Value); std::holds_alternative<int64_t>(*v))
      return {std::get<int64_t>(*v), std::get<int64_t>(*v)};
    return int_range(d.dtype);
  case Ops::Var: return {attr(Attr::Min), attr(Attr::Max)};
  // A loop that may not run at all is no constant, else what is inside of it would be moved out of it.
  case Ops::Range: return {0, std::max<int64_t>(d.src[0]->lo < 1 ? 1 : 0, saturate(Wide(d.src[0]->hi) - 1))};
  case Ops::Iota: return {0, std::max<int64_t>(0, saturate(Wide(d.src[0]->hi) - 1))};
  default: return int_range(d.dtype);
  }
}

IntRange binary_bounds(const Draft& d, Ref a, Ref b) {
  switch (d.op) {
  case Ops::Add: return fit(d.dtype, Wide(a->lo) + b->lo, Wide(a->hi) + b->hi);
  case Ops::Sub: return fit(d.dtype, Wide(a->lo) - b->hi, Wide(a->hi) - b->lo);
  case Ops::Mul: return product(d.dtype, a, b);
  case Ops::Div: return quotient(d.dtype, a, b, false);
  case Ops::FloorDiv: return quotient(d.dtype, a, b, true);
  case Ops::Mod: return remainder(d.dtype, a, b, false);
  case Ops::FloorMod: return remainder(d.dtype, a, b, true);
  case Ops::Max: return {std::max(a->lo, b->lo), std::max(a->hi, b->hi)};
  case Ops::Min: return {std::min(a->lo, b->lo), std::min(a->hi, b->hi)};
  case Ops::And:
    if (d.dtype == DType::Bool) return {a->lo & b->lo, a->hi & b->hi};
    return a->lo >= 0 && b->lo >= 0 ? IntRange{0, std::min(a->hi, b->hi)} : int_range(d.dtype);
  case Ops::Or:
    if (d.dtype == DType::Bool) return {a->lo | b->lo, a->hi | b->hi};
    return int_range(d.dtype);
  default: return int_range(d.dtype);
  }
}

} // namespace

IntRange infer_bounds(const Draft& d) {
  if (!is_int(d.dtype) && d.dtype != DType::Bool) return {kMin, kMax};
  if (d.dtype == DType::U64 && d.op != Ops::Const) return {kMin, kMax};
  const OpInfo& op = info(d.op);
  if (op.cls == OpClass::Leaf) return leaf_bounds(d);
  if (op.cls == OpClass::Compare) return compare(d.op, d.src[0], d.src[1]);
  if (op.cls == OpClass::Binary) return binary_bounds(d, d.src[0], d.src[1]);
  switch (d.op) {
  case Ops::Cast: return cast_bounds(d.dtype, d.src[0]);
  case Ops::Neg: return fit(d.dtype, -Wide(d.src[0]->hi), -Wide(d.src[0]->lo));
  case Ops::Not:
    if (d.dtype == DType::Bool) return {1 - d.src[0]->hi, 1 - d.src[0]->lo};
    return int_range(d.dtype);
  case Ops::Where: return {std::min(d.src[1]->lo, d.src[2]->lo), std::max(d.src[1]->hi, d.src[2]->hi)};
  case Ops::Reshape:
  case Ops::Permute:
  case Ops::Expand:
  case Ops::Shrink:
  case Ops::Flip:
  case Ops::After: return {d.src[0]->lo, d.src[0]->hi};
  case Ops::Gather:
  case Ops::Pad: return {std::min<int64_t>(d.src[0]->lo, 0), std::max<int64_t>(d.src[0]->hi, 0)};
  default: return int_range(d.dtype);
  }
}

} // namespace tgc
