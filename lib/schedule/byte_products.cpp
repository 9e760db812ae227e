// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: CPUs multiply a u8 by an i8 and add four such products in one instruction, but models multiply differences
// from zero points, of any two 8-bit types, or say the same in floats (dequantise, multiply, quantise).
// Idea: with zero points x0, w0 the same for all terms, sum (x-x0)(w-w0) = sum x*w - x0 sum w - w0 sum x + n x0 w0, and
// this holds modulo 2^32, so also where sums wrap. The sum of a constant is a constant. A value of the wrong sign is
// moved by 128, as is its zero point: that is one exclusive or of its bits. Where a window reads beyond the edge of
// x-x0 and gets 0, it gets x0 from x. Scales that do not change along the sum come out of it. The terms are a multiple
// of 4, zeros added. Not handled: products whose channels are fewer than 3 or not known, where four bytes in a row are
// not four terms (they stay as they are), zero points around an edge that are known at run time only. Source: Jacob et
// al. 2018, "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", section 2.
#include "schedule/byte_products.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "schedule/movement.h"
#include "schedule/quotients.h"
#include "schedule/storage.h"
#include "schedule/views.h"

namespace tgc {
namespace {

constexpr int64_t kLeastTerms = 3;    // of the axis that is cut into words: fewer would mostly be zeros
constexpr int64_t kMostTerms = 33000; // (255 * 255) * this < 2^31: no sum of dequantised products wraps

Ref i32(Context& ctx, int64_t value) { return ctx.constant_int(DType::I32, value); }

/// A factor of a sum of products: views of scale * (bytes - zero).
struct Factor {
  std::vector<Ref> views; ///< the outermost first
  Ref bytes, zero, scale; ///< zero, in i32, and scale: as large as bytes; null: 0 and 1
  Ref flat_zero;          ///< zero where it is the same everywhere, else null
};

/// Whether the i32s `zero` are surely values of `bytes`' type, as a zero point is by its own type.
bool is_zero_point(Ref zero, Ref bytes) {
  if (const Ref flat = uniform(zero); flat && const_int(flat)) {
    const IntRange range = int_range(bytes->dtype);
    return *const_int(flat) >= range.lo && *const_int(flat) <= range.hi;
  }
  while (is_movement(zero)) zero = zero->src[0];
  return zero->is(Ops::Cast) && zero->src[0]->dtype == bytes->dtype;
}

/// Takes apart cast(bytes) - zero, in i32.
bool take_integer(Ref x, Factor& f) {
  if (x->is(Ops::Sub)) f.zero = x->src[1], x = x->src[0];
  if (!is_widened_byte(x) || x->src[0]->dtype == DType::Bool) return false;
  f.bytes = x->src[0];
  if (f.zero && !is_zero_point(f.zero, f.bytes)) return false;
  f.flat_zero = f.zero ? uniform(f.zero) : i32(*x->ctx, 0);
  return true;
}

/// Takes apart cast(integer) * scale, in f32.
bool take_float(Ref x, Factor& f) {
  if (!x->is(Ops::Mul)) return false;
  f.scale = x->src[1];
  x = x->src[0];
  return x->is(Ops::Cast) && x->dtype == DType::F32 && x->src[0]->dtype == DType::I32 && take_integer(x->src[0], f);
}

std::optional<Factor> factor_of(Ref x) {
  Factor f;
  while (is_movement(x)) f.views.push_back(x), x = x->src[0];
  const bool known = x->dtype == DType::F32 ? take_float(x, f) : x->dtype == DType::I32 && take_integer(x, f);
  return known ? std::optional(f) : std::nullopt;
}

/// A Pad of `x` with sources `src`, and `around` instead of zeros.
Ref padded(Ref x, std::vector<Ref> src, Ref around) {
  Context& ctx = *x->ctx;
  src[0] = x;
  const Ref moved = ctx.make(Ops::Pad, x->dtype, src);
  if (is_const(around, 0)) return moved;
  src[0] = filled(ctx.constant_int(DType::Bool, 1), x->shape);
  return where(ctx.make(Ops::Pad, DType::Bool, src), moved, filled(around, moved->shape));
}

/// `x` seen as the factor's bytes are, `around` beyond the edges, a scalar constant.
Ref view(const Factor& f, Ref x, Ref around) {
  for (size_t i = f.views.size(); i-- > 0;) {
    std::vector<Ref> src(f.views[i]->src.begin(), f.views[i]->src.end());
    src[0] = x;
    x = f.views[i]->is(Ops::Pad) ? padded(x, src, around)
                                 : x->ctx->make(f.views[i]->op, x->dtype, src, *f.views[i]->attrs);
  }
  return x;
}

bool has_edges(const Factor& f) {
  return std::any_of(f.views.begin(), f.views.end(), [](Ref v) { return v->is(Ops::Pad); });
}

/// A fresh range per axis of the product, and where `f` reads its bytes for them.
std::vector<Ref> place(const Factor& f, Refs axes) {
  Position at{{axes.begin(), axes.end()}, Ref()};
  for (Ref v : f.views) at = source_position(v, at);
  return at.index;
}

/// Whether `part`, as large as the bytes of a factor that are read at `index`, is the same for all terms.
bool is_same_for_terms(Ref part, std::vector<Ref> index, const std::vector<Ref>& terms) {
  if (!part || uniform(part)) return true;
  Position at{std::move(index), Ref()};
  for (; is_movement(part); part = part->src[0]) at = source_position(part, at);
  if (part->rank() == 0) return true;
  return std::none_of(at.index.begin(), at.index.end(), [&](Ref i) {
    return std::any_of(terms.begin(), terms.end(), [&](Ref r) { return depends(i, r); });
  });
}

class Product {
public:
  Product(Ref sum, bool swap) : ctx_(*sum->ctx), sum_(sum), axes_(sum->ints(Attr::Axes)) {
    const Ref product = sum->src[0];
    a_ = factor_of(product->src[swap ? 1 : 0]);
    b_ = factor_of(product->src[swap ? 0 : 1]);
    std::sort(axes_.begin(), axes_.end());
  }

  /// The sum by other means; null if it stays as it is.
  Ref rewritten() {
    if (!a_ || !b_ || has_edges(*b_) || !can_be_apart()) return {};
    const int64_t axis = word_axis();
    if (axis < 0) return {};
    make_type(*a_, DType::U8);
    make_type(*b_, DType::I8);
    const Ref around = has_edges(*a_) ? simplify(cast(a_->flat_zero, DType::U8)) : ctx_.constant(DType::U8, 0);
    const Ref a = view(*a_, a_->bytes, around), b = view(*b_, b_->bytes, Ref());
    Ref sum = add_up(cast(in_words(a, axis, around), DType::I32) *
                     cast(in_words(b, axis, ctx_.constant(DType::I8, 0)), DType::I32));
    sum = plus(sum, corrections(a, b));
    return a_->scale ? cast(sum, DType::F32) * scale() : sum;
  }

private:
  bool can_be_apart() {
    for (Ref dim : sum_->src[0]->shape) {
      const Ref extent = simplify(dim);
      ranges_.push_back(is_const(extent, 1) ? ctx_.index(0) : ctx_.range(extent, static_cast<int64_t>(ranges_.size())));
    }
    int64_t most = 1;
    for (int64_t axis : axes_) {
      terms_.push_back(ranges_[static_cast<size_t>(axis)]);
      most *= std::min<int64_t>(sum_->src[0]->shape[static_cast<size_t>(axis)]->hi, kMostTerms + 1);
      if (most > kMostTerms && is_float(sum_->dtype)) return false;
    }
    for (const Factor* f : {&*a_, &*b_}) {
      const std::vector<Ref> index = place(*f, ranges_);
      if (!is_same_for_terms(f->zero, index, terms_) || !is_same_for_terms(f->scale, index, terms_)) return false;
    }
    if (!has_edges(*a_)) return true;
    return a_->flat_zero && const_int(a_->flat_zero) && (!a_->scale || uniform(a_->scale));
  }

  /// The longest axis of terms along which both factors step through an axis of their own.
  int64_t word_axis() const {
    int64_t best = -1, longest = kLeastTerms - 1;
    const std::vector<Ref> a = place(*a_, ranges_), b = place(*b_, ranges_);
    for (int64_t axis : axes_) {
      const Ref range = ranges_[static_cast<size_t>(axis)];
      const int64_t extent = dim_int(range->is(Ops::Range) ? range->src[0] : ctx_.index(1)).value_or(0);
      const bool steps =
          std::find(a.begin(), a.end(), range) != a.end() && std::find(b.begin(), b.end(), range) != b.end();
      if (steps && extent > longest) best = axis, longest = extent;
    }
    return best;
  }

  /// Moves bytes of the other sign by 128, and their zero point.
  void make_type(Factor& f, DType type) const {
    if (f.bytes->dtype == type) return;
    const int64_t by = type == DType::U8 ? 128 : -128;
    const Ref top = filled(ctx_.constant_int(type, by), f.bytes->shape);
    f.bytes = binary(Ops::Xor, bitcast(f.bytes, type), top);
    f.flat_zero = f.flat_zero ? simplify(f.flat_zero + i32(ctx_, by)) : Ref();
    f.zero = f.zero ? f.zero + filled(i32(ctx_, by), f.zero->shape) : filled(f.flat_zero, f.bytes->shape);
  }

  /// What makes the terms along `axis` whole words: zeros in one factor, so that the other may have what it has
  /// `around` its edges.
  Ref in_words(Ref x, int64_t axis, Ref around) const {
    const int64_t lack = -*dim_int(x->shape[static_cast<size_t>(axis)]) & 3;
    if (lack == 0) return x;
    std::vector<Ref> src(1 + 2 * x->shape.size(), ctx_.index(0));
    src[0] = x;
    src[1 + x->shape.size() + static_cast<size_t>(axis)] = ctx_.index(lack);
    return padded(x, src, around);
  }

  Ref add_up(Ref x) const {
    return ctx_.make(Ops::Reduce, x->dtype, {x}, {{Attr::Kind, std::string("add")}, {Attr::Axes, axes_}});
  }

  /// Sum of bytes over the terms, times -`zero`, as large as the result. What is only repeated is summed once.
  Ref scaled_sum(Ref bytes, const Factor& other) const {
    std::vector<Ref> dims(sum_->shape.begin(), sum_->shape.end());
    const bool repeats =
        bytes->is(Ops::Expand) && std::all_of(axes_.begin(), axes_.end(), [&](int64_t axis) {
          return dims_equal(bytes->shape[static_cast<size_t>(axis)], bytes->src[0]->shape[static_cast<size_t>(axis)]);
        });
    Ref sum = add_up(cast(repeats ? bytes->src[0] : bytes, DType::I32));
    if (other.flat_zero) sum = sum * filled(simplify(-other.flat_zero), sum->shape);
    if (repeats) {
      dims.insert(dims.begin(), sum);
      sum = ctx_.make(Ops::Expand, DType::I32, dims);
    }
    return other.flat_zero ? sum : -(sum * per_result(other, other.zero));
  }

  /// The product of both scales; one that is a single number goes into the other.
  Ref scale() const {
    const Ref a = uniform(a_->scale), b = uniform(b_->scale);
    if (a && b) return filled(simplify(a * b), sum_->shape);
    if (a) return per_result(*b_, scaled_view(b_->scale, a, Ops::Mul));
    if (b) return per_result(*a_, scaled_view(a_->scale, b, Ops::Mul));
    return per_result(*a_, a_->scale) * per_result(*b_, b_->scale);
  }

  bool is_zero(const Factor& f) const { return f.flat_zero && is_const(f.flat_zero, 0); }
  static Ref plus(Ref a, Ref b) { return !b ? a : !a ? b : a + b; }

  Ref corrections(Ref a, Ref b) const {
    Ref sum;
    if (!is_zero(*a_)) sum = scaled_sum(b, *a_);
    if (!is_zero(*b_)) sum = plus(sum, scaled_sum(a, *b_));
    if (is_zero(*a_) || is_zero(*b_)) return sum;
    Ref terms = ctx_.index(1);
    for (int64_t axis : axes_) terms = dim_mul(terms, sum_->src[0]->shape[static_cast<size_t>(axis)]);
    if (a_->flat_zero && b_->flat_zero)
      return plus(sum, filled(simplify(a_->flat_zero * b_->flat_zero * cast(terms, DType::I32)), sum_->shape));
    const Ref zeros = per_result(*a_, a_->zero) * per_result(*b_, b_->zero);
    return plus(sum, zeros * filled(cast(terms, DType::I32), sum_->shape));
  }

  /// `part`, as large as the bytes of `f` and the same for all terms, as large as the result.
  Ref per_result(const Factor& f, Ref part) const {
    if (const Ref same = uniform(part)) return filled(same, sum_->shape);
    const Ref whole = view(f, part, Ref());
    std::vector<Ref> src(1 + 2 * whole->shape.size(), ctx_.index(0));
    src[0] = whole;
    std::copy(whole->shape.begin(), whole->shape.end(), src.begin() + 1 + whole->rank());
    for (int64_t axis : axes_) src[static_cast<size_t>(1 + whole->rank() + axis)] = ctx_.index(1);
    return reshaped(ctx_.make(Ops::Shrink, whole->dtype, src), sum_->shape);
  }

  Context& ctx_;
  Ref sum_;
  std::vector<int64_t> axes_;
  std::vector<Ref> ranges_, terms_; ///< by axis of the product; those that are summed over
  std::optional<Factor> a_, b_;
};

bool is_candidate(Ref node, bool floats) {
  if (!node->is(Ops::Reduce) || node->s(Attr::Kind) != "add" || !node->src[0]->is(Ops::Mul)) return false;
  if (node->i(Attr::Keep, 0) != 0) return false;
  return node->dtype == DType::I32 || (floats && node->dtype == DType::F32);
}

/// Nodes from number `first` on compute what `node` did.
void inherit_origin(PassContext& context, Ref node, size_t first) {
  if (!context.origin) return;
  const auto at = context.origin->find(node->id);
  if (at == context.origin->end()) return;
  const std::string name = at->second;
  for (size_t i = first; i < node->ctx->size(); ++i) {
    const uint32_t id = static_cast<uint32_t>(i);
    if (node->ctx->node(id)->dtype != DType::Index) context.origin->emplace(id, name); // positions are no one's
  }
}

} // namespace

Ref constant_around(Ref node) {
  if (!node->is(Ops::Where) || !node->src[0]->is(Ops::Pad) || !node->src[1]->is(Ops::Pad)) return {};
  const Ref inside = node->src[0], moved = node->src[1], around = uniform(node->src[2]), yes = uniform(inside->src[0]);
  const bool same = std::equal(inside->src.begin() + 1, inside->src.end(), moved->src.begin() + 1, moved->src.end());
  return same && yes && is_const(yes, 1) && around && around->is(Ops::Const) ? around : Ref();
}

bool is_widened_byte(Ref node) {
  return node->is(Ops::Cast) && node->dtype == DType::I32 && byte_size(node->src[0]->dtype) == 1;
}

bool is_stored_around(Ref node) {
  if (!constant_around(node)) return false;
  const Ref pad = node->src[1];
  const size_t rank = pad->shape.size();
  for (size_t axis = 0; axis < rank; ++axis)
    for (Ref width : {pad->src[1 + axis], pad->src[1 + rank + axis]})
      if (!is_const(width, 0) && (!dim_int(width) || *dim_int(width) > kMostAround)) return false;
  return true;
}

Ref byte_products(Ref root, PassContext& context) {
  Context& ctx = *root->ctx;
  const std::vector<Ref> order = toposort(root);
  std::vector<Ref> done(ctx.size());
  std::vector<bool> is_live(ctx.size());
  for (Ref node : order) {
    const size_t first_new = ctx.size();
    std::vector<Ref> src;
    bool live = node->is(Ops::Param);
    for (Ref s : node->src) {
      src.push_back(done[s->id]);
      live = live || is_live[s->id];
    }
    is_live[node->id] = live;
    Ref& result = done[node->id] = ctx.with_src(node, src);
    if (!is_candidate(result, context.numerics != Numerics::Strict)) continue;
    const Ref product = node->src[0];
    const bool first = is_live[product->src[0]->id], second = is_live[product->src[1]->id];
    if (!first && !second) continue; // is computed at compile time
    if (const Ref other = Product(result, !first).rewritten()) result = other;
    inherit_origin(context, node, first_new);
  }
  const Ref changed = done[root->id];
  return changed == root || context.numerics == Numerics::Strict ? changed : divide_constants(changed);
}

} // namespace tgc
