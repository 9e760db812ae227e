// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a tensor graph to kernels. Two sweeps over the graph, no recursion.
// Backward (consumers first): every node collects the positions at which it is read. The fusion policy then says
// whether it is computed at each of them, once per shared row in scratch, or by a kernel of its own; a node with its
// own kernel gets fresh ranges, one per axis. The positions of its sources follow: movement ops are index algebra, a
// reduce opens ranges, a gather reads its data at a stand-in for the position that only the forward sweep knows.
// Forward (sources first): the value of each node at each position, and a kernel per realized node. The backward sweep
// runs twice: the second time it knows which sources are buffers, so costs stop there. Then each buffer gets its order
// of dims (storage.h). Not here: kernels with several outputs. Source of the idea: tinygrad schedule/indexing.py and
// rangeify.py.
#include "schedule/rangeify.h"

#include <algorithm>
#include <set>

#include "rewrite/lower/expand.h"
#include "rewrite/lower/linearize.h"
#include "rewrite/rewrite.h"
#include "schedule/byte_products.h"
#include "schedule/kernelize.h"
#include "schedule/movement.h"
#include "schedule/parts.h"
#include "schedule/storage.h"
#include "schedule/uses.h"
#include "uop/diag.h"

namespace tgc {
namespace {

double upper(Ref dim) { return static_cast<double>(std::max<int64_t>(dim->hi, 0)); }

/// The extent to expect: an open dim is seldom at its bound.
double likely(Ref dim) {
  constexpr double kOpen = 1024;
  return dim_int(dim) ? upper(dim) : std::min(upper(dim), std::max(kOpen, static_cast<double>(dim->lo)));
}

double count(Refs dims) {
  double n = 1;
  for (Ref d : dims) n *= upper(d);
  return n;
}

/// A reduction over an axis without elements, which is its neutral element and reads nothing.
bool is_empty_reduce(Ref node) {
  if (!node->is(Ops::Reduce)) return false;
  const std::vector<int64_t>& axes = node->ints(Attr::Axes);
  return std::any_of(axes.begin(), axes.end(),
                     [&](int64_t axis) { return is_const(node->src[0]->shape[static_cast<size_t>(axis)], 0); });
}

/// Operations per element of one op; loads count one, views nothing.
double op_cost(Ref node) {
  switch (node->op) {
  case Ops::Param:
  case Ops::Weight: return 1;
  case Ops::Div:
  case Ops::Mod:
  case Ops::Sqrt: return 4;
  case Ops::Exp:
  case Ops::Log:
  case Ops::Sin:
  case Ops::Cos:
  case Ops::Tanh:
  case Ops::Erf: return 12;
  case Ops::Pow: return 40;
  default: return node->cls() == OpClass::Movement || node->cls() == OpClass::Leaf ? 0 : 1;
  }
}

class Rangeify {
public:
  Rangeify(Ref root, FusionPolicy policy, const Origins* origins)
      : ctx_(*root->ctx), root_(root), policy_(policy), origins_(origins), order_(toposort(root->src[0])),
        size_(ctx_.size()), realized_(size_) {}

  Ref run() {
    for (Ref node : order_) check(node);
    find_live();
    find_heads();
    must_realize_.assign(size_, false); // kept from the first round: in the second its reason is gone
    for (int round = 0; round < 2; ++round) {
      state_.assign(size_, State());
      next_range_ = 0;
      product_ranges_.clear();
      compute_costs();
      for (Ref store : root_->src[0]->src) seed(store);
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) visit(*it);
      for (Ref node : order_) realized_[node->id] = state(node).fusion == Fusion::Realize;
    }
    return build();
  }

private:
  State& state(Ref node) { return state_[node->id]; }

  /// The spec "tensor" also allows calls, tuples and orderings, which are not scheduled.
  static void check(Ref node) {
    const OpClass cls = node->cls();
    const bool is_effect = node->is(Ops::Sink) || (node->is(Ops::Store) && node->src.size() == 2);
    if (is_effect || node->is(Ops::Gather) || (cls != OpClass::Memory && cls != OpClass::Control)) return;
    throw CompileError(Diagnostic{.code = ErrorCode::E301,
                                  .where = "",
                                  .message = std::string(name(node->op)) + " cannot be scheduled in a tensor graph",
                                  .note = "a tensor graph is movement, elementwise ops and reductions under stores"});
  }

  /// A contraction of two values that are both known at run time only.
  bool is_live_product(Ref node) const {
    return is_contraction(node) && is_live_[node->src[0]->src[0]->id] && is_live_[node->src[0]->src[1]->id];
  }

  /// The node that computes what `node` is a view of, as the type it is stored in.
  static Ref computed(Ref node) {
    while (node->cls() == OpClass::Movement || is_widened_byte(node)) node = node->src[0];
    return node;
  }
  /// Weights that are halves stay halves in the bundle and in memory; kernels widen what they read.
  bool is_widened_weight(Ref node) const {
    const bool from_half =
        node->is(Ops::Cast) && (node->src[0]->dtype == DType::F16 || node->src[0]->dtype == DType::BF16);
    return from_half && node->dtype == DType::F32 && computed(node->src[0])->is(Ops::Weight);
  }
  /// The sum of products that a kernel which computes `node` would run; null if none.
  Ref product_in(Ref node) const {
    return realized_[node->id] || must_realize_[computed(node)->id] ? Ref() : product_[node->id];
  }

  /// A kernel is tiled for one sum of products; of several operands that hold one, all but one are buffers: what others
  /// read too rather than what is for this node alone, then the cheapest.
  void keep_one_product(Ref node) {
    const auto worth = [&](Ref s) { return std::pair(consumers_[computed(s)->id] < 2, cost_[s->id]); };
    Ref kept;
    for (Ref s : data_sources(node)) {
      if (!product_in(s) || (kept && product_in(s) == product_in(kept))) continue;
      if (kept) must_realize_[computed(worth(s) > worth(kept) ? kept : s)->id] = true;
      if (!kept || worth(s) > worth(kept)) kept = s;
    }
  }

  void find_live() {
    is_live_.assign(size_, false);
    consumers_.assign(size_, 0);
    for (Ref node : order_) {
      const Refs src = data_sources(node);
      if (node->cls() != OpClass::Movement)
        for (Ref s : src) ++consumers_[computed(s)->id];
      is_live_[node->id] =
          node->is(Ops::Param) ||
          (node->cls() != OpClass::Leaf && std::any_of(src.begin(), src.end(), [&](Ref s) { return is_live_[s->id]; }));
    }
  }

  /// Heads of attention: a computed value that a product of run-time values reads, once, with an axis split and its
  /// parts moved. What is stored is the moved view: then the rows of one part follow each other in memory.
  void find_heads() {
    is_head_.assign(size_, false);
    const auto axes = [](Refs dims) {
      return std::count_if(dims.begin(), dims.end(), [](Ref d) { return !is_const(d, 1); });
    };
    for (Ref node : order_) {
      if (!is_live_product(node)) continue;
      for (Ref view : node->src[0]->src) {
        Ref moved, head;
        for (; view->cls() == OpClass::Movement; view = view->src[0]) {
          if (view->is(Ops::Permute)) moved = view;
          if (view->is(Ops::Reshape) && axes(view->shape) > axes(view->src[0]->shape)) head = moved;
          if (view->is(Ops::Expand) && !shapes_equal(view->shape, view->src[0]->shape))
            head = moved = Ref(); // repeated
        }
        if (head && view->cls() != OpClass::Leaf && consumers_[view->id] == 1) is_head_[head->id] = true;
      }
    }
  }

  static void add_new(std::vector<Ref>& to, const std::vector<Ref>& from) {
    for (Ref node : from)
      if (to.size() <= kMaxReads && std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }

  void compute_costs() {
    cost_.assign(size_, 0);
    reads_.assign(size_, {});
    code_.assign(size_, 0);
    reduces_.assign(size_, false);
    product_.assign(size_, Ref());
    multiplies_.assign(size_, false);
    for (Ref node : order_) {
      if (node->cls() != OpClass::Movement) keep_one_product(node);
      double cost = op_cost(node);
      size_t data = node->cls() == OpClass::Leaf ? 0 : node->cls() == OpClass::Movement ? 1 : node->src.size();
      bool reduces = node->is(Ops::Reduce), multiplies = is_live_product(node);
      Ref product = is_contraction(node) ? node : Ref();
      double code = cost;
      std::vector<Ref>& reads = reads_[node->id];
      if (node->is(Ops::Param) || node->is(Ops::Weight)) reads = {node};
      for (Ref s : node->src.first(data)) {
        cost += realized_[s->id] ? 1 : cost_[s->id];
        const bool is_cut = realized_[s->id] || must_realize_[computed(s)->id] || reads_[s->id].size() > kMaxReads ||
                            code_[s->id] > kMaxCode;
        if (is_cut)
          add_new(reads, {computed(s)});
        else
          add_new(reads, reads_[s->id]);
        code += is_cut ? 1 : code_[s->id];
        reduces |= !realized_[s->id] && reduces_[s->id];
        if (!product) product = product_in(s);
        multiplies |= !realized_[s->id] && multiplies_[s->id];
      }
      if (node->is(Ops::Reduce))
        for (int64_t axis : node->ints(Attr::Axes))
          cost *= std::max(1.0, upper(node->src[0]->shape[static_cast<size_t>(axis)]));
      // What is broadcast is computed outside the loop it is repeated in, or decided on where it is read.
      if (node->is(Ops::Expand) && !shapes_equal(node->shape, node->src[0]->shape)) {
        cost = std::min(cost, 1.0);
        reduces = multiplies = false;
        product = Ref();
        if (!reads.empty()) reads = {node};
        code = std::min(code, 1.0);
      }
      reduces_[node->id] = reduces;
      // A reduction over a live product leaves the decision to where the product itself is read.
      if (multiplies && node->is(Ops::Reduce) && !is_contraction(node)) product = Ref();
      product_[node->id] = product;
      multiplies_[node->id] = multiplies;
      code_[node->id] = code;
      cost_[node->id] = cost;
    }
  }

  /// Its extent is simplified: positions are, and would hold another range else.
  Ref fresh_range(Ref dim, const char* axis) {
    Ref extent = simplify(dim);
    return is_const(extent, 1) ? ctx_.index(0) : ctx_.range(extent, next_range_++, axis);
  }

  void seed(Ref store) {
    TGC_CHECK(store->is(Ops::Store) && store->src.size() == 2, "the graph's sink must hold whole-tensor stores");
    State& s = state(store->src[1]);
    if (store->src[1]->cls() == OpClass::Leaf || s.storage) return; // becomes a copy kernel
    s.storage = store->src[0];
    s.fusion = Fusion::Realize;
  }

  size_t add_use(Ref node, Position at, const std::vector<Ref>& ambient, bool hoisted) {
    std::vector<Use>& uses = state(node).uses;
    for (size_t i = 0; i < uses.size(); ++i)
      if (uses[i].at.index == at.index && uses[i].at.gate == at.gate) return i;
    uses.push_back(Use{.at = std::move(at), .ambient = ambient});
    uses.back().ambient = home_loops(uses.back());
    uses.back().hoisted = hoisted || uses.back().ambient.size() < ambient.size();
    return uses.size() - 1;
  }

  void visit(Ref node) {
    State& s = state(node);
    bool unread = s.fusion != Fusion::Realize && s.uses.empty(); // a dim or another operand that is not data
    if (node->dtype == DType::Void || node->cls() == OpClass::Leaf || unread) return;
    if (s.fusion != Fusion::Realize) s.fusion = decide(node, s);
    if (s.fusion != Fusion::Inline) {
      place(node, s);
      propagate(node, s.inner);
      return;
    }
    for (Use& use : s.uses) propagate(node, use);
  }

  /// Worth computing at compile time, and no larger than what it is computed from.
  bool folds(Ref node) const {
    constexpr double kWorth = 4;
    if (is_live_[node->id] || (cost_[node->id] < kWorth && !reduces_[node->id])) return false;
    double bytes = 0;
    for (Ref s : reads_[node->id])
      if (s->is(Ops::Weight) || realized_[s->id]) bytes += count(s->shape) * byte_size(s->dtype);
    return count(node->shape) * byte_size(node->dtype) <= bytes;
  }

  Fusion decide(Ref node, const State& s) {
    if (is_head_[node->id]) return Fusion::Realize;
    if (s.uses.size() > kMaxUses && !reads_[node->id].empty()) return Fusion::Realize;
    if (node->cls() == OpClass::Movement || is_widened_byte(node) || is_widened_weight(node) || is_stored_around(node))
      return Fusion::Inline;
    if (folds(node)) return Fusion::Realize;
    FusionQuery q{.node = node,
                  .uses = static_cast<int64_t>(s.uses.size()),
                  .elements = count(node->shape),
                  .evaluations = 0,
                  .cost = cost_[node->id],
                  .reads = reads_[node->id].size(),
                  .code = code_[node->id],
                  .reduces = reduces_[node->id],
                  .in_reduce = false,
                  .contracts = static_cast<bool>(product_[node->id]),
                  .multiplies = multiplies_[node->id],
                  .is_factor = false,
                  .hoisted = false,
                  .stage_bytes = -1,
                  .stage_evaluations = 0};
    bool gated = false, gathered = false;
    const std::vector<Ref> product = product_around(s.uses);
    q.is_factor = !product.empty();
    for (const Use& use : s.uses) {
      q.evaluations += trips(use.ambient);
      q.hoisted |= use.hoisted;
      gated |= static_cast<bool>(use.at.gate);
      for (Ref i : use.at.index)
        for (Ref r : i->ranges) {
          q.in_reduce |= r->s(Attr::Axis) == "reduce";
          gathered |= r->s(Attr::Axis) == "gather";
        }
    }
    if (must_realize_[node->id]) return Fusion::Realize;
    if (gathered) return Fusion::Realize; // where it is read is known to the kernel that reads it only
    const std::vector<Ref> outer = common_ambient(s.uses, product);
    // Without a loop around it only a single row: every chunk of a thread computes it again.
    if (!gated && (!outer.empty() || private_axes(s.uses, outer).size() == 1)) {
      q.stage_bytes = byte_size(node->dtype);
      q.stage_evaluations = trips(home_of(outer, s.uses[0]));
      for (size_t axis : private_axes(s.uses, outer)) {
        q.stage_bytes *= likely(node->shape[axis]);
        q.stage_evaluations *= upper(node->shape[axis]);
      }
    }
    return policy_(q);
  }

  /// The ranges of a product of run-time values that has this value as a factor, if that is its only use.
  std::vector<Ref> product_around(const std::vector<Use>& uses) const {
    std::vector<Ref> out;
    if (uses.size() != 1) return out;
    for (Ref index : uses[0].at.index)
      std::copy_if(index->ranges.begin(), index->ranges.end(), std::back_inserter(out), [&](Ref r) {
        return std::find(product_ranges_.begin(), product_ranges_.end(), r) != product_ranges_.end();
      });
    return out;
  }

  /// The loops of a use down to the last one of `needed`.
  static std::vector<Ref> home_of(const std::vector<Ref>& needed, const Use& use) {
    if (needed.empty()) return {};
    const auto last = std::find(use.ambient.begin(), use.ambient.end(), needed.back());
    return {use.ambient.begin(), last + 1};
  }

  /// Gives a staged or realized node the position at which it is computed.
  void place(Ref node, State& s) {
    if (s.fusion == Fusion::Stage) {
      s.inner.ambient = common_ambient(s.uses, product_around(s.uses));
      s.inner.at.index = s.uses[0].at.index;
      s.fresh = private_axes(s.uses, s.inner.ambient);
    } else {
      s.inner.at.index.resize(node->shape.size());
      for (size_t axis = 0; axis < node->shape.size(); ++axis) s.fresh.push_back(axis);
    }
    for (size_t axis : s.fresh) {
      Ref range = fresh_range(node->shape[axis], "loop");
      s.inner.at.index[axis] = range;
      if (range->is(Ops::Range)) s.inner.ambient.push_back(range);
    }
  }

  /// Tells the sources of `node` that it reads them at `use`.
  void propagate(Ref node, Use& use) {
    if (node->cls() == OpClass::Movement) {
      use.source_use = {add_use(node->src[0], source_position(node, use.at), use.ambient, use.hoisted)};
      return;
    }
    if (is_empty_reduce(node)) return;
    Position at = use.at;
    std::vector<Ref> ambient = use.ambient;
    if (node->is(Ops::Reduce)) open_reduce(node, use, at, ambient);
    if (node->is(Ops::Gather)) {
      const size_t dim = static_cast<size_t>(node->i(Attr::Dim));
      use.gathered = ctx_.range(simplify(node->src[0]->shape[dim]), next_range_++, "gather");
      at.index[dim] = use.gathered;
      use.source_use = {add_use(node->src[0], at, ambient, use.hoisted),
                        add_use(node->src[1], use.at, use.ambient, use.hoisted)};
      return;
    }
    for (Ref s : node->src) use.source_use.push_back(add_use(s, at, ambient, use.hoisted));
  }

  void open_reduce(Ref node, Use& use, Position& at, std::vector<Ref>& ambient) {
    std::vector<int64_t> axes = node->ints(Attr::Axes);
    std::sort(axes.begin(), axes.end());
    for (int64_t axis : axes) {
      Ref range = fresh_range(node->src[0]->shape[static_cast<size_t>(axis)], "reduce");
      at.index.insert(at.index.begin() + axis, range);
      if (!range->is(Ops::Range)) continue;
      use.reduce_ranges.push_back(range);
      ambient.push_back(range);
      if (is_live_product(node)) product_ranges_.push_back(range);
    }
  }

  // ---- forward
  // -------------------------------------------------------------------------------------------------------

  Ref load(Ref storage, const Position& at) {
    Ref index = flat_index(ctx_, at.index, storage->shape);
    if (!at.gate) return ctx_.make(Ops::Load, storage->dtype, {storage, index});
    return ctx_.make(Ops::Load, storage->dtype, {storage, index, at.gate, ctx_.constant(storage->dtype, 0)});
  }

  Ref leaf_value(Ref node, const Position& at) {
    if (node->is(Ops::Param) || node->is(Ops::Weight)) return load(node, at);
    if (node->is(Ops::Iota)) return at.index[static_cast<size_t>(node->i(Attr::Dim, 0))];
    if (node->is(Ops::Const) || node->is(Ops::Var)) return node;
    internal_error(__FILE__, __LINE__, std::string(name(node->op)) + " is no leaf of a tensor graph");
  }

  /// The value of a node that is computed at `use`, from its sources' values.
  Ref compute(Ref node, const Use& use) {
    if (use.zero_outside && node->cls() == OpClass::Leaf) return storage_->load(node, use);
    if (node->cls() == OpClass::Leaf) return leaf_value(node, use.at);
    if (is_empty_reduce(node)) return neutral_element(ctx_, node->dtype, node->s(Attr::Kind));
    std::vector<Ref> src;
    for (size_t i = 0; i < use.source_use.size(); ++i) src.push_back(state(node->src[i]).uses[use.source_use[i]].value);
    if (const Ref around = constant_around(node)) {
      const Use& inside = state(node->src[1]).uses[use.source_use[1]];
      if (inside.zero_outside && inside.around == around) return src[1];
    }
    if (node->is(Ops::Pad) && state(node->src[0]).uses[use.source_use[0]].zero_outside) return src[0];
    if (node->is(Ops::Pad)) {
      Ref gate = state(node->src[0]).uses[use.source_use[0]].at.gate;
      bool gated_load = src[0]->is(Ops::Load) && src[0]->src.size() == 4 && src[0]->src[2] == gate;
      return !gate || gated_load ? src[0] : where(gate, src[0], ctx_.constant(node->dtype, 0));
    }
    if (node->cls() == OpClass::Movement) return src[0];
    if (node->is(Ops::Gather)) return read_at(src[0], use.gathered, src[1]);
    if (!node->is(Ops::Reduce)) return ctx_.make(node->op, node->dtype, src, *node->attrs);
    if (use.reduce_ranges.empty()) return src[0];
    src.insert(src.end(), use.reduce_ranges.begin(), use.reduce_ranges.end());
    return ctx_.make(Ops::Reduce, node->dtype, src, {{Attr::Kind, node->s(Attr::Kind)}});
  }

  /// `data`, read at `place`, read at `position` instead; 0, and no access, where that is outside.
  Ref read_at(Ref data, Ref place, Ref position) {
    Ref at = cast(position, DType::Index), zero = ctx_.constant(data->dtype, 0);
    Ref inside = both(simplify(lt(ctx_.index(-1), at)), simplify(lt(at, place->src[0])));
    if (!inside) return substitute(data, std::vector{std::pair(place, at)});
    std::vector<std::pair<Ref, Ref>> loads;
    for (Ref x : toposort(data))
      if (x->is(Ops::Load) && depends(x, place)) {
        Ref gate = x->src.size() > 2 ? both(x->src[2], inside) : inside;
        loads.emplace_back(x, ctx_.make(Ops::Load, x->dtype, {x->src[0], x->src[1], gate, zero}));
      }
    Ref value = substitute(substitute(data, loads), std::vector{std::pair(place, at)});
    return loads.empty() ? where(inside, value, zero) : value;
  }

  /// Values of a staged node: the stage over its own ranges, picked at each use.
  void stage(State& s) {
    std::vector<size_t> axes;
    std::copy_if(s.fresh.begin(), s.fresh.end(), std::back_inserter(axes),
                 [&](size_t a) { return s.inner.at.index[a]->is(Ops::Range); });
    std::vector<Ref> src = {s.inner.value};
    for (size_t axis : axes) src.push_back(s.inner.at.index[axis]);
    Ref node =
        axes.empty() ? s.inner.value : ctx_.make(Ops::Stage, DType::Void, src, {{Attr::Space, std::string("scratch")}});
    for (Use& use : s.uses) {
      std::vector<Ref> at = {node};
      for (size_t axis : axes) at.push_back(use.at.index[axis]);
      use.value = axes.empty() ? node : ctx_.make(Ops::Pick, DType::Void, at);
    }
  }

  void inherit_outside(Ref node, Use& use) {
    const bool is_around = static_cast<bool>(constant_around(node));
    if (node->cls() != OpClass::Movement && !is_around) return;
    const Use& source = state(node->src[is_around ? 1 : 0]).uses[use.source_use[is_around ? 1 : 0]];
    use.zero_outside = source.zero_outside && (!is_around || source.around == constant_around(node));
    use.around = source.around;
  }

  Ref build() {
    std::vector<KernelDraft> kernels;
    storage_ = std::make_unique<Storage>(ctx_, state_, is_live_);
    storage_->choose(order_);
    for (Ref node : order_) {
      State& s = state(node);
      if (node->dtype == DType::Void) continue;
      if (s.fusion == Fusion::Inline) {
        for (Use& use : s.uses) {
          use.value = compute(node, use);
          if (!use.source_use.empty()) inherit_outside(node, use);
        }
        continue;
      }
      s.inner.value = compute(node, s.inner);
      if (s.fusion == Fusion::Stage) {
        stage(s);
        continue;
      }
      const Ref out = storage_->buffer(node);
      for (KernelDraft& fill : storage_->take_fills()) kernels.push_back(std::move(fill));
      kernels.push_back({out, storage_->position(node, s.inner.at.index), s.inner.value, origin_of(node)});
      for (Use& use : s.uses) use.value = storage_->load(node, use);
    }
    for (Ref store : root_->src[0]->src) add_copy(store, kernels);
    return make_plan(root_, make_in_place(kernels));
  }

  void number_nodes() {
    position_.resize(size_);
    has_data_.resize(size_);
    for (size_t i = 0; i < order_.size(); ++i) {
      Ref node = order_[i];
      position_[node->id] = i;
      Refs src = data_sources(node);
      has_data_[node->id] = node->cls() == OpClass::Leaf
                                ? !node->is(Ops::Const)
                                : std::any_of(src.begin(), src.end(), [&](Ref s) { return has_data_[s->id]; });
    }
  }

  /// The model's nodes that are computed together with `node`: it and what is read up to other kernels' results,
  /// sources first. A value of constants alone is shared by nodes that have nothing else in common, so it names none.
  std::string origin_of(Ref node) {
    if (!origins_) return {};
    if (position_.empty()) number_nodes();
    std::set<size_t> members;
    std::vector<Ref> stack = {node};
    while (!stack.empty()) {
      Ref n = stack.back();
      stack.pop_back();
      if (n->cls() == OpClass::Leaf || !members.insert(position_[n->id]).second) continue;
      for (Ref s : data_sources(n))
        if (state(s).fusion != Fusion::Realize && has_data_[s->id]) stack.push_back(s);
    }
    std::vector<std::string> names;
    for (size_t i : members)
      if (const auto at = origins_->find(order_[i]->id); at != origins_->end())
        if (std::find(names.begin(), names.end(), at->second) == names.end()) names.push_back(at->second);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  /// A store of a leaf, or a second store of one value, is a kernel that copies.
  void add_copy(Ref store, std::vector<KernelDraft>& kernels) {
    Ref out = store->src[0], value = store->src[1];
    if (state(value).storage == out) return;
    Position at;
    for (Ref dim : out->shape) at.index.push_back(fresh_range(dim, "loop"));
    Ref copied =
        value->cls() == OpClass::Leaf ? leaf_value(value, at) : storage_->load(value, Use{.at = at, .ambient = {}});
    kernels.push_back({out, flat_index(ctx_, at.index, out->shape), copied, origin_of(value)});
  }

  static constexpr size_t kMaxUses = 16; // beyond this, one more kernel is cheaper than one more copy of the index math
  Context& ctx_;
  Ref root_;
  FusionPolicy policy_;
  const Origins* origins_;
  std::vector<Ref> order_;
  std::vector<size_t> position_; ///< in order_, by id; set for origin_of
  std::vector<bool> has_data_;   ///< by id: not made of constants alone; set for origin_of
  size_t size_;                  // nodes that existed before this pass: the side tables' size
  std::vector<bool> realized_;
  std::vector<int> consumers_; ///< by id: reads of a value, through views
  std::vector<double> cost_, code_;
  std::vector<std::vector<Ref>> reads_; ///< by id: the buffers that computing an element reads; not all, if too many
  std::vector<Ref> product_;            ///< by id
  std::vector<bool> reduces_, multiplies_, must_realize_, is_live_, is_head_;
  std::vector<Ref> product_ranges_; ///< of reductions that are live products
  std::vector<State> state_;
  std::unique_ptr<Storage> storage_;
  int64_t next_range_ = 0;
};

} // namespace

Ref rangeify(Ref root, FusionPolicy policy, const Origins* origins) { return Rangeify(root, policy, origins).run(); }

} // namespace tgc
