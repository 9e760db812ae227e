// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which opts might beat the heuristic's. It is asked again and again, each time held to a few of its decisions: so a
// candidate is always a list that the heuristic could have written, with packing, staging, nesting and threads to
// match. First tiles and lane axes are varied, for each way of opening nests; then, of the tiles that are expected to
// be fastest, loop order and unrolling. The estimate (estimate.h) is a sieve, not a judge: of tiles that differ in
// little it keeps few.
#include "schedule/candidates.h"

#include <algorithm>

#include "schedule/estimate.h"
#include "schedule/nests.h"
#include "schedule/optimize.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr size_t kOpenings = 2;     // ways to open nests, beside the heuristic's, whose tiles are varied
constexpr size_t kTiles = 5;        // tiles whose loop order and unrolling are varied
constexpr int64_t kMaxLaneAxes = 6; // positions tried as the lane axis
constexpr int64_t kChunks = 16;     // chunks that are enough for threads, if the heuristic offers as many
constexpr double kHopeless = 4;     // times the heuristic's estimate
constexpr int64_t kRows[] = {1, 2, 4, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28};
constexpr int64_t kVectors[] = {1, 2, 3, 4};
constexpr int64_t kUnrolled[] = {1, 4, 64};

using How = std::pair<std::vector<Opt>, Wishes>;

bool is_winograd(const std::vector<Opt>& open) { return !open.empty() && open.back().kind == Opt::Kind::Winograd; }

class Generator {
public:
  Generator(Ref func, const TargetInfo& target, const std::vector<bool>& constant, const CandidateLimits& limits)
      : func_(func), target_(target), constant_(constant), limits_(limits),
        own_(choose_opening(func, constant, limits.reorder)) {}

  std::vector<Candidate> run() {
    add({own_, {.reorder = limits_.reorder}});
    if (found_.empty()) return {};
    vary_openings();
    sort();
    vary_tiles();
    sort();
    std::vector<How> tiles;
    for (size_t i = 0; i < found_.size() && tiles.size() < kTiles + 1; ++i) tiles.push_back(found_[i].how);
    for (const How& tile : tiles) vary_loops(tile);
    sort();
    std::vector<Candidate> out;
    for (const Found& f : found_) {
      if (out.size() > static_cast<size_t>(limits_.most)) break;
      if (f.candidate.cycles <= kHopeless * found_[0].candidate.cycles) out.push_back(f.candidate);
    }
    return out;
  }

private:
  struct Found {
    Candidate candidate;
    How how;
  };

  void add(const How& how) {
    OptKernel kernel;
    try {
      kernel = optimize_as(func_, target_, constant_, how);
    } catch (const CompileError&) {
      return; // the opening does not suit the kernel
    }
    for (const OptKernel::Packing& packing : kernel.packings)
      if (const auto slot = static_cast<size_t>(packing.slot); slot >= constant_.size() || !constant_[slot]) return;
    const int64_t enough = chunks(kernel.func);
    if (found_.empty()) chunks_ = std::min(enough, kChunks);
    if (enough < chunks_) return;
    const std::string text = kernel.func->s(Attr::Opts);
    for (const Found& f : found_)
      if (f.candidate.opts == text) return;
    found_.push_back({{text, estimate_cycles(kernel.func, target_), is_winograd(how.first) != is_winograd(own_)}, how});
  }

  /// What threads can share.
  static int64_t chunks(Ref func) {
    for (Ref axis : kernel_axes(func))
      if (axis->s(Attr::Axis) == "thread") return axis->src[0]->lo;
    return 1;
  }

  /// The heuristic's own stays first.
  void sort() {
    std::stable_sort(found_.begin() + 1, found_.end(), [](const Found& a, const Found& b) {
      return std::pair(a.candidate.cycles, a.candidate.opts) < std::pair(b.candidate.cycles, b.candidate.opts);
    });
  }

  /// Other ways to open nests, or none, with the tiles that the heuristic gives them.
  void vary_openings() {
    const Wishes judged{.reorder = limits_.reorder};
    if (!own_.empty() && own_.back().kind == Opt::Kind::Nest) { // a kernel that is made for nests has no other form
      How how{own_, judged};
      std::vector<int64_t>& args = how.first.back().args;
      if (!args.empty())
        for (const int64_t rows : {8, 14, 16, 24, 32, 48, 64}) {
          args = {args[0], rows};
          add(how);
          args.push_back(1); // rows innermost
          add(how);
        }
      return;
    }
    if (!own_.empty()) add({{}, judged});
    if (!limits_.reorder) return;
    for (const int64_t parts : {1, 2, 4})
      for (const int64_t rows : {14, 16, 24, 28, 32, 56}) add({{Opt{Opt::Kind::Winograd, {rows, parts}}}, judged});
  }

  /// Tiles and lane axes: of the heuristic's way, of one nest, and of the best other ways.
  void vary_tiles() {
    std::vector<std::vector<Opt>> opens = {own_};
    for (const Found& f : found_)
      if (std::find(opens.begin(), opens.end(), f.how.first) == opens.end() &&
          (opens.size() <= kOpenings || f.how.first.empty()))
        opens.push_back(f.how.first);
    for (const std::vector<Opt>& open : opens) vary_tile(open);
  }

  void vary_tile(const std::vector<Opt>& open) {
    Wishes wishes{.reorder = limits_.reorder};
    for (const int64_t vectors : kVectors)
      for (const int64_t rows : kRows) {
        if (rows * vectors + vectors + 1 > target_.vector_registers || (rows * vectors < 4 && rows > 1)) continue;
        if (!open.empty() && (rows < 6 || rows > 14 || vectors > 2)) continue; // of nests, the products matter
        wishes.rows = rows, wishes.vectors = vectors;
        add({open, wishes});
      }
    if (!open.empty()) return;
    wishes = {.reorder = limits_.reorder};
    for (wishes.lane = 0; wishes.lane < kMaxLaneAxes; ++wishes.lane) add({open, wishes});
  }

  void vary_loops(const How& tile) {
    How how = tile;
    Wishes& wishes = how.second;
    for (const auto rows : {Wishes::Rows::Judged, Wishes::Rows::Outermost, Wishes::Rows::Innermost}) {
      wishes.row_loop = rows;
      wishes.unrolled = tile.second.unrolled;
      add(how);
      if (!how.first.empty() && rows != Wishes::Rows::Judged) continue; // nests take long to make
      for (const int64_t unrolled : kUnrolled) {
        wishes.unrolled = unrolled;
        add(how);
      }
    }
  }

  Ref func_;
  const TargetInfo& target_;
  const std::vector<bool>& constant_;
  CandidateLimits limits_;
  std::vector<Opt> own_;
  std::vector<Found> found_;
  int64_t chunks_ = 1; ///< that a list must offer: it is timed on one thread, but may run on many
};

} // namespace

std::vector<Candidate> candidates(Ref func, const TargetInfo& target, const std::vector<bool>& constant,
                                  const CandidateLimits& limits) {
  return Generator(func, target, constant, limits).run();
}

} // namespace tgc
