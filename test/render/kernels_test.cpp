// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels for everything that is not an op: loops, memory access of every kind, registers, scratch, reduction order,
// vars. Each runs through the interpreter and through every renderer, with its buffers between two pages that nobody
// may touch; the bytes must be equal.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "render/linear_kernel.h"
#include "uop/eval.h"

using namespace tgc;

namespace {

/// A kernel and the buffers to run it on, by slot.
struct Example {
  Ref func;
  std::vector<HostTensor> buffers;
  int64_t n = 0; ///< value of Var `n`
};

HostTensor randoms(DType t, int64_t count) {
  HostTensor x = zeros(t, {count});
  std::mt19937 random(unsigned(count) * 31 + unsigned(t));
  for (int64_t i = 0; i < count; ++i) {
    const double u = double(random() % 4096) / 512 - 4;
    x.set(i, t == DType::Bool ? double(random() % 2) : is_float(t) ? u : double(random() % 50));
  }
  return x;
}

/// y[i] = x[i] * 2 + 1 for i < n, in vectors of `lanes` with a masked tail; n is a Var.
Example masked_tail(Context& ctx, DType t, int64_t lanes) {
  LinearKernel k{ctx, std::string("tail_") + name(t) + "_" + std::to_string(lanes)};
  const int64_t count = 37;
  const Ref x = k.param(0, t, count), y = k.param(1, t, count), n = ctx.var("n", 1, count);
  const Ref blocks = k.emit(floordiv(k.emit(n + double(lanes - 1)), ctx.index(lanes)));
  const Ref r = k.range(blocks);
  const Ref first = k.emit(r * double(lanes));
  const Ref gate = k.emit(lt(k.emit(first + k.iota(lanes)), n));
  const Ref at = k.emit(first + k.iota(1));
  const Ref v = k.load({x, at, gate, ctx.constant(t, 1)}, lanes);
  const Ref value = t == DType::Bool ? k.emit(unary(Ops::Not, v)) : k.emit(k.emit(v * 2.0) + 1.0);
  k.store({y, at, value, gate}, lanes);
  k.end(r);
  return {k.func(), {randoms(t, count), randoms(t, count)}, count};
}

/// y[i] = -x[i], asking for what lies far beyond x.
Example read_ahead(Context& ctx, DType t) {
  LinearKernel k{ctx, std::string("ahead_") + name(t)};
  const Ref x = k.param(0, t, 64), y = k.param(1, t, 64), r = k.range(8);
  const Ref at = k.emit(k.emit(r * 8.0) + k.iota(1));
  k.store({y, at, k.emit(unary(Ops::Neg, k.load_ahead({x, at}, 8, int64_t{1} << 20)))}, 8);
  k.end(r);
  return {k.func(), {randoms(t, 64), randoms(t, 64)}};
}

/// y[j] = x[(j*7+3) mod 40] where that is < 30, else -1; by lane, from a table index computed and one loaded.
Example gather(Context& ctx, DType t) {
  LinearKernel k{ctx, std::string("gather_") + name(t)};
  const Ref x = k.param(0, t, 30), y = k.param(1, t, 40), table = k.param(2, DType::I32, 40), z = k.param(3, t, 40);
  const Ref r = k.range(5);
  const Ref j = k.emit(k.emit(r * 8.0) + k.iota(8));
  const Ref at = k.emit(floormod(k.emit(k.emit(j * 7.0) + 3.0), ctx.index(40)));
  const Ref gate = k.emit(lt(at, ctx.index(30)));
  k.store({y, j, k.load({x, at, gate, ctx.constant(t, 1)})});
  const Ref loaded = k.emit(cast(k.load({table, j}), DType::Index));
  k.store({z, j, k.load({x, loaded})}); // 50 > 30: made smaller by the caller
  k.end(r);
  HostTensor indices = randoms(DType::I32, 40);
  for (int64_t i = 0; i < 40; ++i) indices.set(i, double(indices.int_at(i) % 30));
  return {k.func(), {randoms(t, 30), randoms(t, 40), indices, randoms(t, 40)}};
}

/// y[12 * r + j] = x[row * r + step * j + first] for 12 lanes of 3 rows, 3 where that is outside of x; in a second
/// buffer the same without a gate, from where it is inside.
Example strided(Context& ctx, DType t, int64_t step, int64_t count, int64_t first) {
  std::string label = "strided_" + std::string(name(t));
  for (const int64_t n : {step, count, first + 1}) label += "_" + std::to_string(n);
  LinearKernel k{ctx, label};
  const int64_t lanes = 12, row = count / 3;
  const Ref x = k.param(0, t, count), y = k.param(1, t, 3 * lanes), z = k.param(2, t, lanes);
  const Ref r = k.range(3);
  const Ref j = k.emit(k.iota(lanes) * double(step));
  const Ref at = k.emit(k.emit(k.emit(r * double(row)) + j) + double(first));
  const Ref gate = k.emit(logical_and(k.emit(lt(ctx.index(-1), at)), k.emit(lt(at, ctx.index(count)))));
  const Ref to = k.emit(k.emit(r * double(lanes)) + k.iota(1));
  k.store({y, to, k.load({x, at, gate, ctx.constant(t, 3)})}, lanes);
  k.end(r);
  const double last = double(count - 1 - step * (lanes - 1));
  k.store({z, k.emit(k.iota(1) + 0.0), k.load({x, k.emit(j + last)})}, lanes);
  return {k.func(), {randoms(t, count), randoms(t, 3 * lanes), randoms(t, lanes)}};
}

/// Scatter with gates: y[39 - 2*j] = x[j] for even j only.
Example scatter(Context& ctx) {
  LinearKernel k{ctx, "scatter"};
  const DType t = DType::F32;
  const Ref x = k.param(0, t, 16), y = k.param(1, t, 40);
  const Ref j = k.iota(16);
  const Ref even = k.emit(binary(Ops::Eq, k.emit(floormod(j, ctx.index(2))), ctx.index(0)));
  const Ref v = k.load({x, k.emit(k.iota(1) + 0.0)}, 16);
  k.store({y, k.emit(ctx.index(39) - k.emit(j * 2.0)), v, even});
  return {k.func(), {randoms(t, 16), randoms(t, 40)}};
}

/// y = x with the lanes and dim `dim` of its two other dims exchanged, all but its last lane.
Example turned(Context& ctx, DType t, std::vector<int64_t> dims, int64_t dim) {
  std::string label = std::string("turned_") + name(t) + "_" + std::to_string(dim);
  for (const int64_t d : dims) label += "_" + std::to_string(d);
  LinearKernel k{ctx, label};
  const auto position = [&](const std::vector<int64_t>& d) {
    const Ref first = k.emit(k.iota(d[0], 0, 3) * double(d[1] * d[2]));
    return k.emit(k.emit(first + k.emit(k.iota(d[1], 1, 3) * double(d[2]))) + k.iota(1, 2, 3));
  };
  const int64_t count = dims[0] * dims[1] * dims[2];
  const Ref x = k.param(0, t, count), y = k.param(1, t, count);
  const Ref v = k.load({x, position(dims)}, dims[2]);
  std::vector<int64_t> axes = {0, 1, 2};
  std::swap(axes[static_cast<size_t>(dim)], axes[2]);
  std::swap(dims[static_cast<size_t>(dim)], dims[2]);
  const Ref p = k.emit(ctx.make(Ops::Permute, t, {v}, {{Attr::Axes, axes}}));
  const Ref gate = k.emit(lt(k.iota(dims[2], 2, 3), ctx.index(dims[2] - 1)));
  k.store({y, position(dims), p, gate}, dims[2]);
  return {k.func(), {randoms(t, count), randoms(t, count)}};
}

/// One gate for a whole vector, and scalars: rows outside 0..5 read as 9 and are not written.
Example uniform_gate(Context& ctx, DType t) {
  LinearKernel k{ctx, std::string("uniform_gate_") + name(t)};
  const Ref x = k.param(0, t, 48), y = k.param(1, t, 48), z = k.param(2, t, 8);
  const Ref r = k.range(8);
  const Ref row = k.emit(r - 1.0);
  const Ref inside = k.emit(logical_and(k.emit(lt(ctx.index(-1), row)), k.emit(lt(row, ctx.index(6)))));
  const Ref at = k.emit(k.emit(row * 8.0) + k.iota(1));
  const Ref v = k.load({x, at, inside, ctx.constant(t, 1)}, 8);
  k.store({y, at, v, inside}, 8);
  const Ref s = k.load({x, k.emit(row * 8.0), inside, ctx.constant(t, 1)});
  k.store({z, r, s});
  const Ref zero = k.load({x, k.emit(row * 8.0), inside});
  k.store({z, r, k.emit(where(inside, zero, s)), k.emit(unary(Ops::Not, inside))});
  k.end(r);
  return {k.func(), {randoms(t, 48), randoms(t, 48), randoms(t, 8)}};
}

/// Reduces a [rows, lanes] value over the given axes, kept or dropped.
Example reduce(Context& ctx, const std::string& kind, DType t, std::vector<int64_t> axes, int64_t keep, int64_t lanes) {
  std::string label = "reduce_" + kind + "_" + name(t) + "_" + std::to_string(lanes) + (keep ? "_keep" : "");
  for (const int64_t axis : axes) label += "_" + std::to_string(axis);
  LinearKernel k{ctx, label};
  const int64_t rows = 5;
  const Ref x = k.param(0, t, rows * lanes), y = k.param(1, t, rows * lanes);
  const Ref at = k.emit(k.emit(k.iota(rows, 0, 2) * double(lanes)) + k.iota(1, 1, 2));
  const Ref v = k.load({x, at}, lanes);
  const Ref sum =
      k.emit(ctx.make(Ops::Reduce, DType::Void, {v}, {{Attr::Kind, kind}, {Attr::Axes, axes}, {Attr::Keep, keep}}));
  // Add it back to v where that is possible, so that the result's shape matters.
  const bool joins = keep || axes == std::vector<int64_t>{0} || axes.size() == 2;
  if (joins) {
    k.store({y, at, k.emit(t == DType::Bool ? binary(Ops::Xor, v, sum) : v + sum)}, lanes);
  } else {
    k.store({y, k.emit(k.iota(1) + 0.0), sum}, rows); // [rows, lanes] over lanes, dropped: [rows] is lanes again
  }
  return {k.func(), {randoms(t, rows * lanes), randoms(t, rows * lanes)}};
}

/// A running prefix through scratch, two accumulators (one bool) in registers, nested loops.
Example scratch_and_registers(Context& ctx) {
  LinearKernel k{ctx, "scratch_and_registers"};
  const DType t = DType::F32;
  const Ref x = k.param(0, t, 64), y = k.param(1, t, 64), flags = k.param(2, DType::Bool, 8);
  const Ref scratch = k.buffer(0, "scratch", t, {13}), row = k.buffer(1, "scratch", DType::F64, {8});
  const Ref sum = k.buffer(2, "reg", t, {}), any = k.buffer(3, "reg", DType::Bool, {8});
  (void)scratch;
  k.set(any, ctx.constant_int(DType::Bool, 0));
  const Ref i = k.range(8);
  k.set(sum, ctx.constant(t, 0));
  const Ref j = k.range(8);
  const Ref v = k.load({x, k.emit(k.emit(i * 8.0) + j)});
  k.set(sum, k.emit(k.get(sum) + v));
  k.store({row, j, k.emit(cast(k.get(sum), DType::F64))});
  k.end(j);
  const Ref all = k.load({row, k.iota(1)}, 8);
  const Ref narrow = k.emit(cast(all, t));
  k.store({y, k.emit(k.emit(i * 8.0) + k.iota(1)), narrow}, 8);
  k.set(any, k.emit(binary(Ops::Or, k.get(any), k.emit(lt(narrow, ctx.constant(t, -3))))));
  k.end(i);
  k.store({flags, k.iota(1), k.get(any)}, 8);
  return {k.func(), {randoms(t, 64), randoms(t, 64), randoms(DType::Bool, 8)}};
}

/// Index values as data, selected by masks of other widths: y[j] = j*j < 30 ? f32(j) : x[j], and bools made of bools.
Example mixed_masks(Context& ctx) {
  LinearKernel k{ctx, "mixed_masks"};
  const Ref x = k.param(0, DType::F32, 12), y = k.param(1, DType::F32, 12), b = k.param(2, DType::Bool, 12);
  const Ref w = k.param(3, DType::U8, 12);
  const Ref j = k.iota(12), at = k.emit(k.iota(1) + 0.0);
  const Ref small = k.emit(lt(k.emit(j * j), ctx.index(30)));
  const Ref v = k.load({x, at}, 12), flag = k.load({b, at}, 12);
  const Ref positive = k.emit(lt(ctx.constant(DType::F32, 0), v));
  k.store({y, at, k.emit(where(small, k.emit(cast(j, DType::F32)), v))}, 12);
  const Ref mixed = k.emit(logical_and(small, k.emit(binary(Ops::Or, flag, positive))));
  k.store({w, at, k.emit(where(mixed, k.emit(cast(flag, DType::U8)), ctx.constant(DType::U8, 200)))}, 12);
  k.store({b, at, k.emit(where(flag, k.emit(lt(flag, positive)), k.emit(binary(Ops::Le, positive, small))))}, 12);
  return {k.func(),
          {randoms(DType::F32, 12), randoms(DType::F32, 12), randoms(DType::Bool, 12), randoms(DType::U8, 12)}};
}

/// A vector of one element read by every lane under a lane gate, and an extent that is zero.
Example odd_shapes(Context& ctx) {
  LinearKernel k{ctx, "odd_shapes"};
  const DType t = DType::F32;
  const Ref x = k.param(0, t, 6), y = k.param(1, t, 18), n = ctx.var("n", 0, 4);
  const Ref at = k.emit(k.iota(6, 0, 2) + 0.0);
  const Ref gate = k.emit(lt(k.iota(3, 1, 2), k.emit(k.iota(6, 0, 2) + 0.0)));
  const Ref v = k.load({x, at, gate, ctx.constant(t, -7)});
  k.store({y, k.emit(k.emit(k.iota(6, 0, 2) * 3.0) + k.iota(1, 1, 2)), v}, 3);
  const Ref r = k.range(n);
  k.store({y, r, ctx.constant(t, 100)});
  k.end(r);
  return {k.func(), {randoms(t, 6), randoms(t, 18)}, 0};
}

std::vector<Example> examples(Context& ctx) {
  std::vector<Example> all;
  for (const DType t : {DType::F32, DType::I8, DType::F16, DType::Bool, DType::F64}) {
    if (t != DType::F16) all.push_back(masked_tail(ctx, t, 16));
    all.push_back(gather(ctx, t));
    all.push_back(turned(ctx, t, {1, 16, 16}, 1));
    all.push_back(turned(ctx, t, {2, 6, 32}, 1)); // filled up to 8 rows, two pieces of lanes or more
    all.push_back(turned(ctx, t, {4, 3, 8}, 0));
    all.push_back(turned(ctx, t, {1, 5, 3}, 1)); // one by one
    all.push_back(uniform_gate(ctx, t));
  }
  all.push_back(read_ahead(ctx, DType::F32));
  all.push_back(masked_tail(ctx, DType::F32, 6));
  all.push_back(masked_tail(ctx, DType::BF16, 8));
  all.push_back(scatter(ctx));
  for (const DType t : {DType::F32, DType::I64, DType::F16})
    for (const int64_t step : {2, 3, 4, 5})
      for (const int64_t count : {60, 61})
        for (const int64_t first : {-1, 0, 1}) all.push_back(strided(ctx, t, step, count, first));
  for (const char* kind : {"add", "mul", "max", "min"})
    for (const int64_t lanes : {8, 6}) all.push_back(reduce(ctx, kind, DType::F32, {1}, 1, lanes));
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {0, 1}})
    for (const int64_t keep : {0, 1}) all.push_back(reduce(ctx, "add", DType::F32, axes, keep, 16));
  all.erase(std::unique(all.begin(), all.end(), [](const Example& a, const Example& b) { return a.func == b.func; }),
            all.end());
  all.push_back(reduce(ctx, "add", DType::I32, {1}, 0, 4));
  all.push_back(reduce(ctx, "max", DType::Bool, {1}, 1, 8));
  all.push_back(scratch_and_registers(ctx));
  all.push_back(mixed_masks(ctx));
  all.push_back(odd_shapes(ctx));
  return all;
}

/// Memory whose end (or begin) touches a page that no one may access.
class Guarded {
public:
  Guarded(const std::vector<std::byte>& bytes, bool at_end) : size_(bytes.size()) {
    base_ = static_cast<char*>(mmap(nullptr, 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + kPage, kPage, PROT_READ | PROT_WRITE);
    data_ = base_ + kPage + (at_end ? kPage - size_ : 0);
    std::memcpy(data_, bytes.data(), size_);
  }
  ~Guarded() { munmap(base_, 3 * kPage); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* data() const { return data_; }

private:
  static constexpr size_t kPage = 4096;
  size_t size_;
  char *base_, *data_;
};

class Kernels : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Kernels, EqualEval) {
  Context ctx;
  const TargetSpec spec = spec_of(GetParam().first, GetParam().second);
  const Renderer& renderer = find_renderer(spec);
  if (!renderer.probe().ok) GTEST_SKIP() << renderer.probe().reason;
  const TargetInfo target = renderer.target(spec);
  const std::vector<Example> all = examples(ctx);
  const std::vector<std::string> names{"a", "n", "z"};
  std::vector<KernelSource> sources;
  for (const Example& e : all) sources.push_back({e.func->s(Attr::Name), renderer.render(e.func, target, names)});
  const LoadedCode code(renderer.compile(sources, target, 2, nullptr).image);
  for (const Example& e : all) {
    SCOPED_TRACE(e.func->s(Attr::Name));
    std::vector<HostTensor> expected = e.buffers;
    std::vector<BufferArg> buffers;
    for (HostTensor& x : expected) buffers.push_back(buffer_arg(x));
    eval_kernel(e.func, buffers, {{"n", e.n}});
    for (const bool at_end : {true, false}) {
      std::vector<std::unique_ptr<Guarded>> memory;
      std::vector<void*> bufs;
      for (const HostTensor& x : e.buffers) {
        memory.push_back(std::make_unique<Guarded>(x.data, at_end));
        bufs.push_back(memory.back()->data());
      }
      const int64_t vars[] = {-1, e.n, -1};
      alignas(64) char scratch[512];
      ASSERT_LE(scratch_bytes(e.func)->hi, int64_t(sizeof scratch));
      const KernelArgs args{bufs.data(), vars, scratch};
      code[e.func->s(Attr::Name)](&args, 0, 1);
      for (size_t slot = 0; slot < bufs.size(); ++slot)
        EXPECT_EQ(std::memcmp(bufs[slot], expected[slot].data.data(), expected[slot].data.size()), 0)
            << "slot " << slot;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Kernels,
                         testing::Values(std::pair{"llvm", "native"}, std::pair{"llvm", "x86-64-v3"},
                                         std::pair{"llvm", "x86-64"}, std::pair{"c", "native"}),
                         [](const auto& p) {
                           std::string name = std::string(p.param.first) + "_" + p.param.second;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(ScratchBytes, AreRoundedUpPerBuffer) {
  Context ctx;
  EXPECT_EQ(dim_int(scratch_bytes(scratch_and_registers(ctx).func)), 128); // 13 f32 and 8 f64, 64 bytes each
}

} // namespace
