// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The exact meaning of ops.def in terms that C and LLVM share. Both languages leave corners undefined (division by
// zero, wide shifts, NaN in max) or have no form at all (f16 and bf16 without hardware): here each corner becomes
// ordinary arithmetic, once, so that the printers print one instruction per row and cannot disagree. f16 and bf16
// compute in f32 and round once more, which equals one correct rounding for + - * / sqrt because f32 has more than 2p+2
// bits (Figueroa 1995); products and quotients of bf16 can fall below f32's normal range and go through f64. f64 → 16
// bits goes through f32 rounded to odd, which makes the second rounding exact (Boldo and Melquiond 2008). Not handled:
// Fma on 16-bit floats and float Mod, which decompositions take apart for every target (the caller reports them).
#include "render/row_builder.h"

#include <algorithm>
#include <bit>

#include "rewrite/lower/transpose.h"
#include "uop/diag.h"

namespace tgc {
namespace {

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
int width(DType t) { return byte_size(t) * 8; }
DType unsigned_of(DType t) {
  constexpr DType kByLog2[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  return kByLog2[std::countr_zero(static_cast<unsigned>(byte_size(t)))];
}
bool is_compare(Ops op) { return op == Ops::Lt || op == Ops::Le || op == Ops::Eq || op == Ops::Ne; }
int64_t sign_extend(uint64_t bits, DType t) {
  const int unused = 64 - width(t);
  if (is_unsigned(t) || t == DType::Bool) return static_cast<int64_t>(bits << unused >> unused);
  return static_cast<int64_t>(bits << unused) >> unused;
}
bool is_nan_bits(DType t, uint64_t bits) {
  if (t == DType::F32) return (bits & 0x7fffffff) > 0x7f800000;
  if (t == DType::F64) return (bits & ~(uint64_t{1} << 63)) > uint64_t{0x7ff} << 52;
  return false;
}

} // namespace

RowId RowBuilder::emit(RowInst inst) {
  code_.insts.push_back(std::move(inst));
  return static_cast<RowId>(code_.insts.size() - 1);
}

RowId RowBuilder::constant(DType dtype, uint64_t bits, int lanes) {
  if (width(dtype) < 64) bits &= (uint64_t{1} << width(dtype)) - 1;
  const auto [it, is_new] = constants_.try_emplace({dtype, lanes, bits}, 0);
  if (is_new) it->second = emit({.kind = RowKind::Const, .dtype = dtype, .lanes = lanes, .bits = bits});
  return it->second;
}

RowId RowBuilder::splat(RowId x, int n) {
  if (lanes(x) == n) return x;
  TGC_CHECK(lanes(x) == 1, "a vector row is splatted");
  if (is_const(x)) return constant(dtype(x), inst(x).bits, n);
  for (const auto& scope : splats_)
    if (const auto it = scope.find({x, n}); it != scope.end()) return it->second;
  const RowId id = emit({.kind = RowKind::Splat, .dtype = dtype(x), .lanes = n, .args = {x}});
  splats_.back().emplace(std::pair{x, n}, id);
  return id;
}

RowId RowBuilder::extract(RowId x, int lane) {
  if (lanes(x) == 1) return x;
  const RowInst& from = inst(x);
  if (from.kind == RowKind::Const) return constant(from.dtype, from.bits);
  if (from.kind == RowKind::Iota) return integer(from.dtype, lane);
  if (from.kind == RowKind::Splat) return from.args[0];
  if (from.kind == RowKind::Build) return from.args[static_cast<size_t>(lane)];
  return emit({.kind = RowKind::Extract, .dtype = from.dtype, .lanes = 1, .imm = lane, .args = {x}});
}

// A zip of row i and row i + n/2 moves the top bit of a row's number below its lane's; log2(n) times, and the rows are
// turned around. Rows beyond the last one may be anything.
std::vector<RowId> RowBuilder::transposed(std::vector<RowId> rows) {
  const int n = static_cast<int>(rows.size()), m = lanes(rows[0]);
  const DType t = dtype(rows[0]);
  std::vector<RowId> out;
  if (!can_transpose(n, m) || t == DType::Bool) {
    for (int lane = 0; lane < m; ++lane) {
      std::vector<RowId> elements;
      for (const RowId row : rows) elements.push_back(extract(row, lane));
      out.push_back(n == 1 ? elements[0]
                           : emit({.kind = RowKind::Build, .dtype = t, .lanes = n, .args = std::move(elements)}));
    }
    return out;
  }
  const size_t whole = std::bit_ceil(rows.size());
  constexpr int kLane = 16; // bytes within which shuffles are cheapest
  const int piece = std::max(static_cast<int>(whole), kLane / byte_size(t));
  if (piece < m && m % piece == 0) {
    for (int first = 0; first < m; first += piece) {
      std::vector<RowId> part;
      for (const RowId row : rows)
        part.push_back(emit({.kind = RowKind::Slice, .dtype = t, .lanes = piece, .imm = first, .args = {row}}));
      part = transposed(std::move(part));
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  rows.resize(whole, rows.back());
  for (size_t step = 1; step < whole; step *= 2) {
    std::vector<RowId> zipped;
    for (size_t i = 0; i < whole; ++i)
      zipped.push_back(emit({.kind = RowKind::Zip,
                             .dtype = t,
                             .lanes = m,
                             .imm = static_cast<int64_t>(i % 2),
                             .args = {rows[i / 2], rows[i / 2 + whole / 2]}}));
    rows = std::move(zipped);
  }
  for (int lane = 0; lane < m; ++lane) {
    const int first = lane * static_cast<int>(whole);
    const RowId row = rows[static_cast<size_t>(first / m)];
    out.push_back(n == m ? row
                         : emit({.kind = RowKind::Slice, .dtype = t, .lanes = n, .imm = first % m, .args = {row}}));
  }
  return out;
}

std::vector<RowId> RowBuilder::exchanged(const std::vector<RowId>& rows, const std::vector<int64_t>& dims,
                                         int64_t dim) {
  const int64_t n = dims[static_cast<size_t>(dim)], m = dims.back(), count = static_cast<int64_t>(rows.size());
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(dim) + 1; i + 1 < dims.size(); ++i) inner *= dims[i];
  std::vector<RowId> out(static_cast<size_t>(count / n * m));
  for (int64_t tile = 0; tile < count / n; ++tile) {
    const int64_t before = tile / inner, after = tile % inner;
    std::vector<RowId> turned;
    for (int64_t i = 0; i < n; ++i) turned.push_back(rows[static_cast<size_t>((before * n + i) * inner + after)]);
    turned = transposed(std::move(turned));
    for (int64_t i = 0; i < m; ++i)
      out[static_cast<size_t>((before * m + i) * inner + after)] = turned[static_cast<size_t>(i)];
  }
  return out;
}

/// The row that an op on constants or with a neutral operand is, or -1. Integers and bool only: floats are folded by
/// rules, which know the numerics asked for.
RowId RowBuilder::folded(Ops op, DType result, const std::vector<RowId>& args) {
  if (!is_int(result) && result != DType::Bool) return -1;
  if (args.size() != 2 || is_float(dtype(args[0])) || !(is_const(args[0]) || is_const(args[1]))) return -1;
  const bool first = is_const(args[0]);
  const uint64_t value = inst(args[first ? 0 : 1]).bits;
  const RowId other = args[first ? 1 : 0];
  const int n = std::max(lanes(args[0]), lanes(args[1]));
  const uint64_t ones = result == DType::Bool ? 1 : ~uint64_t{0} >> (64 - width(result));
  if (op == Ops::And && value == 0) return constant(result, 0, n);
  if (op == Ops::Or && value == ones) return constant(result, ones, n);
  const bool neutral = (op == Ops::And && value == ones) || (op == Ops::Or && value == 0) ||
                       (op == Ops::Add && value == 0) || (op == Ops::Mul && value == 1);
  if (neutral) return splat(other, n);
  if (!is_const(args[0]) || !is_const(args[1])) return -1;
  const uint64_t a = inst(args[0]).bits, b = inst(args[1]).bits;
  if (op == Ops::Add) return constant(result, a + b, n);
  if (op == Ops::Mul) return constant(result, a * b, n);
  return -1;
}

RowId RowBuilder::alu(Ops op, DType result, std::vector<RowId> args) {
  if (const RowId known = folded(op, result, args); known >= 0) return known;
  int n = 1;
  for (const RowId arg : args) n = std::max(n, lanes(arg));
  for (size_t i = 0; i < args.size(); ++i)
    if (!(op == Ops::Where && i == 0)) args[i] = splat(args[i], n);
  return emit({.kind = RowKind::Alu, .op = op, .dtype = result, .lanes = n, .args = std::move(args)});
}

RowId RowBuilder::elementwise(Ops op, DType result, std::span<const RowId> args, Facts facts) {
  const DType operand = dtype(args[op == Ops::Where ? 1 : 0]);
  if (op == Ops::Where || op == Ops::Bitcast) return alu(op, result, {args.begin(), args.end()});
  if (op == Ops::Cast) return cast(args[0], result);
  if (is_half(operand)) return op == Ops::Fma ? -1 : through_wider(op, result, args);
  switch (op) {
  case Ops::Max:
  case Ops::Min: return extremum(op, args[0], args[1]);
  case Ops::Div:
    if (is_float(operand)) break;
    return division(op, args[0], args[1], facts);
  case Ops::Mod:
  case Ops::FloorDiv:
  case Ops::FloorMod:
    if (is_float(operand)) return -1;
    return division(op, args[0], args[1], facts);
  case Ops::Shl:
  case Ops::Shr: return shift(op, args[0], args[1]);
  case Ops::Dot4: return dot4(args);
  case Ops::Fma:
    if (!is_float(operand)) return alu(Ops::Add, result, {alu(Ops::Mul, result, {args[0], args[1]}), args[2]});
    break;
  case Ops::Abs:
    if (is_unsigned(operand)) return args[0];
    if (is_int(operand)) {
      const RowId negative = alu(Ops::Lt, DType::Bool, {args[0], integer(operand, 0)});
      return where(negative, alu(Ops::Neg, operand, {args[0]}), args[0]);
    }
    break;
  default: break;
  }
  const size_t before = code_.insts.size();
  const RowId id = alu(op, result, {args.begin(), args.end()});
  if (static_cast<size_t>(id) >= before) code_.insts[static_cast<size_t>(id)].no_wrap = facts.no_wrap;
  return id;
}

// Max is `a < b || b is NaN ? b : a`, as in eval: a NaN on either side wins, equal operands give the first.
RowId RowBuilder::extremum(Ops op, RowId a, RowId b) {
  const DType t = dtype(a);
  if (t == DType::Bool) return alu(op == Ops::Max ? Ops::Or : Ops::And, t, {a, b});
  RowId take_b = op == Ops::Max ? alu(Ops::Lt, DType::Bool, {a, b}) : alu(Ops::Lt, DType::Bool, {b, a});
  if (is_float(t) && !(is_const(b) && !is_nan_bits(t, inst(b).bits)))
    take_b = alu(Ops::Or, DType::Bool, {take_b, alu(Ops::Ne, DType::Bool, {b, b})});
  return where(take_b, b, a);
}

// Vectors of whole registers' parts are left to the printers, which know instructions for them.
RowId RowBuilder::dot4(std::span<const RowId> args) {
  const int n = std::max({lanes(args[0]), lanes(args[1]), lanes(args[2])});
  const DType t = DType::I32;
  if (n % 4 == 0) return alu(Ops::Dot4, t, {args.begin(), args.end()});
  RowId sum = args[2];
  for (int i = 0; i < 4; ++i) {
    const RowId a = alu(Ops::And, t, {alu(Ops::Shr, t, {args[0], integer(t, 8 * i)}), integer(t, 255)});
    const RowId b = alu(Ops::Shr, t, {alu(Ops::Shl, t, {args[1], integer(t, 24 - 8 * i)}), integer(t, 24)});
    sum = alu(Ops::Add, t, {sum, alu(Ops::Mul, t, {a, b})});
  }
  return sum;
}

RowId RowBuilder::division(Ops op, RowId a, RowId b, Facts facts) {
  const DType t = dtype(a);
  const bool modulo = op == Ops::Mod || op == Ops::FloorMod;
  const Ops plain = modulo ? Ops::Mod : Ops::Div;
  if (facts.positive || is_unsigned(t)) {
    const bool safe = facts.positive || (is_const(b) && inst(b).bits != 0);
    const RowId zero = integer(t, 0);
    const RowId is_zero = safe ? -1 : alu(Ops::Eq, DType::Bool, {b, zero});
    const RowId id = alu(plain, t, {a, safe ? b : where(is_zero, integer(t, 1), b)});
    code_.insts[static_cast<size_t>(id)].positive = true;
    return safe ? id : where(is_zero, zero, id);
  }
  if (is_const(b)) return division_by_const(op, a, b);
  // Signed: divide by 1 where the divisor is 0 or -1, and select the result afterwards.
  const RowId zero = integer(t, 0), one = integer(t, 1);
  const RowId is_zero = alu(Ops::Eq, DType::Bool, {b, zero});
  const RowId is_minus = alu(Ops::Eq, DType::Bool, {b, integer(t, -1)});
  const RowId divisor = where(alu(Ops::Or, DType::Bool, {is_zero, is_minus}), one, b);
  const RowId quotient = alu(Ops::Div, t, {a, divisor}), rest = alu(Ops::Mod, t, {a, divisor});
  const RowId differs = alu(Ops::Lt, DType::Bool, {alu(Ops::Xor, t, {rest, b}), zero});
  const RowId adjust = alu(Ops::And, DType::Bool, {alu(Ops::Ne, DType::Bool, {rest, zero}), differs});
  if (op == Ops::Mod) return rest; // by 1: 0, which is the answer for 0 and -1 too
  if (op == Ops::FloorMod) return where(adjust, alu(Ops::Add, t, {rest, b}), rest);
  RowId value = op == Ops::Div ? quotient : where(adjust, alu(Ops::Sub, t, {quotient, one}), quotient);
  value = where(is_minus, alu(Ops::Neg, t, {a}), value);
  return where(is_zero, zero, value);
}

RowId RowBuilder::division_by_const(Ops op, RowId a, RowId b) {
  const DType t = dtype(a);
  const int64_t divisor = sign_extend(inst(b).bits, t);
  const RowId zero = integer(t, 0);
  const bool modulo = op == Ops::Mod || op == Ops::FloorMod;
  if (divisor == 0) return splat(zero, lanes(a));
  if (divisor == -1) return modulo ? splat(zero, lanes(a)) : alu(Ops::Neg, t, {a});
  if (divisor == 1) return modulo ? splat(zero, lanes(a)) : a;
  if (op == Ops::Div || op == Ops::Mod) return alu(op, t, {a, b});
  if (divisor > 0 && (divisor & (divisor - 1)) == 0) {
    if (op == Ops::FloorMod) return alu(Ops::And, t, {a, integer(t, divisor - 1)});
    return alu(Ops::Shr, t, {a, integer(t, std::countr_zero(static_cast<uint64_t>(divisor)))});
  }
  const RowId rest = alu(Ops::Mod, t, {a, b});
  const RowId adjust = divisor > 0 ? alu(Ops::Lt, DType::Bool, {rest, zero}) : alu(Ops::Lt, DType::Bool, {zero, rest});
  if (op == Ops::FloorMod) return where(adjust, alu(Ops::Add, t, {rest, b}), rest);
  const RowId quotient = alu(Ops::Div, t, {a, b});
  return where(adjust, alu(Ops::Sub, t, {quotient, integer(t, 1)}), quotient);
}

RowId RowBuilder::shift(Ops op, RowId a, RowId b) {
  const DType t = dtype(a);
  const RowId zero = integer(t, 0), mask = integer(t, width(t) - 1);
  if (is_const(b) && inst(b).bits < static_cast<uint64_t>(width(t))) return alu(op, t, {a, b});
  const DType u = unsigned_of(t);
  const RowId count = is_unsigned(t) ? b : alu(Ops::Bitcast, u, {b});
  const RowId fits = alu(Ops::Lt, DType::Bool, {count, integer(u, width(t))});
  return where(fits, alu(op, t, {a, alu(Ops::And, t, {b, mask})}), zero);
}

// ---- 16-bit floats --------------------------------------------------------------------------------------------------

RowId RowBuilder::through_wider(Ops op, DType result, std::span<const RowId> args) {
  const DType half = dtype(args[0]);
  const bool below_normal = half == DType::BF16 && (op == Ops::Mul || op == Ops::Div);
  const DType wide = below_normal ? DType::F64 : DType::F32;
  std::vector<RowId> widened;
  for (const RowId arg : args) widened.push_back(cast(arg, wide));
  if (is_compare(op)) return elementwise(op, result, widened, {});
  const RowId value = elementwise(op, wide, widened, {});
  return value < 0 ? value : cast(value, half);
}

RowId RowBuilder::cast(RowId x, DType to) {
  const DType from = dtype(x);
  if (from == to) return x;
  if (is_int(from) && is_int(to) && width(from) == width(to)) return alu(Ops::Bitcast, to, {x});
  if (to == DType::Bool) {
    if (is_half(from)) return cast(from_half(x), to);
    return alu(Ops::Ne, DType::Bool, {x, constant(from, 0)});
  }
  if (is_half(from)) return cast(from_half(x), to);
  if (is_half(to)) return to_half(x, to);
  if (is_float(from) && is_int(to) && byte_size(to) <= 2) return to_narrow(x, to);
  if (inst(x).kind == RowKind::Iota && is_int(to) && byte_size(to) >= 4)
    return emit({.kind = RowKind::Iota, .dtype = to, .lanes = lanes(x)});
  return alu(Ops::Cast, to, {x});
}

// Limited to the type's range, where a NaN becomes 0, so that the conversion needs no care.
RowId RowBuilder::to_narrow(RowId x, DType to) {
  const DType from = dtype(x), b = DType::Bool;
  const IntRange range = int_range(to);
  const auto number = [&](int64_t value) {
    const double v = static_cast<double>(value);
    return constant(from,
                    from == DType::F64 ? std::bit_cast<uint64_t>(v) : std::bit_cast<uint32_t>(static_cast<float>(v)));
  };
  const RowId low = number(range.lo), high = number(range.hi);
  if (is_signed(to)) x = where(alu(Ops::Eq, b, {x, x}), x, number(0));
  x = where(alu(Ops::Lt, b, {low, x}), x, low);
  x = where(alu(Ops::Lt, b, {x, high}), x, high);
  const RowId wide = alu(Ops::Cast, DType::I32, {x});
  code_.insts[static_cast<size_t>(wide)].no_wrap = true;
  return alu(Ops::Cast, to, {wide});
}

RowId RowBuilder::from_half(RowId x) {
  if (dtype(x) == DType::BF16) {
    const RowId wide = alu(Ops::Cast, DType::U32, {alu(Ops::Bitcast, DType::U16, {x})});
    return alu(Ops::Bitcast, DType::F32, {alu(Ops::Shl, DType::U32, {wide, integer(DType::U32, 16)})});
  }
  if (options_.native_f16) return alu(Ops::Cast, DType::F32, {x});
  // Exponent and mantissa in place, scaled by 2^112 to correct the bias (exact, subnormals included); what reaches 2^16
  // was infinity or NaN and gets the full exponent back.
  const DType u = DType::U32;
  const RowId bits = alu(Ops::Cast, u, {alu(Ops::Bitcast, DType::U16, {x})});
  const RowId sign = alu(Ops::Shl, u, {alu(Ops::And, u, {bits, integer(u, 0x8000)}), integer(u, 16)});
  const RowId rest = alu(Ops::Shl, u, {alu(Ops::And, u, {bits, integer(u, 0x7fff)}), integer(u, 13)});
  const RowId scale = constant(DType::F32, std::bit_cast<uint32_t>(0x1p112F));
  const RowId scaled = alu(Ops::Mul, DType::F32, {alu(Ops::Bitcast, DType::F32, {rest}), scale});
  const RowId special = alu(Ops::Le, DType::Bool, {integer(u, 0x7c00 << 13), rest});
  const RowId value = alu(Ops::Bitcast, u, {scaled});
  const RowId magnitude = where(special, alu(Ops::Or, u, {rest, integer(u, 0x7f800000)}), value);
  return alu(Ops::Bitcast, DType::F32, {alu(Ops::Or, u, {magnitude, sign})});
}

RowId RowBuilder::to_half(RowId x, DType half) {
  const DType from = dtype(x);
  if (from == DType::F64) return to_half(to_f32_odd(x), half);
  if (from != DType::F32) {
    if (byte_size(from) == 8) return to_half(to_f64_sticky(x), half);
    return to_half(alu(Ops::Cast, byte_size(from) == 4 ? DType::F64 : DType::F32, {x}), half);
  }
  if (half == DType::BF16) return f32_to_bf16(x);
  return options_.native_f16 ? alu(Ops::Cast, half, {x}) : f32_to_f16(x);
}

RowId RowBuilder::f32_to_bf16(RowId x) {
  const DType u = DType::U32;
  const RowId bits = alu(Ops::Bitcast, u, {x}), sixteen = integer(u, 16), one = integer(u, 1);
  const RowId odd = alu(Ops::And, u, {alu(Ops::Shr, u, {bits, sixteen}), one});
  const RowId bias = alu(Ops::Add, u, {odd, integer(u, 0x7fff)});
  const RowId rounded = alu(Ops::Add, u, {bits, bias});
  const RowId quiet = alu(Ops::Or, u, {bits, integer(u, 0x400000)});
  const RowId value = where(alu(Ops::Ne, DType::Bool, {x, x}), quiet, rounded);
  return alu(Ops::Bitcast, DType::BF16, {alu(Ops::Cast, DType::U16, {alu(Ops::Shr, u, {value, sixteen})})});
}

// Normal results round by integer addition, subnormal ones by a float addition whose last place is 2^-24.
RowId RowBuilder::f32_to_f16(RowId x) {
  const DType u = DType::U32, b = DType::Bool;
  const RowId bits = alu(Ops::Bitcast, u, {x});
  const RowId sign = alu(Ops::And, u, {bits, integer(u, 0x80000000)});
  const RowId magnitude = alu(Ops::Xor, u, {bits, sign});
  const RowId odd = alu(Ops::And, u, {alu(Ops::Shr, u, {magnitude, integer(u, 13)}), integer(u, 1)});
  const RowId rebiased = alu(Ops::Sub, u, {magnitude, integer(u, (112 << 23) - 0xfff)});
  const RowId normal = alu(Ops::Shr, u, {alu(Ops::Add, u, {rebiased, odd}), integer(u, 13)});
  const RowId half = constant(DType::F32, std::bit_cast<uint32_t>(0.5F));
  const RowId sum = alu(Ops::Add, DType::F32, {alu(Ops::Bitcast, DType::F32, {magnitude}), half});
  const RowId small = alu(Ops::Sub, u, {alu(Ops::Bitcast, u, {sum}), alu(Ops::Bitcast, u, {half})});
  const RowId is_nan = alu(Ops::Lt, b, {integer(u, 0x7f800000), magnitude});
  const RowId special = where(is_nan, integer(u, 0x7e00), integer(u, 0x7c00));
  const RowId is_special = alu(Ops::Le, b, {integer(u, 0x47800000), magnitude});
  const RowId is_small = alu(Ops::Lt, b, {magnitude, integer(u, 113 << 23)});
  const RowId value = where(is_special, special, where(is_small, small, normal));
  const RowId all = alu(Ops::Or, u, {value, alu(Ops::Shr, u, {sign, integer(u, 16)})});
  return alu(Ops::Bitcast, DType::F16, {alu(Ops::Cast, DType::U16, {all})});
}

// f64 → f32 rounded to odd: truncate, and set the last bit when anything was lost.
RowId RowBuilder::to_f32_odd(RowId x) {
  const DType u = DType::U32, b = DType::Bool;
  const RowId nearest = alu(Ops::Cast, DType::F32, {x});
  const RowId back = alu(Ops::Cast, DType::F64, {nearest});
  const RowId too_far = alu(Ops::Lt, b, {alu(Ops::Abs, DType::F64, {x}), alu(Ops::Abs, DType::F64, {back})});
  const RowId inexact = alu(Ops::Ne, b, {x, back});
  const RowId one = integer(u, 1), zero = integer(u, 0);
  const RowId truncated = alu(Ops::Sub, u, {alu(Ops::Bitcast, u, {nearest}), where(too_far, one, zero)});
  return alu(Ops::Bitcast, DType::F32, {alu(Ops::Or, u, {truncated, where(inexact, one, zero)})});
}

// A 64-bit integer as a double that rounds to 16 bits as the integer would: beyond 2^53 the low 12 bits become one.
RowId RowBuilder::to_f64_sticky(RowId x) {
  const DType t = dtype(x), b = DType::Bool;
  const RowId zero = integer(t, 0), limit = integer(t, int64_t{1} << 53);
  RowId large = alu(Ops::Lt, b, {limit, x});
  if (is_signed(t)) large = alu(Ops::Or, b, {large, alu(Ops::Lt, b, {x, integer(t, -(int64_t{1} << 53))})});
  const RowId lost = alu(Ops::Ne, b, {alu(Ops::And, t, {x, integer(t, 0xfff)}), zero});
  const RowId sticky = where(lost, integer(t, 0x800), zero);
  const RowId rounded = alu(Ops::Or, t, {alu(Ops::And, t, {x, integer(t, ~int64_t{0xfff})}), sticky});
  return alu(Ops::Cast, DType::F64, {where(large, rounded, x)});
}

} // namespace tgc
