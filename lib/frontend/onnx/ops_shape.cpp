// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that move elements: reshape and its kin, slicing, padding, joining, and shapes as values. Operands that
// give shapes, axes or positions must be known at import; symbolic dims may appear in them.
#include <algorithm>
#include <cmath>

#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

void identity(OpContext& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.out(c.in(0));
}

/// A tensor is an optional that has an element; an operand left out is one that has none.
void optional_has_element(OpContext& c) { c.out(full(c.ctx(), {}, DType::Bool, c.has(0) ? 1 : 0)); }
void optional_get_element(OpContext& c) { c.out(c.in(0)); }

/// The identity, unless it trains with a ratio above 0, which is random.
void dropout(OpContext& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  if (c.opset() < 7) c.require("is_test", 1, 0);
  if (c.opset() < 12) c.ignore("ratio");
  c.ignore("seed");
  bool training = c.has(2) && c.known_number(2) != 0;
  if (training && !(c.has(1) && c.known_number(1) == 0))
    c.unsupported("training_mode=true is random, which is not supported");
  c.out(c.in(0));
  if (c.has_output(1)) // the mask: all kept
    c.out(1, full(c.ctx(), c.in(0)->shape, c.opset() < 10 ? c.in(0)->dtype : DType::Bool, 1));
}

/// 0 copies the input's dim (unless allowzero), -1 is what is left.
void reshape_op(OpContext& c) {
  Ref x = c.in(0);
  if (c.opset() < 5) c.ignore("consumed_inputs");
  bool allow_zero = c.opset() >= 14 && c.attr("allowzero", 0) != 0;
  Dims dims = c.opset() < 5 ? index_dims(c.ctx(), c.attr_ints("shape")) : c.known_dims(1);
  std::optional<size_t> inferred;
  for (size_t i = 0; i < dims.size(); ++i) {
    std::optional<int64_t> d = dim_int(dims[i]);
    if (d == -1) {
      c.check(!inferred, "two dims of the new shape are -1");
      inferred = i;
    } else if (d == 0 && !allow_zero) {
      c.check(i < x->shape.size(),
              "dim " + std::to_string(i) + " is 0, but the input has shape " + shape_text(x->shape));
      dims[i] = x->shape[i];
    } else {
      c.check(!d || *d >= 0, "the new shape has dim " + std::to_string(d.value_or(0)));
    }
  }
  if (inferred) {
    Dims rest = dims;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*inferred));
    const std::string message = shape_text(x->shape) + " does not reshape to " + shape_text(dims);
    std::optional<Ref> quotient = exact_quotient(c.ctx(), x->shape, rest);
    if (!quotient) {
      Ref whole = numel(c.ctx(), x->shape), part = numel(c.ctx(), rest);
      require_equal(dim_mul(dim_floordiv(whole, part), part), whole, message);
      c.fail(message); // a division by zero
    }
    dims[*inferred] = *quotient;
  }
  require_equal(numel(c.ctx(), x->shape), numel(c.ctx(), dims),
                shape_text(x->shape) + " does not reshape to " + shape_text(dims));
  c.out(reshape(x, dims));
}

void flatten(OpContext& c) {
  Ref x = c.in(0);
  int64_t axis = c.attr("axis", 1);
  axis = axis == x->rank() ? axis : normalize_axis(axis, x->rank());
  c.out(merge_axes(merge_axes(x, axis, x->rank()), 0, axis));
}

void transpose(OpContext& c) {
  Ref x = c.in(0);
  std::vector<int64_t> reversed = all_axes(x);
  std::reverse(reversed.begin(), reversed.end());
  std::vector<int64_t> perm = c.attr_ints("perm", reversed), sorted = perm;
  for (int64_t& axis : perm) axis = normalize_axis(axis, x->rank());
  sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  c.check(sorted == all_axes(x), "perm is no permutation of the axes of " + shape_text(x->shape));
  c.out(permute(x, perm));
}

void squeeze_op(OpContext& c) {
  Ref x = c.in(0);
  std::optional<std::vector<int64_t>> axes = c.axes("axes", 13, 1);
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < x->rank(); ++i) {
      bool may_be_one = !dim_int(dim(x, i)) && dim(x, i)->lo <= 1 && dim(x, i)->hi >= 1;
      if (may_be_one)
        c.unsupported("without axes the rank of the result depends on whether a dim of " + shape_text(x->shape) +
                          " is 1",
                      "pin the dim with --dim NAME=VALUE or bound it from below: --dim NAME=2..HI");
      if (dim_int(dim(x, i)) == 1) axes->push_back(i);
    }
  }
  c.out(squeeze(x, normalize_axes(*axes, x->rank())));
}

void unsqueeze_op(OpContext& c) {
  std::optional<std::vector<int64_t>> axes = c.axes("axes", 13, 1);
  c.check(axes.has_value(), "axes are missing");
  c.out(unsqueeze(c.in(0), *axes));
}

void expand_op(OpContext& c) {
  Dims shape = broadcast_shapes({dims_of(c.in(0)), c.known_dims(1)});
  for (Ref d : shape) c.check(d->lo >= 0, "the shape has a negative dim");
  c.out(broadcast_to(c.in(0), shape));
}

/// How often each axis repeats. Before opset 6: `tiles` times along `axis`.
Dims tile_repeats(OpContext& c) {
  if (c.opset() >= 6) return c.known_dims(1);
  Dims repeats(c.in(0)->shape.size(), c.ctx().index(1));
  int64_t axis = normalize_axis(static_cast<int64_t>(c.known_number(2)), c.in(0)->rank());
  double tiles = c.known_number(1);
  c.check(tiles >= 0 && tiles < 1 << 30 && tiles == std::floor(tiles), "tiles is out of range");
  repeats[static_cast<size_t>(axis)] = c.ctx().index(static_cast<int64_t>(tiles));
  return repeats;
}

void tile(OpContext& c) {
  Ref x = c.in(0);
  Dims repeats = tile_repeats(c), interleaved, wide, out;
  c.check(repeats.size() == x->shape.size(),
          "repeats has " + std::to_string(repeats.size()) + " values for " + shape_text(x->shape));
  for (size_t i = 0; i < repeats.size(); ++i) {
    c.check(repeats[i]->lo >= 0, "repeats has a negative value");
    interleaved.insert(interleaved.end(), {c.ctx().index(1), x->shape[i]});
    wide.insert(wide.end(), {repeats[i], x->shape[i]});
    out.push_back(dim_mul(repeats[i], x->shape[i]));
  }
  c.out(reshape(expand(reshape(x, interleaved), wide), out));
}

void concat_op(OpContext& c) {
  int64_t rank = c.in(0)->rank();
  int64_t axis = normalize_axis(c.opset() < 4 ? c.attr("axis", 1) : c.attr("axis"), rank);
  std::vector<Ref> parts;
  for (size_t i = 0; i < c.input_count(); ++i) {
    Ref part = c.in(i);
    c.check(part->dtype == c.in(0)->dtype, "inputs have different types");
    c.check(part->rank() == rank, "inputs have different ranks");
    for (int64_t a = 0; a < rank; ++a)
      if (a != axis)
        require_equal(dim(part, a), dim(c.in(0), a),
                      "shapes " + shape_text(c.in(0)->shape) + " and " + shape_text(part->shape) +
                          " differ outside axis " + std::to_string(axis));
    parts.push_back(part);
  }
  c.out(concat(parts, axis));
}

/// Parts of ceil(extent/parts), while there is something left.
std::vector<Ref> even_sizes(Ref extent, int64_t parts) {
  Context& ctx = *extent->ctx;
  Ref each = dim_floordiv(dim_add(extent, ctx.index(parts - 1)), ctx.index(parts)), left = extent;
  if (parts == 2) return {each, dim_floordiv(extent, ctx.index(2))};
  std::vector<Ref> sizes;
  for (int64_t i = 0; i < parts; ++i) {
    sizes.push_back(dim_max(dim_min(left, each), ctx.index(0)));
    left = dim_sub(left, each);
  }
  return sizes;
}

std::vector<Ref> split_sizes(OpContext& c, Ref extent) {
  bool as_input = c.opset() >= 13 || c.has(1);
  if (c.opset() > 1 && c.opset() < 13) c.check(!c.has(1), "takes split as an attribute before opset 13");
  if (as_input ? c.has(1) : c.has_attr("split"))
    return as_input ? c.known_dims(1) : index_dims(c.ctx(), c.attr_ints("split"));
  int64_t outputs = static_cast<int64_t>(c.node().outputs.size());
  int64_t parts = c.opset() >= 18 ? c.attr("num_outputs", outputs) : outputs;
  c.check(parts == outputs && parts > 0, "num_outputs differs from the number of outputs");
  if (c.opset() >= 18) return even_sizes(extent, parts);
  Ref part = c.ctx().index(parts), even = dim_floordiv(extent, part);
  require_equal(dim_mul(even, part), extent,
                dim_text(extent) + " elements do not split into " + std::to_string(parts) + " equal parts");
  return std::vector<Ref>(static_cast<size_t>(parts), even);
}

void split(OpContext& c) {
  Ref x = c.in(0);
  int64_t axis = normalize_axis(c.attr("axis", 0), x->rank());
  std::vector<Ref> sizes = split_sizes(c, dim(x, axis));
  bool stated = c.has(1) || c.has_attr("split");
  if (c.opset() >= 18) c.ignore("num_outputs");
  c.check(sizes.size() == c.node().outputs.size(), "split has " + std::to_string(sizes.size()) + " values for " +
                                                       std::to_string(c.node().outputs.size()) + " outputs");
  Ref offset = c.ctx().index(0), total = offset;
  for (Ref size : sizes) {
    c.check(size->lo >= 0, "split has a negative value");
    total = dim_add(total, size);
  }
  if (stated) require_equal(total, dim(x, axis), "the parts do not add up to the extent");
  for (size_t i = 0; i < sizes.size(); ++i) {
    c.out(i, shrink_axis(x, axis, offset, sizes[i]));
    offset = dim_add(offset, sizes[i]);
  }
}

// ---- slice ----------------------------------------------------------------------------------------------------------

/// The range of one axis of a slice.
struct Span {
  Ref start, end;
  int64_t step;
};
/// A position of a slice counted from 0, not clamped, unless it is far outside; null: far before every element.
Ref slice_position(OpContext& c, Ref position, Ref extent) {
  bool from_end = position->hi < 0;
  if (!from_end && position->lo < 0) c.unsupported("a slice bound may be negative or not");
  constexpr int64_t kHuge = int64_t{1} << 40; // sums with the extent must not overflow
  if (dim_int(position) && position->lo > kHuge) return extent;
  if (dim_int(position) && position->hi < -kHuge) return Ref();
  return from_end ? dim_add(position, extent) : position;
}

/// Elements [start, end) of an axis, as far as there are such; null positions are 0.
Ref slice_between(Ref x, int64_t axis, Ref start, Ref end) {
  Ref n = dim(x, axis), zero = x->ctx->index(0);
  start = start ? start : zero;
  end = end ? end : zero;
  // min(end, n) - max(start, 0), spelled so that a symbolic n cancels where it can
  Ref size = dim_min(dim_min(dim_sub(end, start), end), dim_min(dim_sub(n, start), n));
  return shrink_axis(x, axis, dim_min(dim_max(start, zero), n), dim_max(size, zero));
}

/// As the operator's text has it, for a negative step start is clamped to [0, n-1]: one before the first element is the
/// first element, unlike in numpy. The elements are those from end+1 to start, back to front.
Ref slice_axis(OpContext& c, Ref x, int64_t axis, Span span) {
  Context& ctx = c.ctx();
  Ref n = dim(x, axis), one = ctx.index(1);
  c.check(span.step != 0, "a step is 0");
  bool back = span.step < 0;
  Ref start = slice_position(c, span.start, n), end = slice_position(c, span.end, n);
  if (back) {
    Ref first = start ? dim_max(start, ctx.index(0)) : ctx.index(0);
    x = flip(slice_between(x, axis, end ? dim_add(end, one) : Ref(), dim_add(first, one)), {axis});
  } else {
    x = slice_between(x, axis, start, end);
  }
  int64_t most = std::max<int64_t>(1, n->hi), step = std::clamp(span.step, -most, most);
  if (back) step = -step;
  Ref count = dim_floordiv(dim_add(dim(x, axis), ctx.index(step - 1)), ctx.index(step));
  return stride_axis(x, {axis, ctx.index(0), count, step});
}

void slice(OpContext& c) {
  Ref x = c.in(0);
  bool by_attribute = c.opset() < 10;
  Dims starts = by_attribute ? index_dims(c.ctx(), c.attr_ints("starts")) : c.known_dims(1);
  Dims ends = by_attribute ? index_dims(c.ctx(), c.attr_ints("ends")) : c.known_dims(2);
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (by_attribute) axes = c.attr_ints("axes", axes);
  if (!by_attribute && c.has(3)) axes = c.known_ints(3);
  if (!by_attribute && c.has(4)) steps = c.known_ints(4);
  c.check(starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
          "starts, ends, axes and steps have different lengths");
  normalize_axes(axes, x->rank());
  for (size_t i = 0; i < axes.size(); ++i)
    x = slice_axis(c, x, normalize_axis(axes[i], x->rank()), {starts[i], ends[i], steps[i]});
  c.out(x);
}

// ---- pad ------------------------------------------------------------------------------------------------------------

struct Border {
  int64_t lo, hi;
  std::string mode; ///< edge, reflect or wrap
};

/// A part of x repeated for ever, along an axis of known extent.
Ref pad_wrapped(Ref x, int64_t axis, const Border& b) {
  Context& ctx = *x->ctx;
  int64_t n = *dim_int(dim(x, axis)), start = (n - b.lo % n) % n, size = b.lo + n + b.hi;
  Dims repeated = dims_of(x);
  repeated.insert(repeated.begin() + axis, ctx.index((start + size + n - 1) / n));
  Ref line = merge_axes(expand(unsqueeze(x, {axis}), repeated), axis, axis + 2);
  return shrink_axis(line, axis, ctx.index(start), ctx.index(size));
}

/// x with a border along one axis, joined on as slices of x.
Ref pad_border(OpContext& c, Ref x, int64_t axis, const Border& b) {
  Context& ctx = c.ctx();
  std::optional<int64_t> n = dim_int(dim(x, axis));
  if (!n) c.unsupported("mode=\"" + b.mode + "\" needs a known extent", "pin the dim with --dim NAME=VALUE");
  c.check(*n > 0, "padding of an empty axis");
  if (b.mode == "wrap") return pad_wrapped(x, axis, b);
  c.check(b.mode == "edge" || std::max(b.lo, b.hi) < *n,
          "padding of " + std::to_string(std::max(b.lo, b.hi)) + " is too wide for an extent of " + std::to_string(*n));
  auto part = [&](int64_t offset, int64_t size) { return shrink_axis(x, axis, ctx.index(offset), ctx.index(size)); };
  auto edge = [&](int64_t offset, int64_t size) {
    Dims dims = dims_of(x);
    dims[static_cast<size_t>(axis)] = ctx.index(size);
    return expand(part(offset, 1), dims);
  };
  auto before = [&] {
    if (b.mode == "edge") return edge(0, b.lo);
    return flip(part(1, b.lo), {axis});
  };
  auto after = [&] {
    if (b.mode == "edge") return edge(*n - 1, b.hi);
    return flip(part(*n - 1 - b.hi, b.hi), {axis});
  };
  std::vector<Ref> parts{x};
  if (b.lo > 0) parts.insert(parts.begin(), before());
  if (b.hi > 0) parts.push_back(after());
  return concat(parts, axis);
}

Ref pad_value(OpContext& c, Ref x) {
  if (c.opset() < 11) return c.ctx().constant(x->dtype, c.attr_float("value", 0));
  if (!c.has(2)) return const_like(x, 0);
  c.check(dim_int(numel(c.ctx(), c.in(2)->shape)) == 1 && c.in(2)->dtype == x->dtype,
          "the constant must be a scalar of the input's type");
  return reshape(c.in(2), {});
}

void pad_op(OpContext& c) {
  Ref x = c.in(0);
  const char* name = c.opset() < 2 ? "paddings" : "pads";
  std::vector<int64_t> pads = c.opset() < 11 ? c.attr_ints(name) : c.known_ints(1), axes = all_axes(x);
  std::string mode = c.attr_string("mode", "constant");
  Ref value = pad_value(c, x);
  if (c.opset() >= 18 && c.has(3)) axes = c.known_ints(3);
  normalize_axes(axes, x->rank());
  c.check(pads.size() == 2 * axes.size(),
          "pads has " + std::to_string(pads.size()) + " values for " + std::to_string(axes.size()) + " axes");
  std::vector<int64_t> lo(x->shape.size(), 0), hi = lo;
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t axis = static_cast<size_t>(normalize_axis(axes[i], x->rank()));
    lo[axis] = pads[i];
    hi[axis] = pads[i + axes.size()];
    for (int64_t p : {lo[axis], hi[axis]})
      c.check(p > -(int64_t{1} << 40) && p < (int64_t{1} << 40), "a pad is " + std::to_string(p));
    Ref cut_lo = c.ctx().index(std::max<int64_t>(0, -lo[axis])),
        cut_hi = c.ctx().index(std::max<int64_t>(0, -hi[axis]));
    Ref size = dim_sub(dim_sub(x->shape[axis], cut_lo), cut_hi);
    require_at_most(dim_add(cut_lo, cut_hi), x->shape[axis], "negative pads remove more than there is");
    x = shrink_axis(x, static_cast<int64_t>(axis), cut_lo, size);
  }
  for (int64_t& p : lo) p = std::max<int64_t>(0, p);
  for (int64_t& p : hi) p = std::max<int64_t>(0, p);
  if (mode == "constant") return c.out(pad_with(x, index_dims(c.ctx(), lo), index_dims(c.ctx(), hi), value));
  c.check(mode == "edge" || mode == "reflect" || (mode == "wrap" && c.opset() >= 19),
          "mode=\"" + mode + "\" is no padding mode");
  for (size_t i = 0; i < lo.size(); ++i)
    if (lo[i] > 0 || hi[i] > 0) x = pad_border(c, x, static_cast<int64_t>(i), {lo[i], hi[i], mode});
  c.out(x);
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

int64_t block_size(OpContext& c) {
  int64_t b = c.attr("blocksize");
  c.check(b >= 1 && b < (1 << 20), "blocksize=" + std::to_string(b));
  c.check(c.in(0)->rank() == 4, "input " + shape_text(c.in(0)->shape) + " is not rank 4");
  return b;
}

Ref divide_dim(OpContext& c, Ref extent, int64_t by) {
  Ref part = c.ctx().index(by), quotient = dim_floordiv(extent, part);
  require_equal(dim_mul(quotient, part), extent, "blocksize does not divide the extent");
  return quotient;
}

void depth_to_space(OpContext& c) {
  Ref x = c.in(0), b = c.ctx().index(block_size(c));
  std::string mode = c.opset() < 11 ? "DCR" : c.attr_string("mode", "DCR");
  c.check(mode == "DCR" || mode == "CRD", "mode=\"" + mode + "\" is neither DCR nor CRD");
  Ref n = dim(x, 0), h = dim(x, 2), w = dim(x, 3);
  Ref depth = divide_dim(c, dim(x, 1), block_size(c) * block_size(c));
  bool dcr = mode == "DCR";
  Ref blocks = dcr ? reshape(x, Dims{n, b, b, depth, h, w}) : reshape(x, Dims{n, depth, b, b, h, w});
  Ref spread = dcr ? permute(blocks, {0, 3, 4, 1, 5, 2}) : permute(blocks, {0, 1, 4, 2, 5, 3});
  c.out(reshape(spread, Dims{n, depth, dim_mul(h, b), dim_mul(w, b)}));
}

void space_to_depth(OpContext& c) {
  int64_t size = block_size(c);
  Ref x = c.in(0), b = c.ctx().index(size), n = dim(x, 0), depth = dim(x, 1);
  Ref h = divide_dim(c, dim(x, 2), size), w = divide_dim(c, dim(x, 3), size);
  Ref blocks = permute(reshape(x, Dims{n, depth, h, b, w, b}), {0, 3, 5, 1, 2, 4});
  c.out(reshape(blocks, Dims{n, dim_mul(depth, c.ctx().index(size * size)), h, w}));
}

// ---- shapes as values -----------------------------------------------------------------------------------------------

/// A rank-1 i64 tensor of dims.
Ref dims_as_tensor(Context& ctx, Refs dims) {
  if (dims.empty()) return full(ctx, Dims{ctx.index(0)}, DType::I64, 0);
  std::vector<Ref> parts;
  for (Ref d : dims) parts.push_back(reshape(to(d, DType::I64), Dims{ctx.index(1)}));
  return concat(parts, 0);
}

void shape_op(OpContext& c) {
  Ref x = c.in(0);
  int64_t rank = x->rank(), start = 0, end = rank;
  if (c.opset() >= 15) {
    start = c.attr("start", 0);
    end = c.attr("end", rank);
  }
  auto position = [&](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + rank : p, 0, rank); };
  start = position(start);
  end = std::max(start, position(end));
  c.out(dims_as_tensor(c.ctx(), x->shape.subspan(static_cast<size_t>(start), static_cast<size_t>(end - start))));
}

void size_op(OpContext& c) { c.out(to(numel(c.ctx(), c.in(0)->shape), DType::I64)); }

constexpr int kEnd = kLatestOpset;
// clang-format off
constexpr OpRow kRows[] = {
    {"Identity", 1, kEnd, 1, 1, identity},       {"Dropout", 1, kEnd, 1, 3, dropout},
    {"Reshape", 1, kEnd, 1, 2, reshape_op},      {"Flatten", 1, kEnd, 1, 1, flatten},
    {"Transpose", 1, kEnd, 1, 1, transpose},     {"Squeeze", 1, kEnd, 1, 2, squeeze_op},
    {"Unsqueeze", 1, kEnd, 1, 2, unsqueeze_op},  {"Expand", 8, kEnd, 2, 2, expand_op},
    {"Tile", 1, 5, 3, 3, tile},                  {"Tile", 6, kEnd, 2, 2, tile},
    {"Concat", 1, kEnd, 1, -1, concat_op},
    {"Split", 1, kEnd, 1, 2, split},             {"Slice", 1, kEnd, 1, 5, slice},
    {"Pad", 1, kEnd, 1, 4, pad_op},              {"DepthToSpace", 1, kEnd, 1, 1, depth_to_space},
    {"SpaceToDepth", 1, kEnd, 1, 1, space_to_depth},
    {"Shape", 1, kEnd, 1, 1, shape_op},          {"Size", 1, kEnd, 1, 1, size_op},
    {"OptionalHasElement", 15, 17, 1, 1, optional_has_element},
    {"OptionalHasElement", 18, kEnd, 0, 1, optional_has_element},
    {"OptionalGetElement", 15, kEnd, 1, 1, optional_get_element},
};
// clang-format on

} // namespace

extern const OpTable kOnnxOps_shape;
const OpTable kOnnxOps_shape = {"shape", kRows};

} // namespace tgc::onnx
