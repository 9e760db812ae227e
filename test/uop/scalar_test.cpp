// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uop/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

using namespace tgc;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// op over values given and returned as doubles.
double f(Ops op, DType t, double a, double b = 0, double c = 0) {
  const bool compares = info(op).cls == OpClass::Compare;
  const Bits first = op == Ops::Where ? Bits{a != 0} : from_double(t, a);
  return to_double(compares ? DType::Bool : t, scalar_fn(op, t)(first, from_double(t, b), from_double(t, c)));
}
// The same for integers.
int64_t n(Ops op, DType t, int64_t a, int64_t b = 0, int64_t c = 0) {
  const bool compares = info(op).cls == OpClass::Compare;
  const Bits first = op == Ops::Where ? Bits{a != 0} : from_int(t, a);
  return to_int(compares ? DType::Bool : t, scalar_fn(op, t)(first, from_int(t, b), from_int(t, c)));
}
bool is_negative_zero(double v) { return v == 0 && std::signbit(v); }

constexpr DType kFloats[] = {DType::F16, DType::BF16, DType::F32, DType::F64};
constexpr DType kInts[] = {DType::I8,  DType::U8,  DType::I16, DType::U16,  DType::I32,
                           DType::U32, DType::I64, DType::U64, DType::Index};

TEST(Scalar, HalfConversionRoundTripsEveryPattern) {
  for (int i = 0; i < 1 << 16; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const double h = half_to_double(bits), b = bfloat_to_double(bits);
    if (std::isnan(h))
      EXPECT_TRUE(std::isnan(half_to_double(double_to_half(h))));
    else
      ASSERT_EQ(double_to_half(h), bits);
    if (std::isnan(b))
      EXPECT_TRUE(std::isnan(bfloat_to_double(double_to_bfloat(b))));
    else
      ASSERT_EQ(double_to_bfloat(b), bits);
  }
}

TEST(Scalar, HalfRoundsToNearestEven) {
  EXPECT_EQ(double_to_half(1.0), 0x3c00);
  EXPECT_EQ(double_to_half(65504.0), 0x7bff);
  EXPECT_EQ(double_to_half(65519.99), 0x7bff);
  EXPECT_EQ(double_to_half(65520.0), 0x7c00);
  EXPECT_EQ(double_to_half(-65520.0), 0xfc00);
  EXPECT_EQ(double_to_half(0x1p-24), 0x0001);
  EXPECT_EQ(double_to_half(0x1p-25), 0x0000);               // tie to even
  EXPECT_EQ(double_to_half(0x1.0000000000001p-25), 0x0001); // above the tie
  EXPECT_EQ(double_to_half(0x1.8p-24), 0x0002);
  EXPECT_EQ(double_to_half(1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(double_to_half(1 + 0x3p-11), 0x3c02);
  EXPECT_EQ(double_to_half(0x1.ff8p-15), 0x03ff); // largest subnormal
  EXPECT_EQ(double_to_half(0x1.ffcp-15), 0x0400); // carries into the exponent
  EXPECT_EQ(double_to_half(-0.0), 0x8000);
  EXPECT_EQ(double_to_bfloat(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(double_to_bfloat(1 + 0x3p-8), 0x3f82);
  EXPECT_EQ(double_to_bfloat(3.4e38), 0x7f80);
  EXPECT_EQ(double_to_bfloat(5e-324), 0);
}

TEST(Scalar, FloatArithmeticInEveryType) {
  for (DType t : kFloats) {
    EXPECT_EQ(f(Ops::Add, t, 1.5, 2), 3.5);
    EXPECT_EQ(f(Ops::Sub, t, 1.5, 2), -0.5);
    EXPECT_EQ(f(Ops::Mul, t, 1.5, -2), -3);
    EXPECT_EQ(f(Ops::Div, t, 3, -2), -1.5);
    EXPECT_EQ(f(Ops::Div, t, 1, 0), kInf);
    EXPECT_EQ(f(Ops::Div, t, 1, -0.0), -kInf);
    EXPECT_TRUE(std::isnan(f(Ops::Div, t, 0, 0)));
    EXPECT_EQ(f(Ops::Mod, t, -5.5, 2), -1.5);
    EXPECT_EQ(f(Ops::Mod, t, 5.5, -2), 1.5);
    EXPECT_TRUE(std::isnan(f(Ops::Mod, t, 1, 0)));
    EXPECT_EQ(f(Ops::Neg, t, 2), -2);
    EXPECT_TRUE(is_negative_zero(f(Ops::Neg, t, 0)));
    EXPECT_FALSE(std::signbit(f(Ops::Abs, t, -0.0)));
    EXPECT_EQ(f(Ops::Sqrt, t, 2.25), 1.5);
    EXPECT_TRUE(std::isnan(f(Ops::Sqrt, t, -1)));
    EXPECT_EQ(f(Ops::Exp, t, -kInf), 0);
    EXPECT_EQ(f(Ops::Exp, t, 0), 1);
    EXPECT_EQ(f(Ops::Log, t, 0), -kInf);
    EXPECT_TRUE(std::isnan(f(Ops::Log, t, -1)));
    EXPECT_EQ(f(Ops::Sin, t, 0), 0);
    EXPECT_EQ(f(Ops::Cos, t, 0), 1);
    EXPECT_EQ(f(Ops::Tanh, t, kInf), 1);
    EXPECT_EQ(f(Ops::Erf, t, -kInf), -1);
    EXPECT_EQ(f(Ops::Pow, t, 2, 3), 8);
    EXPECT_EQ(f(Ops::Pow, t, kNaN, 0), 1);
    EXPECT_EQ(f(Ops::Fma, t, 1.5, 2, 0.5), 3.5);
    EXPECT_EQ(f(Ops::Where, t, 1, 2, 3), 2);
    EXPECT_EQ(f(Ops::Where, t, 0, 2, 3), 3);
  }
  EXPECT_EQ(f(Ops::Add, DType::F16, 65504, 65504), kInf);
  EXPECT_EQ(f(Ops::Add, DType::F16, 2048, 1), 2048); // 12 bits do not fit in 11
  EXPECT_EQ(f(Ops::Add, DType::BF16, 256, 1), 256);
  EXPECT_EQ(f(Ops::Mul, DType::F32, 1e30, 1e30), kInf);
  EXPECT_EQ(f(Ops::Add, DType::F32, 16777216, 1), 16777216);
}

TEST(Scalar, RoundingOps) {
  for (DType t : kFloats) {
    EXPECT_EQ(f(Ops::Floor, t, -1.5), -2);
    EXPECT_EQ(f(Ops::Ceil, t, -1.5), -1);
    EXPECT_EQ(f(Ops::Trunc, t, -1.5), -1);
    EXPECT_EQ(f(Ops::Round, t, 0.5), 0);
    EXPECT_EQ(f(Ops::Round, t, 1.5), 2);
    EXPECT_EQ(f(Ops::Round, t, 2.5), 2);
    EXPECT_EQ(f(Ops::Round, t, -2.5), -2);
    EXPECT_EQ(f(Ops::Round, t, 2.75), 3);
    EXPECT_TRUE(is_negative_zero(f(Ops::Round, t, -0.5)));
    for (Ops op : {Ops::Floor, Ops::Ceil, Ops::Trunc, Ops::Round}) {
      EXPECT_TRUE(is_negative_zero(f(op, t, -0.0)));
      EXPECT_TRUE(std::isnan(f(op, t, kNaN)));
      EXPECT_EQ(f(op, t, -kInf), -kInf);
    }
  }
  EXPECT_TRUE(is_negative_zero(f(Ops::Ceil, DType::F32, -0.5)));
  EXPECT_EQ(f(Ops::Round, DType::F64, 4503599627370497.5), 4503599627370498);
}

TEST(Scalar, NaNRules) {
  for (DType t : kFloats) {
    for (Ops op : {Ops::Max, Ops::Min, Ops::Add, Ops::Mul}) {
      EXPECT_TRUE(std::isnan(f(op, t, kNaN, 1)));
      EXPECT_TRUE(std::isnan(f(op, t, 1, kNaN)));
    }
    EXPECT_EQ(f(Ops::Max, t, -kInf, 1), 1);
    EXPECT_EQ(f(Ops::Min, t, -kInf, 1), -kInf);
    for (Ops op : {Ops::Lt, Ops::Le, Ops::Eq}) {
      EXPECT_EQ(f(op, t, kNaN, 1), 0);
      EXPECT_EQ(f(op, t, 1, kNaN), 0);
      EXPECT_EQ(f(op, t, kNaN, kNaN), 0);
    }
    EXPECT_EQ(f(Ops::Ne, t, kNaN, kNaN), 1);
    EXPECT_EQ(f(Ops::Eq, t, 0, -0.0), 1);
    EXPECT_EQ(f(Ops::Lt, t, -1, 1), 1);
    EXPECT_EQ(f(Ops::Le, t, 1, 1), 1);
  }
}

TEST(Scalar, FmaRoundsOnce) {
  const float a = 1 + 0x1p-12f;
  EXPECT_EQ(f(Ops::Fma, DType::F32, a, a, -1), 0x1p-11 + 0x1p-24);
  EXPECT_NE(f(Ops::Fma, DType::F32, a, a, -1), static_cast<float>(a * a) - 1.0f);
  // Half way between two f16 values in 53 bits, above it exactly: 1 + 2^-11 + 2^-48·tiny must round up.
  EXPECT_EQ(f(Ops::Fma, DType::F16, 0x1p-24, 0x1p-24, 1 + 0.0), 1);
  EXPECT_EQ(f(Ops::Fma, DType::F16, 1 + 0x1p-10, 1 + 0x1p-10, 0), 1 + 0x1p-9);
  EXPECT_EQ(f(Ops::Fma, DType::BF16, 0x1p-100, 0x1p-30, 0x1p100), 0x1p100);
}

TEST(Scalar, IntegerArithmeticWraps) {
  for (DType t : kInts) {
    EXPECT_EQ(n(Ops::Add, t, 5, 3), 8);
    EXPECT_EQ(n(Ops::Sub, t, 5, 3), 2);
    EXPECT_EQ(n(Ops::Mul, t, 5, 3), 15);
    EXPECT_EQ(n(Ops::Fma, t, 5, 3, 1), 16);
    EXPECT_EQ(n(Ops::Div, t, 7, 2), 3);
    EXPECT_EQ(n(Ops::Mod, t, 7, 2), 1);
    EXPECT_EQ(n(Ops::FloorDiv, t, 7, 2), 3);
    EXPECT_EQ(n(Ops::FloorMod, t, 7, 2), 1);
    for (Ops op : {Ops::Div, Ops::Mod, Ops::FloorDiv, Ops::FloorMod}) EXPECT_EQ(n(op, t, 7, 0), 0) << name(op);
    EXPECT_EQ(n(Ops::And, t, 6, 3), 2);
    EXPECT_EQ(n(Ops::Or, t, 6, 3), 7);
    EXPECT_EQ(n(Ops::Xor, t, 6, 3), 5);
    EXPECT_EQ(n(Ops::Not, t, 6), to_int(t, from_int(t, ~int64_t{6})));
    EXPECT_EQ(n(Ops::Neg, t, 6), to_int(t, from_int(t, -6)));
    EXPECT_EQ(n(Ops::Max, t, 6, 3), 6);
    EXPECT_EQ(n(Ops::Min, t, 6, 3), 3);
    EXPECT_EQ(n(Ops::Where, t, 0, 6, 3), 3);
    EXPECT_EQ(n(Ops::Lt, t, 3, 6), 1);
    const int64_t width = byte_size(t) * 8;
    EXPECT_EQ(n(Ops::Shl, t, 3, 1), 6);
    EXPECT_EQ(n(Ops::Shl, t, 3, width), 0);
    EXPECT_EQ(n(Ops::Shr, t, 6, 1), 3);
    EXPECT_EQ(n(Ops::Shr, t, 6, width), 0);
    EXPECT_EQ(n(Ops::Shl, t, 3, -1), 0); // a negative amount is a huge unsigned one
  }
  for (DType t : {DType::I8, DType::I16, DType::I32, DType::I64, DType::Index}) {
    const int64_t min = -1 - static_cast<int64_t>((uint64_t{1} << (byte_size(t) * 8 - 1)) - 1);
    EXPECT_EQ(n(Ops::Div, t, -7, 2), -3);
    EXPECT_EQ(n(Ops::Mod, t, -7, 2), -1);
    EXPECT_EQ(n(Ops::FloorDiv, t, -7, 2), -4);
    EXPECT_EQ(n(Ops::FloorMod, t, -7, 2), 1);
    EXPECT_EQ(n(Ops::FloorDiv, t, 7, -2), -4);
    EXPECT_EQ(n(Ops::FloorMod, t, 7, -2), -1);
    EXPECT_EQ(n(Ops::FloorDiv, t, -8, 2), -4);
    EXPECT_EQ(n(Ops::FloorMod, t, -8, 2), 0);
    EXPECT_EQ(n(Ops::Div, t, min, -1), min);
    EXPECT_EQ(n(Ops::FloorDiv, t, min, -1), min);
    EXPECT_EQ(n(Ops::Mod, t, min, -1), 0);
    EXPECT_EQ(n(Ops::FloorMod, t, min, -1), 0);
    EXPECT_EQ(n(Ops::Abs, t, min), min);
    EXPECT_EQ(n(Ops::Neg, t, min), min);
    EXPECT_EQ(n(Ops::Shr, t, -8, 1), -4);
    EXPECT_EQ(n(Ops::Shr, t, -8, 100), 0);
    EXPECT_EQ(n(Ops::Add, t, min, -1), -(min + 1));
  }
  EXPECT_EQ(n(Ops::Lt, DType::U64, -1, 1), 0); // 2^64 - 1
  EXPECT_EQ(n(Ops::Mul, DType::U8, 16, 17), 16);
  EXPECT_EQ(n(Ops::Mul, DType::U16, 65535, 65535), 1);
}

TEST(Scalar, BoolOps) {
  const DType b = DType::Bool;
  for (int64_t x : {0, 1})
    for (int64_t y : {0, 1}) {
      EXPECT_EQ(n(Ops::And, b, x, y), x & y);
      EXPECT_EQ(n(Ops::Or, b, x, y), x | y);
      EXPECT_EQ(n(Ops::Xor, b, x, y), x ^ y);
      EXPECT_EQ(n(Ops::Max, b, x, y), x | y);
      EXPECT_EQ(n(Ops::Min, b, x, y), x & y);
      EXPECT_EQ(n(Ops::Eq, b, x, y), x == y);
      EXPECT_EQ(n(Ops::Lt, b, x, y), x < y);
      EXPECT_EQ(n(Ops::Not, b, x), 1 - x);
    }
  for (Ops op : {Ops::Add, Ops::Neg, Ops::Sqrt, Ops::Shl}) EXPECT_EQ(scalar_fn(op, b), nullptr) << name(op);
  EXPECT_EQ(scalar_fn(Ops::And, DType::F32), nullptr);
  EXPECT_EQ(scalar_fn(Ops::Sqrt, DType::I32), nullptr);
  EXPECT_EQ(scalar_fn(Ops::FloorDiv, DType::F32), nullptr);
  EXPECT_EQ(scalar_fn(Ops::Reshape, DType::F32), nullptr);
}

TEST(Scalar, CastsSaturateTruncateAndWrap) {
  const auto to = [](DType t, double v) { return to_int(t, from_double(t, v)); };
  EXPECT_EQ(to(DType::I8, 300), 127);
  EXPECT_EQ(to(DType::I8, -300), -128);
  EXPECT_EQ(to(DType::U8, -1), 0);
  EXPECT_EQ(to(DType::U8, 255.9), 255);
  EXPECT_EQ(to(DType::I32, -1.9), -1);
  EXPECT_EQ(to(DType::I32, 2147483648.0), 2147483647);
  EXPECT_EQ(to(DType::I64, 1e30), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(to(DType::I64, -kInf), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(to(DType::U64, kInf), -1);
  EXPECT_EQ(to(DType::Bool, 0.5), 1);
  EXPECT_EQ(to(DType::Bool, -0.0), 0);
  EXPECT_EQ(to(DType::Bool, kNaN), 1);
  for (DType t : kInts) EXPECT_EQ(to(t, kNaN), 0);
  EXPECT_EQ(to_int(DType::U8, cast_bits(DType::U8, DType::I32, from_int(DType::I32, 257))), 1);
  EXPECT_EQ(to_int(DType::I8, cast_bits(DType::I8, DType::U8, 200)), -56);
  EXPECT_EQ(to_int(DType::I64, cast_bits(DType::I64, DType::I8, from_int(DType::I8, -1))), -1);
  EXPECT_EQ(to_double(DType::F32, cast_bits(DType::F32, DType::U64, ~Bits{0})), 0x1p64);
  EXPECT_EQ(to_double(DType::F32, cast_bits(DType::F32, DType::I32, from_int(DType::I32, 16777217))), 16777216);
  EXPECT_EQ(to_double(DType::F32, cast_bits(DType::F32, DType::Bool, 1)), 1);
  // One rounding: 2^60 + 2^52 is half way in bf16; the 1 beyond 53 bits decides.
  const int64_t tie = (int64_t{1} << 60) + (int64_t{1} << 52);
  EXPECT_EQ(to_double(DType::BF16, from_int(DType::BF16, tie)), 0x1p60);
  EXPECT_EQ(to_double(DType::BF16, from_int(DType::BF16, tie + 1)), 0x1p60 + 0x1p53);
  EXPECT_EQ(to_double(DType::BF16, from_int(DType::BF16, -tie - 1)), -0x1p60 - 0x1p53);
}

TEST(Scalar, ReduceIdentities) {
  EXPECT_EQ(to_double(DType::F16, reduce_identity(Ops::Max, DType::F16)), -kInf);
  EXPECT_EQ(to_double(DType::F32, reduce_identity(Ops::Min, DType::F32)), kInf);
  EXPECT_EQ(to_double(DType::F64, reduce_identity(Ops::Mul, DType::F64)), 1);
  EXPECT_EQ(to_int(DType::I8, reduce_identity(Ops::Max, DType::I8)), -128);
  EXPECT_EQ(to_int(DType::U8, reduce_identity(Ops::Min, DType::U8)), 255);
  EXPECT_EQ(to_int(DType::Bool, reduce_identity(Ops::Min, DType::Bool)), 1);
  EXPECT_EQ(reduce_identity(Ops::Add, DType::F32), Bits{0});
}

TEST(Scalar, ArraysAgreeWithScalarsInEveryTypeAndOp) {
  for (DType t : {DType::Bool, DType::I8, DType::I32, DType::U32, DType::I64, DType::F16, DType::F32, DType::F64})
    for (int o = 0; o < kNumOps; ++o) {
      const Ops op = static_cast<Ops>(o);
      const ScalarFn fn = scalar_fn(op, t);
      std::byte in[3][8 * 4] = {}, out[8 * 4] = {};
      for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 4; ++i) {
          const DType of = op == Ops::Where && k == 0 ? DType::Bool : t;
          store_bits(of, in[k] + i * byte_size(of), from_double(of, k == 0 ? i * 3 - 4 : i - 1));
        }
      const Strided operands[3] = {{in[0], 1}, {in[1], 1}, {in[2], 0}};
      ASSERT_EQ(apply_array(op, t, 4, operands, out), fn != nullptr);
      if (fn == nullptr) continue;
      const DType result = info(op).cls == OpClass::Compare ? DType::Bool : t;
      const DType first = op == Ops::Where ? DType::Bool : t;
      for (int i = 0; i < 4; ++i) {
        const Bits expected = fn(load_bits(first, in[0] + i * byte_size(first)), load_bits(t, in[1] + i * byte_size(t)),
                                 load_bits(t, in[2]));
        const Bits got = load_bits(result, out + i * byte_size(result));
        const bool both_nan =
            is_float(result) && std::isnan(to_double(result, got)) && std::isnan(to_double(result, expected));
        EXPECT_TRUE(got == expected || both_nan) << name(op) << " " << name(t) << " element " << i;
      }
    }
}

} // namespace
