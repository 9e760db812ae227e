// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op on every type, scalar and vector, on values with all the corners: compiled code against the interpreter, bit
// for bit (any NaN equals any NaN).
#include <gtest/gtest.h>

#include <cmath>

#include "render/linear_kernel.h"
#include "uop/eval.h"
#include "uop/scalar.h"

using namespace tgc;

namespace {

constexpr int64_t kCount = 480; // a multiple of every lane count below

/// Values where something changes: limits, signed zeros, subnormals, ties, NaN.
std::vector<double> interesting(DType t) {
  if (t == DType::Bool) return {0, 1};
  if (is_float(t))
    return {0.0,   -0.0,  1,     -1,    0.5,  1.5,  2.5,    -2.5,     -0.75,     3,   7.25,
            1e-40, -6e-8, 65519, 65520, -3e9, 1e19, 3.4e38, INFINITY, -INFINITY, NAN, 255.5};
  std::vector<double> values{0, 1, 2, 3, 5, 7, 8, 31, 63, 100};
  if (is_signed(t))
    for (const double x : {-1, -2, -3, -7, -8, -128}) values.push_back(x);
  return values;
}

HostTensor operand(DType t, int64_t stride) {
  HostTensor x = zeros(t, {kCount});
  const std::vector<double> values = interesting(t);
  const auto n = int64_t(values.size());
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t at = i / stride;
    x.set(i, values[size_t(at % n)]);
    if (is_int(t) && at % (n + 2) >= n) { // the least and the greatest value, which no double need be
      const int width = byte_size(t) * 8;
      uint64_t bits = is_signed(t) ? uint64_t{1} << (width - 1) : 0;
      if (at % (n + 2) == n) --bits;
      std::memcpy(x.data.data() + i * byte_size(t), &bits, size_t(byte_size(t)));
    }
  }
  return x;
}

struct Case {
  Ref func = {};
  DType dtype = DType::Void;      ///< of slots 0 to 2
  std::vector<DType> outputs;     ///< slots 3, 4, …
  std::vector<std::string> names; ///< of the outputs, for messages
};

/// Loads `lanes` elements of slots 0 to 2 in a loop and stores what `make` returns to slots 3, 4, ….
template <class Make> Case loop_kernel(Context& ctx, const std::string& name, DType t, int64_t lanes, Make make) {
  LinearKernel k{ctx, name};
  Case result;
  result.dtype = t;
  const Ref r = k.range(kCount / lanes);
  const Ref at = k.emit(lanes > 1 ? k.emit(r * double(lanes)) + k.iota(1) : r * 1.0);
  const int64_t attr = lanes > 1 ? lanes : 0;
  std::vector<Ref> in;
  for (int64_t slot = 0; slot < 3; ++slot) in.push_back(k.load({k.param(slot, t, kCount), at}, attr));
  for (const auto& [label, value] : make(in)) {
    k.store({k.param(int64_t(3 + result.outputs.size()), value->dtype, kCount), at, k.emit(value)}, attr);
    result.outputs.push_back(value->dtype);
    result.names.push_back(label);
  }
  k.end(r);
  result.func = k.func();
  return result;
}

using Named = std::vector<std::pair<std::string, Ref>>;

Case ops_kernel(Context& ctx, DType t, int64_t lanes, const TargetInfo& target) {
  const std::string name = std::string("ops_") + tgc::name(t) + "_" + std::to_string(lanes);
  return loop_kernel(ctx, name, t, lanes, [&](const std::vector<Ref>& in) {
    Named values;
    for (int i = 0; i < kNumOps; ++i) {
      const auto op = static_cast<Ops>(i);
      if (!target.supports(op) || scalar_fn(op, t) == nullptr) continue;
      if (is_float(t) && op == Ops::Mod) continue;                           // decomposed
      if ((t == DType::F16 || t == DType::BF16) && op == Ops::Fma) continue; // never formed
      const int n = info(op).max_src;
      if (op == Ops::Where)
        values.emplace_back("where", where(lt(in[0], in[1]), in[1], in[2]));
      else
        values.emplace_back(tgc::name(op), ctx.make(op, t, Refs(in.data(), size_t(n))));
    }
    if (t != DType::Bool && !is_float(t)) { // constant operands take other paths
      for (const double c : {1.0, 3.0, 4.0, is_signed(t) ? -3.0 : 5.0, 0.0})
        for (const Ops op : {Ops::Div, Ops::Mod, Ops::FloorDiv, Ops::FloorMod, Ops::Shl, Ops::Shr})
          values.emplace_back(std::string(tgc::name(op)) + " by constant", binary(op, in[0], const_like(in[0], c)));
    }
    values.emplace_back("max with constant", binary(Ops::Max, in[0], const_like(in[0], 0)));
    values.emplace_back("constant max", binary(Ops::Max, const_like(in[0], 0), in[0]));
    return values;
  });
}

Case casts_kernel(Context& ctx, DType t, int64_t lanes) {
  const std::string name = std::string("casts_") + tgc::name(t) + "_" + std::to_string(lanes);
  return loop_kernel(ctx, name, t, lanes, [&](const std::vector<Ref>& in) {
    Named values;
    for (int i = 1; i < kNumDTypes; ++i) {
      const auto to = static_cast<DType>(i);
      values.emplace_back(std::string("cast to ") + tgc::name(to), cast(in[0], to));
      if (byte_size(to) == byte_size(t) && to != DType::Bool && t != DType::Bool)
        values.emplace_back(std::string("bitcast to ") + tgc::name(to), bitcast(in[0], to));
    }
    return values;
  });
}

bool is_nan(const HostTensor& x, int64_t i) { return is_float(x.dtype) && std::isnan(x.at(i)); }

void expect_equal(const Case& c, size_t output, const HostTensor& expected, const HostTensor& actual,
                  const std::vector<HostTensor>& in) {
  const auto size = size_t(byte_size(expected.dtype));
  for (int64_t i = 0; i < kCount; ++i) {
    if (is_nan(expected, i) && is_nan(actual, i)) continue;
    if (std::memcmp(&expected.data[size_t(i) * size], &actual.data[size_t(i) * size], size) == 0) continue;
    ADD_FAILURE() << c.func->s(Attr::Name) << ": " << c.names[output] << " of " << in[0].at(i) << ", " << in[1].at(i)
                  << ", " << in[2].at(i) << " is " << actual.at(i) << ", not " << expected.at(i);
    return;
  }
}

struct Setting {
  const char *renderer, *arch;
  std::vector<int64_t> lanes;
  bool all_types;
};
void PrintTo(const Setting& s, std::ostream* out) { *out << s.renderer << " " << s.arch; }

class RenderedOps : public testing::TestWithParam<Setting> {};

TEST_P(RenderedOps, EqualEval) {
  Context ctx;
  const TargetSpec spec = spec_of(GetParam().renderer, GetParam().arch);
  const Renderer& renderer = find_renderer(spec);
  if (!renderer.probe().ok) GTEST_SKIP() << renderer.probe().reason;
  const TargetInfo target = renderer.target(spec);
  std::vector<Case> cases;
  std::vector<KernelSource> sources;
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    if (!GetParam().all_types && t != DType::F32 && t != DType::I32 && t != DType::F16 && t != DType::Bool) continue;
    for (const int64_t lanes : GetParam().lanes) {
      cases.push_back(ops_kernel(ctx, t, lanes, target));
      cases.push_back(casts_kernel(ctx, t, lanes));
    }
  }
  for (const Case& c : cases) sources.push_back({c.func->s(Attr::Name), renderer.render(c.func, target, {})});
  const LoadedCode code(renderer.compile(sources, target, 2, nullptr).image);

  for (const Case& c : cases) {
    const std::vector<HostTensor> in{operand(c.dtype, 1), operand(c.dtype, 22), operand(c.dtype, 3)};
    std::vector<HostTensor> expected = in, actual = in;
    for (const DType out : c.outputs) {
      expected.push_back(zeros(out, {kCount}));
      actual.push_back(zeros(out, {kCount}));
    }
    std::vector<BufferArg> buffers;
    for (HostTensor& x : expected) buffers.push_back(buffer_arg(x));
    eval_kernel(c.func, buffers);
    std::vector<void*> bufs;
    for (HostTensor& x : actual) bufs.push_back(x.data.data());
    const KernelArgs args{bufs.data(), nullptr, nullptr};
    code[c.func->s(Attr::Name)](&args, 0, 1);
    for (size_t i = 0; i < c.outputs.size(); ++i) expect_equal(c, i, expected[3 + i], actual[3 + i], in);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RenderedOps,
                         testing::Values(Setting{"llvm", "native", {1, 5, 16}, true},
                                         Setting{"llvm", "x86-64-v3", {1, 5, 16}, false},
                                         Setting{"llvm", "x86-64-v2", {1, 8}, false},
                                         Setting{"llvm", "x86-64", {1, 5}, true}, Setting{"c", "native", {1}, true},
                                         Setting{"c", "x86-64-v3", {5, 16}, false}, Setting{"c", "x86-64", {4}, false}),
                         [](const auto& p) {
                           std::string name = std::string(p.param.renderer) + "_" + p.param.arch;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

} // namespace
