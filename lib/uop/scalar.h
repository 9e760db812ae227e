// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "uop/uop.h"

namespace tgc {

/// One element as its storage bits, zero-extended to 64: what memory holds, for every dtype.
using Bits = uint64_t;

/// f16 and bf16: exact to double; from double rounded once, half to even, overflow to infinity, NaN quiet.
double half_to_double(uint16_t bits);
double bfloat_to_double(uint16_t bits);
uint16_t double_to_half(double x);
uint16_t double_to_bfloat(double x);

/// The value of an element: exact for every float and for integers up to 2^53.
double to_double(DType dtype, Bits bits);
/// The value of an integer, bool or index element (u64: its 64 bits).
int64_t to_int(DType dtype, Bits bits);
/// `x` as an element of `dtype` with the meaning of Cast from f64: floats round, integers truncate and saturate, NaN
/// gives 0, bool is x != 0.
Bits from_double(DType dtype, double x);
/// `x` wrapped to an integer or bool (x != 0) type; floats round once.
Bits from_int(DType dtype, int64_t x);
/// Op Cast on one element.
Bits cast_bits(DType to, DType from, Bits bits);
/// The storage bits of a Const node.
Bits const_bits(Ref constant);

/// The meaning of the elementwise op on one element; the result is in `dtype`, in bool for comparisons. Unused operands
/// are ignored. For Where, `a` is the condition and `dtype` that of the choices.
using ScalarFn = Bits (*)(Bits a, Bits b, Bits c);
/// Null when the op is not defined for the type (Sqrt of integers, Add of bools), or is not elementwise. Cast and
/// Bitcast are not here: see cast_bits.
ScalarFn scalar_fn(Ops op, DType dtype);

/// `n` elements, `stride` elements apart (0 repeats one element).
struct Strided {
  const std::byte* data = nullptr;
  int64_t stride = 0;
};
/// out[i] = op(a[i], b[i], c[i]) for i < n, `out` dense; false when scalar_fn is null. `dtype` as in scalar_fn.
bool apply_array(Ops op, DType dtype, int64_t n, const Strided (&in)[3], std::byte* out);
void cast_array(DType to, DType from, int64_t n, Strided in, std::byte* out);

/// Elements at a byte address, any dtype.
Bits load_bits(DType dtype, const std::byte* p);
void store_bits(DType dtype, std::byte* p, Bits bits);

/// The value that a reduction (Add, Mul, Max or Min) over nothing has.
Bits reduce_identity(Ops kind, DType dtype);
/// Add, Mul, Max or Min for attr kind "add", "mul", "max", "min"; errors: TGC-E105 on another word.
Ops reduce_op(Ref reduce);

} // namespace tgc
