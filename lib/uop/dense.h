// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to the interpreter: strided arrays and the few operations that evaluate everything.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "uop/scalar.h"
#include "uop/tensor_value.h"

namespace tgc {

/// A view of elements: element (i0, i1, …) is at data[offset + sum(i * stride)], in elements of dtype. Strides may be 0
/// (repetition) or negative (flip). The owner keeps the bytes alive; it is empty when the caller does.
struct Dense {
  DType dtype = DType::Void;
  std::vector<int64_t> shape, stride;
  int64_t offset = 0;
  const std::byte* data = nullptr;
  std::shared_ptr<std::byte[]> owner;

  int64_t numel() const;
  bool contiguous() const;
  const std::byte* first() const { return data + offset * byte_size(dtype); }
};

/// A view of caller-owned bytes, row-major.
Dense dense_over(DType dtype, std::vector<int64_t> shape, const std::byte* data);
/// Fresh row-major storage; `out` receives its writable address.
/// errors: TGC-E105 above 2^33 bytes.
Dense dense_new(DType dtype, std::vector<int64_t> shape, std::byte** out);
Dense dense_scalar(DType dtype, Bits bits);
/// 0..n-1 along dimension `dim` of `rank` dims of size 1.
Dense dense_iota(int64_t n, int dim, int rank);

/// The same elements with size-1 and missing leading dims repeated. requires: right-aligned compatible shapes.
Dense dense_broadcast(const Dense& x, const std::vector<int64_t>& shape);
Dense dense_contiguous(const Dense& x);                                 ///< itself, or a row-major copy
Dense dense_reshape(const Dense& x, const std::vector<int64_t>& shape); ///< a view where strides allow, else a copy
Dense dense_permute(const Dense& x, const std::vector<int64_t>& axes);
Dense dense_flip(const Dense& x, const std::vector<int64_t>& axes);
Dense dense_shrink(const Dense& x, const std::vector<int64_t>& offset, const std::vector<int64_t>& size);
/// The element of `data` at each element's place but for dimension `dim`, where `positions` (integers, of the result's
/// shape) says which; 0 outside.
Dense dense_gather(const Dense& data, const Dense& positions, size_t dim);
Dense dense_pad(const Dense& x, const std::vector<int64_t>& lo, const std::vector<int64_t>& hi);

/// op over 1 to 3 sources broadcast to `shape`. errors: TGC-E105 when the op is not defined for the dtype.
Dense dense_apply(Ops op, const std::vector<int64_t>& shape, std::span<const Dense> in);
Dense dense_cast(DType to, const Dense& x);
Dense dense_bitcast(DType to, const Dense& x);

/// Reduction over the dims with `reduced[dim]`, which become size 1. With two sources (equal shapes) the product of
/// the sources is reduced without being stored. Floats accumulate in double, integers wrap.
/// errors: TGC-E105 when the kind is not defined for the dtype.
Dense dense_reduce(Ops kind, std::span<const Dense> in, const std::vector<bool>& reduced);

/// Writes `x` row-major to `out`.
void dense_copy_to(const Dense& x, std::byte* out);
HostTensor to_host(const Dense& x);
Dense from_host(const HostTensor& x); ///< a view; `x` must outlive it

} // namespace tgc
