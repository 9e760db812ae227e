// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// exp, log, tanh, erf, sin and cos as straight-line arithmetic.
//
// Each is reduced to a small interval exactly (Cody and Waite: the reduction constant is split so that products are
// exact), approximated there by a polynomial fitted for this purpose (scripts/fit_polynomials.py), and put back
// together with the large term added last. Rounding to integers is by adding 1.5 * 2^mantissa_bits, whose low bits then
// hold the integer: no conversion, and nothing undefined for NaN. Clamps are written so that NaN passes. Not handled:
// sin and cos beyond their domain are bounded but not accurate.
#include "rewrite/rules/transcendental.h"

#include <bit>
#include <cmath>
#include <limits>

#include "rewrite/rules/polynomials.h"

namespace tgc {
namespace {
using namespace coefficients;
constexpr double kInf = std::numeric_limits<double>::infinity();

bool is_double(Ref x) { return x->dtype == DType::F64; }
int mantissa_bits(Ref x) { return info(x->dtype).mantissa_bits; }
/// 1.5 * 2^mantissa_bits: a float whose unit is 1.
double magic(Ref x) { return is_double(x) ? 6755399441055744.0 : 12582912.0; }
int64_t bits_of(DType t, double value) {
  return t == DType::F64 ? std::bit_cast<int64_t>(value) : std::bit_cast<int32_t>(static_cast<float>(value));
}
Ref bits(Ref x) { return bitcast(x, real::bits_type(x->dtype)); }
Ref int_like(Ref x, int64_t value) { return x->ctx->constant_int(x->dtype, value); }

template <typename T> Ref horner_of(Ref x, const T* c, int n) {
  Ref sum = const_like(x, c[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = sum * x + static_cast<double>(c[i]);
  return sum;
}
} // namespace

namespace real {
DType bits_type(DType t) { return t == DType::F64 ? DType::I64 : DType::I32; }

Ref sign_bits(Ref x) {
  const int64_t mask = is_double(x) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  return binary(Ops::And, bits(x), int_like(bits(x), mask));
}
Ref with_sign_of(Ref magnitude, Ref x) { return bitcast(binary(Ops::Or, bits(magnitude), sign_bits(x)), x->dtype); }
Ref clamp(Ref x, double lo, double hi) {
  const Ref low = const_like(x, lo), high = const_like(x, hi);
  const Ref raised = where(lt(x, low), low, x);
  return where(lt(high, raised), high, raised);
}

Rounded nearest(Ref x) {
  const Ref t = x + magic(x);
  return {t - magic(x), bits(t) - int_like(bits(t), bits_of(x->dtype, magic(x)))};
}

Ref scale(Ref x, Ref k) {
  const int64_t bias = is_double(x) ? 1023 : 127;
  const auto power = [&](Ref e) {
    return bitcast(binary(Ops::Shl, e + int_like(e, bias), int_like(e, mantissa_bits(x))), x->dtype);
  };
  const Ref half = binary(Ops::Shr, k, int_like(k, 1));
  return x * power(half) * power(k - half);
}

Parts split(Ref x) {
  const Ref tiny = lt(x, const_like(x, is_double(x) ? 0x1p-1022 : 0x1p-126));
  const Ref normal = where(tiny, x * (is_double(x) ? 0x1p54 : 0x1p25), x);
  const Ref b = bits(normal), shift = int_like(b, mantissa_bits(x));
  const Ref k = binary(Ops::Shr, b - int_like(b, bits_of(x->dtype, 0.70710678118654752)), shift);
  const Ref mantissa = bitcast(b - binary(Ops::Shl, k, shift), x->dtype);
  const Ref exponent = bitcast(k + int_like(k, bits_of(x->dtype, magic(x))), x->dtype) - magic(x);
  return {mantissa, exponent - where(tiny, const_like(x, is_double(x) ? 54 : 25), const_like(x, 0))};
}

Ref horner(Ref x, const float* c, int n) { return horner_of(x, c, n); }
Ref horner(Ref x, const double* c, int n) { return horner_of(x, c, n); }
} // namespace real

namespace {
double exponent_bias(Ref x) { return is_double(x) ? 1023 : 127; }

/// e^v * 2^shift. Where the integer nearest to v * log2 e, plus shift, is the exponent of a normal number; if it is one
/// below, 0. `unit`: magic + exponent bias + shift, so that the integer's bits, moved up, are the power of 2.
Ref exp_shifted(Ref v, Ref unit) {
  const bool d = is_double(v);
  const Ref t = v * kLog2E[0] + unit, n = t - unit;
  const double hi = d ? kLn2[0] : kLn2F32[0], lo = d ? kLn2[1] : kLn2F32[1];
  const Ref r = (v - n * hi) - n * lo;
  const Ref s = r * r * (d ? real::horner(r, kExpF64) : real::horner(r, kExpF32)) + r;
  const Ref power = bitcast(binary(Ops::Shl, bits(t), int_like(bits(t), mantissa_bits(v))), v->dtype);
  return s * power + power;
}
/// e^v, if that and its reciprocal are normal numbers.
Ref exp_within(Ref v) { return exp_shifted(v, const_like(v, magic(v) + exponent_bias(v))); }
Ref at_most(Ref x, double limit) { return where(lt(const_like(x, limit), x), const_like(x, limit), x); }
} // namespace

Ref exp_of(Ref x) {
  const bool d = is_double(x);
  // Below the first, 0 after rounding; above the second, infinity. The first's exponent is the one below: 0 and no
  // product that underflows, which takes a hundred times as long (masked scores are far below).
  const Ref v = real::clamp(x, d ? -746.3 : -104.5, d ? 710 : 89);
  // Subnormal results are made normal, the largest half as large: 2^k is a float, and only the last product rounds.
  const double up = d ? 54 : 24, unit = magic(x) + exponent_bias(x);
  const Ref negative = lt(x, const_like(x, 0));
  const Ref shifted = exp_shifted(v, where(negative, const_like(x, unit + up), const_like(x, unit - 1)));
  return shifted * where(negative, const_like(x, std::exp2(-up)), const_like(x, 2));
}

Ref log_of(Ref x) {
  const bool d = is_double(x);
  const real::Parts parts = real::split(x);
  const Ref f = parts.mantissa - 1.0, e = parts.exponent;
  const double hi = d ? kLn2[0] : kLn2F32[0], lo = d ? kLn2[1] : kLn2F32[1];
  Ref small; // log(1+f) - f + e*lo
  if (d) {
    const Ref s = binary(Ops::Div, f, f + 2.0), z = s * s; // log(1+f) = 2 atanh(s) = f - s*(f - z*p)
    small = e * lo - s * (f - z * real::horner(z, kLogF64));
  } else {
    const Ref z = f * f;
    small = f * z * real::horner(f, kLogF32) + (e * lo - z * 0.5);
  }
  const Ref y = (f + small) + e * hi;
  const Ref zero = const_like(x, 0);
  const Ref at_most_0 =
      where(binary(Ops::Eq, x, zero), const_like(x, -kInf), const_like(x, std::numeric_limits<double>::quiet_NaN()));
  return where(lt(zero, x), where(lt(x, const_like(x, kInf)), y, x), at_most_0);
}

Ref tanh_of(Ref x) {
  const Ref a = unary(Ops::Abs, x), z = x * x;
  const Ref p = is_double(x) ? real::horner(z, kTanhF64) : real::horner(z, kTanhF32);
  const Ref small = a + a * z * p, b = at_most(a, is_double(x) ? 20 : 10); // tanh is 1 from here on
  const Ref large = const_like(x, 1) - binary(Ops::Div, const_like(x, 2), exp_within(b + b) + 1.0);
  return real::with_sign_of(where(lt(a, const_like(x, 0.625)), small, large), x);
}

Ref erf_of(Ref x) {
  const bool d = is_double(x);
  const Ref magnitude = unary(Ops::Abs, x), z = x * x;
  const Ref small = magnitude + magnitude * (d ? real::horner(z, kErfF64) : real::horner(z, kErfF32));
  const Ref a = at_most(magnitude, d ? 6 : 4); // erf is 1 from here on
  Ref p;                                       // log erfc a + a^2
  if (d)
    p = where(lt(a, const_like(x, 3)), real::horner(a - 2.0, kErfcNearF64), real::horner(a - 4.5, kErfcFarF64));
  else
    p = real::horner(a - 2.0, kErfcF32);
  const Ref large = const_like(x, 1) - exp_within(p - a * a);
  return real::with_sign_of(where(lt(magnitude, const_like(x, 1)), small, large), x);
}

namespace {
/// sin(x + quadrant * pi/2): the two low bits of the nearest multiple of pi/2 choose polynomial and sign.
Ref sine(Ref x, int64_t quadrant) {
  const bool d = is_double(x);
  const Ref wide = cast(x, DType::F64);
  const real::Rounded n = real::nearest(wide * 0.63661977236758134);
  Ref r = wide;
  if (d)
    for (double part : kHalfPi) r = r - n.value * part;
  else
    for (double part : kHalfPiF32) r = r - n.value * part;
  r = real::clamp(r, -0.8, 0.8); // beyond the domain: bounded
  Ref k = n.integer;
  if (!d) {
    r = cast(r, DType::F32);
    k = cast(k, DType::I32);
  }
  k = k + int_like(k, quadrant);
  const Ref z = r * r;
  const Ref sin = r + r * z * (d ? real::horner(z, kSinF64) : real::horner(z, kSinF32));
  const Ref cos = z * z * (d ? real::horner(z, kCosF64) : real::horner(z, kCosF32)) - z * 0.5 + 1.0;
  const Ref odd = binary(Ops::Ne, binary(Ops::And, k, int_like(k, 1)), int_like(k, 0));
  const Ref sign = binary(Ops::Shl, binary(Ops::And, k, int_like(k, 2)), int_like(k, d ? 62 : 30));
  return bitcast(binary(Ops::Xor, bits(where(odd, cos, sin)), sign), x->dtype);
}
} // namespace

Ref sin_of(Ref x) { return where(binary(Ops::Eq, x, const_like(x, 0)), x, sine(x, 0)); } // keeps -0
Ref cos_of(Ref x) { return sine(x, 1); }

} // namespace tgc
