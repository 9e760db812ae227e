// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of every elementwise op on one element of every dtype, in one place: ops.def's last column as code.
//
// f16 and bf16 compute in double and round once. f32 arithmetic is IEEE single, without contraction. Transcendental
// functions go through the double library and round: an oracle may (compiled code uses the polynomials of the
// transcendental rules and is judged by a tolerance). NaN results are not canonical: only "is NaN" is defined.
// Max and Min return the first operand when both compare equal (which fixes the sign of zero).
// Source: IEEE 754-2019; ONNX operators Mod, BitShift and Cast for the integer corners.

#include "uop/scalar.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "uop/diag.h"
#include "uop/element.h"

namespace tgc {

// ---- f16 and bf16 ---------------------------------------------------------------------------------------------------
namespace {

// Rounds the magnitude of x to a format with MantBits explicit mantissa bits and smallest normal exponent MinExp.
template <int MantBits, int MinExp> uint16_t round_to_16(double x) {
  constexpr uint64_t kInf = ((1u << 15) - 1) >> MantBits << MantBits;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t sign = bits >> 63 << 15;
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (biased == 0x7ff) return static_cast<uint16_t>(sign | kInf | (fraction != 0 ? 1u << (MantBits - 1) : 0u));
  const int exp = biased - 1023;
  const int shift = 52 - MantBits + (exp < MinExp ? MinExp - exp : 0);
  if (biased == 0 || shift > 54) return static_cast<uint16_t>(sign);
  const uint64_t mantissa = fraction | uint64_t{1} << 52;
  const uint64_t rest = mantissa & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  uint64_t result = mantissa >> shift;
  if (rest > half || (rest == half && (result & 1) != 0)) ++result;
  // A carry out of the mantissa lands in the exponent field, which is the right encoding.
  if (exp > MinExp) result += static_cast<uint64_t>(exp - MinExp) << MantBits;
  return static_cast<uint16_t>(sign | (result >= kInf ? kInf : result));
}

} // namespace

uint16_t double_to_half(double x) { return round_to_16<10, -14>(x); }
uint16_t double_to_bfloat(double x) { return round_to_16<7, -126>(x); }

double bfloat_to_double(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

double half_to_double(uint16_t bits) {
  const uint64_t sign = static_cast<uint64_t>(bits >> 15) << 63;
  const uint64_t exp = bits >> 10 & 31u, mantissa = bits & 1023u;
  if (exp == 31) return std::bit_cast<double>(sign | uint64_t{0x7ff} << 52 | mantissa << 42);
  if (exp == 0) {
    const double magnitude = static_cast<double>(mantissa) * 0x1p-24;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<double>(sign | (exp + 1008) << 52 | mantissa << 42);
}

// ---- conversions ----------------------------------------------------------------------------------------------------
namespace {

// Float to integer: truncates, saturates, NaN is 0.
template <class To> To saturate(double x) {
  if (std::isnan(x)) return 0;
  constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<To>::digits); // max + 1, exact
  if (x <= kLow) return std::numeric_limits<To>::min();
  if (x >= high) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

// An integer as a double that rounds to any 16-bit float as the integer itself would: excess low bits become sticky.
template <class From> double sticky_double(From x) {
  if constexpr (sizeof(From) < 8) {
    return static_cast<double>(x);
  } else {
    const bool negative = std::is_signed_v<From> && x < 0;
    uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    if (magnitude >> 53 != 0) magnitude = (magnitude >> 12 << 12) | ((magnitude & 0xfff) != 0 ? 0x1000u : 0u);
    const double value = static_cast<double>(magnitude);
    return negative ? -value : value;
  }
}

template <DType To, DType From> typename Elem<To>::Value convert(typename Elem<From>::Value x) {
  using T = typename Elem<To>::Value;
  using F = typename Elem<From>::Value;
  if constexpr (To == DType::Bool)
    return x != F{};
  else if constexpr (std::is_floating_point_v<F> && std::is_integral_v<T>)
    return saturate<T>(x);
  else if constexpr (std::is_integral_v<F> && (To == DType::F16 || To == DType::BF16))
    return sticky_double(x);
  else
    return static_cast<T>(x);
}

template <class F> auto visit_pair(DType to, DType from, F&& f) {
  return visit_dtype(to, [&]<DType To>() {
    return visit_dtype(from, [&]<DType From>() { return f.template operator()<To, From>(); });
  });
}

} // namespace

double to_double(DType dtype, Bits bits) {
  return visit_dtype(dtype, [&]<DType D>() { return static_cast<double>(read<D>(bits)); });
}
int64_t to_int(DType dtype, Bits bits) {
  return visit_dtype(dtype, [&]<DType D>() {
    if constexpr (std::is_integral_v<typename Elem<D>::Value>)
      return static_cast<int64_t>(read<D>(bits));
    else
      return saturate<int64_t>(read<D>(bits));
  });
}
Bits from_double(DType dtype, double x) { return cast_bits(dtype, DType::F64, std::bit_cast<Bits>(x)); }
Bits from_int(DType dtype, int64_t x) { return cast_bits(dtype, DType::I64, static_cast<Bits>(x)); }
Bits cast_bits(DType to, DType from, Bits bits) {
  return visit_pair(to, from, [&]<DType To, DType From>() { return write<To>(convert<To, From>(read<From>(bits))); });
}
Bits const_bits(Ref constant) {
  const AttrValue* value = constant->find(Attr::Value);
  TGC_CHECK(value != nullptr, "const_bits of " + std::string(name(constant->op)));
  if (const int64_t* i = std::get_if<int64_t>(value)) return from_int(constant->dtype, *i);
  return from_double(constant->dtype, std::get<double>(*value));
}

void cast_array(DType to, DType from, int64_t n, Strided in, std::byte* out) {
  visit_pair(to, from, [&]<DType To, DType From>() {
    const auto* src = reinterpret_cast<const typename Elem<From>::Store*>(in.data);
    auto* dst = reinterpret_cast<typename Elem<To>::Store*>(out);
    for (int64_t i = 0; i < n; ++i) dst[i] = Elem<To>::put(convert<To, From>(Elem<From>::get(src[i * in.stride])));
  });
}

Bits load_bits(DType dtype, const std::byte* p) {
  Bits bits = 0;
  std::memcpy(&bits, p, static_cast<size_t>(byte_size(dtype)));
  return bits;
}
void store_bits(DType dtype, std::byte* p, Bits bits) { std::memcpy(p, &bits, static_cast<size_t>(byte_size(dtype))); }

// ---- the ops --------------------------------------------------------------------------------------------------------
namespace {

template <class T> using Unsigned = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

constexpr bool info_is_unary(Ops op) { return op >= Ops::Neg && op <= Ops::Round; }
template <Ops O> constexpr bool is_compare() { return O == Ops::Lt || O == Ops::Le || O == Ops::Eq || O == Ops::Ne; }
template <Ops O> constexpr bool is_bitwise() { return O == Ops::And || O == Ops::Or || O == Ops::Xor || O == Ops::Not; }
template <Ops O> constexpr bool is_rounding() {
  return O == Ops::Floor || O == Ops::Ceil || O == Ops::Trunc || O == Ops::Round;
}
template <Ops O> constexpr bool is_float_only() {
  return O == Ops::Sqrt || O == Ops::Exp || O == Ops::Log || O == Ops::Sin || O == Ops::Cos || O == Ops::Tanh ||
         O == Ops::Erf || O == Ops::Pow || is_rounding<O>();
}
template <Ops O> constexpr bool is_int_only() {
  return O == Ops::FloorDiv || O == Ops::FloorMod || O == Ops::Shl || O == Ops::Shr;
}

// Whether the op has a meaning for T.
template <Ops O, class T> constexpr bool defined() {
  if (O == Ops::Dot4) return std::is_same_v<T, int32_t>;
  if (is_compare<O>() || O == Ops::Where || O == Ops::Max || O == Ops::Min) return true;
  if (is_bitwise<O>()) return std::is_integral_v<T>;
  if (std::is_same_v<T, bool>) return false;
  if (is_float_only<O>()) return std::is_floating_point_v<T>;
  if (is_int_only<O>()) return std::is_integral_v<T>;
  return true;
}

// a*b + c rounded to odd at 53 bits, so that a second rounding to 16 bits is exact (Boldo and Melquiond 2008).
// requires: a*b is exact in double, as it is for f16 and bf16 operands.
double fma_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (c - back);
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  return std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

template <class T> T int_div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<Unsigned<T>>(a));
  return static_cast<T>(a / b);
}
template <class T> T int_mod(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
template <class T> bool signs_differ(T rest, T b) {
  if constexpr (std::is_signed_v<T>)
    return rest != 0 && (rest < 0) != (b < 0);
  else
    return false;
}

/// The sum of the products of a's bytes, unsigned, and b's, signed.
unsigned byte_products(unsigned a, unsigned b) {
  int sum = 0;
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<uint8_t>(a >> shift) * static_cast<int8_t>(static_cast<uint8_t>(b >> shift));
  return static_cast<unsigned>(sum);
}

template <Ops O, class T> T int_op(T a, T b, T c) {
  using U = std::common_type_t<Unsigned<T>, unsigned>; // at least int-sized: no signed promotion overflow
  const U ua = static_cast<U>(a), ub = static_cast<U>(b), uc = static_cast<U>(c);
  constexpr Unsigned<T> kWidth = sizeof(T) * 8;
  if constexpr (O == Ops::Neg)
    return static_cast<T>(U{0} - ua);
  else if constexpr (O == Ops::Abs)
    return a < T{0} ? static_cast<T>(U{0} - ua) : a;
  else if constexpr (O == Ops::Not)
    return static_cast<T>(~ua);
  else if constexpr (O == Ops::Add)
    return static_cast<T>(ua + ub);
  else if constexpr (O == Ops::Sub)
    return static_cast<T>(ua - ub);
  else if constexpr (O == Ops::Mul)
    return static_cast<T>(ua * ub);
  else if constexpr (O == Ops::Fma)
    return static_cast<T>(ua * ub + uc);
  else if constexpr (O == Ops::Dot4)
    return static_cast<T>(uc + byte_products(ua, ub));
  else if constexpr (O == Ops::Div)
    return int_div(a, b);
  else if constexpr (O == Ops::Mod)
    return int_mod(a, b);
  else if constexpr (O == Ops::FloorDiv)
    return static_cast<T>(int_div(a, b) - (signs_differ(int_mod(a, b), b) ? 1 : 0));
  else if constexpr (O == Ops::FloorMod)
    return static_cast<T>(int_mod(a, b) + (signs_differ(int_mod(a, b), b) ? b : T{0}));
  else if constexpr (O == Ops::And)
    return static_cast<T>(ua & ub);
  else if constexpr (O == Ops::Or)
    return static_cast<T>(ua | ub);
  else if constexpr (O == Ops::Xor)
    return static_cast<T>(ua ^ ub);
  else if constexpr (O == Ops::Shl)
    return static_cast<Unsigned<T>>(b) >= kWidth ? T{0} : static_cast<T>(ua << ub);
  else if constexpr (O == Ops::Shr)
    return static_cast<Unsigned<T>>(b) >= kWidth ? T{0} : static_cast<T>(a >> ub);
  else
    return a;
}

template <Ops O, class T> T bool_op(T a, T b) {
  if constexpr (O == Ops::Not)
    return !a;
  else if constexpr (O == Ops::And)
    return a && b;
  else if constexpr (O == Ops::Or)
    return a || b;
  else
    return a != b;
}

template <class T> T round_even(T x) {
  const T down = std::floor(x), diff = x - down;
  const T up = down + T{1};
  if (std::isnan(x) || diff == T{0}) return x;
  const T even = std::fmod(down, T{2}) == T{0} ? down : up;
  return std::copysign(diff < T{0.5} ? down : diff > T{0.5} ? up : even, x);
}

template <Ops O, DType D>
typename Elem<D>::Value float_op(typename Elem<D>::Value a, typename Elem<D>::Value b, typename Elem<D>::Value c) {
  using T = typename Elem<D>::Value;
  const double x = static_cast<double>(a);
  if constexpr (O == Ops::Neg)
    return -a;
  else if constexpr (O == Ops::Abs)
    return std::fabs(a);
  else if constexpr (O == Ops::Sqrt)
    return std::sqrt(a);
  else if constexpr (O == Ops::Exp)
    return static_cast<T>(std::exp(x));
  else if constexpr (O == Ops::Log)
    return static_cast<T>(std::log(x));
  else if constexpr (O == Ops::Sin)
    return static_cast<T>(std::sin(x));
  else if constexpr (O == Ops::Cos)
    return static_cast<T>(std::cos(x));
  else if constexpr (O == Ops::Tanh)
    return static_cast<T>(std::tanh(x));
  else if constexpr (O == Ops::Erf)
    return static_cast<T>(std::erf(x));
  else if constexpr (O == Ops::Floor)
    return std::floor(a);
  else if constexpr (O == Ops::Ceil)
    return std::ceil(a);
  else if constexpr (O == Ops::Trunc)
    return std::trunc(a);
  else if constexpr (O == Ops::Round)
    return round_even(a);
  else if constexpr (O == Ops::Add)
    return a + b;
  else if constexpr (O == Ops::Sub)
    return a - b;
  else if constexpr (O == Ops::Mul)
    return a * b;
  else if constexpr (O == Ops::Div)
    return a / b;
  else if constexpr (O == Ops::Mod)
    return std::fmod(a, b);
  else if constexpr (O == Ops::Pow)
    return static_cast<T>(std::pow(x, static_cast<double>(b)));
  else if constexpr (O == Ops::Fma && (D == DType::F16 || D == DType::BF16))
    return fma_odd(a, b, c);
  else if constexpr (O == Ops::Fma)
    return std::fma(a, b, c);
  else
    return a;
}

template <Ops O, class T> bool compare(T a, T b) {
  if constexpr (O == Ops::Lt)
    return a < b;
  else if constexpr (O == Ops::Le)
    return a <= b;
  else if constexpr (O == Ops::Eq)
    return a == b;
  else
    return a != b;
}

// Every op but comparisons and Where.
template <Ops O, DType D>
typename Elem<D>::Value value_op(typename Elem<D>::Value a, typename Elem<D>::Value b, typename Elem<D>::Value c) {
  using T = typename Elem<D>::Value;
  if constexpr (O == Ops::Max)
    return a < b || b != b ? b : a;
  else if constexpr (O == Ops::Min)
    return b < a || b != b ? b : a;
  else if constexpr (std::is_same_v<T, bool>)
    return bool_op<O, T>(a, b);
  else if constexpr (std::is_floating_point_v<T>)
    return float_op<O, D>(a, b, c);
  else
    return int_op<O, T>(a, b, c);
}

// f.template operator()<O>() for a run-time elementwise op; false for others.
// clang-format off
template <class F> bool visit_op(Ops op, F&& f) {
  switch (op) {
#define TGC_CASE(O) case Ops::O: f.template operator()<Ops::O>(); return true;
    TGC_CASE(Neg) TGC_CASE(Abs) TGC_CASE(Not) TGC_CASE(Sqrt) TGC_CASE(Exp) TGC_CASE(Log) TGC_CASE(Sin) TGC_CASE(Cos)
    TGC_CASE(Tanh) TGC_CASE(Erf) TGC_CASE(Floor) TGC_CASE(Ceil) TGC_CASE(Trunc) TGC_CASE(Round) TGC_CASE(Add)
    TGC_CASE(Sub) TGC_CASE(Mul) TGC_CASE(Div) TGC_CASE(Mod) TGC_CASE(FloorDiv) TGC_CASE(FloorMod) TGC_CASE(Max)
    TGC_CASE(Min) TGC_CASE(Pow) TGC_CASE(And) TGC_CASE(Or) TGC_CASE(Xor) TGC_CASE(Shl) TGC_CASE(Shr) TGC_CASE(Lt)
    TGC_CASE(Le) TGC_CASE(Eq) TGC_CASE(Ne) TGC_CASE(Where) TGC_CASE(Fma) TGC_CASE(Dot4)
#undef TGC_CASE
  default: return false;
  }
}
// clang-format on

template <Ops O, DType D> Bits scalar(Bits a, Bits b, Bits c) {
  if constexpr (O == Ops::Where)
    return read<DType::Bool>(a) ? b : c;
  else if constexpr (is_compare<O>())
    return compare<O>(read<D>(a), read<D>(b)) ? 1 : 0;
  else
    return write<D>(value_op<O, D>(read<D>(a), read<D>(b), read<D>(c)));
}

// The typed loop behind the dtypes that large graphs are made of.
template <Ops O, DType D> void loop(int64_t n, const Strided (&in)[3], std::byte* out) {
  using S = typename Elem<D>::Store;
  const auto at = [](const Strided& s, int64_t i) {
    return Elem<D>::get(reinterpret_cast<const S*>(s.data)[i * s.stride]);
  };
  if constexpr (O == Ops::Where) {
    const auto* cond = reinterpret_cast<const uint8_t*>(in[0].data);
    S* dst = reinterpret_cast<S*>(out);
    for (int64_t i = 0; i < n; ++i) dst[i] = Elem<D>::put(at(cond[i * in[0].stride] != 0 ? in[1] : in[2], i));
  } else if constexpr (is_compare<O>()) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::byte{compare<O>(at(in[0], i), at(in[1], i))};
  } else {
    S* dst = reinterpret_cast<S*>(out);
    constexpr bool kUnary = info_is_unary(O);
    for (int64_t i = 0; i < n; ++i) {
      const auto a = at(in[0], i);
      const auto b = kUnary ? a : at(in[1], i);
      const auto c = O == Ops::Fma || O == Ops::Dot4 ? at(in[2], i) : a;
      dst[i] = Elem<D>::put(value_op<O, D>(a, b, c));
    }
  }
}

template <DType D> bool typed_loop(Ops op, int64_t n, const Strided (&in)[3], std::byte* out) {
  return visit_op(op, [&]<Ops O>() {
    if constexpr (defined<O, typename Elem<D>::Value>()) loop<O, D>(n, in, out);
  });
}

} // namespace

ScalarFn scalar_fn(Ops op, DType dtype) {
  if (dtype == DType::Void) return nullptr;
  return visit_dtype(dtype, [&]<DType D>() {
    ScalarFn fn = nullptr;
    visit_op(op, [&]<Ops O>() {
      if constexpr (defined<O, typename Elem<D>::Value>()) fn = &scalar<O, D>;
    });
    return fn;
  });
}

bool apply_array(Ops op, DType dtype, int64_t n, const Strided (&in)[3], std::byte* out) {
  const ScalarFn fn = scalar_fn(op, dtype);
  if (fn == nullptr) return false;
  switch (dtype) {
  case DType::Bool: return typed_loop<DType::Bool>(op, n, in, out);
  case DType::I32: return typed_loop<DType::I32>(op, n, in, out);
  case DType::I64:
  case DType::Index: return typed_loop<DType::I64>(op, n, in, out);
  case DType::F32: return typed_loop<DType::F32>(op, n, in, out);
  default: break;
  }
  const DType first = op == Ops::Where ? DType::Bool : dtype;
  const DType result = info(op).cls == OpClass::Compare ? DType::Bool : dtype;
  const auto at = [](DType t, const Strided& s, int64_t i) {
    return s.data == nullptr ? Bits{0} : load_bits(t, s.data + i * s.stride * byte_size(t));
  };
  for (int64_t i = 0; i < n; ++i)
    store_bits(result, out + i * byte_size(result), fn(at(first, in[0], i), at(dtype, in[1], i), at(dtype, in[2], i)));
  return true;
}

// ---- reductions -----------------------------------------------------------------------------------------------------
Ops reduce_op(Ref reduce) {
  const std::string& kind = reduce->s(Attr::Kind);
  if (kind == "add") return Ops::Add;
  if (kind == "mul") return Ops::Mul;
  if (kind == "max") return Ops::Max;
  if (kind == "min") return Ops::Min;
  throw CompileError(Diagnostic{ErrorCode::E105, "", "reduce kind \"" + kind + "\" is not add, mul, max or min", ""});
}

Bits reduce_identity(Ops kind, DType dtype) {
  if (kind == Ops::Add) return 0;
  if (kind == Ops::Mul) return from_int(dtype, 1);
  return visit_dtype(dtype, [&]<DType D>() {
    using T = typename Elem<D>::Value;
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>)
      return write<D>(kind == Ops::Max ? -Limits::infinity() : Limits::infinity());
    else
      return write<D>(kind == Ops::Max ? Limits::lowest() : Limits::max());
  });
}

} // namespace tgc
