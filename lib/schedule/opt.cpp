// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opts are substitutions on ranges; nothing else of a kernel is touched. Whatever an opt does, each old range becomes
// an expression over new ranges, and whoever closed the old range (Reduce, End) closes the new ones instead. A split
// that does not divide lets the expression pass the extent: then every access that depends on it is gated, and a
// reduction over it sees its neutral element there. Renumbering after each opt keeps ids equal to nesting positions, so
// an opt list is a short text that means the same for every kernel of the same form. Source of the idea: tinygrad
// codegen/opt/postrange.py (shift_to); pack and stage are its missing operand staging.
#include "schedule/opt.h"

#include <algorithm>
#include <charconv>

#include "rewrite/lower/expand.h"
#include "rewrite/lower/linearize.h"
#include "rewrite/rewrite.h"
#include "schedule/clamp_rows.h"
#include "schedule/defer.h"
#include "schedule/movement.h"
#include "schedule/nests.h"
#include "schedule/winograd.h"
#include "uop/diag.h"

namespace tgc {
namespace {

struct OptName {
  Opt::Kind kind;
  const char* text;
  int args; ///< exact number, or -1
};
constexpr OptName kOpts[] = {
    {Opt::Kind::Split, "split", 2},       {Opt::Kind::Merge, "merge", 1},   {Opt::Kind::Collapse, "collapse", 1},
    {Opt::Kind::Reorder, "reorder", -1},  {Opt::Kind::Thread, "thread", 1}, {Opt::Kind::Unroll, "unroll", 1},
    {Opt::Kind::Upcast, "upcast", 1},     {Opt::Kind::Lane, "lane", 1},     {Opt::Kind::Pack, "pack", -1},
    {Opt::Kind::Stage, "stage", -1},      {Opt::Kind::Defer, "defer", 0},   {Opt::Kind::Nest, "nest", -1},
    {Opt::Kind::Winograd, "winograd", 2}, {Opt::Kind::Word, "word", 1},
};

constexpr int64_t kMaxPackGrowth = 4; // packed elements for each old one: tails are padded, axes may read one twice
constexpr int64_t kMaxStageBytes = 1 << 20; // scratch is per thread and should stay in the second-level cache

const OptName& opt_name(Opt::Kind kind) {
  return *std::find_if(std::begin(kOpts), std::end(kOpts), [kind](const OptName& o) { return o.kind == kind; });
}

[[noreturn]] void refuse(const std::string& opt, const std::string& why) {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E302, .where = "", .message = "opt \"" + opt + "\": " + why, .note = ""});
}

void require(bool ok, const Opt& opt, const std::string& why) {
  if (!ok) refuse(to_string(opt), why);
}

/// What becomes of one old range: its value over the new ranges, which of those replace it where it is closed, and the
/// condition under which its value exists (null: always).
struct AxisChange {
  Ref old, value;
  std::vector<Ref> parts;
  Ref exists;
};

class Rebuild {
public:
  Rebuild(Ref func, const std::vector<AxisChange>& changes)
      : ctx_(*func->ctx), func_(func), changes_(changes), done_(ctx_.size()) {}

  Ref run() {
    for (Ref node : toposort(func_)) {
      std::vector<Ref> src;
      for (Ref s : node->src) src.push_back(done_[s->id]);
      done_[node->id] = rebuild(node, src);
    }
    return done_[func_->id];
  }

private:
  const AxisChange* change(Ref range) const {
    for (const AxisChange& c : changes_)
      if (c.old == range) return &c;
    return nullptr;
  }

  Ref rebuild(Ref node, std::vector<Ref>& src) {
    if (const AxisChange* c = node->is(Ops::Range) ? change(node) : nullptr) return c->value;
    if (node->is(Ops::Reduce) || node->is(Ops::End)) return closer(node, src[0]);
    if (node->is(Ops::Load)) return gated(node, src, 2);
    if (node->is(Ops::Store)) return gated(node, src, 3);
    return ctx_.with_src(node, src);
  }

  Ref closer(Ref node, Ref value) {
    std::vector<Ref> src = {value};
    Ref exists;
    for (Ref r : node->src.subspan(1)) {
      const AxisChange* c = change(r);
      if (!c) {
        src.push_back(r);
        continue;
      }
      src.insert(src.end(), c->parts.begin(), c->parts.end());
      exists = both(exists, c->exists);
    }
    if (exists && node->is(Ops::Reduce) && !gated_product(node))
      src[0] = where(exists, value, neutral_element(ctx_, node->dtype, node->s(Attr::Kind)));
    return ctx_.make(node->op, node->dtype, src, *node->attrs);
  }

  /// A sum of a product both of whose factors are loads that this change gates off to zero needs no further mask.
  bool gated_product(Ref reduce) const {
    Ref product = reduce->src[0];
    if (reduce->s(Attr::Kind) != "add" || !product->is(Ops::Mul)) return false;
    auto gated_load = [&](Ref x, Ref range) {
      return x->is(Ops::Load) && depends(x->src[1], range) && is_const(done_[x->id]->src[3], 0);
    };
    for (Ref r : reduce->src.subspan(1)) {
      const AxisChange* c = change(r);
      if (c && c->exists && !(gated_load(product->src[0], r) && gated_load(product->src[1], r))) return false;
    }
    return true;
  }

  /// Adds the existence of every changed range the access depends on to its gate, which is source `gate`.
  Ref gated(Ref node, std::vector<Ref>& src, size_t gate) {
    Ref condition = src.size() > gate ? src[gate] : Ref();
    for (const AxisChange& c : changes_)
      if (c.exists && depends(node->src[1], c.old)) condition = both(condition, c.exists);
    if (!condition || src.size() <= 1) return ctx_.with_src(node, src);
    if (src.size() > gate)
      src[gate] = condition;
    else
      src.push_back(condition);
    if (node->is(Ops::Load) && src.size() == 3) src.push_back(ctx_.constant(node->dtype, 0));
    return ctx_.make(node->op, node->dtype, src, *node->attrs);
  }

  Context& ctx_;
  Ref func_;
  const std::vector<AxisChange>& changes_;
  std::vector<Ref> done_;
};

/// `func` with `changes`, simplified, its ranges renumbered so that ids are nesting positions. New ranges carry ids in
/// the wanted order already.
Ref rebuild(Ref func, const std::vector<AxisChange>& changes) {
  Ref out = simplify(Rebuild(func, changes).run());
  std::vector<AxisChange> renumber;
  std::vector<Ref> axes = kernel_axes(out);
  for (size_t i = 0; i < axes.size(); ++i) {
    Ref r = func->ctx->range(axes[i]->src[0], static_cast<int64_t>(i), axes[i]->s(Attr::Axis));
    if (!(r == axes[i])) renumber.push_back({axes[i], r, {r}, Ref()});
  }
  return renumber.empty() ? out : Rebuild(out, renumber).run();
}

Ref with_id(Ref range, int64_t id) { return range->ctx->range(range->src[0], id, range->s(Attr::Axis)); }

void require_plain(const Opt& opt, Ref axis) {
  const std::string& kind = axis->s(Attr::Axis);
  require(kind == "loop" || kind == "reduce", opt, "the axis is already " + kind);
}

void apply_split(OptKernel& k, const Opt& opt, const std::vector<Ref>& axes) {
  Context& ctx = *k.func->ctx;
  size_t at = static_cast<size_t>(opt.args[0]);
  int64_t inner = opt.args[1];
  Ref old = axes[at], extent = old->src[0];
  require(inner > 1, opt, "the inner extent must be at least 2");
  require_plain(opt, old);
  Ref step = ctx.index(inner), outer_extent = dim_floordiv(extent, step);
  bool divides = dims_equal(dim_mul(outer_extent, step), extent);
  if (!divides) outer_extent = dim_floordiv(dim_add(extent, ctx.index(inner - 1)), step);
  std::vector<AxisChange> changes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i == at) continue;
    Ref moved = with_id(axes[i], static_cast<int64_t>(i < at ? i : i + 1));
    changes.push_back({axes[i], moved, {moved}, Ref()});
  }
  Ref outer = ctx.range(outer_extent, opt.args[0], old->s(Attr::Axis)),
      low = ctx.range(step, opt.args[0] + 1, old->s(Attr::Axis));
  Ref value = outer * step + low;
  Ref exists = divides ? Ref() : lt(value, extent);
  changes.push_back({old, value, {outer, low}, exists});
  k.func = rebuild(k.func, changes);
}

/// Where a range is closed: nodes that list it, or null for a range that root stores leave open.
std::vector<Ref> closers(Ref func, Ref range) {
  std::vector<Ref> out;
  for (Ref node : toposort(func))
    if (node->is(Ops::Reduce) || node->is(Ops::End))
      if (Refs closed = node->src.subspan(1); std::find(closed.begin(), closed.end(), range) != closed.end())
        out.push_back(node);
  return out;
}

void apply_merge(OptKernel& k, const Opt& opt, const std::vector<Ref>& axes) {
  Context& ctx = *k.func->ctx;
  size_t at = static_cast<size_t>(opt.args[0]);
  require(at + 1 < axes.size(), opt, "there is no next axis");
  Ref a = axes[at], b = axes[at + 1];
  require_plain(opt, a);
  require(a->s(Attr::Axis) == b->s(Attr::Axis) && closers(k.func, a) == closers(k.func, b), opt,
          "the axes belong to different loops");
  Ref merged = ctx.range(dim_mul(a->src[0], b->src[0]), opt.args[0], a->s(Attr::Axis));
  std::vector<AxisChange> changes = {{a, floordiv(merged, b->src[0]), {merged}, Ref()},
                                     {b, floormod(merged, b->src[0]), {}, Ref()}};
  for (size_t i = at + 2; i < axes.size(); ++i) {
    Ref moved = with_id(axes[i], static_cast<int64_t>(i - 1));
    changes.push_back({axes[i], moved, {moved}, Ref()});
  }
  Ref out = rebuild(k.func, changes);
  require(opt.kind == Opt::Kind::Collapse || divisions(out) <= divisions(k.func), opt,
          "the merged axis would need divisions");
  k.func = out;
}

void apply_reorder(OptKernel& k, const Opt& opt, const std::vector<Ref>& axes) {
  std::vector<int64_t> sorted = opt.args;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    require(sorted[i] == static_cast<int64_t>(i), opt, "not a permutation of the axes");
  require(sorted.size() == axes.size(), opt, "must name all " + std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i)
    require(opt.args[i] == static_cast<int64_t>(i) || axes[i]->s(Attr::Axis) != "block", opt,
            "a block axis, which nests share, must stay where it is");
  std::vector<AxisChange> changes;
  for (size_t i = 0; i < opt.args.size(); ++i) {
    Ref old = axes[static_cast<size_t>(opt.args[i])], moved = with_id(old, static_cast<int64_t>(i));
    changes.push_back({old, moved, {moved}, Ref()});
  }
  k.func = rebuild(k.func, changes);
}

/// Refuses what scratch cannot hold: a staged value that varies along the axis is one element per position of its own
/// index. As lanes or registers it would need one per lane; repeated in the code, copies that are hoisted would
/// overwrite each other.
void check_scratch(const OptKernel& k, const Opt& opt, Ref axis) {
  for (Ref node : toposort(k.func)) {
    Ref base = node->is(Ops::Store) ? node->src[0] : Ref();
    while (base && base->is(Ops::After)) base = base->src[0];
    if (!base || !base->is(Ops::Buffer)) continue;
    bool varies = depends(node, axis);
    bool indexed = depends(node->src[1], axis);
    require(!varies || indexed, opt, "a staged value depends on the axis and its scratch does not");
  }
}

void apply_axis(OptKernel& k, const Opt& opt, const std::vector<Ref>& axes) {
  size_t at = static_cast<size_t>(opt.args[0]);
  Ref old = axes[at];
  require_plain(opt, old);
  if (opt.kind == Opt::Kind::Thread) {
    require(closers(k.func, old).empty(), opt, "only an output axis can be divided among threads");
    for (Ref other : axes) require(other->s(Attr::Axis) != "thread", opt, "the kernel already has a thread axis");
    for (size_t i = 0; i < at; ++i) // lanes and registers are no loops
      require(axes[i]->s(Attr::Axis) != "loop" || !closers(k.func, axes[i]).empty(), opt,
              "a thread axis must be the outermost output axis");
  } else {
    require(dim_int(old->src[0]) && old->src[0]->hi <= 256, opt, "needs a constant extent of at most 256");
    check_scratch(k, opt, old);
  }
  if (opt.kind == Opt::Kind::Word)
    require(dim_int(old->src[0]) == 4 && old->s(Attr::Axis) == "reduce", opt, "only 4 terms of a sum are a word");
  if (opt.kind == Opt::Kind::Lane)
    for (Ref node : toposort(k.func))
      for (Ref r : node->ranges)
        require(r == old || r->s(Attr::Axis) != "lane" || !depends(node, old), opt,
                "a value would depend on two lane axes");
  if (opt.kind == Opt::Kind::Lane || opt.kind == Opt::Kind::Upcast)
    for (Ref node : closers(k.func, old))
      require(node->is(Ops::End) || depends(node->src[0], old), opt, "a reduction over the axis does not depend on it");
  Ref changed = k.func->ctx->range(old->src[0], opt.args[0], opt_name(opt.kind).text);
  k.func = rebuild(k.func, {{old, changed, {changed}, Ref()}});
  if (opt.kind == Opt::Kind::Upcast) k.func = clamp_rows(k.func, changed);
}

/// An operand about to be copied to another layout: its load, and the loops and positions of the copy.
struct Staging {
  Ref load;
  std::vector<Ref> order, loops;            ///< the listed axes, and a fresh range for each
  std::vector<std::pair<Ref, Ref>> to_loop; ///< from the former to the latter
  Ref size, read, write;                    ///< elements; position by axes; position by loops
};

/// Args: param, …, then from `first` on the axes of the new row-major order. Fresh ranges get ids from `first_id`.
Staging staging(const OptKernel& k, const Opt& opt, const std::vector<Ref>& axes, size_t first, size_t first_id) {
  Context& ctx = *k.func->ctx;
  require(opt.args.size() >= first, opt, "needs a param" + std::string(first > 1 ? " and an axis" : ""));
  Staging s{.load = {},
            .order = {},
            .loops = {},
            .to_loop = {},
            .size = ctx.index(1),
            .read = ctx.index(0),
            .write = ctx.index(0)};
  for (Ref node : toposort(k.func)) {
    if (!node->is(Ops::Load) || !node->src[0]->is(Ops::Param) || node->src[0]->i(Attr::Slot) != opt.args[0]) continue;
    require(!s.load, opt, "the param is read at more than one position");
    s.load = node;
  }
  require(static_cast<bool>(s.load), opt, "the param is not read");
  for (size_t i = first; i < opt.args.size(); ++i) {
    require(opt.args[i] >= 0 && opt.args[i] < static_cast<int64_t>(axes.size()), opt, "there is no such axis");
    Ref axis = axes[static_cast<size_t>(opt.args[i])];
    require(dim_int(axis->src[0]).has_value(), opt, "a staged axis needs a constant extent");
    s.order.push_back(axis);
    s.loops.push_back(ctx.range(axis->src[0], static_cast<int64_t>(first_id + i - first), "loop"));
    s.to_loop.emplace_back(axis, s.loops.back());
  }
  for (size_t i = s.order.size(); i-- > 0;) {
    s.read = s.order[i] * s.size + s.read;
    s.write = s.loops[i] * s.size + s.write;
    s.size = dim_mul(s.size, s.order[i]->src[0]);
  }
  return s;
}

bool listed(const Staging& s, Ref range) { return std::find(s.order.begin(), s.order.end(), range) != s.order.end(); }

/// Does an index or gate of `load` hold such a node?
bool is_placed_by(Ref load, Ops op) {
  std::vector<Ref> order = toposort(load->src.subspan(1));
  return std::any_of(order.begin(), order.end(), [op](Ref n) { return n->is(op); });
}

/// pack S P…: the packed order is the row-major order of axes P, padded where an axis runs past its old extent.
void apply_pack(OptKernel& k, const Opt& opt, const std::vector<Ref>& axes) {
  Context& ctx = *k.func->ctx;
  Staging s = staging(k, opt, axes, 1, 0);
  for (Ref r : s.load->ranges) require(listed(s, r), opt, "the index depends on an axis that is not listed");
  require(!is_placed_by(s.load, Ops::Var), opt, "what is read depends on a symbolic dim");
  require(!is_placed_by(s.load, Ops::Load), opt, "what is read depends on data");
  const int64_t old_size = dim_int(s.load->src[0]->src[0]).value_or(1);
  require(*dim_int(s.size) <= kMaxPackGrowth * std::max<int64_t>(old_size, 4096), opt,
          "an element would be copied too often: " + std::to_string(*dim_int(s.size)) + " for " +
              std::to_string(old_size));
  Ref packed = ctx.make(Ops::Param, s.load->dtype, {s.size}, {{Attr::Slot, opt.args[0]}});
  Ref target = ctx.make(Ops::Param, s.load->dtype, {s.size}, {{Attr::Slot, int64_t{0}}});
  Ref source = ctx.make(Ops::Param, s.load->dtype, {s.load->src[0]->src[0]}, {{Attr::Slot, int64_t{1}}});
  s.to_loop.emplace_back(s.load->src[0], source);
  Ref store = simplify(ctx.make(Ops::Store, DType::Void, {target, s.write, substitute(s.load, s.to_loop)}));
  std::string name = "pack_" + k.func->s(Attr::Name) + "_" + std::to_string(opt.args[0]);
  k.packings.push_back({opt.args[0], make_func(name, ctx.make(Ops::Sink, DType::Void, {store}))});
  const bool is_shared = std::any_of(axes.begin(), axes.end(), [&](Ref axis) {
    return axis->s(Attr::Axis) == "upcast" && !depends(s.load->src[1], axis);
  });
  const Attrs attrs = is_shared ? read_ahead(s.load->dtype, *dim_int(s.size)) : Attrs();
  std::pair<Ref, Ref> replace[] = {{s.load, ctx.make(Ops::Load, s.load->dtype, {packed, simplify(s.read)}, attrs)}};
  k.func = substitute(k.func, replace);
}

/// stage S A P…: a loop nest inside axis A copies what axes P read of the param into scratch, in their order.
void apply_stage(OptKernel& k, const Opt& opt, const std::vector<Ref>& axes) {
  Context& ctx = *k.func->ctx;
  Staging s = staging(k, opt, axes, 2, axes.size());
  int64_t at = opt.args[1], slots = 0;
  require(at >= 0 && at < static_cast<int64_t>(axes.size()), opt, "there is no such axis");
  require(*dim_int(s.size) <= kMaxStageBytes / byte_size(s.load->dtype), opt, "the copy is larger than 1 MiB");
  for (Ref r : s.load->ranges)
    require(listed(s, r) ? r->i(Attr::Id) > at : r->i(Attr::Id) <= at, opt,
            "the index depends on an axis inside " + std::to_string(at) + " that is not listed, or the reverse");
  for (Ref r : s.load->ranges)
    require(listed(s, r) || (r->s(Attr::Axis) != "upcast" && r->s(Attr::Axis) != "lane"), opt,
            "the index depends on a register or lane axis that is not listed");
  for (Ref node : toposort(k.func)) slots += node->is(Ops::Buffer) ? 1 : 0;
  Ref buffer =
      ctx.make(Ops::Buffer, s.load->dtype, {s.size}, {{Attr::Slot, slots}, {Attr::Space, std::string("scratch")}});
  std::vector<Ref> end = {ctx.make(Ops::Store, DType::Void, {buffer, s.write, substitute(s.load, s.to_loop)})};
  end.insert(end.end(), s.loops.begin(), s.loops.end());
  Ref after = ctx.make(Ops::After, DType::Void, {buffer, ctx.make(Ops::End, DType::Void, end)});
  std::pair<Ref, Ref> replace[] = {{s.load, ctx.make(Ops::Load, s.load->dtype, {after, s.read})}};
  k.func = simplify(substitute(k.func, replace));
}

void apply_nest(OptKernel& k, const Opt& opt) {
  require(opt.args.empty() || opt.args.size() == 2 || (opt.args.size() == 3 && opt.args[2] == 1), opt,
          "takes an axis and the rows of a block (and 1: these are innermost), or nothing");
  NestRows rows;
  if (!opt.args.empty()) rows = {.axis = opt.args[0], .rows = opt.args[1], .lanes = opt.args.size() > 2};
  Ref nested = with_nests(k.func, rows);
  require(static_cast<bool>(nested), opt, "the kernel stages no sum of products, or not along this axis");
  k.func = nested;
}

void apply_defer(OptKernel& k, const Opt& opt) {
  Ref deferred = with_deferred_division(k.func);
  require(static_cast<bool>(deferred), opt, "the kernel sums no products with quotients that add up to 1");
  k.func = deferred;
}

} // namespace

int64_t divisions(Ref func) {
  std::vector<Ref> order = toposort(func);
  return std::count_if(order.begin(), order.end(), [](Ref n) { return n->is(Ops::FloorDiv) || n->is(Ops::FloorMod); });
}

std::string to_string(const Opt& opt) {
  std::string text = opt_name(opt.kind).text;
  for (int64_t a : opt.args) text += " " + std::to_string(a);
  return text;
}

std::string to_string(const std::vector<Opt>& opts) {
  std::string text;
  for (const Opt& o : opts) text += (text.empty() ? "" : "; ") + to_string(o);
  return text;
}

std::vector<Opt> parse_opts(std::string_view text) {
  std::vector<Opt> opts;
  while (!text.empty()) {
    size_t end = std::min(text.find(';'), text.size());
    std::string one(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::vector<std::string> words;
    for (size_t i = 0; i < one.size();) {
      size_t begin = one.find_first_not_of(' ', i);
      if (begin == std::string::npos) break;
      i = std::min(one.find(' ', begin), one.size());
      words.push_back(one.substr(begin, i - begin));
    }
    if (words.empty()) refuse(one, "is empty");
    auto known = std::find_if(std::begin(kOpts), std::end(kOpts), [&](const OptName& o) { return words[0] == o.text; });
    if (known == std::end(kOpts))
      refuse(
          one,
          "unknown; known are split, merge, collapse, reorder, thread, unroll, upcast, lane, word, pack, stage, defer, "
          "nest, winograd");
    Opt opt{known->kind, {}};
    for (size_t i = 1; i < words.size(); ++i) {
      int64_t value = 0;
      auto [stop, error] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), value);
      if (error != std::errc() || stop != words[i].data() + words[i].size())
        refuse(one, "\"" + words[i] + "\" is not a number");
      opt.args.push_back(value);
    }
    if (known->args >= 0 && static_cast<int>(opt.args.size()) != known->args)
      refuse(one, "takes " + std::to_string(known->args) + " numbers");
    opts.push_back(std::move(opt));
  }
  return opts;
}

std::vector<Ref> kernel_axes(Ref func) {
  std::vector<Ref> axes;
  for (Ref node : toposort(func))
    if (node->is(Ops::Range)) axes.push_back(node);
  std::sort(axes.begin(), axes.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
  return axes;
}

Ref product_of(Ref value) {
  while (value->is(Ops::Cast) || value->is(Ops::Where)) value = value->src[value->is(Ops::Where) ? 1 : 0];
  return value->is(Ops::Mul) ? value : Ref();
}

Attrs read_ahead(DType type, int64_t elements) {
  constexpr int64_t kKept = 128 << 10, kAhead = 8 << 10; // bytes
  if (elements * byte_size(type) < kKept) return {};
  return {{Attr::Ahead, kAhead / byte_size(type)}};
}

void apply_opt(OptKernel& kernel, const Opt& opt) {
  std::vector<Ref> axes = kernel_axes(kernel.func);
  if (opt_name(opt.kind).args > 0 && opt.kind != Opt::Kind::Winograd)
    require(opt.args[0] >= 0 && opt.args[0] < static_cast<int64_t>(axes.size()), opt, "there is no such axis");
  for (Ref axis : axes) require(axis->src[0]->ranges.empty(), opt, "an axis' extent depends on another axis");
  switch (opt.kind) {
  case Opt::Kind::Split: return apply_split(kernel, opt, axes);
  case Opt::Kind::Merge:
  case Opt::Kind::Collapse: return apply_merge(kernel, opt, axes);
  case Opt::Kind::Reorder: return apply_reorder(kernel, opt, axes);
  case Opt::Kind::Pack: return apply_pack(kernel, opt, axes);
  case Opt::Kind::Stage: return apply_stage(kernel, opt, axes);
  case Opt::Kind::Defer: return apply_defer(kernel, opt);
  case Opt::Kind::Nest: return apply_nest(kernel, opt);
  case Opt::Kind::Winograd:
    return require(apply_winograd(kernel, {.rows = opt.args[0], .parts = opt.args[1]}), opt,
                   "the kernel is no convolution of 3x3 taps over a known picture, or these blocks do not fit it");
  default: return apply_axis(kernel, opt, axes);
  }
}

} // namespace tgc
