// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: attention is two products with a softmax between them. In one kernel, the scores of one row never leave
// scratch; but a product of one row reads all keys for a row of scores.
// Idea: cut the row axis into blocks and let every nest (the scores, the softmax, the result) walk the rows of a block
// by itself, scores and probabilities in scratch with a row each. Then each nest is a kernel like any other, to be
// tiled by the same opts, over loops that all of them share; with its opts it is put back. A row past the last one
// repeats the last: its loads stay in range and its result is not stored. Where a block fills vectors, its rows lie
// innermost in scratch: then they are the lanes of all nests but the last, no store is scattered and no lane folded.
// Not handled: nests that share some rows only, cutting the columns too (online softmax), whose sums depend on the cut.
#include "schedule/nests.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "schedule/kernelize.h"
#include "schedule/movement.h"
#include "schedule/opt.h"

namespace tgc {
namespace {

constexpr int64_t kRows = 32, kMinRows = 16, kMaxRows = 64; // of a block: wanted, and tried to avoid repeats
constexpr int64_t kLanes = 16;                              // rows innermost come in multiples of so many

Ref storage_of(Ref x) {
  while (x->is(Ops::After)) x = x->src[0];
  return x;
}
Ref effect_of(Ref after) { return after->src[1]->is(Ops::End) ? after->src[1]->src[0] : after->src[1]; }

bool is_product(Ref node) {
  if (!node->is(Ops::Reduce) || node->s(Attr::Kind) != "add") return false;
  const Ref product = product_of(node->src[0]);
  return product && !(product->src[0] == product->src[1]);
}

/// Nodes of the expression `x`, down to loads of staged values, without what computes those.
std::vector<Ref> own_nodes(Ref x) {
  std::vector<Ref> out, todo = {x};
  std::vector<bool> seen(x->ctx->size());
  while (!todo.empty()) {
    Ref node = todo.back();
    todo.pop_back();
    if (seen[node->id]) continue;
    seen[node->id] = true;
    out.push_back(node);
    if (!node->is(Ops::After)) todo.insert(todo.end(), node->src.begin(), node->src.end());
  }
  return out;
}

/// What the nests of a kernel are: the staged values that hold a product or are a factor of one.
struct Structure {
  std::vector<Ref> tiles;    ///< Afters, sources first
  std::vector<Ref> products; ///< Reduces
  std::vector<Ref> shared;   ///< loops that tiles run in, by nesting
  Ref root;                  ///< the store of the result
};

/// lanes: all that is staged is a tile, so that nothing is left in one whose own rows could not be lanes.
std::optional<Structure> structure_of(Ref func, bool lanes) {
  Structure s;
  s.root = func->src[0]->src[0];
  if (func->src[0]->src.size() != 1 || !s.root->is(Ops::Store)) return {};
  bool any = false;
  std::vector<Ref> factors;
  const std::vector<Ref> order = toposort(func);
  for (Ref node : order) {
    if (!is_product(node)) continue;
    s.products.push_back(node);
    for (Ref x : own_nodes(node->src[0]))
      if (x->is(Ops::After)) factors.push_back(x);
  }
  for (Ref node : order) {
    if (!node->is(Ops::After) || !node->src[1]->is(Ops::End)) continue;
    const std::vector<Ref> own = own_nodes(effect_of(node)->src[2]);
    const bool multiplies = std::any_of(own.begin(), own.end(), is_product);
    any |= multiplies;
    if (lanes || multiplies || std::find(factors.begin(), factors.end(), node) != factors.end())
      s.tiles.push_back(node);
  }
  if (!any) return {};
  for (Ref tile : s.tiles) // a tile inside another one's loops is none: its place is there, not beside it
    for (Ref axis : tile->ranges)
      if (!depends(s.root, axis)) return {};
  for (Ref axis : kernel_axes(func))
    if (depends(s.root, axis) &&
        std::any_of(s.tiles.begin(), s.tiles.end(), [&](Ref t) { return depends(t->src[1], axis); }))
      s.shared.push_back(axis);
  return s;
}

/// `func` with each sum over what is staged that its result reads once per row staged too.
Ref with_staged_sums(Ref func, const Structure& s) {
  Context& ctx = *func->ctx;
  int64_t slots = 0;
  for (Ref node : toposort(func))
    if (node->is(Ops::Buffer)) slots = std::max(slots, node->i(Attr::Slot) + 1);
  std::vector<std::pair<Ref, Ref>> staged;
  for (Ref node : own_nodes(s.root->src[2])) {
    const auto is_shared = [&](Ref r) { return std::find(s.shared.begin(), s.shared.end(), r) != s.shared.end(); };
    if (!node->is(Ops::Reduce) || is_product(node) || !std::all_of(node->ranges.begin(), node->ranges.end(), is_shared))
      continue;
    Ref buffer = ctx.make(Ops::Buffer, node->dtype, {ctx.index(1)},
                          {{Attr::Slot, slots++}, {Attr::Space, std::string("scratch")}});
    Ref store = ctx.make(Ops::Store, DType::Void, {buffer, ctx.index(0), node});
    Ref after = ctx.make(Ops::After, DType::Void, {buffer, ctx.make(Ops::End, DType::Void, {store})});
    staged.emplace_back(node, ctx.make(Ops::Load, node->dtype, {after, ctx.index(0)}));
  }
  if (staged.empty()) return func;
  std::vector<Ref> src(s.root->src.begin(), s.root->src.end());
  src[2] = substitute(src[2], staged);
  Ref root = ctx.with_src(s.root, src);
  return with_body(func, ctx.make(Ops::Sink, DType::Void, {root}));
}

/// Whether a factor of a product is the same for all rows of `axis`.
bool is_reused(const Structure& s, Ref axis) {
  return std::any_of(s.products.begin(), s.products.end(), [&](Ref product) {
    const std::vector<Ref> own = own_nodes(product->src[0]);
    bool reused = false, used = false;
    for (Ref x : own)
      if (x->is(Ops::Load)) (depends(x->src[1], axis) ? used : reused) = true;
    return reused && used;
  });
}

/// Rows of a block for `n` of them: of those near kRows, the number that repeats least.
int64_t rows_for(int64_t n) {
  if (n <= kMinRows) return n;
  int64_t best = kRows;
  const auto computed = [n](int64_t rows) { return (n + rows - 1) / rows * rows; };
  for (int64_t rows = kLanes; rows <= kMaxRows; rows += kLanes)
    if (std::pair(computed(rows), std::abs(rows - kRows)) < std::pair(computed(best), std::abs(best - kRows)))
      best = rows;
  return best;
}

class Blocks {
public:
  Blocks(Ref func, const Structure& structure, Ref row, const NestRows& rows)
      : ctx_(*func->ctx), func_(func), s_(structure), row_(row), lanes_(rows.lanes), done_(ctx_.size()) {
    const int64_t first = static_cast<int64_t>(kernel_axes(func).size());
    next_id_ = 2 * first;
    if (!row_) return;
    extent_ = row_->src[0];
    rows_ = ctx_.index(rows.rows);
    Ref blocks = dim_floordiv(dim_add(extent_, ctx_.index(rows.rows - 1)), rows_);
    is_exact_ = dims_equal(dim_mul(blocks, rows_), extent_);
    block_ = is_const(blocks, 1) ? ctx_.index(0) : ctx_.range(blocks, next_id_++, "loop");
    local_ = ctx_.range(rows_, next_id_++, "loop");
    true_row_ = block_ * rows_ + local_;
    Ref last = binary(Ops::Max, extent_ - ctx_.index(1), ctx_.index(0));
    value_row_ = is_exact_ ? true_row_ : binary(Ops::Min, true_row_, last);
  }

  Ref run() {
    for (Ref node : toposort(func_)) {
      std::vector<Ref> src;
      for (Ref s : node->src) src.push_back(done_[s->id]);
      done_[node->id] = rebuild(node, src);
    }
    return renumbered(simplify(done_[func_->id]));
  }

private:
  bool is_tile(Ref after) const { return std::find(s_.tiles.begin(), s_.tiles.end(), after) != s_.tiles.end(); }
  bool has_rows(Ref after) const { return row_ && depends(after->src[1], row_); }

  Ref rebuild(Ref node, std::vector<Ref>& src) {
    if (row_ && node == row_) return value_row_;
    if (node == s_.root) return root(node, src);
    if (node->is(Ops::After) && is_tile(node)) return tile(node, src);
    if (node->is(Ops::Load) && node->src[0]->is(Ops::After) && is_tile(node->src[0]) && has_rows(node->src[0]))
      src[1] = at(local_, src[1], node->src[0]->shape[0]);
    return ctx_.with_src(node, src);
  }

  /// Where the element `index` of `size` of a row lies in a tile.
  Ref at(Ref row, Ref index, Ref size) const { return lanes_ ? index * rows_ + row : row * size + index; }

  /// The nest of a tile, over its rows and the ranges it had.
  Ref tile(Ref node, const std::vector<Ref>& src) {
    Ref old = storage_of(node), size = old->src[0], end = src[1], store = end->src[0];
    std::vector<Ref> closed(end->src.begin() + 1, end->src.end());
    Ref index = store->src[1], value = store->src[2];
    if (has_rows(node)) {
      Ref own = ctx_.range(rows_, next_id_++, "loop");
      const std::pair<Ref, Ref> to_own[] = {{local_, own}};
      index = at(own, substitute(index, to_own), size);
      value = substitute(value, to_own);
      size = dim_mul(size, rows_);
      closed.insert(closed.begin(), own);
    }
    Ref buffer = ctx_.make(Ops::Buffer, old->dtype, {size},
                           {{Attr::Slot, old->i(Attr::Slot)}, {Attr::Space, std::string("tile")}});
    closed.insert(closed.begin(), ctx_.make(Ops::Store, DType::Void, {buffer, index, value}));
    return ctx_.make(Ops::After, DType::Void, {buffer, ctx_.make(Ops::End, DType::Void, closed)});
  }

  Ref root(Ref node, std::vector<Ref>& src) {
    if (!row_ || !depends(node, row_)) return ctx_.with_src(node, src);
    const std::pair<Ref, Ref> to_true[] = {{row_, true_row_}};
    src[1] = substitute(node->src[1], to_true);
    Ref gate = node->src.size() > 3 ? substitute(node->src[3], to_true) : Ref();
    if (!is_exact_) gate = both(gate, lt(true_row_, extent_));
    src.resize(3);
    if (gate) src.push_back(gate);
    return ctx_.make(Ops::Store, DType::Void, src);
  }

  /// Ids by nesting: blocks, then of each nest its rows before its other ranges.
  Ref renumbered(Ref func) const {
    std::vector<Ref> blocks, rows, rest;
    for (Ref axis : kernel_axes(func)) {
      const bool is_shared = std::find(s_.shared.begin(), s_.shared.end(), axis) != s_.shared.end();
      if (axis == block_ || is_shared)
        blocks.push_back(axis);
      else
        (axis->i(Attr::Id) < first_own() ? rest : rows).push_back(axis);
    }
    std::vector<std::pair<Ref, Ref>> renamed;
    for (const std::vector<Ref>* list : {&blocks, &rows, &rest})
      for (Ref axis : *list)
        renamed.emplace_back(axis, ctx_.range(axis->src[0], static_cast<int64_t>(renamed.size()),
                                              list == &blocks ? "block" : axis->s(Attr::Axis)));
    return substitute(func, renamed);
  }
  int64_t first_own() const { return static_cast<int64_t>(2 * kernel_axes(func_).size()); }

  Context& ctx_;
  Ref func_;
  const Structure& s_;
  Ref row_, extent_, rows_, block_, local_, true_row_, value_row_;
  bool is_exact_ = true, lanes_;
  int64_t next_id_;
  std::vector<Ref> done_;
};

Ref scratch(Ref buffer, int64_t slot) {
  return buffer->ctx->make(Ops::Buffer, buffer->dtype, {buffer->src[0]},
                           {{Attr::Slot, slot}, {Attr::Space, std::string("scratch")}});
}

bool is_tile_buffer(Ref x) { return x->is(Ops::Buffer) && x->s(Attr::Space) == "tile"; }

/// The nests' Afters of a func that with_nests made, sources first.
std::vector<Ref> nest_afters(Ref func) {
  std::vector<Ref> out;
  for (Ref node : toposort(func))
    if (node->is(Ops::After) && is_tile_buffer(node->src[0])) out.push_back(node);
  return out;
}

/// The store of each nest, which reads those before it as plain buffers; the result's is last.
std::vector<Ref> nest_stores(Ref func) {
  std::vector<Ref> out;
  std::vector<std::pair<Ref, Ref>> written; // After → its buffer
  for (Ref after : nest_afters(func)) {
    out.push_back(substitute(effect_of(after), written));
    written.emplace_back(after, after->src[0]);
  }
  out.push_back(substitute(func->src[0]->src[0], written));
  return out;
}

std::vector<Ref> blocks_of(Ref store) {
  std::vector<Ref> out;
  for (Ref node : toposort(store))
    if (node->is(Ops::Range) && node->s(Attr::Axis) == "block") out.push_back(node);
  std::sort(out.begin(), out.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
  return out;
}

/// `func` with its ranges renumbered from 0.
Ref numbered(Ref func) {
  std::vector<std::pair<Ref, Ref>> renamed;
  for (Ref axis : kernel_axes(func))
    renamed.emplace_back(axis,
                         func->ctx->range(axis->src[0], static_cast<int64_t>(renamed.size()), axis->s(Attr::Axis)));
  return substitute(func, renamed);
}

} // namespace

std::optional<NestRows> choose_nest_rows(Ref func) {
  const std::optional<Structure> s = structure_of(func, false);
  if (!s) return {};
  Ref best;
  for (Ref axis : s->shared)
    if (is_reused(*s, axis) && (!best || axis->src[0]->hi > best->src[0]->hi)) best = axis;
  if (!best) return NestRows{};
  const int64_t rows = dim_int(best->src[0]) ? rows_for(best->src[0]->hi) : std::min(kRows, best->src[0]->hi);
  if (rows < 2) return NestRows{};
  const std::vector<Ref> result = own_nodes(s->root->src[2]); // a product reads rows one by one, wherever they lie
  const bool lanes =
      rows % kLanes == 0 && std::any_of(result.begin(), result.end(), is_product) && structure_of(func, true);
  return NestRows{.axis = best->i(Attr::Id), .rows = rows, .lanes = lanes};
}

Ref with_nests(Ref func, const NestRows& rows) {
  std::optional<Structure> s = structure_of(func, rows.lanes);
  if (!s) return {};
  Ref row;
  if (rows.axis) {
    for (Ref axis : s->shared)
      if (axis->i(Attr::Id) == *rows.axis) row = axis;
    if (!row || rows.rows < 2 || rows.rows > kMaxRows) return {};
  }
  if (rows.lanes) {
    func = with_staged_sums(func, *s);
    s = structure_of(func, true);
  }
  return Blocks(func, *s, row, rows).run();
}

std::vector<Ref> nests_of(Ref func) {
  std::vector<Ref> out;
  for (Ref store : nest_stores(func))
    out.push_back(numbered(with_body(func, func->ctx->make(Ops::Sink, DType::Void, {store}))));
  return out;
}

Ref join_nests(Ref func, const std::vector<Ref>& nests) {
  Context& ctx = *func->ctx;
  const std::vector<Ref> afters = nest_afters(func), stores = nest_stores(func);
  int64_t slots = 0, next_id = static_cast<int64_t>(kernel_axes(func).size());
  for (Ref node : toposort(func))
    if (node->is(Ops::Buffer)) slots = std::max(slots, node->i(Attr::Slot) + 1);
  std::vector<std::pair<Ref, Ref>> written; // buffer → the After of its nest
  Ref store;
  for (size_t i = 0; i < nests.size(); ++i) {
    std::vector<std::pair<Ref, Ref>> change;
    const std::vector<Ref> blocks = blocks_of(stores[i]); // those that this nest depends on, numbered from 0 in it
    const std::vector<Ref> axes = kernel_axes(nests[i]);
    for (size_t a = 0; a < axes.size(); ++a) {
      const int64_t id = next_id + static_cast<int64_t>(a);
      change.emplace_back(axes[a],
                          a < blocks.size() ? blocks[a] : ctx.range(axes[a]->src[0], id, axes[a]->s(Attr::Axis)));
    }
    next_id += static_cast<int64_t>(axes.size());
    for (Ref node : toposort(nests[i]))
      if (node->is(Ops::Buffer) && !is_tile_buffer(node)) change.emplace_back(node, scratch(node, slots++));
    store = substitute(substitute(nests[i]->src[0]->src[0], change), written);
    if (i == afters.size()) break;
    std::vector<Ref> end(store->ranges.begin(), store->ranges.end());
    std::erase_if(end, [](Ref r) { return r->s(Attr::Axis) == "block"; });
    std::sort(end.begin(), end.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
    end.insert(end.begin(), store);
    Ref buffer = afters[i]->src[0];
    written.emplace_back(buffer, ctx.make(Ops::After, DType::Void, {buffer, ctx.make(Ops::End, DType::Void, end)}));
  }
  std::vector<std::pair<Ref, Ref>> plain;
  Ref joined = with_body(func, ctx.make(Ops::Sink, DType::Void, {store}));
  for (Ref node : toposort(joined)) {
    if (is_tile_buffer(node)) plain.emplace_back(node, scratch(node, node->i(Attr::Slot)));
    if (node->is(Ops::Range) && node->s(Attr::Axis) == "block")
      plain.emplace_back(node, ctx.range(node->src[0], node->i(Attr::Id), "loop"));
  }
  return numbered(substitute(joined, plain));
}

} // namespace tgc
