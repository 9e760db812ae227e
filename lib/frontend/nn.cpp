// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: matmul, convolution and pooling in an IR that has no such ops.
// Idea: matmul is an expanded product and a reduce. A convolution is a matmul over windows, and windows are movement
// ops only: repeating an axis of extent i and cutting it into rows of i+dilation shifts each row by `dilation`, so row
// k, column o*stride is element k*dilation + o*stride (tinygrad's `_pool`, mixin/movement). As index algebra that is
// (k*(i+dilation) + o*stride) mod i, which the bounds of o and k simplify to o*stride + k*dilation.
// Every convolution is the direct sum here; the scheduler may compute it by transformed tiles (schedule/winograd.h).
#include "frontend/nn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

namespace tgc::tensor {
namespace {

Ref product_sum(Ref a, Ref b, const std::vector<int64_t>& axes) {
  DType wide = accumulator(a->dtype);
  return to(reduce("add", mul(to(a, wide), to(b, wide)), axes, false), a->dtype);
}

// Number of windows along one axis of extent `i`.
Ref window_count(Ref i, const Window& w) {
  Context& ctx = *i->ctx;
  require_at_most(ctx.index(w.span()), i,
                  "a window of " + std::to_string(w.span()) + " elements does not fit in " +
                      shape_text(std::vector<Ref>{i}));
  Ref last = dim_sub(i, ctx.index(w.span()));
  return dim_add(dim_floordiv(last, ctx.index(w.stride)), ctx.index(1));
}

std::vector<int64_t> axis_to_end(Ref x, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x->rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return order;
}

// x [..., i, ...] → [..., o, ..., kernel]
Ref window_axis(Ref x, int64_t axis, const Window& w) {
  Context& ctx = *x->ctx;
  Ref zero = ctx.index(0), i = dim(x, axis), count = window_count(i, w);
  if (w.kernel == 1) return unsqueeze(stride_axis(x, {axis, zero, count, w.stride}), {x->rank()});
  if (w.stride == w.kernel && w.dilation == 1) { // windows tile the axis
    Ref tiled = shrink_axis(x, axis, zero, dim_mul(count, ctx.index(w.kernel)));
    Ref rows = split_axis(tiled, axis, Dims{count, ctx.index(w.kernel)});
    return permute(rows, axis_to_end(rows, axis + 1));
  }
  // Rows of i+dilation must hold count*stride elements: true once i is padded by what a large stride lacks.
  int64_t lack = std::max<int64_t>(0, w.stride - 1 - w.dilation * w.kernel);
  x = pad_axis(x, axis, zero, ctx.index(lack));
  i = dim(x, axis);
  int64_t least = std::max<int64_t>(1, i->lo), shift = w.kernel * w.dilation;
  Ref repeats = ctx.index(w.kernel + (shift + least - 1) / least);
  Dims repeated = dims_of(x);
  repeated.insert(repeated.begin() + axis, repeats);
  x = merge_axes(expand(unsqueeze(x, {axis}), repeated), axis, axis + 2);
  Ref kernel = ctx.index(w.kernel), row = dim_add(i, ctx.index(w.dilation)), stride = ctx.index(w.stride);
  x = split_axis(shrink_axis(x, axis, zero, dim_mul(kernel, row)), axis, Dims{kernel, row});
  x = shrink_axis(x, axis + 1, zero, dim_mul(count, stride));
  if (w.stride > 1) {
    x = shrink_axis(split_axis(x, axis + 1, Dims{count, stride}), axis + 2, zero, ctx.index(1));
    x = merge_axes(x, axis + 1, axis + 3);
  }
  return permute(x, axis_to_end(x, axis));
}

Ref zero_or_more(Context& ctx, int64_t n) { return ctx.index(std::max<int64_t>(0, n)); }

void check_groups(Ref channels, int64_t groups, const char* what) {
  std::optional<int64_t> n = dim_int(channels);
  if (!n) fail(ErrorCode::E209, std::string(what) + " must be a number", "pin the dim with --dim NAME=VALUE");
  if (groups < 1 || *n % groups != 0)
    fail(ErrorCode::E203, "group=" + std::to_string(groups) + " does not divide " + what + "=" + std::to_string(*n));
}

void check_conv(Ref x, Ref w, const std::vector<Window>& axes) {
  size_t rank = axes.size() + 2;
  if (axes.empty() || x->shape.size() != rank || w->shape.size() != rank)
    fail(ErrorCode::E203, "input " + shape_text(x->shape) + " and weight " + shape_text(w->shape) +
                              " must have the same rank, at least 3");
}

void check_channels(Ref x, Ref expected, const char* what) {
  require_equal(dim(x, 1), expected,
                "input has " + shape_text(x->shape) + ", but the weight needs " + what + "=" +
                    shape_text(std::vector<Ref>{expected}));
}

} // namespace

Ref matmul(Ref a, Ref b) {
  if (a->rank() == 0 || b->rank() == 0) fail(ErrorCode::E203, "matmul of a scalar");
  bool row = a->rank() == 1, column = b->rank() == 1;
  if (row) a = unsqueeze(a, {0});
  if (column) b = unsqueeze(b, {1});
  require_equal(dim(a, -1), dim(b, -2),
                "matmul of " + shape_text(a->shape) + " and " + shape_text(b->shape) + ": inner dims differ");
  a = unsqueeze(a, {a->rank() - 1}); // [..., M, 1, K]
  b = swap_axes(b, -1, -2);          // [..., N, K]
  b = unsqueeze(b, {b->rank() - 2}); // [..., 1, N, K]
  int64_t inner = std::max(a->rank(), b->rank()) - 1;
  Ref y = product_sum(a, b, {inner});
  if (column) y = squeeze(y, {y->rank() - 1});
  if (row) y = squeeze(y, {y->rank() - (column ? 1 : 2)});
  return y;
}

Ref windows(Ref x, const std::vector<Window>& axes) {
  int64_t first = x->rank() - static_cast<int64_t>(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) x = window_axis(x, first + static_cast<int64_t>(i), axes[i]);
  return x;
}

Ref pad_spatial(Ref x, const std::vector<Window>& axes, double value) {
  Context& ctx = *x->ctx;
  Ref zero = ctx.index(0);
  size_t first = x->shape.size() - axes.size();
  Dims lo(first, zero), hi(first, zero), offset(first, zero), size = dims_of(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Window& w = axes[i];
    Ref cut_lo = zero_or_more(ctx, -w.pad_lo), cut_hi = zero_or_more(ctx, -w.pad_hi);
    size[first + i] = dim_sub(dim_sub(size[first + i], cut_lo), cut_hi);
    offset.push_back(cut_lo);
    lo.push_back(zero_or_more(ctx, w.pad_lo));
    hi.push_back(zero_or_more(ctx, w.pad_hi));
  }
  return pad_with(shrink(x, offset, size), lo, hi, const_like(x, value));
}

Ref conv(Ref x, Ref w, const std::vector<Window>& axes, int64_t groups) {
  check_conv(x, w, axes);
  check_groups(dim(x, 1), groups, "channels");
  check_groups(dim(w, 0), groups, "output channels");
  Context& ctx = *x->ctx;
  int64_t n = static_cast<int64_t>(axes.size());
  check_channels(x, dim_mul(dim(w, 1), ctx.index(groups)), "channels");
  Ref g = ctx.index(groups), per_group = dim_floordiv(dim(w, 0), g);
  x = windows(pad_spatial(x, axes), axes); // [N, C, o..., k...]
  Dims out = dims_of(x);
  out.resize(static_cast<size_t>(2 + n));
  out[1] = dim(w, 0);
  x = unsqueeze(split_axis(x, 1, Dims{g, dim(w, 1)}), {2}); // [N, g, 1, C/g, o..., k...]
  std::vector<int64_t> order{0, 1, 2};                      // → [N, g, 1, o..., C/g, k...]
  for (int64_t i = 0; i < n; ++i) order.push_back(4 + i);
  order.push_back(3);
  for (int64_t i = 0; i < n; ++i) order.push_back(4 + n + i);
  x = permute(x, order);
  Ref filter = split_axis(w, 0, Dims{g, per_group}); // [g, M/g, C/g, k...]
  std::vector<int64_t> ones, inner;
  for (int64_t i = 0; i < n; ++i) ones.push_back(2 + i);
  for (int64_t i = 0; i <= n; ++i) inner.push_back(3 + n + i);
  Ref y = product_sum(x, unsqueeze(filter, ones), inner); // [N, g, M/g, o...]
  return reshape(y, out);
}

// The input is spread with stride-1 zeros between elements and correlated with the flipped filter.
Ref conv_transpose(Ref x, Ref w, const std::vector<Window>& axes, int64_t groups) {
  check_conv(x, w, axes);
  check_groups(dim(x, 1), groups, "channels");
  check_channels(x, dim(w, 0), "channels");
  Context& ctx = *x->ctx;
  int64_t n = static_cast<int64_t>(axes.size());
  std::vector<Window> inner = axes;
  std::vector<int64_t> flipped;
  for (int64_t i = 0; i < n; ++i) {
    size_t s = static_cast<size_t>(i);
    const Window& a = axes[s];
    Ref extent = dim(x, 2 + i), stride = ctx.index(a.stride), one = ctx.index(1);
    Ref spread = unsqueeze(x, {3 + i});
    spread = merge_axes(pad_axis(spread, 3 + i, ctx.index(0), ctx.index(a.stride - 1)), 2 + i, 4 + i);
    Ref used = dim_add(dim_mul(dim_sub(extent, one), stride), one);
    x = shrink_axis(spread, 2 + i, ctx.index(0), used);
    inner[s].stride = 1;
    inner[s].pad_lo = a.span() - 1 - a.pad_lo;
    inner[s].pad_hi = a.span() - 1 - a.pad_hi + a.output_pad;
    flipped.push_back(3 + i);
  }
  Ref g = ctx.index(groups);
  Ref f = split_axis(w, 0, Dims{g, dim_floordiv(dim(w, 0), g)}); // [g, C/g, M/g, k...]
  f = merge_axes(swap_axes(flip(f, flipped), 1, 2), 0, 2);       // [M, C/g, k...]
  return conv(x, f, inner, groups);
}

Ref channel(Ref x, Ref v) {
  if (v->rank() != 1) fail(ErrorCode::E203, "a per-channel operand has shape " + shape_text(v->shape) + ", not rank 1");
  Dims dims(x->shape.size(), x->ctx->index(1));
  if (dims.size() < 2) fail(ErrorCode::E203, "input " + shape_text(x->shape) + " has no channel axis");
  dims[1] = dim(v, 0);
  return reshape(v, dims);
}

Ref add_channel(Ref x, Ref bias) { return add(x, channel(x, bias)); }

namespace {
std::vector<int64_t> last_axes(Ref x, size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = x->shape.size() - count; i < x->shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

} // namespace

double lowest(DType t) {
  if (is_float(t)) return -std::numeric_limits<double>::infinity();
  return is_unsigned(t) || t == DType::Bool ? 0 : -std::ldexp(1.0, 8 * byte_size(t) - 1);
}

Ref max_pool(Ref x, const std::vector<Window>& axes) {
  Ref w = windows(pad_spatial(x, axes, lowest(x->dtype)), axes);
  return max(w, last_axes(w, axes.size()), false);
}

Ref average_pool(Ref x, const std::vector<Window>& axes, bool count_pads, const std::vector<int64_t>& extra_hi) {
  std::vector<Window> grown = axes, counted = axes;
  bool padded = false;
  double taps = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    grown[i].pad_hi += extra_hi[i];
    counted[i].pad_lo = count_pads ? 0 : axes[i].pad_lo;
    counted[i].pad_hi = count_pads ? extra_hi[i] : grown[i].pad_hi;
    padded |= counted[i].pad_lo != 0 || counted[i].pad_hi != 0;
    taps *= static_cast<double>(axes[i].kernel);
  }
  Ref w = windows(pad_spatial(x, grown), grown);
  std::vector<int64_t> inner = last_axes(w, axes.size());
  Ref total = sum(w, inner, false);
  if (!padded) return div(total, taps);
  Ref ones = full_like(x, 1);
  if (count_pads) ones = pad_spatial(ones, axes, 1);
  return div(total, sum(windows(pad_spatial(ones, counted), counted), inner, false));
}

Ref softmax(Ref x, int64_t axis) {
  Ref wide = to(x, accumulator(x->dtype));
  Ref e = unary(Ops::Exp, sub(wide, max(wide, {axis}, true)));
  return to(div(e, sum(e, {axis}, true)), x->dtype);
}

Ref log_softmax(Ref x, int64_t axis) {
  Ref wide = to(x, accumulator(x->dtype));
  Ref centred = sub(wide, max(wide, {axis}, true));
  return to(sub(centred, unary(Ops::Log, sum(unary(Ops::Exp, centred), {axis}, true))), x->dtype);
}

Ref standardize(Ref x, const std::vector<int64_t>& axes, double epsilon) {
  Ref wide = to(x, accumulator(x->dtype));
  Ref centred = sub(wide, mean(wide, axes, true));
  Ref variance = mean(mul(centred, centred), axes, true);
  return to(div(centred, unary(Ops::Sqrt, add(variance, epsilon))), x->dtype);
}

Ref relu(Ref x) { return maximum(x, 0); }

Ref sigmoid(Ref x) { return rdiv(1, add(unary(Ops::Exp, unary(Ops::Neg, x)), 1)); }

Ref gelu(Ref x, bool tanh_approximation) {
  Ref half = mul(x, 0.5);
  if (!tanh_approximation) return mul(half, add(unary(Ops::Erf, mul(x, std::sqrt(0.5))), 1));
  Ref cubic = add(x, mul(power(x, 3), 0.044715));
  return mul(half, add(unary(Ops::Tanh, mul(cubic, std::sqrt(2 / std::numbers::pi))), 1));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): no overflow for large x.
Ref softplus(Ref x) {
  Ref tail = unary(Ops::Log, add(unary(Ops::Exp, unary(Ops::Neg, unary(Ops::Abs, x))), 1));
  return add(maximum(x, 0), tail);
}

Ref power(Ref x, int64_t n) {
  Ref y = x;
  for (int64_t i = 1; i < n; ++i) y = mul(y, x);
  return y;
}

} // namespace tgc::tensor
