// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of a few opt lists is fastest, found by running them. All lists of a kernel become one plan of as many calls,
// compiled at once like any plan, then a bundle each. Problem: times vary by more than lists differ. So runs are
// interleaved, the best of many counts, lists that are clearly slower leave early, and a winner must win again, by a
// margin, against the heuristic's list alone. Before each run the caches are swept and the operands that other kernels
// would just have written are read: in a model, weights come from far away and activations do not. Not handled: other
// numbers of threads than one, kernels whose time depends on the operands' values.
#include "tgc/beam.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>

#include "schedule/candidates.h"
#include "tgc/bundle_contents.h"
#include "tgc/file_lock.h"
#include "tgc/passes.h"
#include "tgc/run_bundle.h"
#include "tgc/weights.h"
#include "uop/eval.h"

namespace tgc {
namespace {

// A winner takes less than this share of the heuristic's time, and so many seconds less: clocks and calls cost, too.
constexpr double kMargin = 0.97, kLeast = 2e-7;
constexpr int kMinRounds = 8, kMaxRounds = 40;       // runs of each list
constexpr double kSeconds = 0.25;                    // that are enough for the rounds of one kernel
constexpr int64_t kOpenDim = 16;                     // a symbolic dim's value, within its bounds
constexpr int64_t kMaxBytes = int64_t{2} << 30;      // of operands, with which a kernel is timed
constexpr double kRelative = 1e-3, kAbsolute = 1e-5; // as --verify has it, where sums are regrouped
constexpr size_t kPeriod = 4093; // elements after which random operands repeat: a prime, so rows differ

/// Seconds of this process: while others run, time is not up.
double used() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// An operand's values; `random` is advanced.
void fill(DType dtype, std::span<std::byte> to, uint64_t& random) {
  HostTensor block = zeros(dtype, {static_cast<int64_t>(kPeriod)});
  for (int64_t i = 0; i < block.numel(); ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const double unit = static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
    block.set(i, is_float(dtype) ? 2 * unit - 1 : dtype == DType::Bool ? std::floor(2 * unit) : std::floor(4 * unit));
  }
  for (size_t at = 0; at < to.size(); at += block.data.size())
    std::memcpy(to.data() + at, block.data.data(), std::min(block.data.size(), to.size() - at));
}

/// The plan that calls one kernel once with each opt list.
class Trials {
public:
  Trials(Ref func, const std::vector<bool>& constant) : func_(import(*module_.ctx, func)), constant_(constant) {
    for (Ref node : toposort(func_))
      if (node->is(Ops::Var)) vars_[node->s(Attr::Name)] = std::clamp(kOpenDim, node->i(Attr::Min), node->i(Attr::Max));
    for (Ref node : toposort(func_))
      if (node->is(Ops::Param)) add_operand(node);
  }

  int64_t bytes() const { return bytes_; }
  const VarValues& vars() const { return vars_; }

  Module plan(const std::vector<Candidate>& lists) {
    std::vector<Ref> calls;
    for (size_t i = 0; i < lists.size(); ++i) {
      const Attrs attrs = {{Attr::Name, "k" + std::to_string(i)}, {Attr::Opts, lists[i].opts}};
      std::vector<Ref> src = {module_.ctx->make(Ops::Func, DType::Void, func_->src, attrs)};
      src.insert(src.end(), arguments_.begin(), arguments_.end());
      calls.push_back(module_.ctx->make(Ops::Call, DType::Void, src));
    }
    module_.root = make_func("main", module_.ctx->make(Ops::Linear, DType::Void, calls));
    return std::move(module_);
  }

private:
  void add_operand(Ref param) {
    const auto slot = static_cast<size_t>(param->i(Attr::Slot));
    const int64_t size = eval_index(param->shape[0], vars_) * byte_size(param->dtype);
    bytes_ += size;
    if (bytes_ > kMaxBytes) return; // it will not be timed
    if (arguments_.size() <= slot) arguments_.resize(slot + 1);
    const std::string name = "p" + std::to_string(slot);
    if (slot >= constant_.size() || !constant_[slot]) {
      arguments_[slot] = module_.ctx->make(Ops::Param, param->dtype, param->src,
                                           {{Attr::Slot, static_cast<int64_t>(slot)}, {Attr::Name, name}});
      return;
    }
    std::vector<std::byte> data(static_cast<size_t>(size));
    fill(param->dtype, data, random_);
    module_.weights[name] = inline_weight(std::move(data));
    arguments_[slot] = module_.ctx->make(Ops::Weight, param->dtype, param->src, {{Attr::Key, name}});
  }

  Module module_;
  Ref func_;
  const std::vector<bool>& constant_;
  VarValues vars_;
  std::vector<Ref> arguments_;
  int64_t bytes_ = 0;
  uint64_t random_ = 1;
};

/// One list, ready to run.
struct Trial {
  const Candidate* list;
  LoadedContents code;
  double best = std::numeric_limits<double>::infinity(); ///< seconds
};

[[noreturn]] void cannot_run(const std::string& why) {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E405,
                 .where = "",
                 .message = "--beam runs kernels, and this machine cannot run the target's: " + why,
                 .note = "time them on a machine like the target, and compile here with --tuned FILE alone"});
}

/// Each list's kernel as a bundle of its own, their code compiled at once.
std::vector<Trial> build(Module plan, const std::vector<Candidate>& lists, const CompileOptions& how) {
  CompileOptions options;
  options.target = how.target;
  options.numerics = how.numerics;
  options.jobs = how.jobs;
  options.cache = how.cache;
  options.disabled_rules = how.disabled_rules;
  options.passes.start_before = "optimize";
  Compilation c = start_compilation(std::move(plan), options);
  run_pipeline(c, options);
  c.from_text = false; // it was made here
  fold_constants(c, options.jobs, options.cache);
  const Ref all = c.module.root;
  std::vector<BundleContents> contents;
  std::vector<KernelSource> sources;
  for (Ref call : all->src[0]->src) {
    c.module.root = with_body(all, c.module.ctx->make(Ops::Linear, DType::Void, {call}));
    render(c); // the variables are those of this kernel
    sources.insert(sources.end(), c.sources.begin(), c.sources.end());
    contents.push_back(bundle_contents(c, options));
  }
  const CompiledCode code = c.renderer->compile(sources, c.target, options.jobs, options.cache);
  std::vector<Trial> trials;
  for (size_t i = 0; i < contents.size(); ++i) {
    contents[i].code.assign(reinterpret_cast<const char*>(code.image.data()), code.image.size());
    trials.push_back({&lists[i], load_contents(contents[i], 1)});
    if (!trials.back().code.context) cannot_run(trials.back().code.problem);
  }
  return trials;
}

class Race {
public:
  Race(std::vector<Trial> trials, const VarValues& vars, const TargetInfo& target)
      : trials_(std::move(trials)), sweep_(static_cast<size_t>(2 * target.l2_bytes)),
        keep_(static_cast<size_t>(target.l2_bytes)) {
    bind(vars);
    for (Trial& trial : trials_) run(trial, &trial == &trials_.front());
    std::erase_if(trials_, [](const Trial& t) { return !t.list; });
  }

  /// The fastest list, and its time and that of the first list in seconds.
  struct Result {
    const Candidate* list;
    double seconds, first;
  };
  Result winner() {
    rounds(trials_);
    const Trial* best = &*std::min_element(trials_.begin(), trials_.end(), faster);
    const Trial* first = &trials_.front();
    if (!beats(*best, *first)) return {first->list, first->best, first->best};
    std::vector<Trial> final;
    const size_t at = static_cast<size_t>(best - first);
    final.push_back(std::move(trials_[0]));
    final.push_back(std::move(trials_[at]));
    for (Trial& trial : final) trial.best = std::numeric_limits<double>::infinity();
    rounds(final);
    const Trial& won = final[beats(final[1], final[0]) ? 1 : 0];
    return {won.list, won.best, final[0].best};
  }

private:
  static bool beats(const Trial& a, const Trial& b) { return a.best < kMargin * b.best && a.best < b.best - kLeast; }
  static bool faster(const Trial& a, const Trial& b) { return a.best < b.best; }

  void bind(const VarValues& vars) {
    uint64_t random = 7;
    for (Trial& trial : trials_) {
      tgrt_error error{};
      tgrt_context* context = trial.code.context.get();
      const tgrt_model* model = trial.code.model.get();
      for (const auto& [name, value] : vars) tgrt_set_var(context, name.c_str(), value, nullptr);
      for (const int kind : {TGRT_INPUT, TGRT_OUTPUT})
        for (uint32_t i = 0; i < tgrt_tensor_count(model, kind); ++i) {
          const size_t bytes = tgrt_bytes(context, kind, i, &error);
          if (error.code != 0) throw RuntimeFailure(error);
          std::vector<std::shared_ptr<std::byte>>& blocks = blocks_[kind];
          if (blocks.size() <= i) {
            blocks.push_back(make_block(bytes + 1));
            tgrt_tensor_info info{};
            tgrt_get_tensor(model, kind, i, &info);
            if (kind == TGRT_INPUT) fill(static_cast<DType>(info.dtype), {blocks[i].get(), bytes}, random);
            sizes_[kind].push_back(bytes);
            if (kind == TGRT_OUTPUT) result_.dtype = static_cast<DType>(info.dtype);
          }
          const int failed = kind == TGRT_INPUT ? tgrt_bind_input(context, i, blocks[i].get(), bytes, &error)
                                                : tgrt_bind_output(context, i, blocks[i].get(), bytes, &error);
          if (failed) throw RuntimeFailure(error);
        }
    }
  }

  /// Runs a list for the first time; one whose result is not the first's is out.
  void run(Trial& trial, bool is_first) {
    const std::span<std::byte> made(blocks_[TGRT_OUTPUT][0].get(), sizes_[TGRT_OUTPUT][0]);
    std::fill(made.begin(), made.end(), std::byte{0xa5}); // what is not written differs
    time(trial);
    HostTensor result = result_;
    result.shape = {static_cast<int64_t>(made.size()) / byte_size(result.dtype)};
    result.data.assign(made.begin(), made.end());
    if (is_first)
      result_ = std::move(result);
    else if (!same(result, trial.list->regroups))
      trial.list = nullptr;
  }
  bool same(const HostTensor& result, bool regroups) const {
    if (result.data == result_.data) return true;
    double scale = 0;
    for (int64_t i = 0; i < result.numel(); ++i)
      if (std::isfinite(result_.at(i))) scale = std::max(scale, std::fabs(result_.at(i)));
    for (int64_t i = 0; i < result.numel(); ++i) {
      const double a = result_.at(i), b = result.at(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double allowed = regroups ? kRelative * std::fabs(a) + kAbsolute * scale : 0;
      if (!(std::fabs(a - b) <= allowed)) return false;
    }
    return true;
  }

  /// Interleaved runs, until there are enough; each trial's best is updated.
  void rounds(std::vector<Trial>& trials) {
    std::vector<bool> in(trials.size(), true);
    const double start = used();
    for (int round = 1; round <= kMaxRounds && (round <= kMinRounds || used() - start < kSeconds); ++round) {
      double best = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < trials.size(); ++i) {
        if (in[i]) trials[i].best = std::min(trials[i].best, time(trials[i]));
        best = std::min(best, trials[i].best);
      }
      const double lag = round == 1 ? 2 : round < 4 ? 1.3 : 1.1;
      for (size_t i = 1; i < trials.size(); ++i) in[i] = in[i] && trials[i].best <= lag * best;
    }
  }

  double time(Trial& trial) {
    settle();
    tgrt_error error{};
    const double start = now();
    if (tgrt_run(trial.code.context.get(), &error) != 0) throw RuntimeFailure(error);
    return now() - start;
  }

  /// Caches as the kernel would find them.
  void settle() {
    const auto read = [this](const std::byte* from, size_t bytes) {
      for (size_t at = 0; at < bytes; at += 64) seen_ = static_cast<unsigned>(seen_ + static_cast<unsigned>(from[at]));
    };
    read(sweep_.data(), sweep_.size());
    for (size_t i = 0; i < blocks_[TGRT_INPUT].size(); ++i)
      read(blocks_[TGRT_INPUT][i].get(), std::min(sizes_[TGRT_INPUT][i], keep_));
  }

  std::vector<Trial> trials_;
  std::vector<std::byte> sweep_;
  size_t keep_;
  std::vector<std::shared_ptr<std::byte>> blocks_[2]; ///< by kind
  std::vector<size_t> sizes_[2];
  HostTensor result_; ///< of the first list
  volatile unsigned seen_ = 0;
};

bool applies(Ref func, const TargetInfo& target, const std::vector<bool>& constant, const TunedKernel& tuned) {
  const Attrs attrs = {{Attr::Name, func->s(Attr::Name)}, {Attr::Opts, tuned.opts}};
  try {
    optimize_kernel(func->ctx->make(Ops::Func, DType::Void, func->src, attrs), target, constant);
  } catch (const CompileError&) {
    return false;
  }
  return true;
}

} // namespace

std::optional<TunedKernel> search_opts(Ref func, const std::vector<bool>& constant, const CompileOptions& options,
                                       int most) {
  const TargetSpec spec = parse_target(options.target);
  const TargetInfo target = find_renderer(spec).target(spec);
  Module scratch; // what the generator makes is gone afterwards
  const std::vector<Candidate> lists =
      candidates(import(*scratch.ctx, func), target, constant, {most, options.numerics != Numerics::Strict});
  Trials trials(func, constant);
  if (lists.size() < 2 || trials.bytes() > kMaxBytes) return {};
  const VarValues vars = trials.vars();
  try {
    Race race(build(trials.plan(lists), lists, options), vars, target);
    const Race::Result won = race.winner();
    const auto ns = [](double seconds) { return std::max<int64_t>(1, std::llround(seconds * 1e9)); };
    return TunedKernel{won.list->opts, ns(won.seconds), ns(won.first), 0};
  } catch (const RuntimeFailure& failure) {
    cannot_run(failure.what());
  }
}

Tuner::Tuner(std::string path, int most, CompileOptions& options)
    : path_(std::move(path)), most_(most), options_(options) {
  const TargetSpec spec = parse_target(options.target);
  target_ = find_renderer(spec).target(spec);
  if (most_ == 0 || std::filesystem::exists(path_)) {
    if (most_ > 0) const FileLock can_be_written(path_); // before time is spent
    database_ = TuningDatabase::read(path_);
  }
  options.find_opts = [this](Ref func, const std::vector<bool>& constant) { return find(func, constant); };
  if (most_ == 0) return;
  const auto inner = options.after_pass;
  options.after_pass = [this, inner](const Pass& pass, const Module& module, double seconds) {
    if (inner) inner(pass, module, seconds);
    if (std::string_view(pass.name) == "lower-stage") kernels_ = kernels_of(module.root).size();
  };
}

std::optional<TunedKernel> Tuner::search(Ref func, const std::vector<bool>& constant, const std::string& key) {
  const double start = now();
  std::optional<TunedKernel> timed = search_opts(func, constant, options_, most_);
  if (!timed) return {};
  database_ = TuningDatabase::add(path_, key, target_key(target_), *timed); // others may have added to it
  const double gain = 100 * (1 - static_cast<double>(timed->ns) / static_cast<double>(timed->default_ns));
  std::fprintf(stderr, "beam      %zu/%zu %s  %.1f s  %.1f us -> %.1f us (%.0f %%)  %s\n", asked_, kernels_,
               func->s(Attr::Name).c_str(), now() - start, static_cast<double>(timed->default_ns) * 1e-3,
               static_cast<double>(timed->ns) * 1e-3, gain, timed->opts.c_str());
  return timed;
}

std::optional<FoundOpts> Tuner::find(Ref func, const std::vector<bool>& constant) {
  ++asked_;
  if (!constant.empty() && constant[0]) return {}; // it runs once, while compiling
  const std::string key = kernel_key(func, constant, options_.numerics), target = target_key(target_);
  const TunedKernel* known = database_.find(key, target);
  // When kernels are timed anyway, so are those whose line does not apply; else optimize_plan says which it is.
  if (known && (most_ == 0 || applies(func, target_, constant, *known))) {
    ++found_;
    return FoundOpts{known->opts, path_ + (known->line > 0 ? ":" + std::to_string(known->line) : "")};
  }
  const std::optional<TunedKernel> timed = most_ > 0 ? search(func, constant, key) : std::nullopt;
  ++(timed ? timed_ : unknown_);
  return timed ? std::optional(FoundOpts{timed->opts, path_}) : std::nullopt;
}

} // namespace tgc
