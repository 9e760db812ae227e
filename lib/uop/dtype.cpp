// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rounding and wrapping to an element type. Floats narrower than f32 are rounded from f64 in one step (two steps would
// round twice): scale so that the last kept bit is a unit, round to nearest even, scale back. Subnormals follow because
// the quantum never drops below the format's smallest subnormal.
#include "uop/dtype.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tgc {
namespace {

double round_small(double x, int mantissa, int min_exponent, int max_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = std::max(std::ilogb(x), min_exponent);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(x, mantissa - exponent)), exponent - mantissa);
  if (std::fabs(rounded) >= std::ldexp(1.0, max_exponent + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), x);
  return rounded;
}

} // namespace

double round_to(DType type, double value) {
  switch (type) {
  case DType::F16: return round_small(value, 10, -14, 15);
  case DType::BF16: return round_small(value, 7, -126, 127);
  case DType::F32: return static_cast<double>(static_cast<float>(value));
  default: return value;
  }
}

IntRange int_range(DType type) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  if (type == DType::Bool) return {0, 1};
  int bits = 8 * byte_size(type);
  if (bits == 64 || !is_int(type)) return {kMin, kMax};
  if (is_unsigned(type)) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

int64_t wrap_to(DType type, int64_t value) {
  if (type == DType::Bool) return value != 0;
  int bits = 8 * byte_size(type);
  if (bits == 64) return value;
  uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  if (is_signed(type) && (low >> (bits - 1)) != 0) low |= ~((uint64_t{1} << bits) - 1);
  return static_cast<int64_t>(low);
}

} // namespace tgc
