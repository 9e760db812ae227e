// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a graph over ranges to a sequence of instructions with loops, by demand. The emitter keeps the tree of loop
// bodies built so far and the path of those still open. A value goes into the body of its innermost open range; if that
// body has an open child loop the value goes before it, which is loop-invariant code motion by construction. A Reduce
// opens its loops in the body of its own outer ranges, so a row's sum is computed once per row wherever it is read. A
// value is visible from a position if the body it stands in is on the path from there to the root; otherwise it is
// emitted again. Walks are iterative; recursion follows the nesting of reductions only. Not here: merging of loops over
// different ranges, software pipelining, register-pressure ordering.
#include "rewrite/lower/linearize.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_map>

#include "rewrite/lower/expand.h"
#include "rewrite/rewrite.h"
#include "rewrite/rules/tables.h"
#include "uop/diag.h"

namespace tgc {
namespace {

Ops reduce_op(const std::string& kind) {
  return kind == "add" ? Ops::Add : kind == "mul" ? Ops::Mul : kind == "max" ? Ops::Max : Ops::Min;
}

bool is_storage(Ref node) { return node->is(Ops::Param) || node->is(Ops::Buffer); }
/// Emits loops of its own, so walks stop there.
bool is_nest(Ref node) { return (node->is(Ops::Reduce) && node->src.size() > 1) || node->is(Ops::After); }

struct Body;
/// An instruction, or a loop body when `loop` is set.
struct Item {
  Ref instruction;
  Body* loop = nullptr;
};
struct Body {
  Ref range;
  Body* parent = nullptr;
  std::vector<Item> items;
  Body* open_child = nullptr;

  void append(Item item) {
    auto at = items.end();
    if (open_child)
      at = std::find_if(items.begin(), items.end(), [this](const Item& i) { return i.loop == open_child; });
    items.insert(at, item);
  }
};

class Linearizer {
public:
  Linearizer(Ref kernel, bool contract) : ctx_(*kernel->ctx), kernel_(kernel), contract_(contract) {}

  Ref run() {
    Body* root = new_body(Ref(), nullptr);
    for (Ref effect : kernel_->src[0]->src) emit_effect(effect->is(Ops::End) ? effect->src[0] : effect, root);
    std::vector<Ref> instructions;
    flatten(*root, instructions);
    return with_body(kernel_, ctx_.make(Ops::Linear, DType::Void, instructions));
  }

private:
  Body* new_body(Ref range, Body* parent) {
    bodies_.push_back(Body{.range = range, .parent = parent, .items = {}});
    return &bodies_.back();
  }

  static bool encloses(const Body* outer, const Body* inner) {
    for (; inner; inner = inner->parent)
      if (inner == outer) return true;
    return false;
  }

  bool visible(Ref node, const Body* at) const {
    auto found = place_.find(node.get());
    return found != place_.end() && encloses(found->second, at);
  }

  /// The innermost body on the path to the root whose range `node` depends on.
  static Body* home(Ref node, Body* at) {
    size_t missing = node->ranges.size();
    Body* result = nullptr;
    Body* body = at;
    for (; body->parent; body = body->parent) {
      if (!depends(node, body->range)) continue;
      if (!result) result = body;
      --missing;
    }
    TGC_CHECK(missing == 0, std::string(name(node->op)) + " depends on a range that no enclosing loop opens");
    return result ? result : body;
  }

  /// The instruction that stands for `node`, which has been emitted.
  Ref resolve(Ref node) const { return instruction_.at(node.get()); }
  Ref resolved(Ref node) {
    std::vector<Ref> src;
    for (Ref s : node->src) src.push_back(is_storage(node) ? s : resolve(s));
    return ctx_.with_src(node, src);
  }

  void record(Ref node, Ref instruction, Body* body) {
    instruction_[node.get()] = instruction;
    place_[node.get()] = body;
  }

  void append(Ref node, Body* body) {
    Ref instruction = resolved(node);
    if (node->cls() != OpClass::Leaf) body->append({instruction});
    record(node, instruction, body);
  }

  /// Opens one loop per range (outermost first) inside `body`; returns the innermost body. `close` ends them.
  Body* open(const std::vector<Ref>& ranges, Body* body) {
    for (Ref r : ranges) {
      emit(r->src[0], body);
      Body* loop = new_body(r, body);
      body->append({Ref(), loop});
      opened_.push_back({body, body->open_child});
      body->open_child = loop;
      record(r, r, loop);
      body = loop;
    }
    return body;
  }
  void close(size_t loops) {
    for (; loops > 0; --loops) {
      opened_.back().body->open_child = opened_.back().previous;
      opened_.pop_back();
    }
  }

  static std::vector<Ref> by_nesting(std::vector<Ref> ranges) {
    std::sort(ranges.begin(), ranges.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
    return ranges;
  }

  /// Runs `each` once per combination of the unroll ranges' values, with the replacements that make them constants.
  template <typename Each> void unrolled(const std::vector<Ref>& ranges, Each each) {
    constexpr int64_t kMaxSteps = 4096;
    int64_t steps = 1;
    std::vector<std::pair<Ref, Ref>> values;
    for (Ref r : ranges) {
      steps *= dim_int(r->src[0]).value_or(kMaxSteps + 1);
      if (steps > kMaxSteps) // text by hand
        throw CompileError(
            {ErrorCode::E103, "kernel \"" + kernel_->s(Attr::Name) + "\"",
             "ranges of axis \"unroll\" are open or repeat code more than " + std::to_string(kMaxSteps) + " times",
             "split the range first"});
      values.emplace_back(r, ctx_.index(0));
    }
    while (true) {
      each(values);
      size_t i = values.size();
      while (i > 0) {
        int64_t next = *const_int(values[i - 1].second) + 1;
        bool wrap = next >= *dim_int(values[i - 1].first->src[0]);
        values[i - 1].second = ctx_.index(wrap ? 0 : next);
        if (!wrap) break;
        --i;
      }
      if (i == 0) return;
    }
  }

  /// `x` with constants for ranges. Only what that makes constant is folded: the order of sums is settled by now.
  static Ref unroll(Ref x, const std::vector<std::pair<Ref, Ref>>& values) {
    PassContext context;
    static const PatternMatcher rules = const_fold() + identities();
    return graph_rewrite(substitute(x, values), rules, context, {.name = "unroll"});
  }

  static std::pair<std::vector<Ref>, std::vector<Ref>> split_unrolled(const std::vector<Ref>& ranges) {
    std::vector<Ref> loops, unrolls;
    for (Ref r : ranges) (r->s(Attr::Axis) == "unroll" ? unrolls : loops).push_back(r);
    return {loops, unrolls};
  }

  /// Root effects (and the store of an End) run over the ranges they leave open beyond those already open at `body`.
  void emit_effect(Ref effect, Body* body) {
    std::vector<Ref> needed;
    for (Ref r : effect->ranges) {
      bool is_open = false;
      for (Body* b = body; b; b = b->parent) is_open |= b->range && b->range == r;
      if (!is_open) needed.push_back(r);
    }
    auto [loops, unrolls] = split_unrolled(by_nesting(needed));
    Body* inner = open(loops, body);
    unrolled(unrolls, [&](const std::vector<std::pair<Ref, Ref>>& values) {
      Ref store = values.empty() ? effect : unroll(effect, values);
      for (Ref s : store->src) emit(s, inner);
      inner->append({resolved(store)});
    });
    close(loops.size());
  }

  /// Makes `value` available at `at`.
  void emit(Ref value, Body* at) {
    for (Ref node : pending(value, at)) {
      if (visible(node, at)) continue;
      Body* body = home(node, at);
      if (!is_nest(node))
        append(node, body);
      else if (node->is(Ops::After))
        emit_after(node, body);
      else
        emit_reduce(node, body);
    }
  }

  /// Nodes to emit before and including `value`, sources first; stops at what is visible and at Reduce and After.
  std::vector<Ref> pending(Ref value, Body* at) {
    struct Frame {
      Ref node;
      size_t next;
    };
    std::vector<Ref> order;
    std::vector<Frame> stack;
    std::unordered_map<const UOp*, bool> seen;
    auto push = [&](Ref node) {
      if (seen[node.get()] || visible(node, at)) return;
      seen[node.get()] = true;
      bool boundary = is_nest(node) || node->is(Ops::Range) || is_storage(node);
      stack.push_back({node, boundary ? node->src.size() : 0});
    };
    push(value);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.node->src.size()) {
        order.push_back(top.node);
        stack.pop_back();
        continue;
      }
      push(top.node->src[top.next++]);
    }
    return order;
  }

  void emit_after(Ref after, Body* body) {
    for (Ref effect : after->src.subspan(1)) emit_effect(effect->is(Ops::End) ? effect->src[0] : effect, body);
    emit(after->src[0], body);
    record(after, resolve(after->src[0]), body);
  }

  void emit_reduce(Ref reduce, Body* body) {
    std::vector<Ref> closed(reduce->src.begin() + 1, reduce->src.end());
    auto [loops, unrolls] = split_unrolled(by_nesting(closed));
    Ref neutral = neutral_element(ctx_, reduce->dtype, reduce->s(Attr::Kind));
    Ref result =
        loops.empty() ? repeated_terms(reduce, unrolls, neutral, body) : looped_terms(reduce, loops, unrolls, body);
    if (reduce->has(Attr::Axes)) {
      result = ctx_.make(Ops::Reduce, reduce->dtype, {result}, *reduce->attrs);
      body->append({result});
    }
    record(reduce, result, body);
  }

  /// The loops around an accumulator; returns its value after them.
  Ref looped_terms(Ref reduce, const std::vector<Ref>& loops, const std::vector<Ref>& unrolls, Body* body) {
    Ref zero = ctx_.index(0);
    Ref accumulator = ctx_.make(Ops::Buffer, reduce->dtype, reduce->src[0]->shape,
                                {{Attr::Slot, accumulators_++}, {Attr::Space, std::string("reg")}});
    Ref neutral = neutral_element(ctx_, reduce->dtype, reduce->s(Attr::Kind));
    body->append({ctx_.make(Ops::Store, DType::Void, {accumulator, zero, neutral})});
    Body* inner = open(loops, body);
    Ref read = ctx_.make(Ops::Load, reduce->dtype, {accumulator, zero});
    inner->append({read});
    Ref sum = repeated_terms(reduce, unrolls, read, inner);
    inner->append({ctx_.make(Ops::Store, DType::Void, {accumulator, zero, sum})});
    close(loops.size());
    Ref after = ctx_.make(Ops::After, DType::Void, {accumulator, ctx_.make(Ops::End, DType::Void, {loops[0]})});
    Ref result = ctx_.make(Ops::Load, reduce->dtype, {after, zero});
    for (Ref instruction : {after, result}) body->append({instruction});
    return result;
  }

  /// `sum` <op> every term of the unrolled ranges, in order; a product into a sum is one Fma, and products of bytes add
  /// to it.
  Ref repeated_terms(Ref reduce, const std::vector<Ref>& unrolls, Ref sum, Body* body) {
    unrolled(unrolls, [&](const std::vector<std::pair<Ref, Ref>>& values) {
      Ref term = values.empty() ? reduce->src[0] : unroll(reduce->src[0], values);
      bool add = reduce->s(Attr::Kind) == "add";
      bool fused = contract_ && add && term->is(Ops::Mul) && is_float(term->dtype) && byte_size(term->dtype) >= 4;
      const bool dots = add && term->is(Ops::Dot4) && is_const(term->src[2], 0);
      std::vector<Ref> operands = fused || dots ? std::vector<Ref>{term->src[0], term->src[1]} : std::vector<Ref>{term};
      for (Ref s : operands) emit(s, body);
      for (Ref& s : operands) s = resolve(s);
      sum = fused || dots ? ctx_.make(dots ? Ops::Dot4 : Ops::Fma, term->dtype, {operands[0], operands[1], sum})
                          : binary(reduce_op(reduce->s(Attr::Kind)), sum, operands[0]);
      body->append({sum});
    });
    return sum;
  }

  void flatten(const Body& body, std::vector<Ref>& out) const {
    if (body.range) out.push_back(body.range);
    for (const Item& item : body.items) {
      if (item.loop)
        flatten(*item.loop, out);
      else if (item.instruction->cls() != OpClass::Leaf) // leaves are no instructions
        out.push_back(item.instruction);
    }
    if (body.range) out.push_back(ctx_.make(Ops::End, DType::Void, {body.range}));
  }

  Context& ctx_;
  Ref kernel_;
  bool contract_;
  std::deque<Body> bodies_;
  struct Opened {
    Body* body;
    Body* previous;
  };
  std::vector<Opened> opened_;
  std::unordered_map<const UOp*, Body*> place_;     // by original node
  std::unordered_map<const UOp*, Ref> instruction_; // by original node: what stands for it, at its latest place
  int64_t accumulators_ = 0;
};

} // namespace

Ref neutral_element(Context& ctx, DType dtype, const std::string& kind) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (kind == "add") return ctx.constant(dtype, 0);
  if (kind == "mul") return ctx.constant(dtype, 1);
  bool max = kind == "max";
  if (is_float(dtype)) return ctx.constant(dtype, max ? -kInf : kInf);
  IntRange all = int_range(dtype);
  if (dtype == DType::U64) all = {0, -1};
  return ctx.constant_int(dtype, max ? all.lo : all.hi);
}

Ref linearize(Ref kernel, bool contract) { return Linearizer(kernel, contract).run(); }

} // namespace tgc
