// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: the last tile of rows may be partial: always, when the number of rows is a symbolic dim. Its loads are gated
// row by row, which costs a mask or a branch per load inside the innermost loop.
// Idea: rows never mix when no reduction runs over them, and a row that does not exist is not stored. So it may hold
// anything, and its loads may read the last row that exists: position min(row, last), which is computed outside the
// inner loops. The first row of each tile exists, since the tiles are as many as the rows need.
// Not handled: lanes (their loads are contiguous only without min), rows that are read from scratch.
#include "schedule/clamp_rows.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "schedule/movement.h"

namespace tgc {
namespace {

bool holds(Ref gate, Ref condition) {
  const std::vector<Ref> all = conjuncts(gate);
  return std::find(all.begin(), all.end(), condition) != all.end();
}

/// The greatest row of the tile, if `condition` is lt(k * (base + axis), k * extent), or the same of an extent that is
/// a quotient by k, where base is the tiles' range times the rows of one, and the tiles are just enough; else null.
Ref last_row(Ref condition, Ref axis) {
  Context& ctx = *axis->ctx;
  if (!condition->is(Ops::Lt) || depends(condition->src[1], axis)) return {};
  const int64_t k = coefficient(condition->src[0], axis).value_or(0);
  if (k < 1) return {};
  const std::pair<Ref, Ref> first[] = {{axis, ctx.index(0)}};
  const Ref base = simplify(substitute(condition->src[0], first)), rows = axis->src[0];
  const Ref extent = simplify(dim_floordiv(dim_add(condition->src[1], ctx.index(k - 1)), ctx.index(k)));
  if (const_int(base) == 0 && extent->lo >= 1) return extent - 1;
  const Ref tiles = base->is(Ops::Mul) && base->src[0]->is(Ops::Range) ? base->src[0] : Ref();
  const Ref needed = simplify(dim_floordiv(dim_add(extent, dim_sub(rows, ctx.index(1))), rows));
  const bool are_enough =
      tiles && const_int(base->src[1]) == k * dim_int(rows).value_or(0) && dims_equal(tiles->src[0], needed);
  return are_enough ? extent - tiles * rows - 1 : Ref();
}

/// Whether every store that depends on `axis` is gated by `condition`.
bool guards_stores(Ref func, Ref axis, Ref condition) {
  for (Ref node : toposort(func))
    if (node->is(Ops::Store) && depends(node, axis) && (node->src.size() < 4 || !holds(node->src[3], condition)))
      return false;
  return true;
}

/// Whether rows follow each other in memory but lanes do not: then the rows are loaded at once, under a mask.
bool is_turned(Ref load, Ref axis) {
  return coefficient(load->src[1], axis) == 1 && std::any_of(load->ranges.begin(), load->ranges.end(), [&](Ref r) {
           return r->s(Attr::Axis) == "lane" && depends(load->src[1], r) && coefficient(load->src[1], r) != 1;
         });
}

Ref clamped(Ref load, Ref axis, Ref condition, Ref row) {
  const std::pair<Ref, Ref> replace[] = {{axis, row}};
  std::vector<Ref> src = {load->src[0], substitute(load->src[1], replace)};
  Ref gate;
  for (Ref c : conjuncts(load->src[2]))
    if (!(c == condition)) gate = gate ? logical_and(gate, substitute(c, replace)) : substitute(c, replace);
  if (gate) src.insert(src.end(), {gate, load->src[3]});
  return load->ctx->make(Ops::Load, load->dtype, src, *load->attrs);
}

} // namespace

Ref clamp_rows(Ref func, Ref axis) {
  const std::vector<Ref> nodes = toposort(func);
  for (Ref node : nodes)
    if (node->is(Ops::Reduce) && std::find(node->src.begin() + 1, node->src.end(), axis) != node->src.end())
      return func;
  Ref condition, last;
  for (Ref node : nodes)
    if (!last && node->is(Ops::Store) && node->src.size() == 4)
      for (Ref c : conjuncts(node->src[3]))
        if (Ref found = last ? Ref() : last_row(c, axis)) condition = c, last = found;
  if (!last || !guards_stores(func, axis, condition)) return func;
  Context& ctx = *func->ctx;
  const Ref row = binary(Ops::Max, binary(Ops::Min, axis, last), ctx.index(0)); // 0: for the bounds of positions
  std::vector<std::pair<Ref, Ref>> changed;
  for (Ref node : nodes)
    if (node->is(Ops::Load) && node->src[0]->is(Ops::Param) && node->src.size() == 4 &&
        holds(node->src[2], condition) && !is_turned(node, axis))
      changed.emplace_back(node, clamped(node, axis, condition, row));
  return changed.empty() ? func : simplify(substitute(func, changed));
}

} // namespace tgc
