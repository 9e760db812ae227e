// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 8- and 16-bit quantisation: y = saturate(round(x / scale) + zero_point) and back, per tensor, per axis or per block,
// and products of quantised operands, summed in i32. Rounding is half to even; the cast saturates. Not handled: 4-bit
// and 8-bit float types (their tensors are refused with E205).
#include <limits>

#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

/// The axis of per-axis values, and the elements per value of blocked ones (0: not blocked).
struct Layout {
  int64_t axis, block = 0;
};

/// A scale or zero point aligned to x: a scalar, one value per position of `axis`, or one per block of it.
Ref align(OpContext& c, Ref x, Ref v, Layout at) {
  if (v->rank() == 0 || dim_int(numel(c.ctx(), v->shape)) == 1) return reshape(v, {});
  int64_t axis = normalize_axis(at.axis, x->rank()), block = at.block;
  if (block == 0) {
    c.check(v->rank() == 1 && dims_equal(dim(v, 0), dim(x, axis)), "scale " + shape_text(v->shape) +
                                                                       " does not fit axis " + std::to_string(axis) +
                                                                       " of " + shape_text(x->shape));
    Dims dims(x->shape.size(), c.ctx().index(1));
    dims[static_cast<size_t>(axis)] = dim(v, 0);
    return reshape(v, dims);
  }
  c.check(block > 0 && block < (1 << 24) && v->rank() == x->rank(),
          "scale " + shape_text(v->shape) + " does not fit blocks of " + shape_text(x->shape));
  Dims wide = dims_of(v);
  wide.insert(wide.begin() + axis + 1, c.ctx().index(block));
  Ref repeated = merge_axes(expand(unsqueeze(v, {axis + 1}), wide), axis, axis + 2);
  return shrink(repeated, Dims(x->shape.size(), c.ctx().index(0)), x->shape);
}

Layout layout(OpContext& c) {
  return {c.opset() >= 13 ? c.attr("axis", 1) : 1, c.opset() >= 21 ? c.attr("block_size", 0) : 0};
}

Ref quantize(Ref x, Ref scale, Ref zero_point, DType type) {
  Ref q = unary(Ops::Round, div(x, scale));
  return to(zero_point ? add(q, to(zero_point, q->dtype)) : q, type);
}

void quantize_linear(OpContext& c) {
  Layout at = layout(c);
  c.ignore("saturate");  // concerns 8-bit floats
  c.ignore("precision"); // the division is in f32 at least
  Ref x = c.in(0), scale = c.in_float(1);
  int64_t stated = c.opset() >= 21 ? c.attr("output_dtype", 0) : 0;
  DType type = c.has(2) ? c.in(2)->dtype : stated ? dtype_of(static_cast<int32_t>(stated)) : DType::U8;
  c.check(is_int(type) && byte_size(type) <= 2, std::string("the result has type ") + name(type));
  DType wide = accumulator(is_float(x->dtype) ? x->dtype : DType::F32);
  Ref zero_point = c.has(2) ? align(c, x, c.in(2), at) : Ref();
  c.out(quantize(to(x, wide), to(align(c, x, scale, at), wide), zero_point, type));
}

Ref dequantize(Ref x, Ref scale, Ref zero_point) {
  Ref centred = zero_point ? sub(to(x, DType::I32), to(zero_point, DType::I32)) : to(x, DType::I32);
  return mul(to(centred, accumulator(scale->dtype)), to(scale, accumulator(scale->dtype)));
}

void dequantize_linear(OpContext& c) {
  Layout at = layout(c);
  Ref x = c.in(0), scale = c.in_float(1);
  c.check(is_int(x->dtype) && byte_size(x->dtype) <= 4, std::string("the input has type ") + name(x->dtype));
  c.check(!c.has(2) || c.in(2)->dtype == x->dtype, "the zero point has another type than the input");
  int64_t stated = c.opset() >= 23 ? c.attr("output_dtype", 0) : 0;
  DType type = stated ? dtype_of(static_cast<int32_t>(stated)) : scale->dtype;
  Ref zero_point = c.has(2) ? align(c, x, c.in(2), at) : Ref();
  c.out(to(dequantize(x, align(c, x, scale, at), zero_point), type));
}

/// Range [min(x, 0), max(x, 0)] mapped to 0..255.
void dynamic_quantize_linear(OpContext& c) {
  Ref x = c.in_float(0);
  std::vector<int64_t> axes = all_axes(x);
  Ref hi = maximum(max(x, axes, false), 0), lo = minimum(min(x, axes, false), 0);
  Ref scale = div(sub(hi, lo), 255);
  Ref zero_point = to(unary(Ops::Round, minimum(maximum(rsub(0, div(lo, scale)), 0), 255)), DType::U8);
  c.out(0, quantize(x, scale, zero_point, DType::U8));
  c.out(1, scale);
  c.out(2, zero_point);
}

// ---- products -------------------------------------------------------------------------------------------------------

/// Input i minus its zero point (input z, per tensor or along `axis`), in i32.
Ref centred(OpContext& c, size_t i, size_t z, int64_t axis) {
  Ref x = c.in(i);
  c.check(x->dtype == DType::I8 || x->dtype == DType::U8,
          "input " + std::to_string(i) + " has type " + name(x->dtype) + ", not i8 or u8");
  Ref wide = to(x, DType::I32);
  if (!c.has(z)) return wide;
  Ref zero_point = to(c.in(z), DType::I32);
  bool aligned = zero_point->rank() > 1;
  return sub(wide, aligned ? zero_point : align(c, x, zero_point, {axis}));
}

void matmul_integer(OpContext& c) { c.out(matmul(centred(c, 0, 2, -2), centred(c, 1, 3, -1))); }

/// A scale of an operand's rows or columns as it applies to the product.
Ref product_scale(OpContext& c, Ref scale, Ref y, int64_t axis) {
  return scale->rank() > 1 ? scale : align(c, y, scale, {axis});
}

/// An i32 sum on another scale: one multiplication, since the quotient of the scales is known before.
Ref requantize(Ref sum, Ref scale, Ref zero_point, DType type) {
  return to(add(unary(Ops::Round, mul(to(sum, DType::F32), scale)), to(zero_point, DType::F32)), type);
}

void qlinear_matmul(OpContext& c) {
  Ref y = matmul(centred(c, 0, 2, -2), centred(c, 3, 5, -1));
  Ref scale = mul(to(product_scale(c, c.in_float(1), y, -2), DType::F32),
                  to(product_scale(c, c.in_float(4), y, -1), DType::F32));
  c.out(requantize(y, div(scale, to(product_scale(c, c.in_float(6), y, -2), DType::F32)),
                   product_scale(c, c.in(7), y, -2), c.in(7)->dtype));
}

std::vector<Window> windows_of(OpContext& c, Ref w) {
  std::vector<Window> axes;
  c.check(w->rank() >= 3, "the weight " + shape_text(w->shape) + " has no spatial dims");
  size_t n = w->shape.size() - 2;
  std::vector<int64_t> ones(n, 1), none(2 * n, 0);
  std::vector<int64_t> strides = c.attr_ints("strides", ones), dilations = c.attr_ints("dilations", ones),
                       pads = c.attr_ints("pads", none);
  if (c.attr_string("auto_pad", "NOTSET") != "NOTSET") c.unsupported("auto_pad is not supported here");
  c.ignore("kernel_shape");
  c.check(strides.size() == n && dilations.size() == n && pads.size() == 2 * n,
          "strides, dilations or pads have the wrong length");
  for (size_t i = 0; i < n; ++i) {
    std::optional<int64_t> kernel = dim_int(w->shape[2 + i]);
    for (int64_t v : {strides[i] - 1, dilations[i] - 1, pads[i], pads[i + n]})
      c.check(v >= 0 && v < (1 << 24), "strides, dilations or pads are out of range");
    c.check(kernel && *kernel >= 1 && *kernel < (1 << 24), "the kernel's extent is out of range");
    axes.push_back({*kernel, strides[i], dilations[i], pads[i], pads[i + n]});
  }
  return axes;
}

void conv_integer(OpContext& c) {
  c.out(conv(centred(c, 0, 2, 1), centred(c, 1, 3, 0), windows_of(c, c.in(1)), c.attr("group", 1)));
}

void qlinear_conv(OpContext& c) {
  Ref y = conv(centred(c, 0, 2, 1), centred(c, 3, 5, 0), windows_of(c, c.in(3)), c.attr("group", 1));
  if (c.has(8)) y = add_channel(y, c.in(8));
  Ref scale = mul(reshape(c.in_float(1), {}), align(c, y, c.in_float(4), {1}));
  c.out(requantize(y, div(scale, reshape(c.in_float(6), {})), reshape(c.in(7), {}), c.in(7)->dtype));
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"QuantizeLinear", 10, kEnd, 2, 3, quantize_linear},
    {"DequantizeLinear", 10, kEnd, 2, 3, dequantize_linear},
    {"DynamicQuantizeLinear", 11, kEnd, 1, 1, dynamic_quantize_linear},
    {"MatMulInteger", 10, kEnd, 2, 4, matmul_integer},
    {"QLinearMatMul", 10, kEnd, 8, 8, qlinear_matmul},
    {"ConvInteger", 10, kEnd, 2, 4, conv_integer},
    {"QLinearConv", 10, kEnd, 8, 9, qlinear_conv},
};

} // namespace

extern const OpTable kOnnxOps_quant;
const OpTable kOnnxOps_quant = {"quant", kRows};

} // namespace tgc::onnx
