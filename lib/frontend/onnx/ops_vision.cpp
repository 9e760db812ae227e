// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sampling grids, crops and window functions: positions computed from data or from sizes known at import.
// GridSample reads 2^d (linear), 1 (nearest) or 4^d (cubic) neighbours by `take`; padding decides what lies outside.
// RoiAlign and DeformConv read with the same taps. Not handled: RoiAlign whose samples depend on a region's size.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/gather.h"
#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

/// Crops or zero-pads around the centre to a known shape.
void center_crop_pad(OpContext& c) {
  Ref x = c.in(0);
  Dims wanted = c.known_dims(1);
  std::vector<int64_t> axes = c.attr_ints("axes", all_axes(x));
  normalize_axes(axes, x->rank());
  c.check(wanted.size() == axes.size(),
          "shape has " + std::to_string(wanted.size()) + " values for " + std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = normalize_axis(axes[i], x->rank());
    Ref two = c.ctx().index(2), more = dim_sub(wanted[i], dim(x, axis));
    c.check(wanted[i]->lo >= 0, "the shape has a negative dim");
    if (more->lo >= 0) {
      Ref before = dim_floordiv(more, two);
      x = pad_axis(x, axis, before, dim_sub(more, before));
    } else if (more->hi <= 0) {
      x = shrink_axis(x, axis, dim_floordiv(dim_sub(dim(x, axis), wanted[i]), two), wanted[i]);
    } else {
      c.unsupported("a symbolic dim may be cropped or padded", "pin the dim with --dim NAME=VALUE");
    }
  }
  c.out(x);
}

/// Positions -1..1 along an axis of n samples: of their centres, or with the ends on the borders.
Ref normalised_positions(const Dims& shape, int64_t axis, DType type, bool align_corners) {
  Context& ctx = *shape[0]->ctx;
  Ref i = iota(ctx, shape, axis, type);
  double n = static_cast<double>(dim_int(shape[static_cast<size_t>(axis)]).value_or(1));
  if (align_corners) return n > 1 ? add(mul(i, 2 / (n - 1)), -1) : full_like(i, 0);
  return add(mul(add(mul(i, 2), 1), 1 / n), -1);
}

/// theta [N, d, d+1] applied to the positions (x, y[, z], 1) of a grid of `size` [N, C, spatial...].
void affine_grid(OpContext& c) {
  Ref theta = c.in_float(0);
  std::vector<int64_t> size = c.known_ints(1);
  bool align_corners = c.attr("align_corners", 0) != 0;
  int64_t d = static_cast<int64_t>(size.size()) - 2;
  c.check((d == 2 || d == 3) && theta->rank() == 3, "size must have 4 or 5 values and theta rank 3");
  Context& ctx = c.ctx();
  for (int64_t s : size) c.check(s >= 1 && s < (1 << 24), "size has the value " + std::to_string(s));
  require_equal(dim(theta, 0), ctx.index(size[0]),
                "theta " + shape_text(theta->shape) + " does not fit a size of batch " + std::to_string(size[0]));
  Dims spatial = index_dims(ctx, {size.begin() + 2, size.end()}), one{ctx.index(1)};
  std::vector<Ref> columns;
  for (int64_t axis = d; axis-- > 0;)
    columns.push_back(unsqueeze(
        to(normalised_positions(spatial, axis, accumulator(theta->dtype), align_corners), theta->dtype), {d}));
  columns.push_back(unsqueeze(full(ctx, spatial, theta->dtype, 1), {d}));
  Ref base = merge_axes(concat(columns, d), 0, d);                 // [positions, d+1]
  Ref grid = matmul(unsqueeze(base, {0}), swap_axes(theta, 1, 2)); // [N, positions, d]
  Dims shape{dim(theta, 0)};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(ctx.index(d));
  c.out(reshape(grid, shape));
}

// ---- GridSample -----------------------------------------------------------------------------------------------------

struct Sampler {
  std::string mode, padding;
  bool align_corners;
  std::vector<int64_t> extents;
};

Ref floor_of(Ref x) { return unary(Ops::Floor, x); }

/// x folded back into [lo, hi] at its borders.
Ref reflect(Ref x, double lo, double hi) {
  double range = hi - lo;
  if (range <= 0) return full_like(x, lo);
  Ref t = unary(Ops::Abs, add(x, -lo)), flips = floor_of(mul(t, 1 / range));
  Ref rest = sub(t, mul(flips, range));
  Ref even = compare(Ops::Eq, sub(flips, mul(floor_of(mul(flips, 0.5)), 2)), 0);
  return select(even, add(rest, lo), rsub(hi, rest));
}

Ref pad_position(const Sampler& s, Ref x, int64_t n) {
  double last = static_cast<double>(n - 1);
  if (s.padding == "reflection") x = s.align_corners ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
  return s.padding == "zeros" ? x : minimum(maximum(x, 0), last);
}

/// Weights of the taps floor(x) + first .. for a fraction t.
std::vector<Ref> tap_weights(const Sampler& s, Ref t) {
  if (s.mode == "nearest") return {full_like(t, 1)};
  if (s.mode == "linear") return {rsub(1, t), t};
  constexpr double kA = -0.75;
  auto near_tap = [&](Ref x) { return add(mul(mul(x, x), add(mul(x, kA + 2), -(kA + 3))), 1); };
  auto far_tap = [&](Ref x) { return add(mul(x, add(mul(x, add(mul(x, kA), -5 * kA)), 8 * kA)), -4 * kA); };
  return {far_tap(add(t, 1)), near_tap(t), near_tap(rsub(1, t)), far_tap(rsub(2, t))};
}

struct Taps {
  std::vector<Ref> position, weight; ///< positions as floats, padded
};
Taps taps_along(const Sampler& s, Ref normalised, int64_t n) {
  double extent = static_cast<double>(n);
  Ref x = s.align_corners ? mul(add(normalised, 1), (extent - 1) / 2) : add(mul(add(normalised, 1), extent / 2), -0.5);
  if (s.mode == "nearest") return {{pad_position(s, unary(Ops::Round, pad_position(s, x, n)), n)}, {full_like(x, 1)}};
  if (s.mode == "linear") x = pad_position(s, x, n);
  Ref whole = floor_of(x);
  Taps taps{{}, tap_weights(s, sub(x, whole))};
  int64_t first = s.mode == "linear" ? 0 : -1;
  for (size_t i = 0; i < taps.weight.size(); ++i) {
    Ref p = add(whole, static_cast<double>(first + static_cast<int64_t>(i)));
    taps.position.push_back(s.mode == "linear" ? p : pad_position(s, p, n));
  }
  return taps;
}

/// What one combination of taps reads: its row-major position (-1 outside) and its weight.
struct Tap {
  Ref position, weight;
};

/// Every combination of taps, the outermost spatial dim first.
std::vector<Tap> combinations(const Sampler& s, const std::vector<Taps>& axes) {
  std::vector<Tap> out{{}};
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    double n = static_cast<double>(s.extents[axis]);
    std::vector<Tap> longer;
    for (const Tap& outer : out)
      for (size_t i = 0; i < axes[axis].weight.size(); ++i) {
        Ref p = axes[axis].position[i], w = axes[axis].weight[i];
        Ref valid = elementwise(Ops::And, {elementwise(Ops::Le, {full_like(p, 0), p}), compare(Ops::Lt, p, n)});
        if (outer.position) valid = elementwise(Ops::And, {valid, compare(Ops::Ne, outer.position, -1)});
        Ref at = to(select(valid, p, full_like(p, 0)), DType::I64);
        if (outer.position) at = add(mul(outer.position, n), at);
        longer.push_back({select(valid, at, full_like(at, -1)), outer.weight ? mul(outer.weight, w) : w});
      }
    out = longer;
  }
  return out;
}

/// data [N, positions, C] → [N, P, C], the weighted sum of its taps. Outside, `take` gives 0 whatever the weight is.
Ref sample(const Sampler& s, Ref data, const std::vector<Taps>& axes) {
  Ref total;
  for (const Tap& tap : combinations(s, axes)) {
    Ref weight = select(compare(Ops::Ne, tap.position, -1), tap.weight, full_like(tap.weight, 0));
    Ref part = mul(take(data, tap.position), unsqueeze(weight, {2}));
    total = total ? add(total, part) : part;
  }
  return total;
}

void grid_sample(OpContext& c) {
  Ref x = c.in_float(0), grid = c.in_float(1);
  int64_t d = x->rank() - 2;
  Sampler s{c.attr_string("mode", c.opset() < 20 ? "bilinear" : "linear"),
            c.attr_string("padding_mode", "zeros"),
            c.attr("align_corners", 0) != 0,
            {}};
  if (s.mode == "bilinear") s.mode = "linear";
  if (s.mode == "bicubic") s.mode = "cubic";
  c.check(s.mode == "linear" || s.mode == "nearest" || s.mode == "cubic", "mode=\"" + s.mode + "\" is no mode");
  c.check(s.padding == "zeros" || s.padding == "border" || s.padding == "reflection",
          "padding_mode=\"" + s.padding + "\" is no padding");
  c.check((d == 2 || d == 3) && grid->rank() == x->rank() && dim_int(dim(grid, -1)) == d,
          "input " + shape_text(x->shape) + " and grid " + shape_text(grid->shape) + " do not fit");
  Context& ctx = c.ctx();
  Dims plane{dim(grid, 0), numel(ctx, grid->shape.subspan(1, static_cast<size_t>(d)))};
  Ref points = reshape(grid, Dims{plane[0], plane[1], ctx.index(d)});
  std::vector<Taps> taps;
  for (int64_t axis = 0; axis < d; ++axis) {
    s.extents.push_back(c.known_extent(dim(x, 2 + axis)));
    Ref coordinate = reshape(shrink_axis(points, 2, ctx.index(d - 1 - axis), ctx.index(1)), plane);
    taps.push_back(taps_along(s, to(coordinate, accumulator(coordinate->dtype)), s.extents.back()));
  }
  Ref data = swap_axes(merge_axes(to(x, accumulator(x->dtype)), 2, x->rank()), 1, 2); // [N, positions, C]
  Ref y = swap_axes(sample(s, data, taps), 1, 2);
  Dims shape{dim(x, 0), dim(x, 1)};
  for (int64_t i = 1; i <= d; ++i) shape.push_back(dim(grid, i));
  c.out(to(reshape(y, shape), x->dtype));
}

// ---- regions and moved taps -----------------------------------------------------------------------------------------

/// Bilinear taps at positions [P...] along an axis of n samples, as RoiAlign has them: 0 beyond one sample outside, the
/// border up to there.
Taps clamped_taps(Ref x, int64_t n) {
  double last = static_cast<double>(n - 1);
  Ref inside = elementwise(Ops::And, {elementwise(Ops::Le, {full_like(x, -1), x}),
                                      elementwise(Ops::Le, {x, full_like(x, static_cast<double>(n))})});
  Ref kept = minimum(maximum(x, 0), last), lower = floor_of(kept), t = sub(kept, lower);
  auto weight = [&](Ref w) { return select(inside, w, full_like(w, 0)); };
  return {{lower, minimum(add(lower, 1), last)}, {weight(rsub(1, t)), weight(t)}};
}

/// The sample positions of each region along one axis, [R, bins, samples].
Ref region_positions(const Dims& shape, Ref low, Ref high, bool half_pixel) {
  double bins = static_cast<double>(*dim_int(shape[1])), samples = static_cast<double>(*dim_int(shape[2]));
  Ref extent = sub(high, low);
  if (!half_pixel) extent = maximum(extent, 1);
  Ref bin = broadcast_to(unsqueeze(div(extent, bins), {1, 2}), shape),
      start = broadcast_to(unsqueeze(low, {1, 2}), shape);
  Context& ctx = *low->ctx;
  Ref at = mul(iota(ctx, shape, 1, low->dtype), bin);
  Ref within = mul(div(bin, samples), add(iota(ctx, shape, 2, low->dtype), 0.5));
  return add(add(start, at), within);
}

/// Mean or maximum over sampling_ratio^2 bilinear samples in each of the bins of a region. The maximum is over weighted
/// neighbours, as ONNX Runtime and ONNX's tests have it.
void roi_align(OpContext& c) {
  Ref x = c.in_float(0), rois = c.in(1), batch = c.in(2);
  std::string mode = c.attr_string("mode", "avg");
  c.check(mode == "avg" || mode == "max", "mode=\"" + mode + "\" is neither avg nor max");
  std::string transform =
      c.opset() < 16 ? "output_half_pixel" : c.attr_string("coordinate_transformation_mode", "half_pixel");
  c.check(transform == "half_pixel" || transform == "output_half_pixel",
          "coordinate_transformation_mode=\"" + transform + "\" is neither half_pixel nor output_half_pixel");
  bool half_pixel = transform == "half_pixel";
  int64_t ratio = c.attr("sampling_ratio", 0);
  double scale = c.attr_float("spatial_scale", 1);
  if (ratio <= 0)
    c.unsupported("sampling_ratio=0 lets the data choose the number of samples; only fixed ones are supported");
  c.check(x->rank() == 4 && rois->rank() == 2 && dim_int(dim(rois, 1)) == 4 && batch->rank() == 1 &&
              is_int(batch->dtype),
          "input, rois and batch_indices must have ranks 4, 2 and 1");
  c.check(rois->dtype == x->dtype && ratio < 1024, "rois have another type than the input, or too many samples");
  Context& ctx = c.ctx();
  DType wide = accumulator(x->dtype);
  int64_t bins[2] = {c.attr("output_height", 1), c.attr("output_width", 1)};
  for (int64_t b : bins) c.check(b >= 1 && b < (1 << 16), "output_height or output_width is out of range");
  auto corner = [&](int64_t i) { // x1, y1, x2, y2
    Ref p = squeeze(shrink_axis(rois, 1, ctx.index(i), ctx.index(1)), {1});
    return add(mul(to(p, wide), scale), half_pixel ? -0.5 : 0);
  };
  Sampler s{"linear", "zeros", false, {c.known_extent(dim(x, 2)), c.known_extent(dim(x, 3))}};
  Dims shape{dim(rois, 0), ctx.index(bins[0]), ctx.index(ratio), ctx.index(bins[1]), ctx.index(ratio)};
  std::vector<Taps> taps;
  for (int64_t axis : {0, 1}) { // [R, bins, samples] in its place among [R, h, s, w, s]
    Dims own{shape[0], shape[static_cast<size_t>(1 + 2 * axis)], shape[2]};
    Ref p = region_positions(own, corner(1 - axis), corner(3 - axis), half_pixel);
    p = broadcast_to(unsqueeze(p, axis == 0 ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{1, 2}), shape);
    taps.push_back(clamped_taps(reshape(p, Dims{numel(ctx, shape)}), s.extents[static_cast<size_t>(axis)]));
  }
  Ref plane = ctx.index(s.extents[0] * s.extents[1]);
  Dims per_region = shape;
  Ref image = to(batch, DType::I64);
  c.require_inside(image, dim(x, 0));
  image = mul(image, broadcast_to(to(plane, DType::I64), batch->shape));
  image = reshape(broadcast_to(unsqueeze(image, {1, 2, 3, 4}), per_region), Dims{numel(ctx, shape)});
  Ref data = reshape(permute(to(x, wide), {0, 2, 3, 1}), Dims{ctx.index(1), dim_mul(dim(x, 0), plane), dim(x, 1)});
  Ref y;
  for (const Tap& tap : combinations(s, taps)) {
    Ref value = take(data, unsqueeze(add(tap.position, image), {0}));
    value = mul(squeeze(value, {0}), unsqueeze(tap.weight, {1})); // [samples, C]
    y = !y ? value : mode == "avg" ? add(y, value) : maximum(y, value);
  }
  Dims full_shape = shape;
  full_shape.push_back(dim(x, 1));
  y = reshape(y, full_shape);
  y = mode == "avg" ? div(sum(y, {2, 4}, false), static_cast<double>(ratio * ratio)) : max(y, {2, 4}, false);
  c.out(to(permute(y, {0, 3, 1, 2}), x->dtype));
}

/// One axis of the taps of a deformable convolution: position of each window and tap plus its offset, [N, G, k, k, o,
/// o].
Ref moved_positions(const Window& w, const Dims& shape, int64_t axis, Ref offset) {
  Ref tap = iota(*offset->ctx, shape, 2 + axis, offset->dtype),
      start = iota(*offset->ctx, shape, 4 + axis, offset->dtype);
  Ref regular = add(mul(start, static_cast<double>(w.stride)), mul(tap, static_cast<double>(w.dilation)));
  return add(add(regular, static_cast<double>(-w.pad_lo)), offset);
}

/// A convolution whose taps are moved by `offset` (and weighted by `mask`), read bilinearly with zeros outside.
void deform_conv(OpContext& c) {
  Ref x = c.in_float(0), w = c.in(1), offset = c.in(2);
  c.check(x->rank() == 4 && w->rank() == 4 && offset->rank() == 4 && w->dtype == x->dtype && offset->dtype == x->dtype,
          "input, weight and offset must have rank 4 and one type");
  Context& ctx = c.ctx();
  DType wide = accumulator(x->dtype);
  int64_t groups = c.attr("group", 1), moved = c.attr("offset_group", 1);
  std::vector<int64_t> kernel{c.known_extent(dim(w, 2)), c.known_extent(dim(w, 3))}, none(4, 0), ones(2, 1);
  c.check(c.attr_ints("kernel_shape", kernel) == kernel,
          "kernel_shape differs from the weight " + shape_text(w->shape));
  std::vector<int64_t> strides = c.attr_ints("strides", ones), dilations = c.attr_ints("dilations", ones),
                       pads = c.attr_ints("pads", none);
  c.check(strides.size() == 2 && dilations.size() == 2 && pads.size() == 4,
          "strides, dilations or pads have the wrong length");
  int64_t channels = c.known_extent(dim(x, 1)), outputs = c.known_extent(dim(w, 0));
  c.check(groups >= 1 && moved >= 1 && channels % groups == 0 && channels % moved == 0 && outputs % groups == 0 &&
              dim_int(dim(w, 1)) == channels / groups,
          "group or offset_group do not fit the channels");
  Sampler s{"linear", "zeros", false, {c.known_extent(dim(x, 2)), c.known_extent(dim(x, 3))}};
  Dims shape{dim(x, 0), ctx.index(moved), ctx.index(kernel[0]), ctx.index(kernel[1]), dim(offset, 2), dim(offset, 3)};
  c.check(dim_int(dim(offset, 1)) == moved * kernel[0] * kernel[1] * 2 && dims_equal(dim(offset, 0), dim(x, 0)),
          "offset " + shape_text(offset->shape) + " does not fit");
  Ref offsets =
      reshape(to(offset, wide), Dims{shape[0], shape[1], shape[2], shape[3], ctx.index(2), shape[4], shape[5]});
  Dims rows{dim_mul(shape[0], shape[1]), numel(ctx, Refs(shape).subspan(2))};
  std::vector<Taps> taps;
  for (int64_t axis : {0, 1}) {
    size_t i = static_cast<size_t>(axis);
    Window window{.kernel = kernel[i], .stride = strides[i], .dilation = dilations[i], .pad_lo = pads[i]};
    for (int64_t v : {window.stride - 1, window.dilation - 1, window.pad_lo})
      c.check(v >= 0 && v < (1 << 24), "strides, dilations or pads are out of range");
    std::optional<int64_t> out = dim_int(dim(offset, 2 + axis));
    int64_t expected = (s.extents[i] + pads[i] + pads[i + 2] - window.span()) / window.stride + 1;
    c.check(out == expected, "offset " + shape_text(offset->shape) + " does not fit the result");
    Ref own = squeeze(shrink_axis(offsets, 4, ctx.index(axis), ctx.index(1)), {4});
    Ref p = reshape(moved_positions(window, shape, axis, own), rows), whole = floor_of(p);
    taps.push_back({{whole, add(whole, 1)}, tap_weights(s, sub(p, whole))});
  }
  Dims split{shape[0], shape[1], ctx.index(channels / moved), ctx.index(s.extents[0] * s.extents[1])};
  Ref data = swap_axes(merge_axes(reshape(to(x, wide), split), 0, 2), 1, 2); // [N*G, positions, C/G]
  Ref y = sample(s, data, taps);                                             // [N*G, k*k*o*o, C/G]
  if (c.has(4)) {
    c.check(c.in(4)->dtype == x->dtype, "mask has another type than the input");
    y = mul(y, unsqueeze(reshape(to(c.in(4), wide), rows), {2}));
  }
  y = swap_axes(y, 1, 2);
  int64_t taps_count = kernel[0] * kernel[1];
  Ref g = ctx.index(groups), inner = ctx.index(channels / groups * taps_count), area = dim_mul(shape[4], shape[5]);
  y = reshape(y, Dims{shape[0], g, inner, area});
  Ref filter = reshape(to(w, wide), Dims{ctx.index(1), g, ctx.index(outputs / groups), inner});
  y = reshape(matmul(filter, y), Dims{shape[0], ctx.index(outputs), shape[4], shape[5]});
  c.out(to(c.has(3) ? add_channel(y, to(c.in(3), wide)) : y, x->dtype));
}

// ---- window functions -----------------------------------------------------------------------------------------------

/// a0 - a1*cos(2 pi n/N) + a2*cos(4 pi n/N), with N = size, or size-1 if symmetric.
void cosine_window(OpContext& c, double a0, double a1, double a2) {
  DType type = dtype_of(static_cast<int32_t>(c.attr("output_datatype", 1)));
  Dims size = c.known_dims(0);
  c.check(size.size() == 1 && size[0]->lo >= 0, "size must be one number");
  std::optional<int64_t> n = dim_int(size[0]);
  if (!n) c.unsupported("the size is symbolic", "pin the dim with --dim NAME=VALUE");
  int64_t period = std::max<int64_t>(1, c.attr("periodic", 1) ? *n : *n - 1);
  Ref i = iota(c.ctx(), size, 0, DType::F64);
  auto wave = [&](double k) { return unary(Ops::Cos, mul(i, k * std::numbers::pi / static_cast<double>(period))); };
  c.out(to(add(add(mul(wave(2), -a1), mul(wave(4), a2)), a0), type));
}
void hann(OpContext& c) { cosine_window(c, 0.5, 0.5, 0); }
void hamming(OpContext& c) { cosine_window(c, 25.0 / 46, 1 - 25.0 / 46, 0); }
void blackman(OpContext& c) { cosine_window(c, 0.42, 0.5, 0.08); }

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"CenterCropPad", 18, kEnd, 2, 2, center_crop_pad},
    {"AffineGrid", 20, kEnd, 2, 2, affine_grid},
    {"RoiAlign", 10, kEnd, 3, 3, roi_align},
    {"DeformConv", 19, kEnd, 3, 5, deform_conv},
    {"GridSample", 16, kEnd, 2, 2, grid_sample},
    {"HannWindow", 17, kEnd, 1, 1, hann},
    {"HammingWindow", 17, kEnd, 1, 1, hamming},
    {"BlackmanWindow", 17, kEnd, 1, 1, blackman},
};

} // namespace

extern const OpTable kOnnxOps_vision;
const OpTable kOnnxOps_vision = {"vision", kRows};

} // namespace tgc::onnx
