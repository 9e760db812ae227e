// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that carry a state from call to call: causal convolution, linear attention, and writes into a cache.
// Linear attention is defined by a loop over time, S = decay*S + k (x) v, y = S'q. Here all times are computed at once:
// with G the running sum of log decays, S at t is the sum over s <= t of exp(G_t - G_s) k_s (x) v_s, whose exponents
// are not positive for decays up to 1. A decay of 0, whose log is -inf, is counted instead of summed: the state forgets
// what lies before it. The delta rule's corrected values are a unit lower triangular system (1 + A) u =
// w, and (1 + A)^-1 = (1 - A)(1 + A^2)(1 + A^4)…, finite since A is nilpotent. Not handled: the delta rule over a
// symbolic number of steps. Source: Operators.md, opsets 24 and 27.
#include <cmath>

#include "frontend/gather.h"
#include "frontend/nn.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

/// Depthwise convolution over past_state and input, along time.
void causal_conv(OpContext& c) {
  Ref x = c.in_float(0), w = c.in(1);
  c.check(x->rank() == 3 && w->rank() == 3 && w->dtype == x->dtype,
          "input " + shape_text(x->shape) + " and weight " + shape_text(w->shape) + " must have rank 3 and one type");
  std::optional<int64_t> k = dim_int(dim(w, 2)), channels = dim_int(dim(x, 1));
  if (!k || !channels) c.unsupported("the kernel's extent or the number of channels is symbolic");
  c.check(*k >= 1 && *channels >= 1, "the kernel or the input is empty");
  std::string activation = c.attr_string("activation", "none");
  c.check(activation == "none" || activation == "silu" || activation == "swish",
          "activation=\"" + activation + "\" is none of none, silu, swish");
  Ref keep = c.ctx().index(*k - 1);
  if (c.has(3)) c.check(c.in(3)->dtype == x->dtype && c.in(3)->rank() == 3, "past_state does not fit the input");
  Ref line = c.has(3) ? concat({c.in(3), x}, 2) : pad_axis(x, 2, keep, c.ctx().index(0));
  c.check(dims_equal(dim(line, 2), dim_add(dim(x, 2), keep)), "past_state must hold one element less than the kernel");
  Ref y = conv(line, w, {Window{.kernel = *k}}, *channels);
  if (c.has(2)) y = add_channel(y, c.in(2));
  if (activation != "none") {
    Ref wide = to(y, accumulator(y->dtype));
    y = to(mul(wide, sigmoid(wide)), y->dtype);
  }
  c.out(0, y);
  c.out(1, shrink_axis(line, 2, dim_sub(dim(line, 2), keep), keep));
}

// ---- linear attention -----------------------------------------------------------------------------------------------

/// x [B, T, heads*D] → [B, heads, T, D], in f32 at least.
Ref heads_of(OpContext& c, Ref x, int64_t heads) {
  c.check(x->rank() == 3, "operand " + shape_text(x->shape) + " is not [B, T, heads*D]");
  Ref h = c.ctx().index(heads), d = dim_floordiv(dim(x, 2), h);
  c.check(dims_equal(dim_mul(h, d), dim(x, 2)), std::to_string(heads) + " heads do not divide " + shape_text(x->shape));
  return to(permute(split_axis(x, 2, Dims{h, d}), {0, 2, 1, 3}), accumulator(x->dtype));
}

/// Where column j of the last two dims lies before row i (or at it).
Ref before(Ref x, bool inclusive) {
  Ref row = iota(*x->ctx, x->shape, x->rank() - 2, DType::I64),
      column = iota(*x->ctx, x->shape, x->rank() - 1, DType::I64);
  return elementwise(inclusive ? Ops::Le : Ops::Lt, {column, row});
}

struct LinearAttention {
  Ref q, k, v; ///< [B, H, T, Dk], the same, [B, H, T, Dv]; H counts key heads, the group of queries is in T's place
  Ref decay;   ///< running sum of the log decays that are not -inf, [B, H, T, 1 or Dk]; null: none
  Ref resets;  ///< running count of the others, which forget the state
  Ref beta;    ///< [B, H, T, 1]; null: no correction
  Ref state;   ///< [B, H, Dk, Dv]
};

/// The decay by a running sum of logs `rate` with `resets` decays of 0 in it.
Ref decay_of(Ref rate, Ref resets) {
  return select(compare(Ops::Eq, resets, 0), unary(Ops::Exp, rate), full_like(rate, 0));
}

/// a [.., T, Dk] · b [.., S, Dk] with the decay from time s to time t inside the sum: [.., T, S], 0 outside `mask`.
Ref decayed_product(const LinearAttention& p, Ref a, Ref b, bool inclusive) {
  Ref left = unsqueeze(a, {a->rank() - 1}), right = unsqueeze(b, {b->rank() - 2});
  Ref terms = mul(left, right); // [B, H, T, S, Dk]
  Ref inside = before(squeeze(shrink_axis(terms, 4, p.q->ctx->index(0), p.q->ctx->index(1)), {4}), inclusive);
  if (p.decay) {
    auto since = [](Ref running) { return sub(unsqueeze(running, {3}), unsqueeze(running, {2})); };
    Ref rate = since(p.decay), wide = broadcast_to(unsqueeze(inside, {4}), rate->shape);
    rate = select(wide, rate, full_like(rate, 0)); // no overflow where it is masked
    terms = mul(terms, decay_of(rate, since(p.resets)));
  }
  Ref y = sum(terms, {4}, false);
  return select(inside, y, full_like(y, 0));
}

/// x [.., T, Dk] with its decay since the state.
Ref decayed(const LinearAttention& p, Ref x) { return p.decay ? mul(x, decay_of(p.decay, p.resets)) : x; }

/// (1 + a)^-1 w for a strictly lower triangular a [.., T, T].
Ref solve_unit_lower(OpContext& c, Ref a, Ref w) {
  std::optional<int64_t> steps = dim_int(dim(a, -1));
  if (!steps || *steps > 1024)
    c.unsupported("the delta rule needs a known number of at most 1024 steps", "pin the dim with --dim NAME=VALUE");
  Ref power = a, y = sub(w, matmul(a, w));
  for (int64_t n = 2; n < *steps; n *= 2) {
    power = matmul(power, power);
    y = add(y, matmul(power, y));
  }
  return y;
}

/// The values as the delta rule writes them: beta (v - S'k), each S being the state just before.
Ref corrected_values(OpContext& c, const LinearAttention& p) {
  Ref known = matmul(decayed(p, p.k), p.state);
  Ref a = mul(decayed_product(p, p.k, p.k, false), p.beta);
  return solve_unit_lower(c, a, mul(sub(p.v, known), p.beta));
}

/// The state after the last step.
Ref last_state(const LinearAttention& p, Ref values) {
  Context& ctx = *p.q->ctx;
  Ref k = p.k, state = p.state;
  if (p.decay) {
    auto last = [&](Ref running) { // [B, H, 1, 1 or Dk]
      return shrink_axis(running, 2, dim_sub(dim(running, 2), ctx.index(1)), ctx.index(1));
    };
    Ref rate = last(p.decay), resets = last(p.resets);
    k = mul(k, decay_of(sub(rate, p.decay), sub(resets, p.resets)));
    state = mul(state, swap_axes(decay_of(rate, resets), 2, 3));
  }
  return add(state, matmul(swap_axes(k, 2, 3), values));
}

/// Running sums along axis 2.
Ref running_sum(Ref x) {
  Ref n = dim(x, 2);
  Ref ones = full(*x->ctx, Dims{n, n}, x->dtype, 1);
  return matmul(select(before(ones, true), ones, full_like(ones, 0)), x);
}

void linear_attention(OpContext& c) {
  c.ignore("chunk_size"); // a hint
  int64_t q_heads = c.attr("q_num_heads"), heads = c.attr("kv_num_heads");
  c.check(heads >= 1 && q_heads >= 1 && q_heads % heads == 0, "q_num_heads is no multiple of kv_num_heads");
  std::string rule = c.attr_string("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  c.check(gated || delta || rule == "linear", "update_rule=\"" + rule + "\" is no rule");
  c.check(c.has(4) == gated && c.has(5) == delta, "decay goes with gated rules, beta with delta rules");
  DType type = c.in_float(0)->dtype, wide = accumulator(type);
  LinearAttention p{
      heads_of(c, c.in(0), q_heads), heads_of(c, c.in(1), heads), heads_of(c, c.in(2), heads), {}, {}, {}, {}};
  Dims state{dim(p.k, 0), dim(p.k, 1), dim(p.k, 3), dim(p.v, 3)};
  if (c.has(3)) c.check(shapes_equal(c.in(3)->shape, state), "past_state must be " + shape_text(state));
  p.state = c.has(3) ? to(c.in(3), wide) : full(c.ctx(), state, wide, 0);
  if (gated) {
    Ref log_decay = heads_of(c, c.in(4), heads), reset = compare(Ops::Eq, unary(Ops::Exp, log_decay), 0);
    p.decay = running_sum(select(reset, full_like(log_decay, 0), log_decay));
    p.resets = running_sum(to(reset, log_decay->dtype));
  }
  if (delta) {
    Ref beta = c.in(5); // one for all heads, or one per head
    p.beta = heads_of(c, beta, dim_int(dim(beta, 2)) == 1 ? 1 : heads);
  }
  Ref values = delta ? corrected_values(c, p) : p.v;
  double scale = c.attr_float("scale", 0);
  std::optional<int64_t> size = dim_int(dim(p.k, 3));
  if (scale == 0 && !size) c.unsupported("the head size is symbolic");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(*size));
  Ref group = c.ctx().index(q_heads / heads);
  std::vector<Ref> outputs;
  for (int64_t i = 0; i < q_heads / heads; ++i) { // queries of one group read the same state
    Ref grouped = split_axis(p.q, 1, Dims{state[1], group});
    Ref q = squeeze(shrink_axis(grouped, 2, c.ctx().index(i), c.ctx().index(1)), {2});
    Ref y = add(matmul(decayed_product(p, q, p.k, true), values), matmul(decayed(p, q), p.state));
    outputs.push_back(unsqueeze(mul(y, scale), {2}));
  }
  Ref y = merge_axes(concat(outputs, 2), 1, 3); // [B, q_heads, T, Dv]
  c.out(0, to(merge_axes(permute(y, {0, 2, 1, 3}), 2, 4), type));
  c.out(1, to(last_state(p, values), c.has(3) ? c.in(3)->dtype : type));
}

// ---- caches ---------------------------------------------------------------------------------------------------------

/// past_cache with `update` written along `axis` from position write_indices[b] on; "circular" wraps around.
void tensor_scatter(OpContext& c) {
  Ref cache = c.in(0), update = c.in(1);
  std::string mode = c.attr_string("mode", "linear");
  c.check(mode == "linear" || mode == "circular", "mode=\"" + mode + "\" is neither linear nor circular");
  c.check(cache->rank() >= 2 && update->rank() == cache->rank() && update->dtype == cache->dtype,
          "past_cache " + shape_text(cache->shape) + " and update " + shape_text(update->shape) + " do not fit");
  int64_t axis = normalize_axis(c.attr("axis", -2), cache->rank());
  c.check(axis > 0, "axis 0 is that of the batch");
  for (int64_t i = 0; i < cache->rank(); ++i)
    c.check(i == axis || dims_equal(dim(cache, i), dim(update, i)), "past_cache and update differ outside the axis");
  std::vector<int64_t> order = all_axes(cache); // batch, axis, the rest
  order.erase(order.begin() + axis);
  order.insert(order.begin() + 1, axis);
  Ref rows = permute(cache, order), fresh = permute(update, order);
  Dims plane{dim(rows, 0), dim(rows, 1)};
  require_at_most(dim(fresh, 1), plane[1],
                  "update " + shape_text(update->shape) + " is longer than past_cache " + shape_text(cache->shape));
  Ref start = c.has(2) ? to(c.in(2), DType::I64) : full(c.ctx(), Dims{plane[0]}, DType::I64, 0);
  c.check(start->rank() == 1, "write_indices must have rank 1");
  if (mode == "linear") c.require_inside(start, dim_add(dim_sub(plane[1], dim(fresh, 1)), c.ctx().index(1)));
  Ref source = sub(iota(c.ctx(), plane, 1, DType::I64), broadcast_to(unsqueeze(start, {1}), plane));
  if (mode == "circular") source = elementwise(Ops::FloorMod, {source, broadcast_to(to(plane[1], DType::I64), plane)});
  Ref extent = broadcast_to(to(dim(fresh, 1), DType::I64), plane);
  Ref inside = elementwise(
      Ops::And, {elementwise(Ops::Le, {full_like(source, 0), source}), elementwise(Ops::Lt, {source, extent})});
  Dims flat{plane[0], plane[1], numel(c.ctx(), rows->shape.subspan(2))};
  Ref taken = take(reshape(fresh, Dims{plane[0], dim(fresh, 1), flat[2]}), source);
  Ref y = reshape(select(unsqueeze(inside, {2}), taken, reshape(rows, flat)), rows->shape);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  c.out(permute(y, back));
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"CausalConvWithState", 27, kEnd, 2, 4, causal_conv},
    {"LinearAttention", 27, kEnd, 3, 6, linear_attention},
    {"TensorScatter", 24, kEnd, 2, 3, tensor_scatter},
};

} // namespace

extern const OpTable kOnnxOps_state;
const OpTable kOnnxOps_state = {"state", kRows};

} // namespace tgc::onnx
