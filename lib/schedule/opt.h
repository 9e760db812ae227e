// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// One transformation of a kernel's loops. Axes are positions in nesting order, as they are when the opt applies.
///   split A N    axis A becomes A (outer, ceil(extent/N)) and A+1 (inner, N); a remainder is masked
///   merge A      axes A and A+1 become one           collapse A   the same, with a division per step
///   reorder P…   the new order of all axes, by old position
///   thread A     axis A is divided among threads        unroll A   axis A is repeated in the code
///   upcast A     axis A becomes a register dim          lane A     axis A becomes the vector dim
///   word A       axis A, of 4 terms of a sum of products of bytes, becomes the bytes of a word (op dot4)
///   stage S A P… what axes P read of param S is copied to scratch, in their order, inside axis A
///   defer        a sum of products with quotients of one divisor is divided once (schedule/defer.h)
///   nest [A N]   blocks of N rows of axis A are walked by each nest of the kernel (schedule/nests.h); then come the
///                opts of each nest and of the joined kernel, separated by |. nest A N 1: with rows innermost in
///                scratch
///   winograd R P the same for the three nests of a 3x3 convolution by blocks of R tiles and P parts of the channels
///   pack S P…    param S, a constant, is re-laid out at compile time in the order of axes P…
struct Opt {
  enum class Kind : uint8_t {
    Split,
    Merge,
    Collapse,
    Reorder,
    Thread,
    Unroll,
    Upcast,
    Lane,
    Pack,
    Stage,
    Defer,
    Nest,
    Winograd,
    Word
  };
  Kind kind;
  std::vector<int64_t> args;
  friend bool operator==(const Opt&, const Opt&) = default;
};

/// "split 1 16; lane 2". Parsing accepts what printing gives. errors: CompileError E302 with the opt's text.
std::string to_string(const Opt& opt);
std::string to_string(const std::vector<Opt>& opts);
std::vector<Opt> parse_opts(std::string_view text);

/// A kernel being optimised: func(sink(stores)) over ranges numbered 0..n-1 by nesting, without Stage.
struct OptKernel {
  Ref func;
  /// One per Pack: the kernel (over loops, param 0 the new layout, param 1 the old) that makes the packed weight.
  struct Packing {
    int64_t slot;
    Ref func;
  };
  std::vector<Packing> packings;
};

/// Divisions and remainders in the positions of a kernel.
int64_t divisions(Ref func);

/// The ranges of a kernel in nesting order.
std::vector<Ref> kernel_axes(Ref func);

/// The product that `value` is, converted or masked; null if it is none.
Ref product_of(Ref value);

/// The attributes of a load that walks a packed weight of `elements`, each for several rows of a tile: what is too
/// large to be in a cache still when the kernel runs again is asked for ahead (a row alone reads as fast as memory
/// gives).
Attrs read_ahead(DType type, int64_t elements);

/// Applies one opt. What the kernel computes is unchanged up to the order of reductions.
/// errors: CompileError E302 saying which condition fails.
void apply_opt(OptKernel& kernel, const Opt& opt);

} // namespace tgc
