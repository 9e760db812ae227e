// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Times of runs and of kernels. A benchmark warms up for a tenth of a second (pages, caches, clock), then runs for a
// second or a hundred runs, whichever is longer but at most ten seconds; medians and minima say more than means on a
// shared machine. A profile's rates use the compiler's counts of operations and of bytes that must move at least.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "printable.h"
#include "tgrun/run_model.h"

namespace tgc {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Whether to run again, after `done` runs that took `seconds`.
bool again(size_t done, double seconds) { return seconds < 10 && (seconds < 1 || done < 100); }

ContextPtr ready_context(const tgrt_model* model, const RunOptions& options, ProfileFn profile, void* user) {
  ContextPtr context = make_context(model, options, profile, user);
  set_inputs(context.get(), model, options, read_inputs(model, options));
  const Clock::time_point start = Clock::now();
  do run_once(context.get(), options.bundle);
  while (seconds_since(start) < 0.1);
  return context;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

struct KernelTimes {
  uint32_t step = 0; ///< number within the run
  std::string name, origin;
  std::vector<double> seconds; ///< of each launch
  double flops = 0, bytes = 0; ///< of one launch
  double median = 0;
};

/// By step number.
using Profile = std::map<uint32_t, KernelTimes>;

void record(void* user, const tgrt_step_event* event) {
  KernelTimes& step = (*static_cast<Profile*>(user))[event->step];
  step.step = event->step;
  step.name = event->kernel;
  step.origin = event->origin;
  step.flops = static_cast<double>(event->flops);
  step.bytes = static_cast<double>(event->bytes);
  step.seconds.push_back(static_cast<double>(event->nanoseconds) * 1e-9);
}

void print_profile(const std::vector<KernelTimes>& steps, double total, size_t runs) {
  std::printf("%10s %6s %9s %8s %8s %8s  %s\n", "us", "share", "MFLOP", "GFLOP/s", "MB", "GB/s", "kernel (nodes)");
  const char* row = "%10.2f %5.1f%% %9.3f %8.2f %8.3f %8.2f  ";
  double flops = 0, bytes = 0;
  for (const KernelTimes& step : steps) {
    std::printf(row, step.median * 1e6, 100 * step.median / total, step.flops * 1e-6, step.flops / step.median * 1e-9,
                step.bytes * 1e-6, step.bytes / step.median * 1e-9);
    std::printf("%s\n", printable(step.name + (step.origin.empty() ? "" : " (" + step.origin + ")")).c_str());
    flops += step.flops;
    bytes += step.bytes;
  }
  std::printf(row, total * 1e6, 100.0, flops * 1e-6, flops / total * 1e-9, bytes * 1e-6, bytes / total * 1e-9);
  std::printf("total of %zu kernels, medians of %zu runs\n", steps.size(), runs);
}

void print_profile_json(const std::vector<KernelTimes>& steps, double total, size_t runs) {
  std::printf("{\"runs\": %zu, \"total_us\": %.3f, \"kernels\": [", runs, total * 1e6);
  for (size_t i = 0; i < steps.size(); ++i)
    std::printf("%s\n  {\"step\": %u, \"kernel\": %s, \"nodes\": %s, \"us\": %.3f, \"flops\": %.0f, \"bytes\": %.0f}",
                i ? "," : "", steps[i].step, json_string(steps[i].name).c_str(), json_string(steps[i].origin).c_str(),
                steps[i].median * 1e6, steps[i].flops, steps[i].bytes);
  std::printf("\n]}\n");
}

} // namespace

RunExit bench(const RunOptions& options) {
  const ModelPtr model = load_model(options, false);
  const ContextPtr context = ready_context(model.get(), options, nullptr, nullptr);
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (again(times.size(), seconds_since(start))) {
    const Clock::time_point begin = Clock::now();
    run_once(context.get(), options.bundle);
    times.push_back(seconds_since(begin) * 1e3);
  }
  std::sort(times.begin(), times.end());
  const double median = quantile(times, 0.5), p90 = quantile(times, 0.9);
  const size_t arena = tgrt_arena_bytes(context.get(), nullptr);
  const char* format = options.json ? "{\"median_ms\": %.6f, \"min_ms\": %.6f, \"p90_ms\": %.6f, \"runs\": %zu, "
                                      "\"arena_bytes\": %zu}\n"
                                    : "median %.4f ms, min %.4f ms, p90 %.4f ms (%zu runs, %zu bytes of arena)\n";
  std::printf(format, median, times.front(), p90, times.size(), arena);
  return RunExit::Ok;
}

RunExit profile(const RunOptions& options) {
  const ModelPtr model = load_model(options, false);
  Profile recorded;
  const ContextPtr context = ready_context(model.get(), options, record, &recorded);
  recorded.clear();
  size_t runs = 0;
  for (const Clock::time_point start = Clock::now(); again(runs, seconds_since(start)); ++runs)
    run_once(context.get(), options.bundle);
  std::vector<KernelTimes> steps;
  double total = 0;
  for (auto& [index, step] : recorded) {
    std::sort(step.seconds.begin(), step.seconds.end());
    step.median = std::max(quantile(step.seconds, 0.5), 1e-9);
    total += step.median;
    steps.push_back(std::move(step));
  }
  std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.median > b.median; });
  options.json ? print_profile_json(steps, total, runs) : print_profile(steps, total, runs);
  return RunExit::Ok;
}

} // namespace tgc
