// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tgc {

/// Element types. `Index` is the one type of shapes, ranges and index arithmetic: mathematically an integer, evaluated
/// and rendered as a signed 64-bit one. A new element type is one enumerator and one row of `kDTypes`.
enum class DType : uint8_t { Void, Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, Index };

enum class DTypeKind : uint8_t { Void, Bool, Signed, Unsigned, Float };

struct DTypeInfo {
  const char* name; ///< spelling in the text form
  int bytes;        ///< storage bytes of one element
  DTypeKind kind;
  int mantissa_bits; ///< explicit mantissa bits of a float, else 0
};

// clang-format off
inline constexpr DTypeInfo kDTypes[] = {
    {"void",  0, DTypeKind::Void,     0},
    {"bool",  1, DTypeKind::Bool,     0},
    {"i8",    1, DTypeKind::Signed,   0},
    {"u8",    1, DTypeKind::Unsigned, 0},
    {"i16",   2, DTypeKind::Signed,   0},
    {"u16",   2, DTypeKind::Unsigned, 0},
    {"i32",   4, DTypeKind::Signed,   0},
    {"u32",   4, DTypeKind::Unsigned, 0},
    {"i64",   8, DTypeKind::Signed,   0},
    {"u64",   8, DTypeKind::Unsigned, 0},
    {"f16",   2, DTypeKind::Float,   10},
    {"bf16",  2, DTypeKind::Float,    7},
    {"f32",   4, DTypeKind::Float,   23},
    {"f64",   8, DTypeKind::Float,   52},
    {"index", 8, DTypeKind::Signed,   0},
};
// clang-format on
inline constexpr int kNumDTypes = static_cast<int>(sizeof(kDTypes) / sizeof(kDTypes[0]));

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
constexpr const char* name(DType t) { return info(t).name; }
constexpr int byte_size(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return info(t).kind == DTypeKind::Float; }
constexpr bool is_signed(DType t) { return info(t).kind == DTypeKind::Signed; }
constexpr bool is_unsigned(DType t) { return info(t).kind == DTypeKind::Unsigned; }
constexpr bool is_int(DType t) { return is_signed(t) || is_unsigned(t); }

/// The type spelled `text` in the text form ("f32"), or nothing.
constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (text == kDTypes[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

/// `value` rounded to the nearest value of a float type (ties to even, overflow to infinity); other types unchanged.
double round_to(DType type, double value);
/// Inclusive range of an integer or bool type; u64's upper half is not representable and saturates.
struct IntRange {
  int64_t lo, hi;
};
IntRange int_range(DType type);
/// `value` wrapped to an integer or bool type's width (u64 keeps its 64 bits; bool is != 0).
int64_t wrap_to(DType type, int64_t value);

} // namespace tgc
