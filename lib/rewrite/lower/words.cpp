// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: one instruction multiplies four bytes by four others and adds all to an i32, and its operands are 32-bit
// lanes; shaped values have one element type and a last dim of lanes.
// Idea: the four bytes are no dim. A load of an i32 from a buffer of bytes takes them as one element, which is
// broadcast, kept in lanes and packed like any other, and dot4 is elementwise on such words.
// Not handled: masks that tell bytes of one word apart.
#include "rewrite/lower/words.h"

#include <algorithm>
#include <optional>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "uop/diag.h"

namespace tgc {
namespace {

/// The load of a factor, if that is a byte made an i32.
Ref byte_load(Ref factor, DType type) {
  const bool is_wide = factor->is(Ops::Cast) && factor->dtype == DType::I32 && factor->src[0]->is(Ops::Load);
  return is_wide && factor->src[0]->dtype == type ? factor->src[0] : Ref();
}

struct Loads {
  Ref a, b; ///< of a u8 and of an i8
};
std::optional<Loads> byte_product(Ref x) {
  if (!x->is(Ops::Mul) || x->dtype != DType::I32) return {};
  for (size_t i = 0; i < 2; ++i)
    if (const Loads l{byte_load(x->src[i], DType::U8), byte_load(x->src[1 - i], DType::I8)}; l.a && l.b) return l;
  return {};
}

/// Whether the bytes along `range` are one word: all of them are loaded, or none.
bool makes_words(Ref load, Ref range) {
  if (coefficient(load->src[1], range) != 1) return false;
  return load->src.size() == 2 || (!depends(load->src[2], range) && is_const(load->src[3], 0));
}

Ref load_word(Ref load, Ref range) {
  Context& ctx = *load->ctx;
  const std::pair<Ref, Ref> first[] = {{range, ctx.index(0)}};
  std::vector<Ref> src(load->src.begin(), load->src.end());
  src[1] = substitute(src[1], first);
  if (src.size() > 3) src[3] = ctx.constant(DType::I32, 0);
  return ctx.make(Ops::Load, DType::I32, src, *load->attrs);
}

/// `sum` without its word range, as a sum of dot4; null if its bytes are no words.
Ref in_words(Ref sum, Ref range) {
  Context& ctx = *sum->ctx;
  const std::optional<Loads> loads = byte_product(sum->src[0]);
  if (!loads || sum->s(Attr::Kind) != "add" || dim_int(range->src[0]) != 4) return {};
  if (!makes_words(loads->a, range) || !makes_words(loads->b, range)) return {};
  const Ref dot = ctx.make(Ops::Dot4, DType::I32,
                           {load_word(loads->a, range), load_word(loads->b, range), ctx.constant(DType::I32, 0)});
  std::vector<Ref> src(sum->src.begin(), sum->src.end());
  std::erase(src, range);
  src[0] = dot;
  return src.size() > 1 ? ctx.make(Ops::Reduce, DType::I32, src, *sum->attrs) : dot;
}

} // namespace

bool is_word(Ref range) { return range->is(Ops::Range) && range->s(Attr::Axis) == "word"; }

bool is_across_words(Ref load) {
  return std::any_of(load->ranges.begin(), load->ranges.end(),
                     [&](Ref r) { return is_word(r) && coefficient(load->src[1], r) != 1; });
}

Ref word_range(Ref sum) {
  const std::optional<Loads> loads = byte_product(sum->src[0]);
  if (!loads || sum->s(Attr::Kind) != "add") return {};
  for (Ref r : sum->src.subspan(1))
    if (dim_int(r->src[0]).value_or(1) % 4 == 0 && makes_words(loads->a, r)) return r;
  return {};
}

Ref form_words(Ref kernel) {
  Context& ctx = *kernel->ctx;
  std::vector<std::pair<Ref, Ref>> sums, repeated;
  for (Ref node : toposort(kernel)) {
    if (is_word(node) && !is_const(node->src[0], 4))
      throw CompileError({ErrorCode::E103, "kernel \"" + kernel->s(Attr::Name) + "\"",
                          "a range of axis \"word\" has another extent than 4", "a word is four bytes"});
    if (is_word(node)) repeated.emplace_back(node, ctx.range(node->src[0], node->i(Attr::Id), "unroll"));
    if (!node->is(Ops::Reduce)) continue;
    const auto range = std::find_if(node->src.begin() + 1, node->src.end(), is_word);
    if (range == node->src.end()) continue;
    if (const Ref words = in_words(node, *range)) sums.emplace_back(node, words);
  }
  return repeated.empty() ? kernel : substitute(substitute(kernel, sums), repeated);
}

} // namespace tgc
