// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: importers think in numpy terms; the IR has six movement ops, elementwise ops on equal shapes, and reduce.
// Idea: one small vocabulary in between. Broadcasting is a reshape to equal rank and an expand; a constant is a scalar
// reshaped and expanded; concat is a sum of zero-padded parts selected by position.
// Not handled: any folding of values (rules do it). Only movement ops that would be the identity are left out.
#include "frontend/tensor.h"

#include <algorithm>

namespace tgc::tensor {
namespace {

std::vector<Ref> with_dims(Ref x, Refs a, Refs b = {}) {
  std::vector<Ref> src{x};
  src.insert(src.end(), a.begin(), a.end());
  src.insert(src.end(), b.begin(), b.end());
  return src;
}

bool all_const(Refs dims, int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [&](Ref d) { return dim_int(d) == value; });
}

Dims constant_dims(Ref x, int64_t value) { return Dims(x->shape.size(), x->ctx->index(value)); }

} // namespace

void fail(ErrorCode code, std::string message, std::string note) {
  throw CompileError(Diagnostic{code, "", std::move(message), std::move(note)});
}

Undecided::Undecided(Ref a, Relation is, Ref b, const std::string& message)
    : CompileError(Diagnostic{ErrorCode::E209, "", message, "pin or bound the dims: --dim NAME=VALUE or NAME=LO..HI"}),
      left(a), relation(is), right(b) {}

void require_equal(Ref a, Ref b, const std::string& message) {
  if (dims_equal(a, b)) return;
  Ref difference = dim_sub(a, b);
  if (difference->lo > 0 || difference->hi < 0) fail(ErrorCode::E203, message);
  throw Undecided(a, Undecided::Relation::Equal, b, message + " unless " + dim_text(a) + " = " + dim_text(b));
}

void require_at_most(Ref a, Ref b, const std::string& message) {
  Ref margin = dim_sub(b, a);
  if (margin->lo >= 0) return;
  if (margin->hi < 0) fail(ErrorCode::E203, message);
  throw Undecided(a, Undecided::Relation::AtMost, b, message + " unless " + dim_text(a) + " <= " + dim_text(b));
}

// ---- dims -----------------------------------------------------------------------------------------------------------

Dims dims_of(Ref x) { return Dims(x->shape.begin(), x->shape.end()); }

Dims index_dims(Context& ctx, const std::vector<int64_t>& dims) {
  Dims out;
  for (int64_t d : dims) out.push_back(ctx.index(d));
  return out;
}

std::string dim_text(Ref dim) {
  std::string text = shape_text(std::vector<Ref>{dim});
  return text.substr(1, text.size() - 2);
}

Ref dim(Ref x, int64_t axis) { return x->shape[static_cast<size_t>(normalize_axis(axis, x->rank()))]; }

int64_t normalize_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    fail(ErrorCode::E203, "axis=" + std::to_string(axis) + " is outside [-" + std::to_string(rank) + ", " +
                              std::to_string(rank) + ") of a rank-" + std::to_string(rank) + " tensor");
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> normalize_axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) axis = normalize_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail(ErrorCode::E203, "axis " + std::to_string(*twice) + " is listed twice");
  return axes;
}

std::vector<int64_t> all_axes(Ref x) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  return axes;
}

Ref dim_min(Ref a, Ref b) {
  if (dim_sub(b, a)->lo >= 0) return a;
  if (dim_sub(a, b)->lo >= 0) return b;
  return a->ctx->make(Ops::Min, DType::Index, {a, b});
}

Ref dim_max(Ref a, Ref b) {
  if (dim_sub(a, b)->lo >= 0) return a;
  if (dim_sub(b, a)->lo >= 0) return b;
  return a->ctx->make(Ops::Max, DType::Index, {a, b});
}

namespace {
// Of two symbolic extents either could be 1 at run time; that they are equal is what models mean.
Ref broadcast_dim(Ref a, Ref b, const std::vector<Dims>& shapes) {
  if (dims_equal(a, b) || dim_int(b) == 1) return a;
  if (dim_int(a) == 1) return b;
  std::string text;
  for (const Dims& s : shapes) text += (text.empty() ? "" : " and ") + shape_text(s);
  require_equal(a, b, "shapes " + text + " do not broadcast");
  return a;
}
} // namespace

Dims broadcast_shapes(const std::vector<Dims>& shapes) {
  Dims out;
  for (const Dims& shape : shapes) {
    Dims merged = shape.size() > out.size() ? shape : out;
    size_t common = std::min(shape.size(), out.size());
    for (size_t i = 1; i <= common; ++i)
      merged[merged.size() - i] = broadcast_dim(out[out.size() - i], shape[shape.size() - i], shapes);
    out = merged;
  }
  return out;
}

std::optional<Ref> exact_quotient(Context& ctx, Refs whole, Refs part) {
  Dims rest;
  std::vector<Ref> divisors(part.begin(), part.end());
  for (Ref w : whole) {
    auto same = std::find_if(divisors.begin(), divisors.end(), [&](Ref d) { return !dim_int(d) && dims_equal(w, d); });
    if (same == divisors.end())
      rest.push_back(w);
    else
      divisors.erase(same);
  }
  Ref top = numel(ctx, rest), bottom = numel(ctx, divisors);
  if (dim_int(bottom) == 0) return std::nullopt;
  Ref quotient = dim_floordiv(top, bottom);
  if (!dims_equal(dim_mul(quotient, bottom), top)) return std::nullopt;
  return quotient;
}

// ---- constants ------------------------------------------------------------------------------------------------------

Ref full(Context& ctx, Refs dims, DType dtype, double value) { return broadcast_to(ctx.constant(dtype, value), dims); }

Ref full_like(Ref x, double value) { return full(*x->ctx, x->shape, x->dtype, value); }

Ref iota(Context& ctx, Refs dims, int64_t axis, DType dtype) {
  Ref count = dims[static_cast<size_t>(axis)];
  Ref line = ctx.make(Ops::Iota, DType::Index, {count});
  Dims ones(dims.size(), ctx.index(1));
  ones[static_cast<size_t>(axis)] = count;
  return expand(reshape(to(line, dtype), ones), dims);
}

// ---- movement -------------------------------------------------------------------------------------------------------

Ref reshape(Ref x, Refs dims) {
  if (shapes_equal(x->shape, dims)) return x;
  return x->ctx->make(Ops::Reshape, x->dtype, with_dims(x, dims));
}

Ref permute(Ref x, std::vector<int64_t> axes) {
  if (std::is_sorted(axes.begin(), axes.end()) && axes.size() == x->shape.size()) return x;
  return x->ctx->make(Ops::Permute, x->dtype, {x}, {{Attr::Axes, std::move(axes)}});
}

Ref swap_axes(Ref x, int64_t a, int64_t b) {
  std::vector<int64_t> axes = all_axes(x);
  std::swap(axes[static_cast<size_t>(normalize_axis(a, x->rank()))],
            axes[static_cast<size_t>(normalize_axis(b, x->rank()))]);
  return permute(x, axes);
}

Ref expand(Ref x, Refs dims) {
  if (shapes_equal(x->shape, dims)) return x;
  return x->ctx->make(Ops::Expand, x->dtype, with_dims(x, dims));
}

Ref broadcast_to(Ref x, Refs dims) {
  if (shapes_equal(x->shape, dims)) return x;
  if (x->shape.size() > dims.size())
    fail(ErrorCode::E203, "shape " + shape_text(x->shape) + " does not broadcast to " + shape_text(dims));
  Dims aligned(dims.size() - x->shape.size(), x->ctx->index(1));
  aligned.insert(aligned.end(), x->shape.begin(), x->shape.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dim_int(aligned[i]) == 1 || dims_equal(aligned[i], dims[i])) continue;
    require_equal(aligned[i], dims[i], "shape " + shape_text(x->shape) + " does not broadcast to " + shape_text(dims));
  }
  return expand(reshape(x, aligned), dims);
}

Ref pad(Ref x, Refs lo, Refs hi) {
  if (all_const(lo, 0) && all_const(hi, 0)) return x;
  return x->ctx->make(Ops::Pad, x->dtype, with_dims(x, lo, hi));
}

Ref pad_with(Ref x, Refs lo, Refs hi, Ref value) {
  if (all_const(lo, 0) && all_const(hi, 0)) return x;
  Ref padded = pad(x, lo, hi);
  if (is_const(value, 0.0)) return padded;
  Ref inside = pad(full(*x->ctx, x->shape, DType::Bool, 1), lo, hi);
  return select(inside, padded, value);
}

Ref pad_axis(Ref x, int64_t axis, Ref lo, Ref hi) {
  Dims before = constant_dims(x, 0), after = before;
  before[static_cast<size_t>(axis)] = lo;
  after[static_cast<size_t>(axis)] = hi;
  return pad(x, before, after);
}

Ref shrink(Ref x, Refs offset, Refs size) {
  if (all_const(offset, 0) && shapes_equal(x->shape, size)) return x;
  return x->ctx->make(Ops::Shrink, x->dtype, with_dims(x, offset, size));
}

Ref shrink_axis(Ref x, int64_t axis, Ref offset, Ref size) {
  Dims offsets = constant_dims(x, 0), sizes = dims_of(x);
  offsets[static_cast<size_t>(axis)] = offset;
  sizes[static_cast<size_t>(axis)] = size;
  return shrink(x, offsets, sizes);
}

Ref flip(Ref x, std::vector<int64_t> axes) {
  if (axes.empty()) return x;
  return x->ctx->make(Ops::Flip, x->dtype, {x}, {{Attr::Axes, std::move(axes)}});
}

Ref unsqueeze(Ref x, std::vector<int64_t> axes) {
  const int64_t rank = x->rank() + static_cast<int64_t>(axes.size());
  Dims dims = dims_of(x);
  for (int64_t axis : normalize_axes(std::move(axes), rank)) dims.insert(dims.begin() + axis, x->ctx->index(1));
  return reshape(x, dims);
}

Ref squeeze(Ref x, const std::vector<int64_t>& axes) {
  Dims dims;
  for (int64_t i = 0; i < x->rank(); ++i) {
    bool drop = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (drop)
      require_equal(dim(x, i), x->ctx->index(1),
                    "squeeze of axis " + std::to_string(i) + " of " + shape_text(x->shape) + ", which is not 1");
    if (!drop) dims.push_back(dim(x, i));
  }
  return reshape(x, dims);
}

Ref merge_axes(Ref x, int64_t first, int64_t last) {
  Dims dims(x->shape.begin(), x->shape.begin() + first);
  dims.push_back(numel(*x->ctx, x->shape.subspan(static_cast<size_t>(first), static_cast<size_t>(last - first))));
  dims.insert(dims.end(), x->shape.begin() + last, x->shape.end());
  return reshape(x, dims);
}

Ref split_axis(Ref x, int64_t axis, Refs parts) {
  Dims dims(x->shape.begin(), x->shape.begin() + axis);
  dims.insert(dims.end(), parts.begin(), parts.end());
  dims.insert(dims.end(), x->shape.begin() + axis + 1, x->shape.end());
  return reshape(x, dims);
}

// Each part is zero-padded to the full extent; where the position lies below the end of a part, that part is taken.
Ref concat(const std::vector<Ref>& parts, int64_t axis) {
  Context& ctx = *parts[0]->ctx;
  Ref total = ctx.index(0);
  for (Ref part : parts) total = dim_add(total, dim(part, axis));
  Ref before = total, result;
  for (size_t i = parts.size(); i-- > 0;) {
    Ref part = parts[i], end = before;
    before = dim_sub(before, dim(part, axis));
    Ref padded = pad_axis(part, axis, before, dim_sub(total, end));
    if (dim_int(dim(part, axis)) == 0 && result) continue;
    if (!result) {
      result = padded;
      continue;
    }
    const std::string message = "concatenated shapes " + shape_text(part->shape) + " and " +
                                shape_text(parts.back()->shape) + " differ outside axis " + std::to_string(axis);
    if (padded->rank() != result->rank()) fail(ErrorCode::E203, message);
    for (size_t a = 0; a < result->shape.size(); ++a) require_equal(padded->shape[a], result->shape[a], message);
    Ref position = iota(ctx, result->shape, axis, DType::Index);
    result = select(elementwise(Ops::Lt, {position, end}), padded, result);
  }
  return result;
}

Ref stride_axis(Ref x, const Progression& p) {
  Context& ctx = *x->ctx;
  const auto& [axis, offset, count, step] = p;
  if (step == 1) return shrink_axis(x, axis, offset, count);
  // [offset, offset + count*step) may reach past the end by up to step-1: pad, then keep the first of each group.
  Ref spread = dim_mul(count, ctx.index(step));
  Ref padded = pad_axis(x, axis, ctx.index(0), ctx.index(step - 1));
  Ref groups = split_axis(shrink_axis(padded, axis, offset, spread), axis, Dims{count, ctx.index(step)});
  Ref firsts = shrink_axis(groups, axis + 1, ctx.index(0), ctx.index(1));
  return merge_axes(firsts, axis, axis + 2);
}

// ---- elementwise ----------------------------------------------------------------------------------------------------

Ref elementwise(Ops op, const std::vector<Ref>& src) {
  std::vector<Dims> shapes;
  for (Ref s : src) shapes.push_back(dims_of(s));
  Dims shape = broadcast_shapes(shapes);
  std::vector<Ref> full_src;
  for (Ref s : src) full_src.push_back(broadcast_to(s, shape));
  return src[0]->ctx->make(op, src[0]->dtype, full_src);
}

Ref elementwise(Ops op, Ref x, double y) { return elementwise(op, {x, full_like(x, y)}); }

Ref add(Ref a, Ref b) { return elementwise(Ops::Add, {a, b}); }
Ref sub(Ref a, Ref b) { return elementwise(Ops::Sub, {a, b}); }
Ref mul(Ref a, Ref b) { return elementwise(Ops::Mul, {a, b}); }
Ref div(Ref a, Ref b) { return elementwise(Ops::Div, {a, b}); }
Ref add(Ref a, double b) { return elementwise(Ops::Add, a, b); }
Ref mul(Ref a, double b) { return elementwise(Ops::Mul, a, b); }
Ref div(Ref a, double b) { return elementwise(Ops::Div, a, b); }
Ref rsub(double a, Ref b) { return sub(full_like(b, a), b); }
Ref rdiv(double a, Ref b) { return div(full_like(b, a), b); }
Ref maximum(Ref a, Ref b) { return elementwise(Ops::Max, {a, b}); }
Ref minimum(Ref a, Ref b) { return elementwise(Ops::Min, {a, b}); }
Ref maximum(Ref a, double b) { return elementwise(Ops::Max, a, b); }
Ref minimum(Ref a, double b) { return elementwise(Ops::Min, a, b); }
Ref select(Ref cond, Ref a, Ref b) { return elementwise(Ops::Where, {cond, a, b}); }
Ref compare(Ops op, Ref a, double b) { return elementwise(op, a, b); }
Ref is_nan(Ref x) { return elementwise(Ops::Ne, {x, x}); }
Ref to(Ref x, DType dtype) { return x->dtype == dtype ? x : cast(x, dtype); }

// ---- reductions -----------------------------------------------------------------------------------------------------

DType accumulator(DType t) { return t == DType::F16 || t == DType::BF16 ? DType::F32 : t; }

Ref reduce(const char* kind, Ref x, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return x;
  Ref reduced = x->ctx->make(Ops::Reduce, x->dtype, {x}, {{Attr::Kind, std::string(kind)}, {Attr::Axes, axes}});
  return keep ? unsqueeze(reduced, axes) : reduced;
}

Ref sum(Ref x, const std::vector<int64_t>& axes, bool keep) {
  return to(reduce("add", to(x, accumulator(x->dtype)), axes, keep), x->dtype);
}

Ref prod(Ref x, const std::vector<int64_t>& axes, bool keep) {
  return to(reduce("mul", to(x, accumulator(x->dtype)), axes, keep), x->dtype);
}

Ref mean(Ref x, const std::vector<int64_t>& axes, bool keep) {
  Ref wide = to(x, accumulator(x->dtype)), count = x->ctx->index(1);
  for (int64_t axis : axes) count = dim_mul(count, dim(x, axis));
  return to(div(reduce("add", wide, axes, keep), to(count, wide->dtype)), x->dtype);
}

Ref max(Ref x, const std::vector<int64_t>& axes, bool keep) { return reduce("max", x, axes, keep); }

Ref min(Ref x, const std::vector<int64_t>& axes, bool keep) { return reduce("min", x, axes, keep); }

Ref argmax(Ref x, int64_t axis, bool keep, bool last) {
  Ref best = max(x, {axis}, true);
  Ref hit = elementwise(Ops::Eq, {x, best});
  if (is_float(x->dtype)) hit = select(is_nan(best), is_nan(x), hit);
  Ref position = iota(*x->ctx, x->shape, axis, DType::I64);
  if (last) return max(select(hit, position, full_like(position, -1)), {axis}, keep);
  Ref none = to(dim(x, axis), DType::I64);
  return min(select(hit, position, none), {axis}, keep);
}

} // namespace tgc::tensor
