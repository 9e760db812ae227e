// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: of the many opt lists that a kernel may have, few deserve to be compiled and timed. Idea: count, as a
// processor would meet them. A kernel is a tree of bodies: the stores of its nests and the terms of its reductions. Of
// each body we count vector operations and loads, every one in the loop of its innermost range, the steps of loops, the
// wait for the accumulators of the step before, and accumulators beyond the register file. Bytes come from the memory
// hierarchy by the usual argument: inside the outermost loop whose data fit a cache everything is fetched once, and
// again on each turn of the loops around it. Not modelled: associativity, the cost of unaligned vectors, prefetching,
// integer arithmetic. Source: Yotov et al., "Is Search Really Necessary to Generate High-Performance BLAS?".
#include "schedule/estimate.h"

#include <algorithm>
#include <cmath>

#include "rewrite/lower/expand.h"
#include "schedule/movement.h"

namespace tgc {
namespace {

constexpr double kLoadPorts = 2, kSlowOp = 10, kLoopStep = 1.5; // a slow op: division, exp
constexpr double kCyclesPerByte[] = {1.0 / 48, 1.0 / 8};        // beyond the first and the second level of cache
constexpr double kUsable = 0.6;                                 // of a cache, by the data of a loop
constexpr int64_t kShuffled = 4; // elements between lanes up to which vectors and shuffles load them
constexpr double kOpen = 64;     // an open dim's expected size

double extent(Ref range) {
  const Ref dim = range->src[0];
  return dim_int(dim) ? static_cast<double>(std::max<int64_t>(dim->hi, 1))
                      : std::clamp(kOpen, static_cast<double>(std::max<int64_t>(dim->lo, 1)),
                                   static_cast<double>(std::max<int64_t>(dim->hi, 1)));
}
bool is_register(Ref range) { return range->s(Attr::Axis) == "upcast" || range->s(Attr::Axis) == "lane"; }
bool holds(Refs list, Ref x) { return std::find(list.begin(), list.end(), x) != list.end(); }

/// One store or reduction: what it computes each time, and the loops around that, by nesting.
struct Body {
  Ref node;
  std::vector<Ref> roots, loops;
};

class Estimate {
public:
  Estimate(Ref func, const TargetInfo& target) : func_(func), target_(target) {}

  double run() {
    for (Ref store : func_->src[0]->src) todo_.push_back(body_of(store, {}));
    for (size_t i = 0; i < todo_.size(); ++i) {
      const Body body = todo_[i]; // bodies inside it are added
      cycles_ += cycles(body);
    }
    return cycles_;
  }

private:
  /// `enclosing`: loops of the body that holds `node`.
  Body body_of(Ref node, const std::vector<Ref>& enclosing) {
    Body body{node, {}, {}};
    const bool is_sum = node->is(Ops::Reduce);
    if (is_sum)
      body.roots = {node->src[0]};
    else
      body.roots.assign(node->src.begin() + 1, node->src.end());
    int64_t innermost = -1;
    for (Ref r : node->ranges)
      if (!is_register(r)) innermost = std::max(innermost, r->i(Attr::Id));
    for (Ref r : enclosing)
      if (r->i(Attr::Id) <= innermost) body.loops.push_back(r);
    for (Ref r : is_sum ? node->src[0]->ranges : node->ranges)
      if (!is_register(r) && !holds(body.loops, r)) body.loops.push_back(r);
    if (is_sum)
      for (Ref r : node->src.subspan(1))
        if (!is_register(r) && !holds(body.loops, r)) body.loops.push_back(r);
    std::sort(body.loops.begin(), body.loops.end(), [](Ref a, Ref b) { return a->i(Attr::Id) < b->i(Attr::Id); });
    return body;
  }

  /// Nodes of the body itself; bodies inside it are put on the list.
  std::vector<Ref> own_nodes(const Body& body) {
    std::vector<Ref> out, stack = body.roots;
    std::vector<bool> seen(func_->ctx->size());
    while (!stack.empty()) {
      Ref node = stack.back();
      stack.pop_back();
      if (seen[node->id]) continue;
      seen[node->id] = true;
      out.push_back(node);
      if (node->is(Ops::Reduce)) {
        add(node, node, body.loops);
      } else if (node->is(Ops::After)) {
        const Ref effect = node->src[1];
        add(node, effect->is(Ops::End) ? effect->src[0] : effect, body.loops);
      } else {
        stack.insert(stack.end(), node->src.begin(), node->src.end());
      }
    }
    return out;
  }
  void add(Ref key, Ref node, const std::vector<Ref>& enclosing) {
    if (holds(added_, key)) return;
    added_.push_back(key);
    todo_.push_back(body_of(node, enclosing));
  }

  double vectors(Ref node) const { return vectors(node->ranges, std::max(1, byte_size(node->dtype))); }
  double vectors(Refs ranges, int bytes) const {
    double n = 1;
    for (Ref r : ranges) {
      if (r->s(Attr::Axis) == "upcast") n *= extent(r);
      if (r->s(Attr::Axis) == "lane") n *= std::ceil(extent(r) * bytes / target_.vector_bytes);
    }
    return n;
  }
  /// Times that what depends on `ranges` is computed.
  static double trips(const Body& body, Refs ranges) {
    int64_t innermost = -1;
    for (Ref r : ranges)
      if (!is_register(r)) innermost = std::max(innermost, r->i(Attr::Id));
    double n = 1;
    for (Ref r : body.loops)
      if (r->i(Attr::Id) <= innermost) n *= extent(r);
    return n;
  }

  /// Load or store instructions for one turn.
  double accesses(Ref access) const {
    Ref lane;
    for (Ref r : access->ranges)
      if (r->s(Attr::Axis) == "lane") lane = r;
    const bool gated = access->src.size() > (access->is(Ops::Load) ? 2U : 3U);
    const double n = vectors(access) * (gated ? 1.3 : 1);
    if (!lane || !depends(access->src[1], lane)) return n;
    const int64_t step = coefficient(access->src[1], lane).value_or(0);
    if (step == 1) return n;
    for (Ref r : access->ranges) // registers turn the tile around
      if (r->s(Attr::Axis) == "upcast" && coefficient(access->src[1], r) == 1) return 4 * n;
    if (access->is(Ops::Load) && step > 1 && step <= kShuffled) return n * static_cast<double>(2 * step - 1);
    return n * target_.vector_bytes / std::max(1, byte_size(access->dtype)); // a gather
  }

  static double arithmetic(Ref node) {
    if (!is_float(node->dtype) || node->cls() == OpClass::Memory || node->cls() == OpClass::Leaf) return 0;
    switch (node->op) {
    case Ops::Exp:
    case Ops::Log:
    case Ops::Erf:
    case Ops::Tanh:
    case Ops::Sin:
    case Ops::Cos:
    case Ops::Pow:
    case Ops::Sqrt:
    case Ops::Div: return kSlowOp;
    case Ops::Load:
    case Ops::Reduce:
    case Ops::After: return 0;
    default: return 1;
    }
  }

  double cycles(const Body& body) {
    double loads = 0, operations = 0, steps = 0, wait = 0;
    std::vector<Ref> touched;
    for (Ref node : own_nodes(body)) {
      const double n = trips(body, node->ranges);
      if (node->is(Ops::Load)) loads += n * accesses(node), touched.push_back(node);
      const bool fused = body.node->is(Ops::Reduce) && node->is(Ops::Mul) && node == body.node->src[0];
      if (!fused) operations += n * arithmetic(node) * vectors(node);
    }
    if (body.node->is(Ops::Store))
      loads += trips(body, body.node->ranges) * accesses(body.node), touched.push_back(body.node);
    double turns = 1;
    for (Ref r : body.loops) {
      turns *= extent(r);
      if (r->s(Attr::Axis) != "unroll") steps += kLoopStep * turns;
    }
    if (body.node->is(Ops::Reduce)) {
      const double sums = vectors(body.roots[0]), room = target_.vector_registers - 2;
      operations += turns * sums;
      wait = turns * target_.fma_latency;
      loads += turns * 2 * std::max(0.0, sums - room); // spilled and read back
    }
    return std::max({loads / kLoadPorts, operations / target_.fma_ports, wait}) + steps + memory(body, touched);
  }

  static double bytes_of(Ref access) {
    Ref base = access->src[0];
    while (base->is(Ops::After)) base = base->src[0];
    const Ref size = base->is(Ops::Buffer) ? base->src[0] : base->shape[0];
    return static_cast<double>(std::max<int64_t>(size->hi, 1)) *
           byte_size(access->is(Ops::Load) ? access->dtype : base->dtype);
  }
  /// Bytes that `access` touches within one turn of the loops outside of `depth`.
  static double footprint(const Body& body, Ref access, size_t depth) {
    Ref base = access->src[0];
    while (base->is(Ops::After)) base = base->src[0];
    double n = byte_size(base->dtype);
    for (Ref r : access->src[1]->ranges) {
      const auto at = std::find(body.loops.begin(), body.loops.end(), r);
      if (is_register(r) || at - body.loops.begin() >= static_cast<int64_t>(depth)) n *= extent(r);
    }
    return std::min(n, bytes_of(access));
  }

  double memory(const Body& body, const std::vector<Ref>& touched) const {
    double total = 0;
    const int64_t sizes[] = {target_.l1_bytes, target_.l2_bytes};
    for (size_t level = 0; level < 2; ++level) {
      size_t depth = 0;
      const auto working_set = [&] {
        double n = 0;
        for (Ref access : touched) n += footprint(body, access, depth);
        return n;
      };
      while (depth < body.loops.size() && working_set() > kUsable * static_cast<double>(sizes[level])) ++depth;
      for (Ref access : touched) {
        double bytes = footprint(body, access, depth);
        bool moved = false; // what the loops next to it do not move stays
        for (size_t i = depth; i-- > 0;) {
          moved |= depends(access->src[1], body.loops[i]);
          if (moved) bytes *= extent(body.loops[i]);
        }
        total += bytes * kCyclesPerByte[level];
      }
    }
    return total;
  }

  Ref func_;
  const TargetInfo& target_;
  std::vector<Body> todo_;
  std::vector<Ref> added_;
  double cycles_ = 0;
};

} // namespace

double estimate_cycles(Ref func, const TargetInfo& target) { return Estimate(func, target).run(); }

} // namespace tgc
