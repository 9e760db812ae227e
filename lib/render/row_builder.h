// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "render/rows.h"

namespace tgc {

/// Appends row instructions and gives every op of ops.def its exact meaning in terms of row-code ops. Scalars that meet
/// vectors are splatted; constants and splats are shared within a loop body.
class RowBuilder {
public:
  RowBuilder(RowCode& code, const RowOptions& options) : code_(code), options_(options), splats_(1) {}

  const RowInst& inst(RowId id) const { return code_.insts[static_cast<size_t>(id)]; }
  DType dtype(RowId id) const { return inst(id).dtype; }
  int lanes(RowId id) const { return inst(id).lanes; }
  RowId emit(RowInst inst);

  /// `bits` in the encoding of dtype (f32 bits, f16 bits, 0/1 …).
  RowId constant(DType dtype, uint64_t bits, int lanes = 1);
  RowId integer(DType dtype, int64_t value) { return constant(dtype, static_cast<uint64_t>(value)); }
  RowId splat(RowId scalar, int lanes);
  RowId extract(RowId vector, int lane);
  /// Vector i has lane i of each of `rows`, equally long, in order.
  std::vector<RowId> transposed(std::vector<RowId> rows);
  /// The rows of a value of `dims` after its lanes and its dim `dim` have changed places.
  std::vector<RowId> exchanged(const std::vector<RowId>& rows, const std::vector<int64_t>& dims, int64_t dim);
  bool is_const(RowId id) const { return inst(id).kind == RowKind::Const; }

  /// What is known of an elementwise op on Index beyond its operands.
  struct Facts {
    bool no_wrap = false;  ///< the exact result fits in 64 bits
    bool positive = false; ///< first operand >= 0, second >= 1
  };
  /// One elementwise op of ops.def on rows (`dtype`: of the result). Returns -1 when there is no form for it.
  RowId elementwise(Ops op, DType dtype, std::span<const RowId> args, Facts facts);
  RowId cast(RowId x, DType to);
  RowId bitcast(RowId x, DType to) { return alu(Ops::Bitcast, to, {x}); }

  /// Loop bodies are scopes: what was made in one may not be used after it.
  void open_scope() { splats_.emplace_back(); }
  void close_scope() { splats_.pop_back(); }

private:
  RowId alu(Ops op, DType dtype, std::vector<RowId> args);
  RowId folded(Ops op, DType dtype, const std::vector<RowId>& args);
  RowId where(RowId cond, RowId a, RowId b) { return alu(Ops::Where, dtype(a), {cond, a, b}); }
  RowId extremum(Ops op, RowId a, RowId b);
  RowId dot4(std::span<const RowId> args);
  RowId division(Ops op, RowId a, RowId b, Facts facts);
  RowId division_by_const(Ops op, RowId a, RowId b);
  RowId shift(Ops op, RowId a, RowId b);
  RowId through_wider(Ops op, DType dtype, std::span<const RowId> args);
  RowId to_narrow(RowId x, DType to);
  RowId from_half(RowId x);
  RowId to_half(RowId x, DType half);
  RowId f32_to_f16(RowId x);
  RowId f32_to_bf16(RowId x);
  RowId to_f32_odd(RowId x);
  RowId to_f64_sticky(RowId x);

  RowCode& code_;
  RowOptions options_;
  std::map<std::tuple<DType, int, uint64_t>, RowId> constants_;
  std::vector<std::map<std::pair<RowId, int>, RowId>> splats_; ///< innermost scope last
};

} // namespace tgc
