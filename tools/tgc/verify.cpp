// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does the compiled model compute what the model means? The reference interpreter judges. Inputs are seeded, so a
// failure repeats; symbolic dims take small values. Tolerance: an element may differ by kRelative
// of itself plus kAbsolute of the output's largest element, which covers reordered sums and 2 ULP functions.
#include "tgc/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "printable.h"
#include "rewrite/rules/widen_half.h"
#include "rewrite/spec.h"
#include "tgc/passes.h"
#include "tgc/run_bundle.h"
#include "tgc/sample_dims.h"
#include "tgc/weights.h"

namespace tgc {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-5;
constexpr int64_t kSampled = 400; // elements of each output

struct Difference {
  double worst = 0; ///< largest |a - b|
  double scale = 0; ///< largest |reference|
  bool agrees = true;
};

Difference compare(const HostTensor& want, const HostTensor& got) {
  Difference d;
  if (want.shape != got.shape || want.dtype != got.dtype) return {0, 0, false};
  for (int64_t i = 0; i < want.numel(); ++i)
    if (std::isfinite(want.at(i))) d.scale = std::max(d.scale, std::fabs(want.at(i)));
  for (int64_t i = 0; i < want.numel(); ++i) {
    double a = want.at(i), b = got.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double error = std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : INFINITY;
    d.worst = std::max(d.worst, error);
    d.agrees &= std::isfinite(error) && error <= kRelative * std::fabs(a) + kAbsolute * d.scale;
  }
  return d;
}

/// Params of a graph or plan, by slot.
using Params = std::map<int64_t, Ref>;

/// Those that a store or a call writes.
Params written_params(Ref root) {
  Params written;
  for (Ref step : root->src[0]->src) {
    Ref to = step->src[step->is(Ops::Call) ? 1 : 0];
    while (to->is(Ops::After)) to = to->src[0];
    if (to->is(Ops::Param)) written[to->i(Attr::Slot)] = to;
  }
  return written;
}

Params read_params(Ref root) {
  Params inputs;
  const Params written = written_params(root);
  for (Ref node : toposort(root))
    if (node->is(Ops::Param) && !written.contains(node->i(Attr::Slot))) inputs[node->i(Attr::Slot)] = node;
  return inputs;
}

/// What is written, by slot; not the traps.
std::vector<Ref> output_params(Ref root) {
  std::vector<Ref> list;
  for (const auto& [slot, param] : written_params(root))
    if (!is_trap(param)) list.push_back(param);
  return list;
}

HostTensor elements(const HostTensor& whole, const std::vector<int64_t>& at) {
  HostTensor out = zeros(whole.dtype, {static_cast<int64_t>(at.size())});
  size_t size = static_cast<size_t>(byte_size(whole.dtype));
  for (size_t i = 0; i < at.size(); ++i)
    std::memcpy(out.data.data() + i * size, whole.data.data() + static_cast<size_t>(at[i]) * size, size);
  return out;
}

HostTensor random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t& seed) {
  HostTensor t = zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < t.numel(); ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    double unit = static_cast<double>(seed >> 40) / static_cast<double>(1 << 24);
    t.set(i, is_float(dtype) ? 2 * unit - 1 : dtype == DType::Bool ? std::floor(2 * unit) : std::floor(4 * unit));
  }
  return t;
}

} // namespace

Verifier::Verifier(Compilation& imported, Verify how, CompileOptions& options) : how_(how) {
  if (how_ == Verify::None) return;
  Module& module = imported.module;
  PassContext context;
  context.numerics = options.numerics;
  const bool is_plan = module.root->src[0]->is(Ops::Linear);
  in_model(imported, [&] { tgc::verify(module.root, spec(is_plan ? "plan" : "tensor"), context); });
  if (is_plan && how_ == Verify::Sample)
    throw CompileError(Diagnostic{.code = ErrorCode::E503,
                                  .where = module.source,
                                  .message = "elements are sampled from a tensor graph, the text is a plan",
                                  .note = "--verify=outputs compares all elements"});
  // What the numerics asked for allow f16 to do is no difference.
  const Pass& first = graph_passes()[0];
  const std::string& start = options.passes.start_before;
  const bool widens = (start.empty() || start == first.name) && selected(options.passes, first);
  const Ref root = std::exchange(module.root, widens ? widen_half(module.root, context) : module.root);
  vars_ = sample_dims(module.root);
  uint64_t seed = 1;
  const Params inputs = read_params(module.root);
  std::vector<HostTensor> by_slot;
  for (const auto& [slot, param] : inputs) {
    std::vector<int64_t> shape;
    for (Ref dim : param->shape) shape.push_back(eval_index(dim, vars_));
    inputs_.push_back(random_tensor(param->dtype, shape, seed));
    by_slot.resize(static_cast<size_t>(slot) + 1);
    by_slot[static_cast<size_t>(slot)] = inputs_.back();
  }
  for (Ref output : output_params(module.root)) {
    std::vector<int64_t> shape;
    for (Ref dim : output->shape) shape.push_back(eval_index(dim, vars_));
    shapes_.push_back(shape);
    if (how_ == Verify::Sample) want_.push_back(sample(module, by_slot, seed));
  }
  if (how_ != Verify::Sample) {
    want_ = eval(module, by_slot, vars_);
    want_.resize(shapes_.size()); // without traps
  }
  module.root = root;
  if (how_ != Verify::Stages) return;
  auto inner = options.after_pass;
  options.after_pass = [this, by_slot, inner](const Pass& pass, const Module& m, double seconds) {
    if (inner) inner(pass, m, seconds);
    if (!first_difference_.empty()) return;
    std::vector<HostTensor> got = eval(m, by_slot, vars_);
    for (size_t i = 0; i < want_.size(); ++i)
      if (!compare(want_[i], got[i]).agrees) first_difference_ = pass.name;
    std::fprintf(stderr, "verify    %s after %s\n", first_difference_.empty() ? "agrees" : "DIFFERS", pass.name);
  };
}

/// Reference values of a few hundred elements of the next output, remembering which.
HostTensor Verifier::sample(const Module& module, const std::vector<HostTensor>& inputs, uint64_t& seed) {
  int64_t numel = 1;
  for (int64_t dim : shapes_.back()) numel *= dim;
  std::vector<int64_t> at;
  for (int64_t i = 0; i < std::min<int64_t>(numel, kSampled); ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    at.push_back(numel <= kSampled ? i : static_cast<int64_t>((seed >> 16) % static_cast<uint64_t>(numel)));
  }
  sampled_.push_back(at);
  return eval_at(module, inputs, static_cast<int>(sampled_.size()) - 1, at, vars_);
}

bool Verifier::run(const std::string& bundle) {
  if (how_ == Verify::None) return true;
  for (const auto& [name, value] : vars_)
    std::fprintf(stderr, "verify: %s = %lld\n", printable(name).c_str(), static_cast<long long>(value));
  std::vector<HostTensor> got;
  try {
    got = run_bundle(load_bundle(bundle).get(), inputs_, {.may_be_trapped = true});
  } catch (const RuntimeFailure& failure) {
    throw CompileError(Diagnostic{ErrorCode::E405, bundle,
                                  "--verify cannot run it here: " + std::string(failure.what()),
                                  "the bundle was written; compare it where it runs, with tgrun --test"});
  }
  for (size_t i = 0; i < sampled_.size(); ++i) got[i] = elements(got[i], sampled_[i]);
  bool agrees = first_difference_.empty();
  if (!agrees) std::fprintf(stderr, "verify: the first pass whose result differs is %s\n", first_difference_.c_str());
  for (size_t i = 0; i < want_.size(); ++i) {
    Difference d = compare(want_[i], got[i]);
    agrees &= d.agrees;
    std::fprintf(stderr, "verify: output %zu: max error %.3g (largest value %.3g): %s\n", i, d.worst, d.scale,
                 d.agrees ? "agrees" : "DIFFERS");
  }
  return agrees;
}

} // namespace tgc
