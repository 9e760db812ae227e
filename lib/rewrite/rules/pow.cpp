// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pow(x, y) = 2^(y * log2 |x|), and C's special cases.
//
// y * log2 |x| reaches 150 (f32) or 1075 (f64), so the logarithm needs 8 or 11 bits more than the result: f32 computes
// in f64; f64 carries the logarithm as an unevaluated sum of two doubles (Dekker). Products are split by masking
// mantissa bits, so contracted multiply-adds give the same sums.
#include <limits>

#include "rewrite/rules/polynomials.h"
#include "rewrite/rules/transcendental.h"

namespace tgc {
namespace {
using namespace coefficients;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2Double = 0x1.62e42fefa39efp-1;

Ref div(Ref a, Ref b) { return binary(Ops::Div, a, b); }
Ref is(Ref a, double v) { return binary(Ops::Eq, a, const_like(a, v)); }
Ref below(Ref a, double v) { return lt(a, const_like(a, v)); }
Ref either(Ref a, Ref b) { return binary(Ops::Or, a, b); }
Ref is_nan(Ref a) { return binary(Ops::Ne, a, a); }

/// 2^(t + low) in f64. Both are clamped here: t where the result is 0 or infinity whatever follows, and with it `low`,
/// which is below 1 for any other t, but grows with it.
Ref exp2_of(Ref t, Ref low, bool full) {
  const Ref v = real::clamp(t, -1100, 1100);
  const real::Rounded n = real::nearest(v);
  const Ref r = (v - n.value + real::clamp(low, -1, 1)) * kLn2Double;
  const Ref p = full ? r + r * r * real::horner(r, kExpF64) : r * real::horner(r, kExpShortF64);
  return real::scale(p + 1.0, n.integer);
}

/// f32: everything in f64, to 2^-40 relative.
Ref magnitude_f32(Ref ax, Ref y) {
  const real::Parts parts = real::split(cast(ax, DType::F64));
  const Ref f = parts.mantissa - 1.0, s = div(f, f + 2.0), z = s * s;
  const Ref log2 = (s * 2.0 + s * z * real::horner(z, kLogF64)) * kLog2E[0] + parts.exponent;
  const Ref t = real::clamp(cast(y, DType::F64), -1e30, 1e30) * log2;
  return cast(exp2_of(t, const_like(t, 0), false), DType::F32);
}

/// The upper 26 bits of the mantissa.
Ref upper(Ref a) {
  return bitcast(binary(Ops::And, bitcast(a, DType::I64), a->ctx->constant_int(DType::I64, -(int64_t{1} << 27))),
                 DType::F64);
}
using real::Double2;
Double2 product(Double2 a, Double2 b, bool fma) {
  const Double2 p = real::product(a.high, b.high, fma);
  return {p.high, p.low + (a.high * b.low + a.low * b.high)};
}
/// a + b for |a| >= |b| or a = 0.
Double2 sum(Double2 a, Double2 b) {
  const Ref high = a.high + b.high;
  return {high, ((a.high - high) + b.high) + (a.low + b.low)};
}

Double2 log2_of(Ref ax, bool fma) {
  const real::Parts parts = real::split(ax);
  const auto pair = [&](const double(&c)[2]) { return Double2{const_like(ax, c[0]), const_like(ax, c[1])}; };
  const Ref f = parts.mantissa - 1.0, u = parts.mantissa + 1.0, u_low = parts.mantissa - (u - 1.0);
  const Ref s = div(f, u);
  const Double2 su = real::product(s, u, fma);
  const Double2 s2 = {s, div((f - su.high) - su.low - s * u_low, u)};
  const Double2 z = product(s2, s2, fma);
  const Ref tail = z.high * real::horner(z.high, kPowLogF64);
  const Double2 q = sum(pair(kTwoThirds), {tail, const_like(ax, 0)});
  const Double2 cubic = product(s2, product(z, q, fma), fma);
  const Double2 log = sum({s2.high * 2.0, s2.low * 2.0}, cubic);
  return sum({parts.exponent, const_like(ax, 0)}, product(log, pair(kLog2E), fma));
}

Ref magnitude_f64(Ref ax, Ref y, bool fma) {
  // Any |y| >= 2^66 gives 0, 1 or infinity; the clamp keeps products finite.
  const Ref v = real::clamp(y, -0x1p66, 0x1p66);
  const Double2 log2 = log2_of(ax, fma);
  const Double2 t = product(Double2{v, const_like(v, 0)}, log2, fma);
  return exp2_of(t.high, t.low, true);
}
} // namespace

namespace real {
Double2 product(Ref a, Ref b, bool fma) {
  if (fma) {
    const auto fused = [&](Ref c) { return a->ctx->make(Ops::Fma, a->dtype, {a, b, c}); };
    const Ref p = fused(const_like(a, -0.0)); // not a Mul, which a later sum would take in unrounded
    return {p, fused(-p)};
  }
  const Ref p = a * b, ah = upper(a), bh = upper(b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
} // namespace real

Ref pow_by_constant(Ref x, double y) {
  if (y == 0) return const_like(x, 1);
  if (y == 1) return x;
  if (y == 2) return x * x;
  if (y == 3) return x * x * x; // rounds twice
  if (y == -1) return div(const_like(x, 1), x);
  if (y != 0.5) return {};
  return where(is(x, -kInf), const_like(x, kInf), unary(Ops::Sqrt, x + 0.0)); // C: no -0, and pow(-inf, 0.5) is inf
}

Ref pow_of(Ref x, Ref y, bool fma) {
  const Ref ax = unary(Ops::Abs, x), zero = const_like(x, 0), one = const_like(x, 1), inf = const_like(x, kInf);
  Ref m = x->dtype == DType::F64 ? magnitude_f64(ax, y, fma) : magnitude_f32(ax, y);
  const Ref y_negative = below(y, 0);
  m = where(is(ax, 0), where(y_negative, inf, zero), m);
  m = where(is(ax, kInf), where(y_negative, zero, inf), m);
  const Ref half = y * 0.5;
  const Ref whole = binary(Ops::Eq, unary(Ops::Trunc, y), y);
  const Ref even = binary(Ops::Eq, unary(Ops::Trunc, half), half);
  const Ref odd = logical_and(whole, unary(Ops::Not, even));
  const Ref signed_m = where(odd, real::with_sign_of(m, x), m);
  const Ref undefined = logical_and(logical_and(below(x, 0), lt(const_like(x, -kInf), x)), unary(Ops::Not, whole));
  const Ref nan = const_like(x, std::numeric_limits<double>::quiet_NaN());
  const Ref result = where(either(undefined, either(is_nan(x), is_nan(y))), nan, signed_m);
  return where(either(is(y, 0), is(x, 1)), one, result);
}

} // namespace tgc
