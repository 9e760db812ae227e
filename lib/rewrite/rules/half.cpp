// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f16 and bf16 without hardware: values are held as f32 and rounded after every op, memory as u16.
//
// One op in f32 rounded to 16 bits equals the op rounded once (24 >= 2*11 + 2 bits). Conversions are integer
// arithmetic: bf16 is the upper half of f32; f16 moves the exponent by a multiplication with 2^112 and rounds its
// subnormals by adding 1/2. A value from f64 or a wide integer first goes to f32 with its last bit made sticky (round
// to odd), so that the second rounding sees what the first dropped. Which ops fire is decided by PassContext::target;
// without one, both types count as absent.
#include "rewrite/rules/decompose.h"

namespace tgc {
namespace {
constexpr Cap X{0};

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
bool lacks(Match& m, DType t) { return is_half(t) && !(m.ctx().target && m.ctx().target->supports(t)); }
Pat halves(const Pat& p) { return p.where_dtype(dtype_mask(is_half)); }

Ref bit_or(Ref a, Ref b) { return binary(Ops::Or, a, b); }
Ref bit_and(Ref a, int64_t mask) { return binary(Ops::And, a, a->ctx->constant_int(a->dtype, mask)); }
Ref shl(Ref a, int n) { return binary(Ops::Shl, a, const_like(a, n)); }
Ref shr(Ref a, int n) { return binary(Ops::Shr, a, const_like(a, n)); }
Ref u32(Ref a) { return bitcast(a, DType::U32); }

// ---- 16 bits to f32 -------------------------------------------------------------------------------------------------
Ref from_bfloat_bits(Ref bits) { return bitcast(shl(cast(bits, DType::U32), 16), DType::F32); }

Ref from_half_bits(Ref bits) {
  const Ref b = cast(bits, DType::U32), magnitude = shl(bit_and(b, 0x7fff), 13);
  const Ref finite = bitcast(magnitude, DType::F32) * 0x1p112;
  const Ref special = bitcast(bit_or(magnitude, const_like(magnitude, 0x7f800000)), DType::F32);
  const Ref value = where(lt(bit_and(b, 0x7fff), const_like(b, 0x7c00)), finite, special);
  return bitcast(bit_or(u32(value), shl(bit_and(b, 0x8000), 16)), DType::F32);
}

// ---- f32 to 16 bits -------------------------------------------------------------------------------------------------
/// b >> n, rounded half to even.
Ref round_shift(Ref b, int n) {
  const Ref tie = bit_and(shr(b, n), 1);
  return shr(b + const_like(b, static_cast<double>((int64_t{1} << (n - 1)) - 1)) + tie, n);
}

Ref to_bfloat_bits(Ref x) {
  const Ref b = u32(x), quiet = bit_or(shr(b, 16), const_like(b, 0x40));
  const Ref nan = binary(Ops::Ne, x, x);
  return cast(where(nan, quiet, round_shift(b, 16)), DType::U16);
}

Ref to_half_bits(Ref x) {
  const Ref b = u32(x), a = bit_and(b, 0x7fffffff), magnitude = bitcast(a, DType::F32);
  const Ref normal = round_shift(a - const_like(a, 112.0 * (1 << 23)), 13);
  const Ref subnormal = u32(magnitude + 0.5) - const_like(a, 0x3f000000);
  const Ref infinite = const_like(a, 0x7c00);
  Ref h = where(lt(magnitude, const_like(magnitude, 0x1p-14)), subnormal, normal);
  h = where(lt(magnitude, const_like(magnitude, 65536)), h, infinite);
  h = where(binary(Ops::Ne, x, x), const_like(a, 0x7e00), h);
  return cast(bit_or(h, shr(bit_and(b, 0x80000000), 16)), DType::U16);
}

/// x as f32, rounded to odd when inexact.
Ref to_odd_float(Ref x) {
  const Ref wide = cast(x, DType::F64), f = cast(wide, DType::F32), back = cast(f, DType::F64);
  const Ref b = bitcast(f, DType::I32);
  const Ref even = binary(Ops::Eq, bit_and(b, 1), const_like(b, 0));
  const Ref shrink = lt(unary(Ops::Abs, wide), unary(Ops::Abs, back));
  const Ref inexact = binary(Ops::Or, lt(back, wide), lt(wide, back));
  const Ref odd = b + where(shrink, const_like(b, -1), const_like(b, 1));
  return bitcast(where(logical_and(inexact, even), odd, b), DType::F32);
}

bool exact_in_f32(DType t) { return t == DType::F32 || t == DType::Bool || byte_size(t) <= 2; }

// ---- rules ----------------------------------------------------------------------------------------------------------
/// half -> T is half -> f32 -> T; half -> f32 is integer arithmetic on the stored bits.
Ref cast_from_half(Match& m) {
  const DType from = m[X]->dtype, to = m.root()->dtype;
  if (!lacks(m, from)) return {};
  if (to != DType::F32) return cast(cast(m[X], DType::F32), to);
  const Ref bits = bitcast(m[X], DType::U16);
  return from == DType::F16 ? from_half_bits(bits) : from_bfloat_bits(bits);
}

/// T -> half is T -> f32 (to odd where that may round) -> half, as stored bits.
Ref cast_to_half(Match& m) {
  const DType from = m[X]->dtype, to = m.root()->dtype;
  if (!lacks(m, to) || from == to) return {};
  if (is_half(from)) return cast(cast(m[X], DType::F32), to);
  const Ref f = from == DType::F32 ? m[X] : exact_in_f32(from) ? cast(m[X], DType::F32) : to_odd_float(m[X]);
  return bitcast(to == DType::F16 ? to_half_bits(f) : to_bfloat_bits(f), to);
}

/// The op on f32 copies of its half operands.
Ref in_f32(Ref node) {
  std::vector<Ref> src(node->src.begin(), node->src.end());
  for (Ref& s : src)
    if (is_half(s->dtype)) s = cast(s, DType::F32);
  const Ref wide = node->ctx->make(node->op, DType::F32, src, *node->attrs);
  return is_half(node->dtype) ? cast(wide, node->dtype) : wide;
}
bool has_half_source(Ref x) {
  for (Ref s : x->src)
    if (is_half(s->dtype)) return true;
  return false;
}
Ref op_without_type(Match& m) {
  const Ref x = m.root();
  if (x->is(Ops::Cast) || x->is(Ops::Bitcast)) return {};
  for (Ref s : x->src)
    if (lacks(m, s->dtype)) return in_f32(x);
  return {};
}
/// The target has the type but not this op, and no rule but f32's decomposes it.
Ref op_lacking(Match& m) {
  const Ref x = m.root();
  const bool has_op = m.ctx().target && m.ctx().target->supports(x->op);
  return !has_op && has_half_source(x) ? in_f32(x) : Ref();
}

/// The same storage as u16.
Ref as_u16(Ref storage) { return storage->ctx->make(storage->op, DType::U16, storage->src, *storage->attrs); }
bool is_plain_storage(Ref x) { return x->is(Ops::Param) || x->is(Ops::Buffer); }

Ref load_half(Match& m) {
  const Ref x = m.root();
  if (!lacks(m, x->dtype) || !is_plain_storage(x->src[0])) return {};
  std::vector<Ref> src(x->src.begin(), x->src.end());
  src[0] = as_u16(src[0]);
  if (src.size() == 4) src[3] = bitcast(src[3], DType::U16);
  return bitcast(m.graph().make(Ops::Load, DType::U16, src, *x->attrs), x->dtype);
}
Ref store_half(Match& m) {
  const Ref x = m.root();
  if (x->src.size() < 3 || !lacks(m, x->src[0]->dtype) || !is_plain_storage(x->src[0])) return {};
  std::vector<Ref> src(x->src.begin(), x->src.end());
  src[0] = as_u16(src[0]);
  src[2] = bitcast(src[2], DType::U16);
  return m.graph().make(Ops::Store, DType::Void, src, *x->attrs);
}
Ref bitcast_twice(Match& m) { return m[X]->dtype == m.root()->dtype ? m[X] : bitcast(m[X], m.root()->dtype); }

OpMask elementwise_ops(bool compare) {
  OpMask ops;
  for (int o = 0; o < kNumOps; ++o) {
    const OpClass c = info(static_cast<Ops>(o)).cls;
    const bool value = c == OpClass::Unary || c == OpClass::Binary || c == OpClass::Ternary;
    ops.set(static_cast<size_t>(o), value || (compare && c == OpClass::Compare));
  }
  ops.reset(static_cast<size_t>(Ops::Cast));
  ops.reset(static_cast<size_t>(Ops::Bitcast));
  return ops;
}
} // namespace

const PatternMatcher& decompose_half() {
  static const PatternMatcher rules("half",
                                    {
                                        {"bitcast-twice", op(Ops::Bitcast, {op(Ops::Bitcast, {X})}), bitcast_twice},
                                        {"cast-from-half", cast(halves(X)), cast_from_half},
                                        {"cast-to-half", halves(cast(X)), cast_to_half},
                                        {"op", Pat(elementwise_ops(true), {}, true), op_without_type},
                                        {"lacking-op", Pat(elementwise_ops(true), {}, true), op_lacking},
                                        {"load", op_any_sources({Ops::Load}), load_half},
                                        {"store", op_any_sources({Ops::Store}), store_half},
                                    },
                                    kSameValue);
  return rules;
}

} // namespace tgc
