// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "uop/diag.h"
#include "uop/uop.h"

// Graph builders at tensor level. Each returns a node built only from movement, elementwise and reduce ops;
// broadcasting is made explicit here. A builder leaves out a movement op that would change nothing. Dims may be
// symbolic everywhere. errors: all throw CompileError; E203 for shapes that cannot fit, E209 for symbolic dims that may
// not fit.
namespace tgc::tensor {

using Dims = std::vector<Ref>;

/// Throws CompileError with an empty `where`, which importers fill in.
[[noreturn]] void fail(ErrorCode code, std::string message, std::string note = "");

/// A condition on symbolic dims that a builder needs and that is true for some values only: a CompileError (E209) for
/// whoever does not know better, a fact to assume and to check at run time for importers (dims.h).
class Undecided : public CompileError {
public:
  enum class Relation : uint8_t { Equal, AtMost };
  Undecided(Ref a, Relation is, Ref b, const std::string& message);
  Ref left;
  Relation relation;
  Ref right;
};
/// Returns if a = b (a <= b) for all values of their dims. errors: E203 with `message` if for none, else Undecided.
void require_equal(Ref a, Ref b, const std::string& message);
void require_at_most(Ref a, Ref b, const std::string& message);

// ---- dims -----------------------------------------------------------------------------------------------------------
Dims dims_of(Ref x);
Dims index_dims(Context& ctx, const std::vector<int64_t>& dims);
Ref dim(Ref x, int64_t axis);
std::string dim_text(Ref dim); ///< "batch+1"
/// axis in [-rank, rank) → [0, rank)
int64_t normalize_axis(int64_t axis, int64_t rank);
/// As normalize_axis for each, sorted; a repeated axis is an error.
std::vector<int64_t> normalize_axes(std::vector<int64_t> axes, int64_t rank);
std::vector<int64_t> all_axes(Ref x);
/// The shape that all of `shapes` broadcast to, aligned at the last dim.
Dims broadcast_shapes(const std::vector<Dims>& shapes);
/// The smaller or larger of two dims; no op where bounds tell which.
Ref dim_min(Ref a, Ref b);
Ref dim_max(Ref a, Ref b);
/// product(whole)/product(part), exactly: equal dims cancel, then constants. Nothing if it is not provably whole.
std::optional<Ref> exact_quotient(Context& ctx, Refs whole, Refs part);

// ---- constants ------------------------------------------------------------------------------------------------------
Ref full(Context& ctx, Refs dims, DType dtype, double value);
Ref full_like(Ref x, double value);
/// 0..n-1 along `axis`, the same everywhere else.
Ref iota(Context& ctx, Refs dims, int64_t axis, DType dtype);

// ---- movement -------------------------------------------------------------------------------------------------------
Ref reshape(Ref x, Refs dims);
Ref permute(Ref x, std::vector<int64_t> axes);
Ref swap_axes(Ref x, int64_t a, int64_t b);
Ref expand(Ref x, Refs dims);
/// Right-aligned broadcast of x to `dims`.
Ref broadcast_to(Ref x, Refs dims);
Ref pad(Ref x, Refs lo, Refs hi);
/// As pad, with `value` (a scalar of x's dtype) around.
Ref pad_with(Ref x, Refs lo, Refs hi, Ref value);
Ref pad_axis(Ref x, int64_t axis, Ref lo, Ref hi);
/// Elements [offset, offset + size) of every axis: x [n...] → [size...]. requires: offset + size <= n.
Ref shrink(Ref x, Refs offset, Refs size);
/// As shrink, of one axis.
Ref shrink_axis(Ref x, int64_t axis, Ref offset, Ref size);
Ref flip(Ref x, std::vector<int64_t> axes);
/// Size-1 dims inserted before `axes` of the result.
Ref unsqueeze(Ref x, std::vector<int64_t> axes);
Ref squeeze(Ref x, const std::vector<int64_t>& axes);
/// Dims [first, last) merged into one.
Ref merge_axes(Ref x, int64_t first, int64_t last);
/// x [.., n, ..] → [.., parts.., ..] with the product of parts equal to n.
Ref split_axis(Ref x, int64_t axis, Refs parts);
/// Parts [.., n_i, ..], alike in type and outside `axis`, joined: [.., n_0 + n_1 + …, ..].
Ref concat(const std::vector<Ref>& parts, int64_t axis);
/// `count` elements along an axis from offset on, `step` > 0 apart.
struct Progression {
  int64_t axis;
  Ref offset, count;
  int64_t step;
};
/// x [.., n, ..] → [.., count, ..]. requires: offset + (count - 1)*step < n.
Ref stride_axis(Ref x, const Progression& p);

// ---- elementwise ----------------------------------------------------------------------------------------------------
/// `op` on sources broadcast to one shape.
Ref elementwise(Ops op, const std::vector<Ref>& src);
/// A scalar constant of x's dtype broadcast to x's shape with `op`.
Ref elementwise(Ops op, Ref x, double y);
Ref add(Ref a, Ref b);
Ref sub(Ref a, Ref b);
Ref mul(Ref a, Ref b);
Ref div(Ref a, Ref b);
Ref add(Ref a, double b);
Ref mul(Ref a, double b);
Ref div(Ref a, double b);
/// The constant is the first operand.
Ref rsub(double a, Ref b);
Ref rdiv(double a, Ref b);
Ref maximum(Ref a, Ref b);
Ref minimum(Ref a, Ref b);
Ref maximum(Ref a, double b);
Ref minimum(Ref a, double b);
Ref select(Ref cond, Ref a, Ref b);
Ref compare(Ops op, Ref a, double b);
Ref is_nan(Ref x);
/// cast, left out when x has the type already.
Ref to(Ref x, DType dtype);

// ---- reductions: axes are normalised by the caller's use of normalize_axes
// -------------------------------------------
/// The type sums of `t` accumulate in: f32 for f16 and bf16, else t.
DType accumulator(DType t);
/// kind add, mul, max or min over `axes`, which x's shape loses, or has as 1 if `keep`. In x's type.
Ref reduce(const char* kind, Ref x, const std::vector<int64_t>& axes, bool keep);
/// As reduce with "add"; f16 and bf16 accumulate in f32.
Ref sum(Ref x, const std::vector<int64_t>& axes, bool keep);
/// As reduce with "mul"; f16 and bf16 accumulate in f32.
Ref prod(Ref x, const std::vector<int64_t>& axes, bool keep);
Ref mean(Ref x, const std::vector<int64_t>& axes, bool keep);
Ref max(Ref x, const std::vector<int64_t>& axes, bool keep);
Ref min(Ref x, const std::vector<int64_t>& axes, bool keep);
/// Index (i64) of the largest element; NaN counts as largest. `last`: of equal ones the last.
Ref argmax(Ref x, int64_t axis, bool keep, bool last);

} // namespace tgc::tensor
