// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "uop/dtype.h"

namespace tgc {

/// A dense tensor in memory: row-major, little-endian, `byte_size(dtype)` bytes an element.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  int64_t numel() const;
  /// Element `i` in row-major order as a double (exact for floats and integers up to 2^53).
  double at(int64_t i) const;
  int64_t int_at(int64_t i) const;   ///< the same for integers and bool, exact
  void set(int64_t i, double value); ///< rounds as Cast from f64 does
};

/// All zeros. requires: no negative dim.
HostTensor zeros(DType dtype, std::vector<int64_t> shape);
/// Elements from `values`, rounded to `dtype`. requires: as many values as elements.
HostTensor tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values);

} // namespace tgc
