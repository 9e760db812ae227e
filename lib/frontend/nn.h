// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "frontend/tensor.h"

// Neural-network builders over tensor.h. Errors as there. f16 and bf16 products are summed in f32.
namespace tgc::tensor {

/// numpy's matmul: a [..., M, K] · b [..., K, N] → [..., M, N]; leading dims broadcast; a rank-1 operand is a row or
/// column that the result drops. No matmul op: reshape, expand, multiply, reduce.
Ref matmul(Ref a, Ref b);

/// One spatial axis of a sliding window.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_lo = 0, pad_hi = 0;
  int64_t output_pad = 0; ///< conv_transpose only: elements added at the end of its result
  int64_t span() const { return dilation * (kernel - 1) + 1; } ///< elements from the first to the last tap
};
/// x [..., i...] → [..., o..., kernel...] over its last `windows.size()` axes (unpadded: pads are ignored), with
/// element (o, k) equal to x[o*stride + k*dilation] and o = floor((i - span)/stride) + 1.
Ref windows(Ref x, const std::vector<Window>& axes);
/// x with `pad_lo`, `pad_hi` zeros (or `value`) on its last axes; negative pads crop.
Ref pad_spatial(Ref x, const std::vector<Window>& axes, double value = 0);

/// x [N, C, i...], w [M, C/groups, kernel...] → [N, M, o...], o = floor((pad_lo + i + pad_hi - span)/stride) + 1:
/// cross-correlation with zero padding. Output channels [g*M/groups, ..) read the g-th of `groups` parts of C.
Ref conv(Ref x, Ref w, const std::vector<Window>& axes, int64_t groups);
/// The transpose of conv: x [N, C, i...], w [C, M/groups, kernel...] → [N, M, o...] with
/// o = (i-1)*stride + span + output_pad - pad_lo - pad_hi.
Ref conv_transpose(Ref x, Ref w, const std::vector<Window>& axes, int64_t groups);
/// `bias` [C] added along axis 1 of x.
Ref add_channel(Ref x, Ref bias);
/// v [C] as [1, C, 1...] of x's rank.
Ref channel(Ref x, Ref v);

/// The smallest value of a type: -inf for floats.
double lowest(DType t);
/// Maximum over each window; padding never wins.
Ref max_pool(Ref x, const std::vector<Window>& axes);
/// Mean over each window. `count_pads`: padding counts as taps of value 0. `extra_hi` is padding beyond pad_hi (ceil
/// mode) that never counts.
Ref average_pool(Ref x, const std::vector<Window>& axes, bool count_pads, const std::vector<int64_t>& extra_hi);

Ref softmax(Ref x, int64_t axis);
Ref log_softmax(Ref x, int64_t axis);
/// (x - mean) / sqrt(variance + epsilon) over `axes`, in f32 at least.
Ref standardize(Ref x, const std::vector<int64_t>& axes, double epsilon);

Ref relu(Ref x);
Ref sigmoid(Ref x);
Ref gelu(Ref x, bool tanh_approximation);
Ref softplus(Ref x);
/// x**n for a small whole n, by multiplication.
Ref power(Ref x, int64_t n);

} // namespace tgc::tensor
