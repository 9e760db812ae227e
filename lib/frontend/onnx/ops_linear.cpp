// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MatMul, Gemm, convolutions and pools. What they share is the window arithmetic of ONNX: explicit pads, or auto_pad,
// which needs the input's extent as a number unless the stride is 1; and ceil mode, which pads at the end.
#include <algorithm>

#include "frontend/gather.h"
#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

void matmul_op(OpContext& c) {
  c.check(c.in(0)->dtype == c.in(1)->dtype, "inputs have different types");
  c.out(matmul(c.in(0), c.in(1)));
}

void gemm(OpContext& c) {
  Ref a = c.in(0), b = c.in(1);
  c.check(a->rank() == 2 && b->rank() == 2,
          "A " + shape_text(a->shape) + " and B " + shape_text(b->shape) + " must be matrices");
  c.check(a->dtype == b->dtype, "inputs have different types");
  double alpha = c.attr_float("alpha", 1), beta = c.attr_float("beta", 1);
  if (c.attr("transA", 0)) a = swap_axes(a, 0, 1);
  if (c.attr("transB", 0)) b = swap_axes(b, 0, 1);
  c.check(is_float(a->dtype) || (alpha == 1 && beta == 1), "alpha and beta must be 1 for integers");
  Ref y = matmul(a, b);
  if (alpha != 1) y = mul(y, alpha);
  bool broadcast = c.opset() >= 7 || c.attr("broadcast", 0) != 0;
  if (!c.has(2)) return c.out(y);
  Ref bias = c.in(2);
  c.check(bias->dtype == y->dtype, "C has another type than A and B");
  c.check(broadcast || shapes_equal(bias->shape, y->shape),
          "C has another shape than the result, and broadcast is not 1");
  if (beta != 1) bias = mul(bias, beta);
  c.out(add(y, broadcast_to(bias, y->shape)));
}

/// Windows of an operator over the spatial dims of x, pads resolved.
struct Spatial {
  std::vector<Window> axes;
  std::vector<int64_t> extra_hi; ///< ceil mode's padding
};

/// An attribute of `count` numbers from `least` on, which is the default of each.
std::vector<int64_t> spatial_ints(OpContext& c, const char* name, size_t count, int64_t least) {
  std::vector<int64_t> v = c.attr_ints(name, std::vector<int64_t>());
  if (v.empty()) v.assign(count, least);
  c.check(v.size() == count,
          std::string(name) + " has " + std::to_string(v.size()) + " values, needs " + std::to_string(count));
  for (int64_t n : v)
    c.check(n >= least && n < (int64_t{1} << 31), std::string(name) + " has the value " + std::to_string(n));
  return v;
}

/// SAME_UPPER and SAME_LOWER: output extent ceil(i/stride); the odd element goes to the end or the start.
void same_padding(OpContext& c, Ref extent, bool upper, Window& w) {
  int64_t total = w.span() - 1;
  if (w.stride > 1) {
    std::optional<int64_t> n = dim_int(extent);
    if (!n) c.unsupported("auto_pad with a stride needs a known extent", "pin the dim with --dim NAME=VALUE");
    int64_t out = (*n + w.stride - 1) / w.stride;
    total = std::max<int64_t>(0, (out - 1) * w.stride + w.span() - *n);
  }
  w.pad_lo = upper ? total / 2 : total - total / 2;
  w.pad_hi = total - w.pad_lo;
}

void resolve_pads(OpContext& c, Ref x, std::vector<Window>& axes) {
  std::string mode = c.attr_string("auto_pad", "NOTSET");
  std::vector<int64_t> pads = spatial_ints(c, "pads", 2 * axes.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    Window& w = axes[i];
    if (mode == "NOTSET") {
      w.pad_lo = pads[i];
      w.pad_hi = pads[i + axes.size()];
    } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      same_padding(c, x->shape[2 + i], mode == "SAME_UPPER", w);
    } else {
      c.check(mode == "VALID", "auto_pad=\"" + mode + "\" is not a padding mode");
    }
  }
}

std::vector<Window> read_windows(OpContext& c, const std::vector<int64_t>& kernel) {
  size_t n = kernel.size();
  std::vector<int64_t> strides = spatial_ints(c, "strides", n, 1), dilations = spatial_ints(c, "dilations", n, 1);
  std::vector<Window> axes;
  for (size_t i = 0; i < n; ++i) {
    c.check(kernel[i] >= 1 && kernel[i] < (int64_t{1} << 31), "the kernel has extent " + std::to_string(kernel[i]));
    c.check((kernel[i] - 1) <= (int64_t{1} << 31) / dilations[i], "the dilated kernel is too large");
    axes.push_back({kernel[i], strides[i], dilations[i]});
  }
  return axes;
}

std::vector<int64_t> kernel_of_weight(OpContext& c, Ref x, Ref w) {
  c.check(x->rank() >= 3 && w->rank() == x->rank(), "input " + shape_text(x->shape) + " and weight " +
                                                        shape_text(w->shape) + " must have the same rank, at least 3");
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < w->shape.size(); ++i) {
    std::optional<int64_t> n = dim_int(w->shape[i]);
    if (!n) c.unsupported("the kernel's extent is symbolic");
    kernel.push_back(*n);
  }
  std::vector<int64_t> stated = c.attr_ints("kernel_shape", kernel);
  c.check(stated == kernel, "kernel_shape differs from the weight " + shape_text(w->shape));
  return kernel;
}

void conv_op(OpContext& c) {
  Ref x = c.in_float(0), w = c.in(1);
  c.check(x->dtype == w->dtype, "input and weight have different types");
  std::vector<Window> axes = read_windows(c, kernel_of_weight(c, x, w));
  resolve_pads(c, x, axes);
  Ref y = conv(x, w, axes, c.attr("group", 1));
  c.out(c.has(2) ? add_channel(y, c.in(2)) : y);
}

/// Pads of ConvTranspose from output_shape or auto_pad: the total that gives the wanted extent, split.
void transpose_pads(OpContext& c, Ref x, std::vector<Window>& axes) {
  std::vector<int64_t> wanted = c.attr_ints("output_shape", std::vector<int64_t>());
  std::string mode = c.attr_string("auto_pad", "NOTSET");
  if (wanted.size() == axes.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  c.check(wanted.empty() || wanted.size() == axes.size(),
          "output_shape has " + std::to_string(wanted.size()) + " values");
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  c.check(same || mode == "NOTSET" || mode == "VALID", "auto_pad=\"" + mode + "\" is not a padding mode");
  if (wanted.empty() && !same) return resolve_pads(c, x, axes);
  c.ignore("pads");
  for (size_t i = 0; i < axes.size(); ++i) {
    Window& w = axes[i];
    c.check(wanted.empty() || (wanted[i] >= 1 && wanted[i] < (int64_t{1} << 31)),
            "output_shape has a value out of range");
    std::optional<int64_t> n = dim_int(x->shape[2 + i]);
    if (!n) c.unsupported("output_shape and auto_pad need known extents", "pin the dim with --dim NAME=VALUE");
    int64_t out = wanted.empty() ? *n * w.stride : wanted[i];
    int64_t total = w.stride * (*n - 1) + w.output_pad + w.span() - out;
    w.pad_lo = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    if (total < 0) w.pad_lo = 0; // an extent beyond the natural one grows at the end
    w.pad_hi = total - w.pad_lo;
  }
}

void conv_transpose_op(OpContext& c) {
  Ref x = c.in_float(0), w = c.in(1);
  c.check(x->dtype == w->dtype, "input and weight have different types");
  std::vector<Window> axes = read_windows(c, kernel_of_weight(c, x, w));
  std::vector<int64_t> output_pad = spatial_ints(c, "output_padding", axes.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) axes[i].output_pad = output_pad[i];
  transpose_pads(c, x, axes);
  Ref y = conv_transpose(x, w, axes, c.attr("group", 1));
  c.out(c.has(2) ? add_channel(y, c.in(2)) : y);
}

// ---- pools ----------------------------------------------------------------------------------------------------------

/// Ceil mode: a last partial window is kept if it starts inside the input or its leading padding.
void ceil_padding(OpContext& c, Ref x, Spatial& s) {
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const Window& w = s.axes[i];
    std::optional<int64_t> n = dim_int(x->shape[2 + i]);
    if (!n) c.unsupported("ceil_mode needs a known extent", "pin the dim with --dim NAME=VALUE");
    int64_t room = *n + w.pad_lo + w.pad_hi - w.span();
    c.check(room >= 0, "the window does not fit in the input");
    int64_t last = (room + w.stride - 1) / w.stride;
    if (last * w.stride >= *n + w.pad_lo) --last;
    s.extra_hi[i] = std::max<int64_t>(0, last * w.stride - room);
  }
}

Spatial pool_windows(OpContext& c, Ref x) {
  c.check(x->rank() >= 3, "input " + shape_text(x->shape) + " has no spatial dims");
  std::vector<int64_t> kernel = c.attr_ints("kernel_shape");
  c.check(kernel.size() + 2 == x->shape.size(),
          "kernel_shape has " + std::to_string(kernel.size()) + " values for input " + shape_text(x->shape));
  Spatial s{read_windows(c, kernel), std::vector<int64_t>(kernel.size(), 0)};
  resolve_pads(c, x, s.axes);
  if (c.attr("ceil_mode", 0)) ceil_padding(c, x, s);
  return s;
}

std::vector<Window> with_extra(Spatial s) {
  for (size_t i = 0; i < s.axes.size(); ++i) s.axes[i].pad_hi += s.extra_hi[i];
  return s.axes;
}

/// Flat position in x of each window's maximum (the first of equals); column-major within a plane if storage_order
/// is 1.
Ref max_positions(OpContext& c, Ref x, const std::vector<Window>& axes, bool column_major) {
  Ref plane = full(c.ctx(), x->shape, DType::I64, 0), stride = c.ctx().index(1);
  for (int64_t i = 0; i < x->rank(); ++i) {
    int64_t spatial = x->rank() - 2;
    int64_t axis = i < spatial ? (column_major ? 2 + i : x->rank() - 1 - i) : x->rank() - 1 - i;
    Ref step = broadcast_to(to(stride, DType::I64), x->shape);
    plane = add(plane, mul(iota(c.ctx(), x->shape, axis, DType::I64), step));
    stride = dim_mul(stride, dim(x, axis));
  }
  constexpr double kBeyond = 9e15; // above every position
  Ref taps = windows(pad_spatial(x, axes, lowest(x->dtype)), axes);
  Ref at = windows(pad_spatial(plane, axes, kBeyond), axes);
  std::vector<int64_t> all = all_axes(taps), inner(all.begin() + x->rank(), all.end());
  Ref best = max(taps, inner, true);
  Ref hit = elementwise(Ops::Eq, {taps, best});
  if (is_float(x->dtype)) hit = select(is_nan(best), is_nan(taps), hit);
  return min(select(hit, at, full_like(at, kBeyond)), inner, false);
}

void max_pool_op(OpContext& c) {
  Ref x = c.in(0);
  bool column_major = c.opset() >= 8 && c.attr("storage_order", 0) != 0;
  std::vector<Window> axes = with_extra(pool_windows(c, x));
  c.out(max_pool(x, axes));
  if (c.has_output(1)) c.out(1, max_positions(c, x, axes, column_major));
}

/// Each element of x goes to the position in the flat result that `indices` names; the rest is 0.
void max_unpool(OpContext& c) {
  Ref x = c.in_float(0), indices = c.in(1);
  c.check(x->rank() >= 3 && shapes_equal(x->shape, indices->shape) && is_int(indices->dtype),
          "indices " + shape_text(indices->shape) + " do not fit input " + shape_text(x->shape));
  std::vector<int64_t> kernel = c.attr_ints("kernel_shape");
  c.check(kernel.size() + 2 == x->shape.size(), "kernel_shape has " + std::to_string(kernel.size()) + " values");
  std::vector<Window> axes = read_windows(c, kernel);
  resolve_pads(c, x, axes);
  Context& ctx = c.ctx();
  Dims shape{x->shape[0], x->shape[1]};
  for (size_t i = 0; i < axes.size(); ++i) {
    Ref steps = dim_mul(dim_sub(x->shape[2 + i], ctx.index(1)), ctx.index(axes[i].stride));
    shape.push_back(dim_add(steps, ctx.index(axes[i].kernel - axes[i].pad_lo - axes[i].pad_hi)));
    c.check(shape.back()->lo >= 0, "the pads exceed the result");
  }
  Ref one = ctx.index(1), count = numel(ctx, x->shape), flat = to(indices, DType::I64);
  c.require_inside(flat, numel(ctx, shape));
  Ref zeros = full(ctx, Dims{one, numel(ctx, shape), one}, x->dtype, 0);
  Ref y = put(zeros, reshape(flat, Dims{one, count}), reshape(x, Dims{one, count, one}), Scatter::Replace);
  y = reshape(y, shape);
  if (!c.has(2)) return c.out(y);
  Dims wanted = c.known_dims(2), none(shape.size(), ctx.index(0)), more;
  c.check(wanted.size() == shape.size(), "output_shape has " + std::to_string(wanted.size()) + " values");
  for (size_t i = 0; i < shape.size(); ++i) {
    more.push_back(dim_sub(wanted[i], shape[i]));
    c.check(more.back()->lo >= 0, "output_shape " + shape_text(wanted) + " is smaller than " + shape_text(shape));
  }
  c.out(pad(y, none, more));
}

/// Sums blocks back into an image, the adjoint of windows: x [N, C*block, L] → [N, C, image...]. It is the transposed
/// convolution with the filter that is 1 where the block's position is the channel.
void col2im(OpContext& c) {
  Ref x = c.in_float(0);
  std::vector<int64_t> image = c.known_ints(1), block = c.known_ints(2);
  c.check(x->rank() == 3 && image.size() == block.size() && !block.empty(),
          "input " + shape_text(x->shape) + " is not rank 3, or image_shape and block_shape differ in length");
  std::vector<Window> axes = read_windows(c, block);
  resolve_pads(c, x, axes);
  Context& ctx = c.ctx();
  Dims counts{numel(ctx, index_dims(ctx, block))}; // block, then blocks along each axis
  for (size_t i = 0; i < axes.size(); ++i) {
    Window& w = axes[i];
    c.check(image[i] >= 1 && image[i] < (int64_t{1} << 31), "image_shape has the value " + std::to_string(image[i]));
    int64_t room = image[i] + w.pad_lo + w.pad_hi - w.span();
    c.check(room >= 0, "the block does not fit in the image");
    counts.push_back(ctx.index(room / w.stride + 1));
    w.output_pad = room % w.stride; // what no block reaches
  }
  Ref size = counts[0], channels = dim_floordiv(dim(x, 1), size);
  c.check(dims_equal(dim_mul(channels, size), dim(x, 1)), "block_shape does not divide the channels");
  c.check(dims_equal(numel(ctx, Refs(counts).subspan(1)), dim(x, 2)),
          "image_shape does not fit " + shape_text(x->shape));
  Dims blocks = counts;
  blocks.insert(blocks.begin(), dim_mul(dim(x, 0), channels));
  Dims filter = index_dims(ctx, block);
  Ref position = reshape(iota(ctx, Dims{size}, 0, DType::I64), filter);
  filter.insert(filter.begin(), size);
  Ref channel = iota(ctx, filter, 0, DType::I64);
  Ref w = unsqueeze(to(elementwise(Ops::Eq, {channel, broadcast_to(position, filter)}), x->dtype), {1});
  Dims shape{dim(x, 0), channels};
  for (int64_t extent : image) shape.push_back(ctx.index(extent));
  c.out(reshape(conv_transpose(reshape(x, blocks), w, axes, 1), shape));
}

void average_pool_op(OpContext& c) {
  Ref x = c.in_float(0);
  Spatial s = pool_windows(c, x);
  c.out(average_pool(x, s.axes, c.attr("count_include_pad", 0) != 0, s.extra_hi));
}

std::vector<int64_t> spatial_axes(OpContext& c, Ref x) {
  c.check(x->rank() >= 2, "input " + shape_text(x->shape) + " has no channel dim");
  std::vector<int64_t> axes = all_axes(x);
  return {axes.begin() + 2, axes.end()};
}

void global_average_pool(OpContext& c) { c.out(mean(c.in_float(0), spatial_axes(c, c.in(0)), true)); }
void global_max_pool(OpContext& c) { c.out(max(c.in(0), spatial_axes(c, c.in(0)), true)); }

Ref lp_sum(Ref x, const std::vector<int64_t>& axes, double p, bool keep) {
  if (p == 1) return sum(unary(Ops::Abs, x), axes, keep);
  if (p == 2) return unary(Ops::Sqrt, sum(mul(x, x), axes, keep));
  return elementwise(Ops::Pow, sum(elementwise(Ops::Pow, unary(Ops::Abs, x), p), axes, keep), 1 / p);
}

double lp_order(OpContext& c) {
  double p = c.opset() < 2 ? c.attr_float("p", 2) : static_cast<double>(c.attr("p", 2));
  c.check(p > 0, "p must be positive");
  return p;
}

void lp_pool(OpContext& c) {
  Ref x = c.in_float(0);
  std::vector<Window> axes = with_extra(pool_windows(c, x));
  Ref w = windows(pad_spatial(x, axes), axes);
  std::vector<int64_t> all = all_axes(w);
  c.out(lp_sum(w, {all.begin() + x->rank(), all.end()}, lp_order(c), false));
}

void global_lp_pool(OpContext& c) { c.out(lp_sum(c.in_float(0), spatial_axes(c, c.in(0)), lp_order(c), true)); }

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"MatMul", 1, kEnd, 2, 2, matmul_op},
    {"Gemm", 1, kEnd, 2, 3, gemm},
    {"Conv", 1, kEnd, 2, 3, conv_op},
    {"ConvTranspose", 1, kEnd, 2, 3, conv_transpose_op},
    {"MaxPool", 1, kEnd, 1, 1, max_pool_op},
    {"AveragePool", 1, kEnd, 1, 1, average_pool_op},
    {"LpPool", 1, kEnd, 1, 1, lp_pool},
    {"MaxUnpool", 9, kEnd, 2, 3, max_unpool},
    {"Col2Im", 18, kEnd, 3, 3, col2im},
    {"GlobalAveragePool", 1, kEnd, 1, 1, global_average_pool},
    {"GlobalMaxPool", 1, kEnd, 1, 1, global_max_pool},
    {"GlobalLpPool", 1, kEnd, 1, 1, global_lp_pool},
};

} // namespace

extern const OpTable kOnnxOps_linear;
const OpTable kOnnxOps_linear = {"linear", kRows};

} // namespace tgc::onnx
