// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uop/target.h"
#include "uop/uop.h"

namespace tgc {

/// A value of row code: index of the instruction that makes it.
using RowId = int32_t;

/// Row code is what both text renderers print: a linear kernel whose shaped values are split into rows of one scalar
/// (lanes 1) or one vector, whose broadcasts are explicit, and whose ops need no case analysis any more. In an Alu
///   - all operands have the result's lanes (a Where may have a scalar condition);
///   - integer Div and Mod have a divisor that is neither 0 nor, where it matters, -1; shifts are below the width;
///   - Max, Min, FloorDiv, FloorMod are gone, and so is arithmetic on f16 and bf16, whose rows are only moved;
///   - Dot4 has a multiple of 4 lanes;
///   - Cast is between bool, integers, f32 and f64 (f16 too, when RowOptions::native_f16) and follows ops.def.
enum class RowKind : uint8_t {
  Const,   ///< `bits` in every lane
  Iota,    ///< integers 0, 1, … lanes-1
  Var,     ///< args->vars[imm]
  Alu,     ///< `op` of args; Cast and Bitcast convert args[0] to dtype
  Splat,   ///< scalar args[0] in every lane
  Extract, ///< lane imm of args[0]
  Slice,   ///< lanes imm, imm+step, … of args[0]
  Build,   ///< one scalar per lane
  Zip,     ///< lanes of args[0] and args[1] by turns, of their first halves (imm 0) or their second ones (imm 1)
  Base,    ///< buffer imm is scratch that begins args[0] bytes in; before every loop
  Load, ///< buffer imm, i32 from bytes too; args: index (scalar, in elements of the buffer), gate or -1 (scalar or one
        ///< bool per lane), alternative or -1 (0)
  Prefetch, ///< a hint that buffer imm is read soon, args[0] elements in and `bits` further; that may be beyond its end
  Store,    ///< buffer imm; args: index (scalar), value, gate or -1
  RegGet,   ///< register imm
  RegSet,   ///< register imm = args[0]
  Loop,     ///< opens a loop of index imm over [0, args[0]), or [chunk_begin, chunk_end) when args is empty
  EndLoop,  ///< closes the loop opened last
};

struct RowInst {
  RowKind kind;
  Ops op = Ops::Const; ///< Alu only
  DType dtype = DType::Void;
  int lanes = 1;
  int64_t imm = 0;
  int step = 1;                 ///< Slice only
  uint64_t bits = 0;            ///< Const: the value in dtype's encoding
  std::vector<RowId> args = {}; ///< operands
  bool no_wrap = false;         ///< Alu on Index: the result is within 64 bits; Cast of a float: it is in range
  bool positive = false;        ///< Alu Div and Mod: no operand is negative. Loop: runs at least once
};

struct RowBuffer {
  bool scratch; ///< else argument `slot`
  int64_t slot;
  int64_t offset; ///< scratch: bytes from args->scratch; -1: a Base instruction places it
  DType dtype;
  bool stored = false; ///< some instruction stores to it
};

struct RowRegister {
  DType dtype;
  int lanes;
};

struct RowCode {
  std::string name;
  std::vector<RowInst> insts; ///< in order; Const, Iota and Var stand before their first use, but belong to no loop
  std::vector<RowBuffer> buffers;
  std::vector<RowRegister> registers;
};

struct RowOptions {
  const TargetInfo* target; ///< which ops may appear
  bool native_f16 = false;  ///< keep casts between f16 and f32; else they are integer arithmetic
};

/// Splits the linear kernel `func` into row code. `vars`: names of the module's Vars, sorted.
/// errors: CompileError TGC-E402 naming the op that has no form, TGC-E403 for a name that is no C identifier.
RowCode lower_to_rows(Ref func, std::span<const std::string> vars, const RowOptions& options);

} // namespace tgc
