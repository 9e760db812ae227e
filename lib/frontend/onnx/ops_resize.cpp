// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: Resize has 3 modes, 7 coordinate transformations, 4 roundings, antialiasing, crops and aspect policies.
// Idea: all of them are linear and separable, so each axis is a sparse matrix [out, in] of numbers known at import; the
// result is a masked sum over the input axis. Nearest neighbours at a whole factor are a repetition, else known
// positions. An axis of symbolic extent can grow by a whole factor: its matrix repeats block by block. Not handled:
// other factors of symbolic extents. Source: Operators.md (Resize) and its definition of neighbours: the n nearest
// positions of the edge-padded axis, the lower one of two equally near.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "frontend/constant.h"
#include "frontend/gather.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

struct Resize {
  std::string mode, transform, nearest;
  double cubic_a = -0.75, extrapolation = 0;
  bool antialias = false, exclude_outside = false;
  std::vector<double> roi; ///< starts, then ends, of tf_crop_and_resize
};
/// One axis: extents, factor, and the crop of tf_crop_and_resize. A symbolic extent grows by `factor`, and `in`, `out`
/// have no meaning.
struct Axis {
  int64_t axis = 0, in = 1, out = 1;
  double scale = 1, start = 0, end = 1;
  int64_t factor = 0;
  bool is_sized = false; ///< the scale is out / in
};

/// x of the result in elements of the operand, rounded once where both extents are given: neighbours of whole and half
/// positions depend on it.
double shrunk(const Axis& a, double x) {
  return a.is_sized ? x * static_cast<double>(a.in) / static_cast<double>(a.out) : x / a.scale;
}

double source_position(const Resize& r, const Axis& a, int64_t o) {
  double x = static_cast<double>(o), in = static_cast<double>(a.in);
  const double out = a.is_sized ? static_cast<double>(a.out) : a.scale * in;
  if (r.transform == "asymmetric") return shrunk(a, x);
  if (r.transform == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (r.transform == "pytorch_half_pixel" && a.out == 1) return 0;
  if (r.transform == "half_pixel_symmetric") {
    double adjustment = static_cast<double>(a.out) / out;
    return in / 2 * (1 - adjustment) + shrunk(a, x + 0.5) - 0.5;
  }
  if (r.transform == "tf_crop_and_resize") {
    if (a.out == 1) return 0.5 * (a.start + a.end) * (in - 1);
    return a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / (out - 1);
  }
  return shrunk(a, x + 0.5) - 0.5;
}

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Whether the upper neighbour is the nearest of a position `ratio` beyond the lower, ratio in (0, 1].
bool is_upper(const Resize& r, double ratio) {
  return r.nearest == "ceil" || (r.nearest == "round_prefer_floor" && ratio > 0.5) ||
         (r.nearest == "round_prefer_ceil" && ratio >= 0.5) || ratio == 1;
}

/// Weights of the neighbours of a position `ratio` beyond the lower middle one, ratio in (0, 1].
std::vector<double> coefficients(const Resize& r, double ratio, double scale) {
  if (r.mode == "nearest") return is_upper(r, ratio) ? std::vector{0.0, 1.0} : std::vector{1.0, 0.0};
  bool is_cubic = r.mode == "cubic";
  double shrink_factor = r.antialias ? std::min(scale, 1.0) : 1;
  double reach = is_cubic ? 2 : 1;
  int64_t first = static_cast<int64_t>(std::floor(-reach / shrink_factor)) + 1;
  std::vector<double> c;
  c.reserve(static_cast<size_t>(2 - 2 * first));
  double total = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    double x = shrink_factor * (static_cast<double>(i) - ratio);
    c.push_back(is_cubic ? cubic(x, r.cubic_a) : std::max(0.0, 1 - std::fabs(x)));
    total += c.back();
  }
  if (r.antialias)
    for (double& w : c) w /= total;
  return c;
}

/// The lowest of the n consecutive positions nearest to x: those around x, the lower ones when x is whole.
int64_t first_neighbour(double x, int64_t n) {
  int64_t lower = static_cast<int64_t>(std::floor(x));
  if (static_cast<double>(lower) == x) --lower;
  return lower - (n - 1) / 2;
}

/// What element o is a copy of.
int64_t nearest_element(const Resize& r, const Axis& a, int64_t o) {
  const double x = source_position(r, a, o), whole = std::floor(x);
  const bool upper = is_upper(r, x == whole ? 1 : x - whole);
  return std::clamp<int64_t>(first_neighbour(x, 2) + (upper ? 1 : 0), 0, a.in - 1);
}

/// An element of the operand and what one of the result takes of it.
struct Weight {
  int64_t at;
  double value;
};

/// Row o of the matrix of one axis, without its zeros.
std::vector<Weight> matrix_row(const Resize& r, const Axis& a, int64_t o) {
  double x = source_position(r, a, o), whole = std::floor(x);
  std::vector<double> c = coefficients(r, x == whole ? 1 : x - whole, a.scale);
  int64_t first = first_neighbour(x, static_cast<int64_t>(c.size()));
  double total = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    int64_t at = first + static_cast<int64_t>(i);
    if (r.exclude_outside && (at < 0 || at >= a.in)) c[i] = 0;
    total += c[i];
  }
  std::vector<Weight> row;
  row.reserve(c.size());
  for (size_t i = 0; i < c.size(); ++i) {
    const int64_t at = std::clamp<int64_t>(first + static_cast<int64_t>(i), 0, a.in - 1);
    const double value = r.exclude_outside ? c[i] / total : c[i];
    if (!row.empty() && row.back().at == at)
      row.back().value += value;
    else
      row.push_back({at, value});
  }
  return row;
}

void check_matrix(OpContext& c, const Axis& a) {
  if (a.in * a.out > (int64_t{1} << 24)) // 64 MB, most of them zeros
    c.unsupported("resizing an axis from " + std::to_string(a.in) + " to " + std::to_string(a.out) +
                  " elements takes a matrix of more than 2^24");
}

/// A constant [out, in] in f32; in f64 for values of that type.
template <typename T>
Ref matrix_constant(OpContext& c, const std::string& label, const Axis& a, const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return add_constant(*c.weights().module, c.node().outputs[0] + "." + label,
                      {sizeof(T) == 8 ? DType::F64 : DType::F32, {a.out, a.in}, bytes_of(bytes)});
}

/// The matrix of one axis for inputs of type T.
template <typename T> Ref resize_matrix(OpContext& c, const Resize& r, const Axis& a) {
  std::vector<T> values(static_cast<size_t>(a.out * a.in), 0);
  for (int64_t o = 0; o < a.out; ++o)
    for (const Weight& w : matrix_row(r, a, o)) values[static_cast<size_t>(o * a.in + w.at)] = static_cast<T>(w.value);
  return matrix_constant(c, r.mode + std::to_string(a.axis), a, values);
}

Ref resize_nearest(OpContext& c, Ref x, const Resize& r, const Axis& a) {
  int64_t axis = a.axis;
  std::vector<int64_t> index;
  for (int64_t o = 0; o < a.out; ++o) index.push_back(nearest_element(r, a, o));
  int64_t factor = a.out / a.in;
  bool repeats = factor * a.in == a.out;
  for (int64_t o = 0; o < a.out; ++o) repeats &= factor > 0 && index[static_cast<size_t>(o)] == o / factor;
  if (repeats) {
    Dims wide = dims_of(x);
    wide.insert(wide.begin() + axis + 1, c.ctx().index(factor));
    return merge_axes(expand(unsqueeze(x, {axis + 1}), wide), axis, axis + 2);
  }
  if (Ref y = take_known(x, axis, index)) return y;
  check_matrix(c, a);
  std::vector<float> hot(static_cast<size_t>(a.out * a.in), 0);
  for (int64_t o = 0; o < a.out; ++o) hot[static_cast<size_t>(o * a.in + index[static_cast<size_t>(o)])] = 1;
  Ref m = compare(Ops::Ne, matrix_constant(c, "nearest" + std::to_string(axis), a, hot), 0);
  Ref last = unsqueeze(swap_axes(x, axis, x->rank() - 1), {x->rank() - 1}); // [.., 1, in]
  Dims dims = dims_of(last);
  dims[dims.size() - 2] = c.ctx().index(a.out);
  Ref terms = broadcast_to(last, dims);
  Ref y = reduce(x->dtype == DType::Bool ? "max" : "add", select(broadcast_to(m, dims), terms, full_like(terms, 0)),
                 {x->rank()}, false);
  return swap_axes(y, axis, x->rank() - 1);
}

Ref resize_linear(OpContext& c, Ref x, const Resize& r, const Axis& a) {
  check_matrix(c, a);
  int64_t axis = a.axis;
  Ref m = x->dtype == DType::F64 ? resize_matrix<double>(c, r, a) : to(resize_matrix<float>(c, r, a), x->dtype);
  Ref last = unsqueeze(swap_axes(x, axis, x->rank() - 1), {x->rank() - 1});
  Ref terms = mul(last, m), used = broadcast_to(compare(Ops::Ne, m, 0), terms->shape);
  Ref y = reduce("add", select(used, terms, full_like(terms, 0)), {x->rank()}, false); // 0*inf must not count
  y = swap_axes(y, axis, x->rank() - 1);
  if (r.transform != "tf_crop_and_resize") return y;
  std::vector<float> outside;
  for (int64_t o = 0; o < a.out; ++o) {
    double p = source_position(r, a, o);
    outside.push_back(p < 0 || p > static_cast<double>(a.in - 1) ? 1.0f : 0.0f);
  }
  Axis column{0, 1, a.out};
  Dims aligned(y->shape.size(), c.ctx().index(1));
  aligned[static_cast<size_t>(axis)] = c.ctx().index(a.out);
  Ref flag =
      compare(Ops::Ne, reshape(matrix_constant(c, "outside" + std::to_string(axis), column, outside), aligned), 0);
  return select(broadcast_to(flag, y->shape), full_like(y, r.extrapolation), y);
}

/// x with its first and last element repeated along `axis`.
Ref edge_padded(Ref x, int64_t axis, int64_t before, int64_t after) {
  Context& ctx = *x->ctx;
  auto edge = [&](Ref offset, int64_t count) {
    Dims dims = dims_of(x);
    dims[static_cast<size_t>(axis)] = ctx.index(count);
    return expand(shrink_axis(x, axis, offset, ctx.index(1)), dims);
  };
  std::vector<Ref> parts{x};
  if (before > 0) parts.insert(parts.begin(), edge(ctx.index(0), before));
  if (after > 0) parts.push_back(edge(dim_sub(dim(x, axis), ctx.index(1)), after));
  return concat(parts, axis);
}

/// Any extent grown by a whole factor k: row o of the matrix is row o mod k, shifted by o div k. The rows are read off
/// an axis long enough that its middle sees no edge; edges repeat the outermost element.
Ref resize_by_factor(OpContext& c, Ref x, const Resize& r, const Axis& a) {
  constexpr int64_t kMiddle = 4, kProbe = 2 * kMiddle + 1;
  int64_t k = a.factor, axis = a.axis, first = 0, last = 0;
  if (r.transform == "align_corners" || r.transform == "tf_crop_and_resize" || r.exclude_outside)
    c.unsupported("this transformation needs known extents", "pin the dims with --dim NAME=VALUE");
  Axis probe{.in = kProbe, .out = kProbe * k, .scale = static_cast<double>(k)};
  std::vector<std::vector<double>> rows;
  for (int64_t o = 0; o < k; ++o) {
    rows.emplace_back(kProbe, 0);
    for (const Weight& w : matrix_row(r, probe, kMiddle * k + o)) rows.back()[static_cast<size_t>(w.at)] = w.value;
    for (int64_t i = 0; i < kProbe; ++i) {
      if (rows.back()[static_cast<size_t>(i)] == 0) continue;
      first = std::min(first, i - kMiddle);
      last = std::max(last, i - kMiddle);
    }
  }
  Ref wide = edge_padded(x, axis, -first, last);
  std::vector<Ref> phases;
  for (const std::vector<double>& row : rows) {
    Ref total;
    for (int64_t i = first; i <= last; ++i) {
      double w = row[static_cast<size_t>(kMiddle + i)];
      if (w == 0) continue;
      Ref part = shrink_axis(wide, axis, c.ctx().index(i - first), dim(x, axis));
      part = w == 1 ? part : mul(part, w);
      total = total ? add(total, part) : part;
    }
    phases.push_back(unsqueeze(total, {axis + 1}));
  }
  bool same = std::all_of(phases.begin(), phases.end(), [&](Ref p) { return p == phases[0]; });
  Dims dims = dims_of(phases[0]);
  dims[static_cast<size_t>(axis) + 1] = c.ctx().index(k);
  return merge_axes(same ? expand(phases[0], dims) : concat(phases, axis + 1), axis, axis + 2);
}

// ---- operands -------------------------------------------------------------------------------------------------------

constexpr double kLargest = 1 << 24;

Resize read_attributes(OpContext& c) {
  Resize r;
  r.mode = c.attr_string("mode", "nearest");
  bool old = c.opset() < 11;
  r.transform = old ? "asymmetric" : c.attr_string("coordinate_transformation_mode", "half_pixel");
  r.nearest = old ? "floor" : c.attr_string("nearest_mode", "round_prefer_floor");
  if (!old) {
    r.cubic_a = c.attr_float("cubic_coeff_a", -0.75);
    r.extrapolation = c.attr_float("extrapolation_value", 0);
    r.exclude_outside = c.attr("exclude_outside", 0) != 0;
  }
  if (c.opset() >= 18) r.antialias = c.attr("antialias", 0) != 0;
  if (r.mode == "bilinear") r.mode = "linear";
  auto one_of = [](const std::string& s, std::initializer_list<const char*> all) {
    return std::any_of(all.begin(), all.end(), [&](const char* a) { return s == a; });
  };
  c.check(one_of(r.mode, {"nearest", "linear", "cubic"}), "mode=\"" + r.mode + "\" is no mode");
  c.check(one_of(r.transform, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                               "asymmetric", "tf_crop_and_resize"}),
          "coordinate_transformation_mode=\"" + r.transform + "\" is not supported");
  c.check(one_of(r.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}),
          "nearest_mode=\"" + r.nearest + "\" is no rounding");
  return r;
}

void apply(OpContext& c, const Resize& r, const std::vector<Axis>& axes) {
  Ref x = c.in(0);
  DType type = x->dtype;
  bool nearest = r.mode == "nearest" && r.transform != "tf_crop_and_resize";
  if (!nearest) x = to(x, is_float(type) ? accumulator(type) : DType::F32);
  for (size_t i = axes.size(); i-- > 0;) {
    const Axis& a = axes[i];
    if (a.factor > 0) {
      x = resize_by_factor(c, x, r, a);
      continue;
    }
    if (a.out == a.in && a.scale == 1 && r.transform != "tf_crop_and_resize") continue;
    c.check(a.in >= 1, "an extent is 0");
    x = nearest ? resize_nearest(c, x, r, a) : resize_linear(c, x, r, a);
  }
  c.out(to(x, type));
}

int64_t extent_of(OpContext& c, Ref x, int64_t axis) {
  std::optional<int64_t> n = dim_int(dim(x, axis));
  if (!n) c.unsupported("resizing needs known extents", "pin the dims with --dim NAME=VALUE");
  c.check(static_cast<double>(*n) < kLargest, "an extent is out of range");
  return *n;
}

/// How a symbolic extent grows: by `scale`, which must be a whole number.
Axis symbolic_axis(OpContext& c, int64_t axis, double scale) {
  constexpr double kMost = 64; // each phase is an expression of its own
  if (scale != std::floor(scale) || scale > kMost)
    c.unsupported("resizing a symbolic extent by " + std::to_string(scale) +
                      " is not supported, only by whole factors from 1 to 64",
                  "pin the dims with --dim NAME=VALUE");
  Axis a;
  a.axis = axis;
  a.factor = static_cast<int64_t>(scale);
  return a;
}

void by_scales(OpContext& c, const Resize& r, const std::vector<int64_t>& axes, const std::vector<double>& scales) {
  c.check(scales.size() == axes.size(),
          "scales has " + std::to_string(scales.size()) + " values for " + std::to_string(axes.size()) + " axes");
  std::vector<Axis> spec;
  for (size_t i = 0; i < axes.size(); ++i) {
    c.check(scales[i] > 0 && scales[i] < kLargest, "a scale is out of range");
    if (!dim_int(dim(c.in(0), axes[i]))) {
      if (scales[i] != 1) spec.push_back(symbolic_axis(c, axes[i], scales[i]));
      continue;
    }
    Axis a;
    a.axis = axes[i];
    a.in = extent_of(c, c.in(0), axes[i]);
    a.scale = scales[i];
    double out = std::floor(static_cast<double>(a.in) * a.scale);
    c.check(out < kLargest, "the result is too large");
    a.out = static_cast<int64_t>(out);
    if (!r.roi.empty()) a.start = r.roi[i], a.end = r.roi[i + axes.size()];
    spec.push_back(a);
  }
  apply(c, r, spec);
}

void by_sizes(OpContext& c, const Resize& r, const std::vector<int64_t>& axes) {
  Dims sizes = c.known_dims(3);
  std::string policy = c.opset() >= 18 ? c.attr_string("keep_aspect_ratio_policy", "stretch") : "stretch";
  c.check(sizes.size() == axes.size(),
          "sizes has " + std::to_string(sizes.size()) + " values for " + std::to_string(axes.size()) + " axes");
  c.check(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          "keep_aspect_ratio_policy=\"" + policy + "\" is no policy");
  std::vector<Axis> spec;
  double common = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::optional<int64_t> size = dim_int(sizes[i]);
    std::optional<Ref> factor = exact_quotient(c.ctx(), Dims{sizes[i]}, Dims{dim(c.in(0), axes[i])});
    if (!size && policy == "stretch" && factor && dim_int(*factor)) {
      if (dim_int(*factor) != 1) spec.push_back(symbolic_axis(c, axes[i], static_cast<double>(*dim_int(*factor))));
      continue;
    }
    if (!size) c.unsupported("resizing needs known extents", "pin the dims with --dim NAME=VALUE");
    c.check(*size >= 0 && static_cast<double>(*size) < kLargest, "a size is out of range");
    Axis a;
    a.axis = axes[i];
    a.in = extent_of(c, c.in(0), axes[i]);
    c.check(a.in >= 1, "an extent is 0");
    a.out = *size;
    a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    a.is_sized = true;
    if (!r.roi.empty()) a.start = r.roi[i], a.end = r.roi[i + axes.size()];
    common = spec.empty() ? a.scale : policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
    spec.push_back(a);
  }
  if (policy != "stretch")
    for (Axis& a : spec) {
      a.scale = common;
      a.is_sized = false;
      double out = std::floor(common * static_cast<double>(a.in) + 0.5);
      c.check(out < kLargest, "the result is too large");
      a.out = static_cast<int64_t>(out);
    }
  apply(c, r, spec);
}

bool is_empty(OpContext& c, size_t i) { return !c.has(i) || dim_int(numel(c.ctx(), c.in(i)->shape)) == 0; }

void resize(OpContext& c) {
  Resize r = read_attributes(c);
  std::vector<int64_t> axes = all_axes(c.in(0));
  if (c.opset() < 11) return by_scales(c, r, axes, c.known_floats(1));
  if (c.opset() >= 18 && c.has_attr("axes")) {
    axes = c.attr_ints("axes");
    for (int64_t& axis : axes) axis = normalize_axis(axis, c.in(0)->rank());
    normalize_axes(axes, c.in(0)->rank());
  }
  if (r.transform == "tf_crop_and_resize") r.roi = c.known_floats(1);
  c.check(r.roi.empty() || r.roi.size() == 2 * axes.size(), "roi has " + std::to_string(r.roi.size()) + " values");
  for (double p : r.roi) c.check(std::fabs(p) < kLargest, "roi is out of range");
  c.check(is_empty(c, 2) != is_empty(c, 3), "needs either scales or sizes");
  if (is_empty(c, 2)) return by_sizes(c, r, axes);
  if (c.opset() >= 18) c.ignore("keep_aspect_ratio_policy");
  by_scales(c, r, axes, c.known_floats(2));
}

void upsample(OpContext& c) {
  Resize r = read_attributes(c);
  std::vector<double> scales;
  if (c.opset() < 7) {
    scales = {1, 1, c.attr_float("height_scale"), c.attr_float("width_scale")};
  } else if (c.opset() < 9) {
    const Attribute* a = c.find("scales", AttrKind::Floats);
    if (!a) c.fail("attribute scales is missing");
    scales.assign(a->floats.begin(), a->floats.end());
  } else {
    scales = c.known_floats(1);
  }
  by_scales(c, r, all_axes(c.in(0)), scales);
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"Resize", 10, kEnd, 1, 4, resize},
    {"Upsample", 1, 9, 1, 2, upsample},
};

} // namespace

extern const OpTable kOnnxOps_resize;
const OpTable kOnnxOps_resize = {"resize", kRows};

} // namespace tgc::onnx
