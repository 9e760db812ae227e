// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <set>
#include <string>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// What a C value is: an element type and lanes. A bool vector is a mask, -1 or 0 in integers of `mask_bytes`; a bool
/// scalar is a uint8_t of 1 or 0; f16, bf16 are uint16_t.
struct CType {
  DType dtype = DType::Void;
  int lanes = 1;
  int mask_bytes = 0; ///< bool vectors only: 1, 2, 4 or 8
  bool is_mask() const { return mask_bytes != 0; }
};

/// The text in front of a C kernel: vector types and one small inline function per operation on them, each only when
/// used. GNU vector arithmetic where the compiler has it, loops over lanes elsewhere; both mean the same.
/// Every method returns the name to use and makes sure that it is defined.
class CPrelude {
public:
  /// `register_lanes`: lanes of a vector register, a power of two. Wider vectors are structs of parts, which compilers
  /// keep in registers; they would put a wide GNU vector into memory.
  explicit CPrelude(int register_lanes) : register_lanes_(register_lanes) {}

  std::string scalar(DType t) const;                                           ///< "float"
  std::string lane(const CType& t, const std::string& value, int64_t i) const; ///< one lane of a vector
  std::string make(const CType& t, const std::vector<std::string>& lanes);     ///< a vector of lanes
  std::string type(const CType& t);                                            ///< "f32x16"
  std::string splat(const CType& t);                                           ///< T f(element)
  std::string load(const CType& t);         ///< T f(const element* p); a mask from bytes
  std::string load_bytes(const CType& t);   ///< T f(const void* p): the first lane's low byte comes first
  std::string store(const CType& t);        ///< void f(element* p, T v)
  std::string load_masked(const CType& t);  ///< T f(const element* p, int64_t at, mask, T other)
  std::string store_masked(const CType& t); ///< void f(element* p, int64_t at, T v, mask)
  /// Lanes first, first + step, …
  struct Lanes {
    int64_t first;
    int step;
  };
  std::string slice(const CType& from, const CType& to, Lanes lanes); ///< to f(from)
  std::string zip(const CType& t, int64_t half);                      ///< T f(T, T): row code's Zip
  std::string resize_mask(const CType& from, int mask_bytes);         ///< the same mask in wider or narrower lanes
  std::string select(const CType& t);                                 ///< T f(mask as wide as T, T, T)
  /// An Alu op but Where: vector function of one to three operands of type `operand`.
  std::string vector_op(Ops op, const CType& result, const CType& operand);
  std::string convert(const CType& to, const CType& from); ///< to f(from): C's own conversion of each lane
  std::string scalar_cast(DType to, DType from);           ///< float to integer: truncates, saturates, NaN gives 0
  std::string scalar_bitcast(DType to, DType from);        ///< same bits
  std::string bits_to_float(DType t);                      ///< float f(uint32_t)

  /// An Alu op on scalars, with operand texts; not Where, Cast, Bitcast. requires: row code has a form of it.
  std::string scalar_op(Ops op, DType result, DType operand, const std::string* args) const;
  CType mask_for(const CType& t) const; ///< the mask as wide as t's elements

  const std::string& text() const { return text_; }

private:
  int part_lanes(int lanes) const;
  bool is_wide(const CType& t) const { return part_lanes(t.lanes) < t.lanes; }
  CType part(const CType& t) const { return {t.dtype, part_lanes(t.lanes), t.mask_bytes}; }
  void by_parts(const std::string& signature, const CType& t, const std::string& call, const char* result);
  bool define(const std::string& name) { return defined_.insert(name).second; }
  std::string lane_type(const CType& t) const;
  std::string own_lanes(const CType& mask);
  std::string clear_padding(const CType& mask);
  static std::string opaque(const CType& mask);
  std::string lane_loop(const CType& result, const CType& operand, int count, const std::string& expression);

  int register_lanes_;
  std::set<std::string> defined_;
  std::string text_;
};

} // namespace tgc
