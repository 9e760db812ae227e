// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which opts a CPU kernel gets, without search. One idea per step, each tried and dropped if it does not apply:
// merge axes that nothing distinguishes; find the lane axis (unit stride in the store, cheap in the loads); if the
// kernel is a contraction (a sum of products), find the row axis (one operand is reused along it) and size the register
// tile so that rows x vectors + vectors + 1 fit the register file (overlapping windows: tile.h); put the loop that
// walks the constant operand's panels outermost, pack that operand in the order it is read, copy a run-time operand
// that lies across the lanes to scratch a panel at a time, unroll the innermost reduction, divide the outermost axis
// among threads. Rows of softmax and friends get lanes on each of their loops. Not here: cache blocking beyond one
// level, search.
#include "schedule/heuristic.h"

#include <algorithm>
#include <cmath>

#include "rewrite/lower/expand.h"
#include "rewrite/lower/words.h"
#include "schedule/movement.h"
#include "schedule/opt_trial.h"
#include "schedule/threads.h"
#include "schedule/tile.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr int64_t kMaxRows = 16;        // register rows of a tile
constexpr int64_t kOverlapRows = 8;     // the same where nothing is reused but what windows share: more spare little
constexpr int64_t kFarRows = 8;         // the same where each row is a stream from far memory: prefetchers follow few
constexpr int64_t kMaxUnrolled = 16;    // reduction steps repeated in the code
constexpr int64_t kMaxTerms = 8;        // the same of products, if a loop of four each can do it instead
constexpr double kOpenRows = 1024;      // of an open axis, at most: its bound says little
constexpr int64_t kMaxRepeated = 512;   // products in the code of a tile whose pieces of a picture's row are repeated
constexpr int64_t kManyRows = 64;       // rows that make it worth to copy what they all read
constexpr int64_t kMaxStride = 4;       // elements between lanes up to which a shuffle of vectors gathers them
constexpr int64_t kFarTerms = 1024;     // bytes between terms from which on they are no stream
constexpr double kVectorLoad = 0.1;     // cost of a contiguous load beside a multiply-add that reuses it
constexpr double kGatedBroadcast = 0.3; // the same of a scalar load that may be off
constexpr double kStagedElement = 1.5;  // the same of copying an element to scratch

class Heuristic : OptTrial {
public:
  Heuristic(Ref func, const TargetInfo& target, const std::vector<bool>& constant, const Wishes& wishes)
      : OptTrial(OptKernel{func, {}}), target_(target), constant_(constant), wishes_(wishes) {}

  Chosen run() {
    run_nest();
    pack();
    return divide_among_threads({k_, opts_}, target_);
  }
  /// What a nest gets: its operands are not packed, since other nests may read them too.
  Chosen run_nest() {
    while (split_at_division()) {
    }
    merge_axes();
    split_words();
    if (target_.has_vectors) vectorize();
    unroll();
    return {k_, opts_};
  }

private:
  /// A loop whose step is taken apart by a division (a flattened picture in another order of dims) becomes two that are
  /// not; the smallest divisor first.
  bool split_at_division() {
    Ref axis;
    int64_t by = 0;
    for (Ref node : toposort(k_.func)) {
      if (!node->is(Ops::FloorDiv) && !node->is(Ops::FloorMod)) continue;
      const Ref a = node->src[0];
      const std::optional<int64_t> n = const_int(node->src[1]);
      const bool divides = n && a->is(Ops::Range) && is_plain(a) && *n > 1 && extent(a) > *n && extent(a) % *n == 0;
      if (divides && (!axis || *n < by)) axis = a, by = *n;
    }
    if (!axis) return false;
    const OptKernel saved = k_;
    const int64_t before = divisions(k_.func);
    if (!attempt(Opt::Kind::Split, {position(axis), by})) return false;
    if (divisions(k_.func) < before) return true;
    k_ = saved;
    opts_.pop_back();
    look();
    return false;
  }

  void merge_axes() {
    look();
    for (size_t i = axes_.size(); i-- > 1;)
      if (i < axes_.size()) attempt(Opt::Kind::Merge, {static_cast<int64_t>(i - 1)});
  }

  /// Takes the terms of a product of bytes four at a time.
  void split_words() {
    const Ref axis = contraction_ && target_.supports(Ops::Dot4) ? word_range(contraction_) : Ref();
    const int64_t at = position(axis);
    if (!axis || !target_.has_vectors) return;
    words_ = extent(axis) == 4 ? attempt(Opt::Kind::Word, {at})
                               : attempt(Opt::Kind::Split, {at, 4}) && attempt(Opt::Kind::Word, {at + 1});
  }

  bool unit_stride(Ref access, Ref axis) const { return coefficient(access->src[1], axis) == 1; }
  /// Do neighbours along `axis` read elements next to each other, or of windows that overlap at most `most` apart? That
  /// is a stride of the model's, and no length of a row, which may be open and must not decide the order of sums.
  bool steps_by(Ref load, Ref axis, int64_t most) const {
    const int64_t step = coefficient(load->src[1], axis).value_or(0);
    if (step == 1 || step < 1 || step > most) return step == 1;
    return std::any_of(axes_.begin(), axes_.end(),
                       [&](Ref tap) { return !is_output(tap) && unit_stride(load, tap) && extent(tap) > step; });
  }
  /// The lane axis: of a contraction, the output axis that costs least; else the one along which the root store is
  /// contiguous, unless every load would become a gather and some reduction is contiguous instead.
  Ref lane_axis() {
    Ref root = k_.func->src[0]->src[0], lane;
    if (contraction_) {
      stride_ = 1;
      const Ref along = contraction_lane(root);
      const std::vector<Ref> loads = contraction_loads();
      if (along && std::none_of(loads.begin(), loads.end(), [&](Ref l) { return wants_stage(l, along); })) return along;
      stride_ = kMaxStride; // rather than to copy, or to run lanes along the reduction
      return contraction_lane(root);
    }
    for (Ref axis : axes_)
      if (is_output(axis) && is_plain(axis) && unit_stride(root, axis)) lane = axis;
    if (!lane) return lane;
    bool cheap = loads_.empty();
    for (Ref load : loads_) {
      cheap |= coefficient(load->src[1], lane) == 0 || steps_by(load, lane, kMaxStride);
    }
    for (Ref axis : axes_)
      if (!is_output(axis) && !cheap) // however long it is: that may be open, and decides the order of the sum
        for (Ref load : loads_)
          if (unit_stride(load, axis)) return Ref();
    return lane;
  }

  /// Least cost per multiply-add, in vector operations: what loads add (a broadcast or a packed constant next to
  /// nothing, a panel copied to scratch its share, lanes up to stride_ elements apart a vector for each and a shuffle,
  /// else a gather one load per lane), the scattered store spread over the reduction, and lanes left empty. None where
  /// something is gathered: then lanes run along the reduction. That choice decides the order of sums, so it must not
  /// depend on how long a dim is, which may be symbolic.
  Ref contraction_lane(Ref root) const {
    double best = 0;
    Ref lane;
    for (Ref axis : axes_) {
      if (!is_output(axis) || !is_plain(axis)) continue;
      double v = static_cast<double>(vector()), cost = 1, reduced = 1;
      bool gathers = false;
      for (Ref load : contraction_loads()) {
        const bool moves = depends(load->src[1], axis) || (load->src.size() > 2 && depends(load->src[2], axis));
        const bool lies_along = steps_by(load, axis, stride_) || is_constant(load);
        const Ref row = moves && !lies_along && may_stage_ ? row_axis(axis) : Ref();
        gathers |= moves && !lies_along && !row;
        if (!moves)
          cost += load->src.size() > 2 ? kGatedBroadcast : 0;
        else
          cost += lies_along ? kVectorLoad : kVectorLoad + (row ? kStagedElement * v / upper(row) : v);
      }
      for (Ref r : contraction_->src.subspan(1)) reduced *= upper(r);
      if (!unit_stride(root, axis)) cost += 2 * v / reduced;
      double n = static_cast<double>(extent(axis));
      if (n > 0) cost *= std::ceil(n / v) * v / n;
      if (position(axis) == wishes_.lane) cost = 0;
      if (!gathers && (!lane || cost < best)) lane = axis, best = cost;
    }
    return lane;
  }

  /// A run-time operand that lies across the lanes.
  bool wants_stage(Ref load, Ref lane) const {
    const bool is_across = !steps_by(load, lane, stride_) || is_across_words(load);
    return depends(load->src[1], lane) && is_across && !is_constant(load);
  }

  bool is_constant(Ref load) const {
    if (!load->src[0]->is(Ops::Param)) return false;
    size_t slot = static_cast<size_t>(load->src[0]->i(Attr::Slot));
    return slot < constant_.size() && constant_[slot];
  }

  int64_t vector() const {
    DType type = contraction_ ? contraction_->dtype : k_.func->src[0]->src[0]->src[0]->dtype;
    return std::max<int64_t>(2, target_.vector_bytes / std::max(1, byte_size(type)));
  }

  int64_t registers() const { return target_.vector_registers; }

  void vectorize() {
    if (Ref lane = lane_axis()) {
      if (contraction_)
        tile_and_stage(lane);
      else if (!turn_tile(lane))
        split_lane(lane, vector() * (wishes_.vectors > 0 ? wishes_.vectors : lane_chains(k_.func, lane, vector())));
    }
    for (bool again = true; again;) { // rows: every other innermost contiguous loop
      again = false;
      const std::vector<Ref> axes = axes_; // attempts re-read axes_
      for (Ref axis : axes) {
        bool contiguous = std::any_of(loads_.begin(), loads_.end(), [&](Ref l) { return unit_stride(l, axis); });
        if (is_output(axis) || !is_plain(axis) || !may_reorder(axis)) continue;
        if (contiguous ? split_lane(axis, reduction_lanes(axis)) : split_rows(axis)) {
          again = true;
          break;
        }
      }
    }
  }
  /// A copy into another order of dims: what lies across the lanes lies along another axis, of which as many steps
  /// become rows. Registers turn such a tile around. Not for weights, which are copied once, at compile time: its code
  /// takes longer to make.
  bool turn_tile(Ref lane) {
    if (std::all_of(loads_.begin(), loads_.end(), [this](Ref load) { return is_constant(load); })) return false;
    const int64_t side = std::min(vector(), kMaxRows);
    const auto fills = [side](Ref axis) { return extent(axis) == 0 || extent(axis) >= side / 2; };
    Ref row;
    for (Ref load : loads_) {
      const std::vector<Ref> index = toposort(load->src[1]);
      const bool is_gathered = std::any_of(index.begin(), index.end(), [](Ref x) { return x->is(Ops::Load); });
      if (is_gathered || !depends(load->src[1], lane) || unit_stride(load, lane)) continue;
      for (Ref axis : axes_)
        if (unit_stride(load, axis)) row = axis;
    }
    const bool sums = std::any_of(axes_.begin(), axes_.end(), [this](Ref axis) { return !is_output(axis); });
    if (!row || sums || !is_plain(row) || !fills(row) || !fills(lane)) return false;
    const OptKernel saved = k_;
    const size_t count = opts_.size(), axes = axes_.size(), at = static_cast<size_t>(position(row));
    const bool is_inside = position(row) > position(lane);
    const int64_t rows = extent(row) == side ? 0 : side;
    if (split_lane(lane, side) && split_off(axes_[at + (is_inside ? axes_.size() - axes : 0)], rows, Opt::Kind::Upcast))
      return true;
    k_ = saved;
    opts_.resize(count);
    look();
    return false;
  }
  /// A sum over staged rows that are lanes gets as many sums in registers as it would have lanes if they were not: they
  /// fold alike.
  bool split_rows(Ref axis) {
    bool is_staged = false, is_split = false;
    for (Ref l : loads_)
      is_staged |= l->src[0]->is(Ops::Buffer) && l->src[0]->s(Attr::Space) == "tile" && depends(l->src[1], axis);
    if (!is_staged || contraction_ || axis->s(Attr::Axis) != "reduce") return false;
    for (Ref node : toposort(k_.func))
      if (node->is(Ops::Reduce) && std::find(node->src.begin() + 1, node->src.end(), axis) != node->src.end())
        for (Ref r : node->src.subspan(1)) is_split |= r->s(Attr::Axis) == "upcast";
    const int64_t sums = reduction_lanes(axis);
    return !is_split && split_off(axis, extent(axis) == sums ? 0 : sums, Opt::Kind::Upcast);
  }
  /// Lanes along a reduction change the order of its terms.
  bool may_reorder(Ref axis) const {
    if (wishes_.reorder) return true;
    for (Ref node : toposort(k_.func)) {
      bool rounds = node->is(Ops::Reduce) && is_float(node->dtype) && node->s(Attr::Kind) != "max" &&
                    node->s(Attr::Kind) != "min";
      if (rounds && std::find(node->src.begin() + 1, node->src.end(), axis) != node->src.end()) return false;
    }
    return true;
  }
  /// Enough for all terms, or a whole vector. A power of two: lanes fold as a tree, and with neutral elements after the
  /// last term the tree of 4 is part of that of 16, so that a sum is the same whether its extent is known or symbolic.
  int64_t reduction_lanes(Ref axis) const {
    int64_t lanes = vector();
    while (lanes > 2 && axis->src[0]->hi <= lanes / 2) lanes /= 2;
    return lanes;
  }

  /// Makes `axis`, or its inner part of `lanes`, the lanes.
  bool split_lane(Ref axis, int64_t lanes) {
    const bool whole = extent(axis) == lanes || (is_output(axis) && extent(axis) > 0 && extent(axis) < lanes);
    return split_off(axis, whole ? 0 : lanes, Opt::Kind::Lane);
  }
  /// Makes the inner `n` of `axis`, or all of it if 0, lanes or registers.
  bool split_off(Ref axis, int64_t n, Opt::Kind kind) {
    const OptKernel saved = k_;
    const size_t count = opts_.size();
    const int64_t at = position(axis);
    if (n == 0 ? attempt(kind, {at}) : attempt(Opt::Kind::Split, {at, n}) && attempt(kind, {at + 1})) return true;
    k_ = saved;
    opts_.resize(count);
    look();
    return false;
  }

  /// An output axis along which a load that moves with the lanes can be kept in registers: rather one that surely fills
  /// a tile than an open one, of which a run may have a single row; then the longest, where open ones count as alike.
  Ref row_axis(Ref lane) const {
    Ref best;
    for (Ref axis : axes_) {
      if (axis == lane || !is_output(axis) || !is_plain(axis) || axis->src[0]->hi < 2) continue;
      bool reuses = false, used = false;
      for (Ref load : contraction_loads()) {
        reuses |= depends(load->src[1], lane) && !depends(load->src[1], axis);
        used |= depends(load->src[1], axis);
      }
      const auto worth = [](Ref a) {
        const int64_t least = a->src[0]->lo;
        if (extent(a) > 0) return std::pair(std::min(least, kMaxRows), upper(a));
        return std::pair(least < kMaxRows ? 1 : kMaxRows, std::min(upper(a), kOpenRows));
      };
      if (reuses && used && (!best || worth(axis) >= worth(best))) best = axis; // the inner one: its rows lie closer
    }
    return best;
  }

  /// The innermost axis along which windows overlap.
  Ref overlapping_axis(Ref lane) const {
    Ref best;
    for (Ref axis : axes_)
      if (!(axis == lane) && is_output(axis) && is_plain(axis) && overlaps(contraction_, axis)) best = axis;
    return best;
  }

  std::vector<Ref> contraction_loads() const { return product_loads(contraction_); }

  /// A run-time operand of which many rows read panels whose terms lie far apart: each is another page, and strides of
  /// a power of two are few sets of a cache.
  bool is_scattered(Ref load, Ref lane) const {
    const Ref row = row_axis(lane);
    if (!row || row->src[0]->lo < kManyRows || depends(load->src[1], row)) return false;
    if (is_constant(load) || coefficient(load->src[1], lane) != 1) return false;
    return std::any_of(axes_.begin(), axes_.end(), [&](Ref axis) {
      return !is_output(axis) && coefficient(load->src[1], axis).value_or(0) * byte_size(load->dtype) >= kFarTerms;
    });
  }

  /// Tiles; where operands lie across the lanes, or are scattered, walks panels of lanes outside of the rows and copies
  /// each to scratch.
  void tile_and_stage(Ref lane) {
    std::vector<int64_t> slots, scattered;
    for (Ref load : contraction_loads()) {
      if (!load->src[0]->is(Ops::Param)) continue;
      if (wants_stage(load, lane)) slots.push_back(load->src[0]->i(Attr::Slot));
      if (may_stage_ && is_scattered(load, lane)) scattered.push_back(load->src[0]->i(Attr::Slot));
    }
    const OptKernel saved = k_;
    const size_t count = opts_.size();
    tile(lane, !slots.empty() || !scattered.empty());
    for (const int64_t slot : scattered) stage_panel(slot);
    for (const int64_t slot : slots) {
      if (stage_panel(slot)) continue;
      k_ = saved;
      opts_.resize(count);
      may_stage_ = false;
      look();
      if (const Ref other = lane_axis()) tile(other, false);
      return;
    }
  }

  /// Copies what the loops inside the one over panels read of `slot`, lanes last. A product so small that it has no
  /// such loop reads element by element: its sums have the order of a larger one's.
  bool stage_panel(int64_t slot) {
    int64_t panel = -1;
    std::vector<int64_t> order, lanes;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (slot_depends(slot, axes_[i]) && (is_loop(axes_[i]) || axes_[i]->s(Attr::Axis) == "block"))
        panel = static_cast<int64_t>(i);
    for (int64_t i = panel + 1; i < static_cast<int64_t>(axes_.size()); ++i) {
      const Ref axis = axes_[static_cast<size_t>(i)];
      const bool is_last = axis->s(Attr::Axis) == "lane" || is_word(axis); // sums come after outputs
      if (slot_depends(slot, axis)) (is_last ? lanes : order).push_back(i);
    }
    order.insert(order.begin(), {slot, panel});
    order.insert(order.end(), lanes.begin(), lanes.end());
    return panel < 0 || attempt(Opt::Kind::Stage, order);
  }

  /// The register tile of a contraction: `rows` x `vectors` accumulators.
  void tile(Ref lane, bool panels_outside) {
    const Ref kept = row_axis(lane), row = kept ? kept : overlapping_axis(lane);
    int64_t v = vector(), n = extent(lane), vectors = 1;
    const bool is_sliding = row && (!kept || slides(contraction_, lane, row));
    if (n >= 2 * v && (n % (2 * v) == 0 || n >= 6 * v)) vectors = 2;
    if (!row && n >= 4 * v && n % (4 * v) == 0) vectors = 4;
    if (is_sliding) vectors = 1;
    if (wishes_.vectors > 0) vectors = wishes_.vectors;
    const int64_t most = is_sliding ? sliding_rows(contraction_, row,
                                                   !kept      ? kOverlapRows
                                                   : is_far() ? kFarRows
                                                              : kMaxRows,
                                                   registers())
                                    : std::clamp<int64_t>((registers() - vectors - 1) / vectors, 1, kMaxRows);
    int64_t rows = row ? row_count(extent(row), most) : 1;
    if (row && wishes_.rows > 0) rows = std::min(wishes_.rows, row->src[0]->hi);
    int64_t lane_at = position(lane), row_at = row ? position(row) : -1;
    if (!split_lane(lane, v * vectors)) return;
    bool lane_was_split = n == 0 || n > v * vectors;
    if (row_at > lane_at && lane_was_split) ++row_at;
    if (rows > 1) {
      bool whole = rows == extent(axes_[static_cast<size_t>(row_at)]);
      if (!whole && attempt(Opt::Kind::Split, {row_at, rows})) {
        if (lane_at > row_at) ++lane_at;
        attempt(Opt::Kind::Upcast, {row_at + 1});
      } else if (whole) {
        attempt(Opt::Kind::Upcast, {row_at});
        row_at = -1;
      }
    }
    if (row_at >= 0 && is_plain(axes_[static_cast<size_t>(row_at)]))
      order_row_loop(axes_[static_cast<size_t>(row_at)], panels_outside);
    if (is_sliding && (!kept || is_far())) follow_memory();
    slides_along_lanes_ = is_sliding && !kept;
    order_terms();
  }

  bool is_far() const { return touched_bytes(k_.func) > static_cast<double>(target_.l2_bytes); }

  /// Sums run innermost along the elements that follow each other in memory of what is broadcast: a step further along
  /// another axis is another cache line, and for a tile of rows many.
  void order_terms() {
    int64_t last = -1, along = -1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i]->s(Attr::Axis) != "reduce") continue;
      last = static_cast<int64_t>(i);
      for (Ref load : contraction_loads())
        if (!is_constant(load) && coefficient(load->src[1], axes_[i]) == (words_ ? 4 : 1)) along = last;
    }
    if (along < 0 || along == last) return;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < static_cast<int64_t>(axes_.size()); ++i) {
      if (i != along) order.push_back(i);
      if (i == last) order.push_back(along);
    }
    attempt(Opt::Kind::Reorder, order);
  }

  /// Puts the loop over row blocks outermost or innermost of the output loops, whichever reads less again: outermost,
  /// every row block reads the lanes' operand once more; innermost, every other block reads the rows' operand once
  /// more.
  void order_row_loop(Ref row, bool panels_outside) {
    double outermost = 0, innermost = 0;
    for (Ref load : contraction_loads()) {
      const double bytes = static_cast<double>(std::max<int64_t>(load->src[0]->shape[0]->hi, 1));
      double times = 1;
      for (Ref axis : axes_)
        if (is_loop(axis) && !depends(load->src[1], axis)) times *= upper(axis);
      if (depends(load->src[1], row))
        innermost += bytes * (times - 1);
      else
        outermost += bytes * (upper(row) - 1);
    }
    if (wishes_.row_loop != Wishes::Rows::Judged)
      outermost = wishes_.row_loop == Wishes::Rows::Outermost ? innermost - 1 : innermost + 1;
    if (panels_outside) outermost = innermost + 1;
    std::vector<int64_t> order;
    int64_t at = position(row), last = at;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (is_output(axes_[i])) last = static_cast<int64_t>(i);
    for (int64_t i = 0; i < static_cast<int64_t>(axes_.size()); ++i) {
      if (outermost <= innermost && i == blocks()) order.push_back(at);
      if (i != at) order.push_back(i);
      if (i == last && outermost > innermost) order.push_back(at);
    }
    if (!std::is_sorted(order.begin(), order.end())) attempt(Opt::Kind::Reorder, order);
  }

  /// Axes shared with other nests; they come first.
  int64_t blocks() const {
    return std::count_if(axes_.begin(), axes_.end(), [](Ref a) { return a->s(Attr::Axis) == "block"; });
  }

  /// Repeats short reductions in the code, and a few steps of a long one.
  void unroll() {
    int64_t budget = wishes_.unrolled > 0 ? wishes_.unrolled : kMaxUnrolled;
    for (size_t i = axes_.size(); i-- > 0;) {
      if (i >= axes_.size()) continue;
      Ref axis = axes_[i];
      if (is_output(axis) || axis->s(Attr::Axis) != "reduce" || extent(axis) == 0) continue;
      const bool fits = wishes_.unrolled > 0 || fits_unrolled(axis);
      const bool is_long = wishes_.unrolled == 0 && contraction_ && extent(axis) > kMaxTerms && extent(axis) % 4 == 0;
      if (fits && extent(axis) <= budget && !is_long) {
        if (attempt(Opt::Kind::Unroll, {static_cast<int64_t>(i)})) budget /= std::max<int64_t>(1, extent(axis));
      } else if (fits && contraction_ && budget >= 4 && extent(axis) % 4 == 0 &&
                 attempt(Opt::Kind::Split, {static_cast<int64_t>(i), 4})) {
        attempt(Opt::Kind::Unroll, {static_cast<int64_t>(i) + 1});
        budget = 1;
      } else {
        budget = 1;
      }
    }
    repeat_pieces();
  }

  /// Repeats the loop over pieces of a picture's row in the code, if they are few: which lanes lie beyond the picture
  /// is known then, and no mask is computed but for its edges.
  void repeat_pieces() {
    if (!slides_along_lanes_) return;
    int64_t products = 1;
    Ref pieces;
    for (Ref axis : axes_) {
      const std::string& kind = axis->s(Attr::Axis);
      if (kind == "upcast" || kind == "unroll") products *= extent(axis);
      if (is_loop(axis)) pieces = axis;
    }
    const auto is_masked = [&](Ref load) { return load->src.size() > 2 && depends(load->src[2], pieces); };
    if (!pieces || extent(pieces) == 0 || products * extent(pieces) > kMaxRepeated) return;
    const std::vector<Ref> loads = contraction_loads();
    if (std::any_of(loads.begin(), loads.end(), is_masked)) attempt(Opt::Kind::Unroll, {position(pieces)});
  }

  /// Are there registers for what rows of a tile share once `axis` is repeated in the code, beside their sums?
  bool fits_unrolled(Ref axis) const {
    int64_t sums = 1, shared = 0;
    for (Ref a : axes_) {
      if (a->s(Attr::Axis) == "lane") sums *= (extent(a) + vector() - 1) / vector();
      if (a->s(Attr::Axis) != "upcast" || !contraction_) continue;
      sums *= extent(a);
      shared = std::max(shared, shared_reads(contraction_, a, extent(a), axis));
    }
    return shared == 0 || sums + shared <= registers();
  }

  /// Packs the constant operand of a contraction in reading order: loops by nesting, then rows, then lanes.
  void pack() {
    if (!contraction_) return;
    std::vector<int64_t> slots;
    for (Ref load : contraction_loads())
      if (is_constant(load) && load->ranges.size() >= 2) slots.push_back(load->src[0]->i(Attr::Slot));
    std::sort(slots.begin(), slots.end());
    for (int64_t slot : slots) {
      std::vector<int64_t> args = {slot};
      for (const char* kind : {"", "upcast", "lane", "word"})
        for (Ref axis : axes_) {
          bool dim = axis->s(Attr::Axis) == "upcast" || axis->s(Attr::Axis) == "lane" || is_word(axis);
          bool wanted = *kind == 0 ? !dim : axis->s(Attr::Axis) == kind;
          if (wanted && slot_depends(slot, axis)) args.push_back(position(axis));
        }
      attempt(Opt::Kind::Pack, args);
    }
  }
  bool slot_depends(int64_t slot, Ref axis) const {
    return std::any_of(loads_.begin(), loads_.end(), [&](Ref l) {
      return l->src[0]->is(Ops::Param) && l->src[0]->i(Attr::Slot) == slot && depends(l->src[1], axis);
    });
  }

  const TargetInfo& target_;
  const std::vector<bool>& constant_;
  Wishes wishes_;
  int64_t stride_ = 1;                    ///< elements between lanes, at most
  bool may_stage_ = true, words_ = false; ///< words_: an axis is that of the bytes of words
  bool slides_along_lanes_ = false;       ///< windows overlap, and lanes run along the picture
};

} // namespace

Chosen choose_opts(Ref func, const TargetInfo& target, const std::vector<bool>& constant, const Wishes& wishes) {
  return Heuristic(func, target, constant, wishes).run();
}

Chosen choose_nest_opts(Ref nest, const TargetInfo& target, const Wishes& wishes) {
  return Heuristic(nest, target, {}, wishes).run_nest();
}

Chosen choose_joint_opts(Ref func, const TargetInfo& target) {
  return divide_among_threads({OptKernel{func, {}}, {}}, target);
}

} // namespace tgc
