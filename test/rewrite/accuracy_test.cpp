// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accuracy of the decomposed functions, as graphs in basic ops evaluated over arrays: f32 on every 397th float (every
// one as compiled code, tools/every_float_test.cpp) against the host's f64 functions, f64 on random values against its
// 80-bit ones. Both with multiply-adds fused and without. The largest error of each is printed.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "rewrite/array_eval.h"
#include "rewrite/rules/decompose.h"
#include "ulps.h"

namespace tgc {
namespace {
using testing::ulps;
constexpr int kBlock = 4096;

TargetInfo basic_target(bool fma) {
  TargetInfo t;
  for (Ops o : {Ops::Add, Ops::Sub, Ops::Mul, Ops::Div, Ops::Sqrt, Ops::And, Ops::Or, Ops::Xor, Ops::Not, Ops::Shl,
                Ops::Shr, Ops::Lt, Ops::Eq, Ops::Ne, Ops::Where, Ops::Cast, Ops::Bitcast, Ops::Abs, Ops::Neg})
    t.ops.set(static_cast<size_t>(o));
  t.ops.set(static_cast<size_t>(Ops::Fma), fma);
  for (DType d : {DType::F32, DType::F64, DType::I32, DType::I64, DType::U32, DType::U16, DType::Bool})
    t.dtypes.set(static_cast<size_t>(d));
  return t;
}

Ref lower(Ref root, const TargetInfo& target) {
  PassContext pass;
  pass.target = &target;
  root = decompose(root, pass);
  for (Ref x : toposort(root)) EXPECT_TRUE(x->cls() == OpClass::Leaf || target.supports(x->op)) << name(x->op);
  return root;
}

class Lowered {
public:
  Lowered(Ops op, DType type, bool fma) : type_(type) {
    const TargetInfo target = basic_target(fma);
    x_ = param(0), y_ = param(1);
    root_ = lower(info(op).max_src == 1 ? unary(op, x_) : binary(op, x_, y_), target);
  }
  /// n <= kBlock results, in `out`.
  template <typename T> void run(const T* x, const T* y, T* out) {
    eval_.clear();
    eval_.bind(x_, x);
    eval_.bind(y_, y);
    const Strided r = eval_.run(root_);
    std::memcpy(out, r.data, sizeof(T) * kBlock);
  }
  size_t size() const { return toposort(root_).size(); }

private:
  Ref param(int64_t slot) { return ctx_.make(Ops::Param, type_, {}, {{Attr::Slot, slot}}); }
  Context ctx_;
  ArrayEval eval_{kBlock};
  DType type_;
  Ref x_, y_, root_;
};

struct Worst {
  double ulp = 0, x = 0, y = 0;
  void see(double u, double at, double other = 0) {
    if (u > ulp) *this = {u, at, other};
  }
};

// ---- f32 ------------------------------------------------------------------------------------------------------------
struct Case {
  const char* name;
  Ops op;
  double (*f64)(double);
  long double (*f80)(long double);
  double domain, domain64; // |x| up to
  double limit, limit64;   // ULP allowed
};
const Case kCases[] = {
    {"exp", Ops::Exp, std::exp, std::exp, INFINITY, INFINITY, 1.5, 2},
    {"log", Ops::Log, std::log, std::log, INFINITY, INFINITY, 1.5, 2},
    {"tanh", Ops::Tanh, std::tanh, std::tanh, INFINITY, INFINITY, 2, 4},
    {"erf", Ops::Erf, std::erf, std::erf, INFINITY, INFINITY, 2, 4},
    {"sin", Ops::Sin, std::sin, std::sin, 1e8, 1e6, 2, 4},
    {"cos", Ops::Cos, std::cos, std::cos, 1e8, 1e6, 2, 4},
};

Worst scan_floats(const Case& c, bool fma, uint64_t stride) {
  Lowered f(c.op, DType::F32, fma);
  Worst worst;
  std::vector<float> x(kBlock), out(kBlock);
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32);) {
    for (float& v : x) {
      v = std::bit_cast<float>(static_cast<uint32_t>(bits));
      bits = std::min(bits + stride, uint64_t{1} << 32);
    }
    f.run(x.data(), x.data(), out.data());
    for (int i = 0; i < kBlock; ++i) {
      if (std::fabs(x[i]) <= c.domain || !std::isfinite(x[i]))
        worst.see(ulps(out[i], c.f64(x[i])), x[i]);
      else if (!(std::fabs(out[i]) <= 1))
        worst.see(1e9, x[i]);
    }
  }
  return worst;
}

class Accuracy : public ::testing::TestWithParam<Case> {};

TEST_P(Accuracy, F32OfFloatsOfEveryKind) {
  const Case& c = GetParam();
  for (const bool fma : {true, false}) {
    const Worst w = scan_floats(c, fma, fma ? 397 : 3989);
    std::printf("%s f32 %s: %.3f ulp at %a, %zu nodes\n", c.name, fma ? "fma" : "mul+add", w.ulp, w.x,
                Lowered(c.op, DType::F32, fma).size());
    EXPECT_LE(w.ulp, c.limit) << c.name << " at " << w.x;
  }
}

TEST_P(Accuracy, F64OfRandomValues) {
  const Case& c = GetParam();
  for (const bool fma : {true, false}) {
    Lowered f(c.op, DType::F64, fma);
    Worst worst;
    uint64_t state = 12345;
    std::vector<double> x(kBlock), out(kBlock);
    const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 5e-324, 709.78, -745.1, 0.625, 3, 1e-300};
    for (int block = 0; block < 25; ++block) {
      for (int i = 0; i < kBlock; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double unit = static_cast<double>(static_cast<int64_t>(state) >> 11) * 0x1p-52; // [-1, 1)
        const double scales[] = {1, 10, 750, 1e-5, std::min(c.domain64, 1e4), std::min(c.domain64, 1e300)};
        x[i] = i < 13 ? special[i] : unit * scales[i % 6];
      }
      f.run(x.data(), x.data(), out.data());
      for (int i = 0; i < kBlock; ++i) worst.see(ulps(out[i], c.f80(x[i])), x[i]);
    }
    std::printf("%s f64 %s: %.3f ulp at %a\n", c.name, fma ? "fma" : "mul+add", worst.ulp, worst.x);
    EXPECT_LE(worst.ulp, c.limit64) << c.name << " at " << worst.x;
  }
}
INSTANTIATE_TEST_SUITE_P(Functions, Accuracy, ::testing::ValuesIn(kCases),
                         [](const auto& c) { return std::string(c.param.name); });

// ---- two operands ---------------------------------------------------------------------------------------------------
template <typename T> T random_value(uint64_t& state, int kind) {
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 11;
  };
  const double unit = static_cast<double>(next()) * 0x1p-53;
  constexpr T kMax = std::numeric_limits<T>::max(), kTiny = std::numeric_limits<T>::denorm_min();
  const T special[] = {
      0,        -T(0),     1,   -1,   2,     -2,    3,      -3,      T(0.5),  T(-0.5),
      INFINITY, -INFINITY, NAN, kMax, -kMax, kTiny, -kTiny, T(1e10), T(-7.5), 1 + std::numeric_limits<T>::epsilon()};
  switch (kind) {
  case 0: return special[next() % 20];
  case 1: return static_cast<T>((unit - 0.5) * 20);
  case 2: return static_cast<T>(std::round((unit - 0.5) * 100));
  case 3: return static_cast<T>(1 + (unit - 0.5) * 1e-3);
  case 4: return static_cast<T>((unit - 0.5) * 2e4);
  default: return static_cast<T>(std::exp2((unit - 0.5) * 2 * (std::numeric_limits<T>::max_exponent - 2)));
  }
}

template <typename T, typename F> Worst scan_pairs(Ops op, DType type, bool fma, int blocks, F reference) {
  Lowered f(op, type, fma);
  Worst worst;
  uint64_t state = 99;
  std::vector<T> x(kBlock), y(kBlock), out(kBlock);
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < kBlock; ++i) {
      x[i] = random_value<T>(state, i % 6);
      y[i] = random_value<T>(state, i / 6 % 6);
    }
    f.run(x.data(), y.data(), out.data());
    for (int i = 0; i < kBlock; ++i) worst.see(reference(out[i], x[i], y[i]), x[i], y[i]);
  }
  return worst;
}

TEST(Accuracy, Pow) {
  for (const bool fma : {true, false}) {
    const Worst single = scan_pairs<float>(Ops::Pow, DType::F32, fma, 24, [](float got, float x, float y) {
      return ulps(got, std::pow(static_cast<double>(x), static_cast<double>(y)));
    });
    std::printf("pow f32 %s: %.3f ulp at (%a, %a), %zu nodes\n", fma ? "fma" : "mul+add", single.ulp, single.x,
                single.y, Lowered(Ops::Pow, DType::F32, fma).size());
    EXPECT_LE(single.ulp, 1) << single.x << "^" << single.y;
    const Worst twice = scan_pairs<double>(Ops::Pow, DType::F64, fma, 12, [](double got, double x, double y) {
      return ulps(got, std::pow(static_cast<long double>(x), static_cast<long double>(y)));
    });
    std::printf("pow f64 %s: %.3f ulp at (%a, %a), %zu nodes\n", fma ? "fma" : "mul+add", twice.ulp, twice.x, twice.y,
                Lowered(Ops::Pow, DType::F64, fma).size());
    EXPECT_LE(twice.ulp, 4) << twice.x << "^" << twice.y;
  }
}

TEST(Accuracy, PowOfAConstantExponent) {
  const double values[] = {0, -0.0, 1, -1, 2.5, -2.5, INFINITY, -INFINITY, NAN, 1e-30, 1e30, 3e38, 1e-44, 0.1, -7};
  for (const double y : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 4.0}) {
    Context ctx;
    const Ref x = ctx.make(Ops::Param, DType::F32, {}, {{Attr::Slot, int64_t{0}}});
    const Ref power = lower(binary(Ops::Pow, x, ctx.constant(DType::F32, y)), basic_target(true));
    EXPECT_EQ(toposort(power).size() < 20, y != -0.5 && y != 4) << y;
    std::vector<float> in(kBlock);
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<float>(values[i % std::size(values)] * (1 + static_cast<double>(i / 15) * 0.01));
    ArrayEval eval(kBlock);
    eval.bind(x, in.data());
    for (int i = 0; i < kBlock; ++i) {
      const double got = to_double(DType::F32, eval.at(power, i)),
                   want = std::pow(static_cast<double>(in[static_cast<size_t>(i)]), y);
      EXPECT_LE(ulps(static_cast<float>(got), want), 1.5) << in[static_cast<size_t>(i)] << "^" << y;
    }
  }
}

TEST(Accuracy, ModIsExact) {
  for (const bool fma : {true, false}) {
    const Worst single = scan_pairs<float>(Ops::Mod, DType::F32, fma, 6, [](float got, float x, float y) {
      return ulps(got, std::fmod(static_cast<double>(x), static_cast<double>(y)));
    });
    EXPECT_EQ(single.ulp, 0) << single.x << " % " << single.y;
    const Worst twice = scan_pairs<double>(Ops::Mod, DType::F64, fma, 3, [](double got, double x, double y) {
      return ulps(got, static_cast<long double>(std::fmod(x, y)));
    });
    EXPECT_EQ(twice.ulp, 0) << twice.x << " % " << twice.y;
  }
}

// ---- 16-bit types ---------------------------------------------------------------------------------------------------
TEST(Halves, ConversionsAreExactForEveryValue) {
  const TargetInfo target = basic_target(false); // without f16 and bf16
  for (const DType half : {DType::F16, DType::BF16}) {
    Context ctx;
    const Ref h = ctx.make(Ops::Param, DType::U16, {}, {{Attr::Slot, int64_t{0}}});
    const Ref up = lower(bitcast(cast(bitcast(h, half), DType::F32), DType::U32), target);
    const Ref f = ctx.make(Ops::Param, DType::F32, {}, {{Attr::Slot, int64_t{1}}});
    const Ref d = ctx.make(Ops::Param, DType::F64, {}, {{Attr::Slot, int64_t{2}}});
    const Ref down = lower(bitcast(cast(f, half), DType::U16), target),
              narrow = lower(bitcast(cast(d, half), DType::U16), target);
    uint64_t state = 5;
    for (int block = 0; block < 16; ++block) {
      std::vector<uint16_t> bits(kBlock);
      std::vector<float> singles(kBlock);
      std::vector<double> doubles(kBlock);
      for (int i = 0; i < kBlock; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bits[i] = static_cast<uint16_t>(block * kBlock + i);
        // near every 16-bit value and the middle between two: where rounding decides
        const double value = to_double(half, bits[i]);
        const int64_t step = static_cast<int64_t>(state >> 60) - 8;
        singles[i] = std::bit_cast<float>(static_cast<uint32_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) +
                                                                (half == DType::F16 ? 0x1000 : 0x8000) * (i & 1) +
                                                                static_cast<uint32_t>(step)));
        doubles[i] = std::bit_cast<double>(std::bit_cast<int64_t>(static_cast<double>(singles[i])) + (i % 3) - 1);
      }
      ArrayEval eval(kBlock);
      eval.bind(h, bits.data());
      eval.bind(f, singles.data());
      eval.bind(d, doubles.data());
      for (int i = 0; i < kBlock; ++i) {
        const double value = to_double(half, bits[i]), got = to_double(DType::F32, eval.at(up, i));
        ASSERT_TRUE(value == got || (std::isnan(value) && std::isnan(got))) << name(half) << " " << bits[i];
        const auto check = [&](Ref root, double from) {
          const Bits want = from_double(half, from), have = eval.at(root, i);
          return want == have || (std::isnan(to_double(half, want)) && std::isnan(to_double(half, have)));
        };
        ASSERT_TRUE(check(down, singles[i])) << name(half) << " of f32 " << singles[i];
        ASSERT_TRUE(check(narrow, doubles[i])) << name(half) << " of f64 " << doubles[i];
      }
    }
  }
}

TEST(Halves, NoHalfIsLeftInAKernel) {
  Context ctx;
  const TargetInfo target = basic_target(true);
  const Ref n = ctx.index(8), i = ctx.range(n, 0);
  const Ref in = ctx.make(Ops::Param, DType::F16, {n}, {{Attr::Slot, int64_t{0}}}),
            out = ctx.make(Ops::Param, DType::F16, {n}, {{Attr::Slot, int64_t{1}}});
  const Ref x = ctx.make(Ops::Load, DType::F16, {in, i});
  const Ref y = where(lt(x, ctx.constant(DType::F16, 0)), unary(Ops::Exp, x), x * x + 1.0);
  const Ref kernel = lower(ctx.make(Ops::Sink, DType::Void, {ctx.make(Ops::Store, DType::Void, {out, i, y})}), [&] {
    TargetInfo t = target;
    for (Ops o : {Ops::Load, Ops::Store, Ops::Sink}) t.ops.set(static_cast<size_t>(o));
    return t;
  }());
  for (Ref node : toposort(kernel)) EXPECT_NE(node->dtype, DType::F16) << name(node->op);
}

} // namespace
} // namespace tgc
