// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention and what transformers put beside it, spelled out: matmul, mask, softmax, matmul. Fusion is the scheduler's.
// Meaning per Operators.md, opsets 23 to 25 (a row whose keys are all masked gives 0).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "frontend/gather.h"
#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

constexpr double kMasked = -std::numeric_limits<double>::infinity();

/// x [B, S, heads*D] as [B, heads, S, D]; rank 4 stays.
Ref split_heads(OpContext& c, Ref x, int64_t heads) {
  if (x->rank() == 4) return x;
  c.check(x->rank() == 3 && heads >= 1,
          "operands must be [B, H, S, D], or [B, S, H*D] with q_num_heads and kv_num_heads");
  Ref h = c.ctx().index(heads), d = dim_floordiv(dim(x, 2), h);
  c.check(dims_equal(dim_mul(h, d), dim(x, 2)), std::to_string(heads) + " heads do not divide " + shape_text(x->shape));
  return permute(split_axis(x, 2, Dims{h, d}), {0, 2, 1, 3});
}

/// Keys or values of fewer heads, each repeated for its group of queries.
Ref repeat_heads(OpContext& c, Ref x, Ref heads) {
  if (dims_equal(dim(x, 1), heads)) return x;
  Ref group = dim_floordiv(heads, dim(x, 1));
  c.check(dims_equal(dim_mul(group, dim(x, 1)), heads), "the query heads are no multiple of the key heads");
  Dims dims = dims_of(x);
  dims.insert(dims.begin() + 2, group);
  return merge_axes(expand(unsqueeze(x, {2}), dims), 1, 3);
}

Ref bias_of(Ref allowed, DType type) {
  Ref yes = full(*allowed->ctx, allowed->shape, type, 0);
  return select(allowed, yes, full_like(yes, kMasked));
}

/// attn_mask as numbers to add to the scores, broadcast to `shape`.
Ref mask_bias(OpContext& c, const Dims& shape, DType type) {
  Context& ctx = c.ctx();
  Ref mask = c.in(3);
  mask = mask->dtype == DType::Bool ? bias_of(mask, type) : mask;
  c.check(mask->dtype == type && mask->rank() >= 1 && mask->rank() <= 4,
          "attn_mask has another type than Q, or a wrong rank");
  Ref missing = dim_sub(shape[3], dim(mask, -1));
  if (missing->lo > 0 && dim_int(dim(mask, -1)) != 1) { // a short mask does not allow the keys it does not name
    Dims none(mask->shape.size(), ctx.index(0)), more = none;
    more.back() = missing;
    mask = pad_with(mask, none, more, ctx.constant(type, kMasked));
  }
  return broadcast_to(mask, shape);
}

/// Where keys are allowed by causality, windows and lengths; null: everywhere.
Ref allowed_keys(OpContext& c, const Dims& shape, Ref past) {
  Context& ctx = c.ctx();
  int64_t left = c.attr("left_window_size", -1), right = c.attr("right_window_size", -1);
  bool causal = c.attr("is_causal", 0) != 0;
  c.check(left >= -1 && right >= -1, "a window size is below -1");
  Ref key = iota(ctx, shape, 3, DType::I64), allowed, lengths;
  auto require = [&](Ref condition) { allowed = allowed ? elementwise(Ops::And, {allowed, condition}) : condition; };
  if (c.has(6)) {
    Ref one = ctx.index(1);
    lengths = broadcast_to(reshape(to(c.in(6), DType::I64), Dims{shape[0], one, one, one}), shape);
    require(elementwise(Ops::Lt, {key, lengths}));
  }
  if (!causal && left < 0 && right < 0) return allowed;
  auto spread = [&](Ref extent) { return broadcast_to(to(extent, DType::I64), shape); };
  Ref first = lengths ? sub(lengths, spread(shape[2])) : spread(past);
  Ref position = add(iota(ctx, shape, 2, DType::I64), first); // of the query among the keys
  if (causal) require(elementwise(Ops::Le, {key, position}));
  if (left >= 0) require(elementwise(Ops::Le, {position, add(key, static_cast<double>(left))}));
  if (right >= 0) require(elementwise(Ops::Le, {key, add(position, static_cast<double>(right))}));
  return allowed;
}

/// The sum of the masks, [B, H, Sq, Sk]; null: none.
Ref attention_bias(OpContext& c, const Dims& shape, DType type, Ref past) {
  Ref bias = c.has(3) ? mask_bias(c, shape, type) : Ref();
  Ref allowed = allowed_keys(c, shape, past);
  if (!allowed) return bias;
  Ref keys = bias_of(allowed, type);
  return bias ? add(bias, keys) : keys;
}

/// By default 1/sqrt(head size).
double score_scale(OpContext& c, Ref head_size) {
  if (c.has_attr("scale")) {
    double scale = c.attr_float("scale");
    c.check(scale >= 0, "scale=" + std::to_string(scale) + " has no root, by which Q and K are multiplied");
    return scale;
  }
  int64_t size = c.known_extent(head_size);
  c.check(size > 0, "the head size is 0");
  return 1 / std::sqrt(static_cast<double>(size));
}

/// Weights of the values; the score wanted by qk_matmul_output_mode goes to output 3.
Ref attention_weights(OpContext& c, Ref q, Ref k, Ref bias) {
  double root = std::sqrt(score_scale(c, dim(q, 3))), cap = c.attr_float("softcap", 0);
  int64_t mode = c.attr("qk_matmul_output_mode", 0);
  Ref scores = matmul(mul(q, root), swap_axes(mul(k, root), 2, 3));
  Ref capped = cap == 0 ? scores : mul(unary(Ops::Tanh, div(scores, cap)), cap);
  Ref masked = bias ? add(capped, bias) : capped;
  Ref weights = softmax(masked, 3);
  if (bias) {
    Ref empty = compare(Ops::Eq, max(bias, {3}, true), kMasked);
    weights = select(empty, full_like(weights, 0), weights);
  }
  c.check(mode >= 0 && mode <= 3, "qk_matmul_output_mode=" + std::to_string(mode));
  c.out(3, mode == 0 ? scores : mode == 1 ? capped : mode == 2 ? masked : weights);
  return weights;
}

void attention(OpContext& c) {
  for (size_t i = 0; i < 3; ++i) c.check(c.in_float(i)->dtype == c.in(0)->dtype, "Q, K and V must have one type");
  c.ignore("softmax_precision"); // at least f32 here
  bool flat = c.in(0)->rank() == 3;
  int64_t q_heads = c.attr("q_num_heads", 0), kv_heads = c.attr("kv_num_heads", 0);
  Ref q = split_heads(c, c.in(0), q_heads), k = split_heads(c, c.in(1), kv_heads),
      v = split_heads(c, c.in(2), kv_heads);
  Ref past = c.ctx().index(0);
  if (c.has(4) || c.has(5)) {
    past = dim(c.in(4), 2);
    c.check(c.in(4)->rank() == 4 && c.in(5)->rank() == 4, "past_key and past_value must be [B, H, S, D]");
    k = concat({c.in(4), k}, 2);
    v = concat({c.in(5), v}, 2);
  }
  c.out(1, k);
  c.out(2, v);
  Dims shape{dim(q, 0), dim(q, 1), dim(q, 2), dim(k, 2)};
  Ref weights = attention_weights(c, q, repeat_heads(c, k, shape[1]), attention_bias(c, shape, q->dtype, past));
  Ref y = matmul(weights, repeat_heads(c, v, shape[1]));
  c.out(flat ? merge_axes(permute(y, {0, 2, 1, 3}), 2, 4) : y);
}

/// Rotates pairs (a, b) of each head's first `rotary_embedding_dim` elements by the angle of their position.
void rotary_embedding(OpContext& c) {
  int64_t heads = c.attr("num_heads", 0), rotated = c.attr("rotary_embedding_dim", 0);
  bool interleaved = c.attr("interleaved", 0) != 0, flat = c.in(0)->rank() == 3;
  Context& ctx = c.ctx();
  Ref x = split_heads(c, c.in(0), heads), zero = ctx.index(0); // [B, H, S, D]
  std::optional<int64_t> size = dim_int(dim(x, 3));
  if (!size) c.unsupported("the head size is symbolic");
  if (rotated == 0) rotated = *size;
  c.check(rotated > 0 && rotated <= *size && rotated % 2 == 0, "rotary_embedding_dim=" + std::to_string(rotated));
  Ref half = ctx.index(rotated / 2), two = ctx.index(2), one = ctx.index(1);
  auto angles = [&](size_t i) { // [B, 1, S, half]
    Ref cache = c.in(i);
    if (c.has(3)) {
      c.check(cache->rank() == 2 && c.in(3)->rank() == 2, "caches and position_ids must be matrices");
      Ref index = reshape(c.positions(c.in(3), dim(cache, 0)), Dims{one, numel(ctx, c.in(3)->shape)});
      cache = reshape(take(unsqueeze(cache, {0}), index), Dims{dim(c.in(3), 0), dim(c.in(3), 1), dim(cache, 1)});
    }
    c.check(cache->rank() == 3 && cache->dtype == x->dtype,
            "a cache has rank " + std::to_string(cache->rank()) + ", not 3, or another type");
    require_at_most(half, dim(cache, 2), "a cache has fewer angles than there are pairs");
    return unsqueeze(shrink_axis(cache, 2, zero, half), {1});
  };
  Ref cosine = angles(1), sine = angles(2);
  Ref turned = shrink_axis(x, 3, zero, ctx.index(rotated));
  Ref pairs =
      interleaved ? split_axis(turned, 3, Dims{half, two}) : swap_axes(split_axis(turned, 3, Dims{two, half}), 3, 4);
  auto member = [&](Ref i) { return squeeze(shrink_axis(pairs, 4, i, one), {4}); };
  Ref a = member(zero), b = member(one);
  Ref real = sub(mul(a, cosine), mul(b, sine)), imaginary = add(mul(a, sine), mul(b, cosine));
  Ref joined = concat({unsqueeze(real, {4}), unsqueeze(imaginary, {4})}, 4);
  Ref y = merge_axes(interleaved ? joined : swap_axes(joined, 3, 4), 3, 5);
  if (rotated < *size) y = concat({y, shrink_axis(x, 3, ctx.index(rotated), ctx.index(*size - rotated))}, 3);
  c.out(flat ? merge_axes(permute(y, {0, 2, 1, 3}), 2, 4) : y);
}

// ---- einsum ---------------------------------------------------------------------------------------------------------

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

/// Letters for the dims of an ellipsis, the last dim's first: digits, which no equation has.
std::string ellipsis_letters(OpContext& c, int64_t count) {
  c.check(count >= 0 && count <= 9, "an ellipsis stands for " + std::to_string(count) + " dims");
  std::string letters;
  for (int64_t i = count; i > 0; --i) letters += static_cast<char>('0' + i);
  return letters;
}

/// The equation's text with every ellipsis spelled out: "...ij" over a rank-4 operand is "21ij".
std::string spelled_out(OpContext& c, const std::string& text) {
  size_t arrow = text.find("->"), end = arrow == std::string::npos ? text.size() : arrow, term = 0;
  int64_t widest = 0;
  std::string out;
  for (size_t from = 0; from <= end; ++term) {
    size_t to = std::min(text.find(',', from), end);
    std::string letters = text.substr(from, to - from);
    size_t at = letters.find("...");
    if (at != std::string::npos) {
      int64_t count = c.in(term)->rank() - (static_cast<int64_t>(letters.size()) - 3);
      letters.replace(at, 3, ellipsis_letters(c, count));
      widest = std::max(widest, count);
    }
    out += (term ? "," : "") + letters;
    from = to + 1;
  }
  std::string result = arrow == std::string::npos ? "" : text.substr(arrow);
  if (size_t at = result.find("..."); at != std::string::npos) result.replace(at, 3, ellipsis_letters(c, widest));
  return out + result;
}

Equation parse_equation(OpContext& c) {
  std::string text;
  for (char ch : c.attr_string("equation"))
    if (ch != ' ') {
      c.check(ch < '0' || ch > '9', "the equation has the character '" + std::string(1, ch) + "'");
      text += ch;
    }
  text = spelled_out(c, text);
  size_t arrow = text.find("->");
  Equation e;
  e.terms.emplace_back();
  for (char ch : text.substr(0, arrow)) {
    bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '1' && ch <= '9');
    c.check(letter || ch == ',', "the equation has the character '" + std::string(1, ch) + "'");
    if (letter)
      e.terms.back() += ch;
    else
      e.terms.emplace_back();
  }
  if (arrow != std::string::npos) {
    e.result = text.substr(arrow + 2);
    return e;
  }
  std::map<char, int> uses; // without an arrow: an ellipsis, then letters used once, in order
  std::string dots;
  for (const std::string& t : e.terms)
    for (char ch : t) ++uses[ch];
  for (const auto& [ch, count] : uses) {
    if (ch >= '1' && ch <= '9')
      dots.insert(0, 1, ch);
    else if (count == 1)
      e.result += ch;
  }
  e.result = dots + e.result;
  return e;
}

/// x with its dims in the order of `letters`, size 1 where its term lacks one; a repeated letter takes the diagonal.
Ref align(OpContext& c, Ref x, std::string term, const std::string& letters) {
  c.check(static_cast<int64_t>(term.size()) == x->rank(), "term \"" + term + "\" does not fit " + shape_text(x->shape));
  for (size_t i = 0; i < term.size(); ++i)
    for (size_t j = term.size() - 1; j > i; --j) {
      if (term[i] != term[j]) continue;
      int64_t a = static_cast<int64_t>(i), b = static_cast<int64_t>(j);
      c.check(dims_equal(dim(x, a), dim(x, b)), "dims of one letter differ in " + shape_text(x->shape));
      Ref same = elementwise(Ops::Eq, {iota(c.ctx(), x->shape, a, DType::I64), iota(c.ctx(), x->shape, b, DType::I64)});
      x = reduce("add", select(same, x, full_like(x, 0)), {b}, false);
      term.erase(j, 1);
    }
  std::vector<int64_t> order, absent;
  for (size_t i = 0; i < letters.size(); ++i) {
    size_t at = term.find(letters[i]);
    if (at == std::string::npos)
      absent.push_back(static_cast<int64_t>(i));
    else
      order.push_back(static_cast<int64_t>(at));
  }
  return unsqueeze(permute(x, order), absent);
}

void einsum(OpContext& c) {
  Equation e = parse_equation(c);
  c.check(e.terms.size() == c.input_count(), "the equation has " + std::to_string(e.terms.size()) + " terms for " +
                                                 std::to_string(c.input_count()) + " inputs");
  std::string letters = e.result;
  for (size_t i = 0; i < letters.size(); ++i) c.check(letters.find(letters[i]) == i, "the result repeats a letter");
  std::string all;
  for (const std::string& t : e.terms) all += t;
  for (char ch : letters) c.check(all.find(ch) != std::string::npos, "the result has a letter of no term");
  for (char ch : all)
    if (letters.find(ch) == std::string::npos) letters += ch;
  c.check(letters.size() <= 16, "the equation has more than 16 letters");
  DType type = c.in(0)->dtype, wide = accumulator(type);
  Ref product;
  for (size_t i = 0; i < e.terms.size(); ++i) {
    c.check(c.in(i)->dtype == type && type != DType::Bool, "inputs have different types or are bool");
    Ref x = align(c, to(c.in(i), wide), e.terms[i], letters);
    product = product ? mul(product, x) : x;
  }
  std::vector<int64_t> summed;
  for (size_t i = e.result.size(); i < letters.size(); ++i) summed.push_back(static_cast<int64_t>(i));
  c.out(to(reduce("add", product, summed, false), type));
}

/// silu(a) * b, with alpha inside the sigmoid.
void swiglu(OpContext& c) {
  Ref a = c.in_float(0), b = c.in(1);
  c.check(a->dtype == b->dtype, "inputs have different types");
  c.out(mul(mul(a, sigmoid(mul(a, c.attr_float("alpha", 1)))), b));
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"Attention", 23, kEnd, 3, 7, attention},
    {"RotaryEmbedding", 23, kEnd, 3, 4, rotary_embedding},
    {"Einsum", 12, kEnd, 1, -1, einsum},
    {"SwiGLU", 28, kEnd, 2, 2, swiglu},
};

} // namespace

extern const OpTable kOnnxOps_attention;
const OpTable kOnnxOps_attention = {"attention", kRows};

} // namespace tgc::onnx
