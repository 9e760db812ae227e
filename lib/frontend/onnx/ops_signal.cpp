// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fourier transforms, the mel filter bank and determinants. A transform is a product with a matrix of cosines and one
// of sines, whose angles are reduced in integers and computed in f64; both are constants of the graph, so they are made
// at compile time. Not handled: fast transforms, lengths whose matrix exceeds 2^24 elements, symbolic lengths, and
// determinants of more than 6 rows.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

// ---- Fourier transforms ---------------------------------------------------------------------------------------------

/// A signal along the last axis; a real one has no imaginary part.
struct Complex {
  Ref re, im;
};
struct Transform {
  int64_t length;         ///< of the transform: the signal is cut or zero-padded to it
  bool inverse, onesided; ///< onesided: only the first length/2 + 1 frequencies are there
  int64_t half() const { return length / 2 + 1; }
};

/// The last axis cut or zero-padded to n.
Ref fit(OpContext& c, Ref x, int64_t n) {
  int64_t last = x->rank() - 1, has = c.known_extent(dim(x, last));
  if (has > n) return shrink_axis(x, last, c.ctx().index(0), c.ctx().index(n));
  return pad_axis(x, last, c.ctx().index(0), c.ctx().index(n - has));
}

/// [n, m] of indices that `t` multiplies.
struct Matrix {
  const Transform& t;
  int64_t n, m;
};
/// cos or sin of 2 pi i j / length for element [i, j].
Ref wave(OpContext& c, Ops op, const Matrix& w) {
  const Transform& t = w.t;
  if (w.n * w.m > int64_t{1} << 24)
    c.unsupported("a transform of length " + std::to_string(t.length) + " is too large");
  Dims dims = index_dims(c.ctx(), {w.n, w.m});
  Ref product = mul(iota(c.ctx(), dims, 0, DType::I64), iota(c.ctx(), dims, 1, DType::I64));
  Ref turn = elementwise(Ops::Mod, product, static_cast<double>(t.length));
  return unary(op, mul(to(turn, DType::F64), 2 * std::numbers::pi / static_cast<double>(t.length)));
}

/// x [..., n] times the wave, [..., rows].
Ref project(Ref x, Ref w) { return matmul(x, to(w, x->dtype)); }

Complex transform(OpContext& c, const Complex& x, const Transform& t) {
  const Matrix w{t, t.length, t.onesided ? t.half() : t.length};
  Ref cosine = wave(c, Ops::Cos, w), sine = wave(c, Ops::Sin, w);
  Ref re = fit(c, x.re, t.length), im = x.im ? fit(c, x.im, t.length) : Ref();
  Ref a = project(re, cosine), b = project(re, sine);
  if (!t.inverse) b = unary(Ops::Neg, b);
  if (im) {
    Ref crossed = project(im, sine);
    a = t.inverse ? sub(a, crossed) : add(a, crossed);
    b = add(b, project(im, cosine));
  }
  if (!t.inverse) return {a, b};
  double n = static_cast<double>(t.length);
  return {div(a, n), div(b, n)};
}

/// The real signal whose first half of frequencies is x: every frequency but 0 and length/2 counts twice.
Ref real_inverse(OpContext& c, const Complex& x, const Transform& t) {
  Ref re = fit(c, x.re, t.half()), im = fit(c, x.im ? x.im : full_like(x.re, 0), t.half());
  Ref position = iota(c.ctx(), re->shape, re->rank() - 1, DType::I64);
  Ref once = compare(Ops::Eq, position, 0);
  if (t.length % 2 == 0)
    once = elementwise(Ops::Or, {once, compare(Ops::Eq, position, static_cast<double>(t.length) / 2)});
  Ref weight = select(once, full_like(re, 1), full_like(re, 2));
  Ref a = project(mul(re, weight), wave(c, Ops::Cos, {t, t.half(), t.length}));
  Ref b = project(mul(im, weight), wave(c, Ops::Sin, {t, t.half(), t.length}));
  return div(sub(a, b), static_cast<double>(t.length));
}

/// Real and imaginary parts of x [..., 1 or 2], in f64: frequencies are small differences of large sums.
Complex parts(OpContext& c, Ref x) {
  std::optional<int64_t> count = x->rank() >= 2 ? dim_int(dim(x, -1)) : std::nullopt;
  c.check(count == 1 || count == 2, "the last dim of " + shape_text(x->shape) + " must be 1 or 2");
  int64_t last = x->rank() - 1;
  auto part = [&](int64_t i) {
    return to(squeeze(shrink_axis(x, last, c.ctx().index(i), c.ctx().index(1)), {last}), DType::F64);
  };
  return {part(0), count == 2 ? part(1) : Ref()};
}

Ref joined(const Complex& x) {
  int64_t rank = x.re->rank();
  return concat({unsqueeze(x.re, {rank}), unsqueeze(x.im, {rank})}, rank);
}

int64_t length_operand(OpContext& c, size_t i) {
  double n = c.known_number(i);
  c.check(n >= 1 && n < 1 << 24, "the length " + std::to_string(n) + " is out of range");
  return static_cast<int64_t>(n);
}

void dft(OpContext& c) {
  Ref x = c.in_float(0);
  Transform t{0, c.attr("inverse", 0) != 0, c.attr("onesided", 0) != 0};
  int64_t axis = c.opset() < 20 ? c.attr("axis", 1) : c.has(2) ? static_cast<int64_t>(c.known_number(2)) : -2;
  axis = normalize_axis(axis, x->rank());
  c.check(axis != x->rank() - 1, "the axis is that of real and imaginary parts");
  Complex signal = parts(c, x);
  auto at_end = [&](Ref v) { return swap_axes(v, axis, v->rank() - 1); };
  signal = {at_end(signal.re), signal.im ? at_end(signal.im) : Ref()};
  int64_t n = c.known_extent(dim(x, axis));
  t.length = c.has(1) ? length_operand(c, 1) : t.inverse && t.onesided ? 2 * (n - 1) : n;
  c.check(t.length >= 1, "the signal is empty");
  if (t.inverse && t.onesided) {
    Ref y = at_end(real_inverse(c, signal, t));
    return c.out(to(unsqueeze(y, {y->rank()}), x->dtype));
  }
  Complex y = transform(c, signal, t);
  c.out(to(joined({at_end(y.re), at_end(y.im)}), x->dtype));
}

/// Transforms of overlapping frames of signal [B, L, 1 or 2], each multiplied with the window: [B, frames, n, 2].
void stft(OpContext& c) {
  Ref x = c.in_float(0);
  c.check(x->rank() == 3, "the signal " + shape_text(x->shape) + " has not 3 dims");
  int64_t step = length_operand(c, 1);
  c.check(c.has(2) || c.has(3), "needs a window or a frame_length");
  int64_t n = c.has(3) ? length_operand(c, 3) : c.known_extent(dim(c.in(2), 0));
  Complex signal = parts(c, x);
  if (c.has(2))
    c.check(c.in(2)->rank() == 1 && dim_int(dim(c.in(2), 0)) == n && c.in(2)->dtype == x->dtype,
            "the window " + shape_text(c.in(2)->shape) + " does not fit frames of " + std::to_string(n));
  auto frames = [&](Ref v) {
    if (!v) return v;
    Ref w = windows(v, {Window{.kernel = n, .stride = step}});
    return c.has(2) ? mul(w, to(c.in(2), w->dtype)) : w;
  };
  Transform t{n, false, c.attr("onesided", 1) != 0};
  c.out(to(joined(transform(c, {frames(signal.re), frames(signal.im)}, t)), x->dtype));
}

/// Triangles between neighbours of bins + 2 frequencies equally spaced in mel: [length/2 + 1, bins].
void mel_weight_matrix(OpContext& c) {
  DType type = dtype_of(static_cast<int32_t>(c.attr("output_datatype", 1)));
  int64_t bins = length_operand(c, 0), length = length_operand(c, 1), rate = length_operand(c, 2);
  Context& ctx = c.ctx();
  auto mel = [&](size_t i) { // 2595 log10(1 + hertz/700)
    Ref hertz = to(reshape(c.in(i), {}), DType::F64);
    return mul(unary(Ops::Log, add(mul(hertz, 1.0 / 700), 1)), 2595 / std::log(10.0));
  };
  Dims dims = index_dims(ctx, {length / 2 + 1, bins});
  Ref low = mel(3), step = div(sub(mel(4), low), static_cast<double>(bins + 2));
  Ref row = iota(ctx, dims, 0, DType::F64), column = iota(ctx, dims, 1, DType::F64);
  auto frequency = [&](double i) { // of point column + i, as a whole number of bins
    Ref m = add(mul(add(column, i), step), low);
    Ref hertz = mul(add(unary(Ops::Exp, mul(m, std::log(10.0) / 2595)), -1), 700);
    return unary(Ops::Floor, div(mul(hertz, static_cast<double>(length + 1)), static_cast<double>(rate)));
  };
  Ref left = frequency(0), centre = frequency(1), right = frequency(2);
  auto ratio = [&](Ref a, Ref b) { return div(a, select(compare(Ops::Eq, b, 0), full_like(b, 1), b)); };
  auto within = [&](Ref a, Ref b, Ops op) {
    return elementwise(Ops::And, {elementwise(Ops::Le, {a, row}), elementwise(op, {row, b})});
  };
  Ref zero = full_like(row, 0), peak = elementwise(Ops::Eq, {row, centre});
  Ref rising = select(within(left, centre, Ops::Le), ratio(sub(row, left), sub(centre, left)), zero);
  rising = select(elementwise(Ops::And, {peak, elementwise(Ops::Eq, {left, centre})}), full_like(row, 1), rising);
  c.out(to(select(within(centre, right, Ops::Lt), ratio(sub(right, row), sub(right, centre)), rising), type));
}

// ---- determinant ----------------------------------------------------------------------------------------------------

/// Expansion by rows from the last one up: the minors of the rows seen so far, by their set of columns.
void det(OpContext& c) {
  constexpr int64_t kMostRows = 6;
  Ref x = c.in_float(0);
  c.check(x->rank() >= 2 && dims_equal(dim(x, -1), dim(x, -2)), "input " + shape_text(x->shape) + " is not square");
  int64_t n = c.known_extent(dim(x, -1));
  if (n > kMostRows) c.unsupported("matrices of more than " + std::to_string(kMostRows) + " rows are not supported");
  Context& ctx = c.ctx();
  Ref wide = to(x, accumulator(x->dtype));
  auto element = [&](int64_t row, int64_t column) {
    Ref r = shrink_axis(wide, x->rank() - 2, ctx.index(row), ctx.index(1));
    return squeeze(shrink_axis(r, x->rank() - 1, ctx.index(column), ctx.index(1)), {x->rank() - 2, x->rank() - 1});
  };
  Dims batch(x->shape.begin(), x->shape.end() - 2);
  std::map<unsigned, Ref> minors{{0U, full(ctx, batch, wide->dtype, 1)}};
  for (int64_t row = n; row-- > 0;) {
    std::map<unsigned, Ref> next;
    for (const auto& [columns, minor] : minors)
      for (int64_t column = 0; column < n; ++column) {
        unsigned bit = 1U << column;
        if (columns & bit) continue;
        Ref term = mul(element(row, column), minor);
        if (__builtin_popcount(columns & (bit - 1)) % 2) term = unary(Ops::Neg, term);
        Ref& sum = next[columns | bit];
        sum = sum ? add(sum, term) : term;
      }
    minors = next;
  }
  c.out(to(minors.begin()->second, x->dtype));
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"DFT", 17, 19, 1, 2, dft},     {"DFT", 20, kEnd, 1, 3, dft},
    {"STFT", 17, kEnd, 2, 4, stft}, {"MelWeightMatrix", 17, kEnd, 5, 5, mel_weight_matrix},
    {"Det", 11, kEnd, 1, 1, det},
};

} // namespace

extern const OpTable kOnnxOps_signal;
const OpTable kOnnxOps_signal = {"signal", kRows};

} // namespace tgc::onnx
