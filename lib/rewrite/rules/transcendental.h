// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

// Branch-free expressions for the functions that targets lack, over add, mul, div, compare, where, integer ops and
// bitcasts. x: f32 or f64; the result has its type and shape. Accurate to 2 ULP in f32 and 4 ULP in f64, with or
// without multiply-adds contracted, on the domains below; special values as C's functions of the same name.
namespace tgc {

Ref exp_of(Ref x);  ///< all x
Ref log_of(Ref x);  ///< all x
Ref tanh_of(Ref x); ///< all x
Ref erf_of(Ref x);  ///< all x
/// |x| <= 1e8 in f32 (reduced in f64), |x| <= 1e6 in f64. Beyond, a value within [-1, 1]; of an infinity, NaN.
Ref sin_of(Ref x);
Ref cos_of(Ref x);
/// All x, y. `fma`: the target has Fma (its sums may then be contracted), else it has not (they may not).
Ref pow_of(Ref x, Ref y, bool fma);
/// pow(x, y) for the y that one root, quotient or few products serve; else null.
Ref pow_by_constant(Ref x, double y);

namespace real {
// Building blocks on f32 and f64 expressions.
DType bits_type(DType t);               ///< i32 for f32, i64 for f64
Ref sign_bits(Ref x);                   ///< the sign bit alone, as bits_type
Ref with_sign_of(Ref magnitude, Ref x); ///< requires: magnitude >= 0 or NaN
Ref clamp(Ref x, double lo, double hi); ///< NaN stays NaN
/// x * 2^k, |k| < 2 * (exponent range): in two steps, so that it rounds once.
Ref scale(Ref x, Ref k);
/// x rounded to the nearest integer, and that integer in bits_type. requires: |x| < 2^22 (f32), 2^51 (f64).
struct Rounded {
  Ref value, integer;
};
Rounded nearest(Ref x);
/// x = mantissa * 2^exponent with sqrt(1/2) <= mantissa < sqrt(2); the exponent as a float. requires: finite x > 0.
struct Parts {
  Ref mantissa, exponent;
};
Parts split(Ref x);
/// An unevaluated sum of two f64, |low| <= ulp(high).
struct Double2 {
  Ref high, low;
};
/// a * b, exact to 2^-106 relative. `fma`: by Fma; else by splitting, which later contraction of sums would break.
Double2 product(Ref a, Ref b, bool fma);
Ref horner(Ref x, const float* c, int n);
Ref horner(Ref x, const double* c, int n);
template <typename T, int N> Ref horner(Ref x, const T (&c)[N]) { return horner(x, c, N); }
} // namespace real

} // namespace tgc
