// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which loop threads divide, and how it comes to stand outermost. Loops are moved and joined until there are chunks
// enough; never where that repeats a sum, a copy or a slow operation, or makes every thread read what is large.
#include "schedule/threads.h"

#include <algorithm>

#include "rewrite/lower/expand.h"
#include "schedule/movement.h"
#include "schedule/opt_trial.h"

namespace tgc {
namespace {

constexpr int64_t kMinChunks = 4;        // chunks that the outermost loop must offer, else a wider one goes there
constexpr int64_t kRowBlocks = 4;        // blocks of rows, at most, that threads divide: few, to keep the loops inside
constexpr int64_t kChunks = 32;          // chunks that are enough for 2 to 8 threads: none waits long for the last one
constexpr double kThreadWork = 8 * 1024; // operations below which no number of threads helps

class Threads : OptTrial {
public:
  Threads(Chosen chosen, const TargetInfo& target) : OptTrial(std::move(chosen.kernel)), target_(target) {
    opts_ = std::move(chosen.opts);
  }

  /// Divides the kernel among threads, if that costs little along what lies outermost in the result's memory: then a
  /// thread mostly reads what it wrote itself in the kernel before, and does not fetch it from another's cache.
  Chosen run() {
    if (work() < kThreadWork || output_loops().empty()) return {k_, opts_};
    if (closed_.empty())
      follow_memory();
    else
      put_rows_outermost();
    collapse_short();
    Ref widest = output_loops()[0]; // a batch may be 1 at run time: count on lower bounds
    for (Ref axis : output_loops())
      if (axis->src[0]->lo > std::max<int64_t>(1, widest->src[0]->lo)) widest = axis;
    if (output_loops()[0]->src[0]->lo < kMinChunks && may_stand_inside(widest)) {
      move_outermost(position(widest));
      collapse_short();
    }
    attempt(Opt::Kind::Thread, {position(output_loops()[0])});
    return {k_, opts_};
  }

private:
  /// Joins the outermost loop with the next ones until there are chunks enough.
  void collapse_short() {
    for (std::vector<Ref> loops = output_loops(); loops.size() > 1 && loops[0]->src[0]->lo < kChunks;) {
      const int64_t at = position(loops[0]), next = position(loops[1]);
      const auto is_sum = [&](Ref axis) { return axis->s(Attr::Axis) == "reduce"; };
      if (!may_stand_inside(loops[1]) || std::any_of(axes_.begin() + at, axes_.begin() + next, is_sum)) return;
      std::vector<int64_t> order; // lanes and registers between them move behind
      for (int64_t i = 0; i < static_cast<int64_t>(axes_.size()); ++i) {
        if (i != next) order.push_back(i);
        if (i == at) order.push_back(next);
      }
      if (next > at + 1 && !attempt(Opt::Kind::Reorder, order)) return;
      if (!attempt(Opt::Kind::Collapse, {at})) return;
      loops = output_loops();
    }
  }

  double work() const {
    double outer = 1, inner = 0;
    for (Ref axis : axes_)
      if (is_output(axis)) outer *= upper(axis);
    for (Ref node : toposort(k_.func)) {
      if (!node->is(Ops::Reduce) && !node->is(Ops::End)) continue;
      double trips = 1;
      for (Ref r : node->src.subspan(1)) trips *= upper(r);
      inner += trips;
    }
    return outer * std::max(inner, 1.0);
  }

  /// Puts blocks of the longest step in memory outermost, unless each thread would then read much that all read.
  void put_rows_outermost() {
    const Ref first = output_loops()[0];
    Ref rows = first;
    for (Ref axis : output_loops())
      if (extent(axis) >= kMinChunks && stride(axis) > stride(rows) && may_stand_inside(axis)) rows = axis;
    const double affordable = std::max(shared_bytes(first), static_cast<double>(target_.l2_bytes) / 4);
    if (rows == first || shared_bytes(rows) > affordable) return;
    const int64_t at = position(rows);
    int64_t blocks = kRowBlocks;
    while (extent(rows) % blocks != 0) --blocks;
    if (blocks > 1 && attempt(Opt::Kind::Split, {at, extent(rows) / blocks})) move_outermost(at);
  }
  /// What every thread reads if the threads divide `axis`.
  double shared_bytes(Ref axis) const {
    double bytes = 0;
    for (Ref load : loads_)
      if (load->src[0]->is(Ops::Param) && !depends(load->src[1], axis))
        bytes += static_cast<double>(load->src[0]->shape[0]->hi) * byte_size(load->dtype);
    return bytes;
  }

  const TargetInfo& target_;
};

} // namespace

Chosen divide_among_threads(Chosen chosen, const TargetInfo& target) {
  return Threads(std::move(chosen), target).run();
}

} // namespace tgc
