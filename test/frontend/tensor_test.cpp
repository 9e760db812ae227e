// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The builders against values computed by hand or by plain loops.
#include <cmath>
#include <cstring>
#include <functional>

#include "frontend/constant.h"
#include "frontend/elements.h"
#include "frontend/gather.h"
#include "frontend/graph.h"
#include "frontend/nn.h"
#include "uop/diag.h"

namespace tgc::tensor {
namespace {

using Values = std::vector<double>;

TEST(Tensor, MatmulFollowsNumpy) {
  Graph g;
  Ref a = g.input({2, 3}, {1, 2, 3, 4, 5, 6}), b = g.input({3, 2}, {1, 0, 0, 1, 1, 1});
  EXPECT_EQ(values_of(g.run(matmul(a, b))), (Values{4, 5, 10, 11}));
  Ref v = g.input({3}, {1, 10, 100});
  HostTensor y = g.run(matmul(a, v));
  EXPECT_EQ(y.shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(values_of(y), (Values{321, 654}));
  EXPECT_EQ(values_of(g.run(matmul(v, b))), (Values{101, 110}));
  EXPECT_EQ(g.run(matmul(v, v)).shape, std::vector<int64_t>{});
  EXPECT_EQ(values_of(g.run(matmul(v, v))), Values{10101});
}

TEST(Tensor, MatmulBroadcastsBatches) {
  Graph g;
  Ref a = g.ramp({2, 1, 2, 3}), b = g.ramp({4, 3, 1});
  HostTensor y = g.run(matmul(a, b));
  EXPECT_EQ(y.shape, (std::vector<int64_t>{2, 4, 2, 1}));
  EXPECT_EQ(y.at(0), 0 * 0 + 1 * 1 + 2 * 2);
  EXPECT_EQ(y.at(15), 9 * 9 + 10 * 10 + 11 * 11);
}

TEST(Constant, EqualHashesAreNoProofOfEqualBytes) {
  Module module;
  std::string bytes(128, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  std::string other = bytes; // both changes meet in one lane of the hash, where they cancel out
  other[7] = static_cast<char>(other[7] ^ 0x80);
  other[64 + 3] = static_cast<char>(other[64 + 3] ^ 0x10);
  const auto add = [&](const std::string& data) {
    return add_constant(module, "w", {DType::U8, {128}, bytes_of(data)})->s(Attr::Key);
  };
  const std::string key = add(bytes), second = add(other);
  EXPECT_EQ(module.weights.at(second).hash, module.weights.at(key).hash);
  EXPECT_EQ(second, key + "'");
  EXPECT_EQ(add(bytes), key);
  EXPECT_EQ(add(other), second);
  EXPECT_EQ(std::memcmp(module.weights.at(second).data, other.data(), other.size()), 0);
}

TEST(Tensor, SumOfHalfAccumulatesInSingle) {
  Graph g;
  Ref ones = full(g.ctx(), index_dims(g.ctx(), {4096}), DType::F16, 1);
  EXPECT_EQ(values_of(g.run(sum(ones, {0}, false))), Values{4096}); // in f16 it would stop at 2048
}

TEST(Tensor, ComparisonsWithTheLeastIntegerAreKnown) {
  Module module;
  Context& ctx = *module.ctx;
  const Ref n = ctx.make(Ops::Cast, DType::I64, {ctx.var("n", 1, 64)});
  const Ref least = ctx.constant_int(DType::I64, INT64_MIN);
  const auto known = [&](Ops op, Ref a, Ref b) {
    return dim_int(known_elements(module, ctx.make(op, DType::Bool, {a, b})).value().at(0).index);
  };
  EXPECT_EQ(known(Ops::Lt, n, least), 0);
  EXPECT_EQ(known(Ops::Le, least, n), 1);
  EXPECT_EQ(known(Ops::Eq, n, least), 0);
  EXPECT_EQ(known(Ops::Lt, least, ctx.constant_int(DType::I64, 5)), 1);
  EXPECT_EQ(known(Ops::Eq, least, least), 1);
}

/// Element (o, k) of windows is x[o*stride + k*dilation], for every small shape.
TEST(Tensor, WindowsPickStridedDilatedElements) {
  for (int64_t extent = 1; extent <= 9; ++extent)
    for (Window w :
         {Window{1, 1, 1}, {1, 3, 1}, {2, 1, 1}, {2, 2, 1}, {3, 1, 2}, {2, 5, 1}, {2, 3, 3}, {3, 2, 1}, {3, 4, 2}}) {
      if (w.span() > extent) continue;
      Graph g;
      HostTensor y = g.run(windows(g.ramp({2, extent}), {w}));
      int64_t count = (extent - w.span()) / w.stride + 1;
      ASSERT_EQ(y.shape, (std::vector<int64_t>{2, count, w.kernel}));
      for (int64_t i = 0; i < y.numel(); ++i) {
        int64_t k = i % w.kernel, o = i / w.kernel % count, row = i / w.kernel / count;
        ASSERT_EQ(y.at(i), static_cast<double>(row * extent + o * w.stride + k * w.dilation))
            << "extent " << extent << " kernel " << w.kernel << " stride " << w.stride << " dilation " << w.dilation;
      }
    }
}

TEST(Tensor, WindowsTakeASymbolicExtent) {
  Graph g;
  Ref n = g.ctx().var("n", 3, 100);
  Ref x = g.symbolic_input({n}, tensor_of(DType::F32, {7}, {0, 1, 2, 3, 4, 5, 6}));
  HostTensor y = g.run(windows(x, {{2, 2, 2}}), {{"n", 7}});
  EXPECT_EQ(y.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(values_of(y), (Values{0, 2, 2, 4, 4, 6}));
}

struct Conv2d {
  int64_t n, c, h, w, m, groups;
  Window y, x;
};

double naive_conv(const Conv2d& s, const HostTensor& in, const HostTensor& f, int64_t n, int64_t m, int64_t oy,
                  int64_t ox) {
  int64_t per = s.c / s.groups, group = m / (s.m / s.groups);
  double total = 0;
  for (int64_t c = 0; c < per; ++c)
    for (int64_t ky = 0; ky < s.y.kernel; ++ky)
      for (int64_t kx = 0; kx < s.x.kernel; ++kx) {
        int64_t iy = oy * s.y.stride + ky * s.y.dilation - s.y.pad_lo,
                ix = ox * s.x.stride + kx * s.x.dilation - s.x.pad_lo;
        if (iy < 0 || ix < 0 || iy >= s.h || ix >= s.w) continue;
        total += in.at(((n * s.c + group * per + c) * s.h + iy) * s.w + ix) *
                 f.at(((m * per + c) * s.y.kernel + ky) * s.x.kernel + kx);
      }
  return total;
}

TEST(Tensor, ConvEqualsSevenLoops) {
  for (const Conv2d& s : {Conv2d{2, 3, 5, 6, 4, 1, {3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}},
                          Conv2d{1, 4, 7, 5, 6, 2, {3, 2, 1, 0, 1}, {2, 1, 2, 2, 0}},
                          Conv2d{1, 3, 4, 4, 3, 3, {1, 1, 1, 0, 0}, {4, 3, 1, 1, 2}}}) {
    Graph g;
    Ref x = g.ramp({s.n, s.c, s.h, s.w}, 0.25, -3), f = g.ramp({s.m, s.c / s.groups, s.y.kernel, s.x.kernel}, -0.5, 4);
    HostTensor y = g.run(conv(x, f, {s.y, s.x}, s.groups));
    ASSERT_EQ(y.shape[1], s.m);
    for (int64_t i = 0; i < y.numel(); ++i) {
      int64_t ox = i % y.shape[3], oy = i / y.shape[3] % y.shape[2], m = i / y.shape[3] / y.shape[2] % s.m;
      ASSERT_EQ(y.at(i), naive_conv(s, g.inputs[0], g.inputs[1], i / y.shape[3] / y.shape[2] / s.m, m, oy, ox)) << i;
    }
  }
}

TEST(Tensor, ConvTakesASymbolicBatch) {
  Graph g;
  Ref n = g.ctx().var("n", 1, 64), one = g.ctx().index(1), four = g.ctx().index(4);
  Ref x = g.symbolic_input({n, one, four}, tensor_of(DType::F32, {2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  Ref f = g.input({1, 1, 3}, {1, 1, 1});
  HostTensor y = g.run(conv(x, f, {{3, 1, 1, 1, 1}}, 1), {{"n", 2}});
  EXPECT_EQ(y.shape, (std::vector<int64_t>{2, 1, 4}));
  EXPECT_EQ(values_of(y), (Values{3, 6, 9, 7, 11, 18, 21, 15}));
}

/// Each input element adds a scaled filter to the output at stride distance.
TEST(Tensor, ConvTransposeScattersTheFilter) {
  Graph g;
  Ref x = g.input({1, 1, 3}, {1, 10, 100}), f = g.input({1, 1, 2}, {1, 2});
  EXPECT_EQ(values_of(g.run(conv_transpose(x, f, {{2, 1, 1, 0, 0}}, 1))), (Values{1, 12, 120, 200}));
  EXPECT_EQ(values_of(g.run(conv_transpose(x, f, {{2, 3, 1, 0, 0, 1}}, 1))), (Values{1, 2, 0, 10, 20, 0, 100, 200, 0}));
  EXPECT_EQ(values_of(g.run(conv_transpose(x, f, {{2, 1, 2, 1, 1}}, 1))), (Values{10, 102, 20}));
}

TEST(Tensor, MaxPoolIgnoresPaddingAndPropagatesNan) {
  Graph g;
  Ref x = g.input({1, 1, 4}, {-5, -1, -7, NAN});
  HostTensor y = g.run(max_pool(x, {{2, 1, 1, 1, 0}}));
  EXPECT_EQ(y.shape, (std::vector<int64_t>{1, 1, 4}));
  EXPECT_EQ(y.at(0), -5);
  EXPECT_EQ(y.at(1), -1);
  EXPECT_EQ(y.at(2), -1);
  EXPECT_TRUE(std::isnan(y.at(3)));
}

TEST(Tensor, AveragePoolCountsPaddingOnlyWhenAsked) {
  Graph g;
  Ref x = g.input({1, 1, 3}, {3, 6, 9});
  EXPECT_EQ(values_of(g.run(average_pool(x, {{2, 1, 1, 1, 0}}, false, {0}))), (Values{3, 4.5, 7.5}));
  EXPECT_EQ(values_of(g.run(average_pool(x, {{2, 1, 1, 1, 0}}, true, {0}))), (Values{1.5, 4.5, 7.5}));
  EXPECT_EQ(values_of(g.run(average_pool(x, {{2, 2, 1, 0, 0}}, true, {1}))), (Values{4.5, 9})); // ceil mode's padding
}

TEST(Tensor, KnownPositionsAreFewSlices) {
  Graph g;
  Ref x = g.ramp({2, 6});
  auto row = [&](const std::vector<int64_t>& index) {
    const Values all = values_of(g.run(take_known(x, 1, index)));
    return Values(all.end() - static_cast<std::ptrdiff_t>(index.size()), all.end());
  };
  EXPECT_EQ(row({0, 0, 0}), (Values{6, 6, 6}));
  EXPECT_EQ(row({1, 3, 5, 5, 5, 0, 1, 2, 4, 2}), (Values{7, 9, 11, 11, 11, 6, 7, 8, 10, 8}));
  EXPECT_EQ(row({}), Values{});
  const std::vector<int64_t> same(1000, 3);
  EXPECT_TRUE(take_known(x, 1, same)->is(Ops::Expand));
  EXPECT_FALSE(take_known(x, 1, {5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 0}));
}

TEST(Tensor, ConcatJoinsUnequalAndEmptyParts) {
  Graph g;
  Ref a = g.input({2, 1}, {1, 2}), b = g.input({2, 2}, {3, 4, 5, 6}), none = g.input({2, 0}, {});
  EXPECT_EQ(values_of(g.run(concat({a, none, b, none}, 1))), (Values{1, 3, 4, 2, 5, 6}));
}

TEST(Tensor, ArgmaxTakesFirstOrLastAndNan) {
  Graph g;
  Ref x = g.input({2, 4}, {1, 7, 7, 0, 2, NAN, 9, NAN});
  EXPECT_EQ(values_of(g.run(argmax(x, 1, false, false))), (Values{1, 1}));
  EXPECT_EQ(values_of(g.run(argmax(x, 1, false, true))), (Values{2, 3}));
}

TEST(Tensor, SoftmaxSurvivesLargeInputs) {
  Graph g;
  HostTensor y = g.run(softmax(g.input({1, 2}, {1000, 1000}), 1));
  EXPECT_EQ(values_of(y), (Values{0.5, 0.5}));
}

TEST(Tensor, StrideAxisReachesTheLastElement) {
  Graph g;
  Context& c = g.ctx();
  EXPECT_EQ(values_of(g.run(stride_axis(g.ramp({7}), {0, c.index(1), c.index(2), 5}))), (Values{1, 6}));
}

TEST(Tensor, ExactQuotientCancelsSymbolicDims) {
  Graph g;
  Context& c = g.ctx();
  Ref n = c.var("n", 1, 9), six = c.index(6);
  EXPECT_EQ(dim_int(*exact_quotient(c, Dims{n, six}, Dims{n, c.index(3)})), 2);
  EXPECT_TRUE(dims_equal(*exact_quotient(c, Dims{n, six}, Dims{c.index(2)}), dim_mul(n, c.index(3))));
  EXPECT_FALSE(exact_quotient(c, Dims{n, six}, Dims{c.index(4)}));
  EXPECT_FALSE(exact_quotient(c, Dims{six}, Dims{c.index(0)}));
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CompileError& e) {
    return to_string(e.all()[0]);
  }
  return "no error";
}

TEST(Tensor, ErrorsNameTheShapes) {
  Graph g;
  Ref a = g.ramp({2, 3}), b = g.ramp({4}), n = g.ctx().var("n", 1, 9);
  Ref s = g.symbolic_input({n}, zeros(DType::F32, {2}));
  EXPECT_EQ(message_of([&] { add(a, b); }), "error TGC-E203: shapes [2,3] and [4] do not broadcast");
  EXPECT_EQ(message_of([&] { matmul(a, a); }), "error TGC-E203: matmul of [2,3] and [2,3]: inner dims differ");
  EXPECT_EQ(message_of([&] { add(s, b); }), "error TGC-E209: shapes [n] and [4] do not broadcast unless n = 4\n"
                                            "  note: pin or bound the dims: --dim NAME=VALUE or NAME=LO..HI");
  EXPECT_EQ(message_of([&] { normalize_axis(2, 2); }), "error TGC-E203: axis=2 is outside [-2, 2) of a rank-2 tensor");
  EXPECT_EQ(message_of([&] { windows(b, {{5, 1, 1}}); }), "error TGC-E203: a window of 5 elements does not fit in [4]");
}

} // namespace
} // namespace tgc::tensor
