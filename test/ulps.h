// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distance of a floating-point result from the true value, fast enough for every float there is.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tgc::testing {

/// |got - want| in units of the last place of want as a T (float or double); 1e9 where specials differ. `Wide` has more
/// digits than T. A result on the wrong side of the overflow threshold is 1 off.
template <typename T, typename Wide> double ulps(T got, Wide want) {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr int kExponents = 2 * std::numeric_limits<T>::max_exponent - 1;
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    return std::fabs(want) > std::numeric_limits<T>::max() || std::fabs(got) == std::numeric_limits<T>::max() ? 1 : 1e9;
  }
  if (got == 0 && rounded == 0) return std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  const int biased = std::max(1, static_cast<int>(std::bit_cast<Word>(rounded) >> kMantissa & kExponents));
  const int exponent = biased - std::numeric_limits<T>::max_exponent + 1 - kMantissa; // of the unit
  const Wide error = std::fabs(static_cast<Wide>(got) - want);
  if constexpr (sizeof(T) == 4) // a power of two, without a call
    return error * std::bit_cast<double>(static_cast<uint64_t>(1023 - exponent) << 52);
  else
    return static_cast<double>(std::ldexp(error, -exponent));
}

} // namespace tgc::testing
