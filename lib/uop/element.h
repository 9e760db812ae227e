// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to the interpreter: C++ types behind each dtype, so that a loop is written once for all of them.
#pragma once

#include <cstring>
#include <type_traits>

#include "uop/scalar.h"

namespace tgc {

/// Store: the type in memory. Value: the type arithmetic is done in (f16 and bf16 compute in double and round once,
/// which equals one correctly rounded operation: 53 >= 2 * 11 + 2 bits). Acc: what reductions accumulate in.
template <DType D> struct Elem;
template <class S> struct PlainElem {
  using Store = S;
  using Value = S;
  using Acc = std::conditional_t<std::is_floating_point_v<S>, double,
                                 std::conditional_t<std::is_signed_v<S>, int64_t, uint64_t>>;
  static Value get(Store s) { return s; }
  static Store put(Value v) { return v; }
};
template <> struct Elem<DType::Bool> {
  using Store = uint8_t;
  using Value = bool;
  using Acc = uint64_t;
  static bool get(Store s) { return s != 0; }
  static Store put(bool v) { return v ? 1 : 0; }
};
template <> struct Elem<DType::I8> : PlainElem<int8_t> {};
template <> struct Elem<DType::U8> : PlainElem<uint8_t> {};
template <> struct Elem<DType::I16> : PlainElem<int16_t> {};
template <> struct Elem<DType::U16> : PlainElem<uint16_t> {};
template <> struct Elem<DType::I32> : PlainElem<int32_t> {};
template <> struct Elem<DType::U32> : PlainElem<uint32_t> {};
template <> struct Elem<DType::I64> : PlainElem<int64_t> {};
template <> struct Elem<DType::U64> : PlainElem<uint64_t> {};
template <> struct Elem<DType::Index> : PlainElem<int64_t> {};
template <> struct Elem<DType::F32> : PlainElem<float> {};
template <> struct Elem<DType::F64> : PlainElem<double> {};
template <> struct Elem<DType::F16> {
  using Store = uint16_t;
  using Value = double;
  using Acc = double;
  static double get(Store s) { return half_to_double(s); }
  static Store put(double v) { return double_to_half(v); }
};
template <> struct Elem<DType::BF16> {
  using Store = uint16_t;
  using Value = double;
  using Acc = double;
  static double get(Store s) { return bfloat_to_double(s); }
  static Store put(double v) { return double_to_bfloat(v); }
};

template <DType D> typename Elem<D>::Value read(Bits bits) {
  typename Elem<D>::Store s;
  std::memcpy(&s, &bits, sizeof s); // little-endian, as the bundle format is
  return Elem<D>::get(s);
}
template <DType D> Bits write(typename Elem<D>::Value v) {
  typename Elem<D>::Store s = Elem<D>::put(v);
  Bits bits = 0;
  std::memcpy(&bits, &s, sizeof s);
  return bits;
}

/// f.template operator()<D>() for the run-time dtype. requires: not Void.
template <class F> auto visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
  case DType::Void:
  case DType::Bool: return f.template operator()<DType::Bool>();
  case DType::I8: return f.template operator()<DType::I8>();
  case DType::U8: return f.template operator()<DType::U8>();
  case DType::I16: return f.template operator()<DType::I16>();
  case DType::U16: return f.template operator()<DType::U16>();
  case DType::I32: return f.template operator()<DType::I32>();
  case DType::U32: return f.template operator()<DType::U32>();
  case DType::I64: return f.template operator()<DType::I64>();
  case DType::U64: return f.template operator()<DType::U64>();
  case DType::F16: return f.template operator()<DType::F16>();
  case DType::BF16: return f.template operator()<DType::BF16>();
  case DType::F32: return f.template operator()<DType::F32>();
  case DType::F64: return f.template operator()<DType::F64>();
  case DType::Index: return f.template operator()<DType::Index>();
  }
  return f.template operator()<DType::Bool>();
}

} // namespace tgc
