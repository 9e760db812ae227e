// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "uop/eval.h"
#include "uop/module.h"

namespace tgc {

/// How well every legal order and fusion of a value's arithmetic agrees: nothing rounds and all bits are equal; the
/// same, but a reduction that gives zero may give it either sign; or it rounds and is compared within a tolerance.
enum class Agree : uint8_t { Closely, ButZeroSigns, InBits };

/// A tensor graph with everything that one evaluation needs.
struct GraphCase {
  Module module;
  std::vector<HostTensor> inputs; ///< by slot
  VarValues vars;
  std::vector<Agree> agree; ///< by output
};

/// A random graph of a few operators over every element type, with one to three outputs; the same for the same seed.
/// `only` >= 0: its single output is value number `only` of those made. `count`, if given, becomes how many were made.
GraphCase random_graph(uint64_t seed, int only = -1, int* count = nullptr);

/// The case as `.uop` text that parses, with its inputs and dims as comments:
///   ; dim N = 3
///   ; input 0 = 0x…           bytes in memory order
///   ; agree 2 0               by output, an enum Agree
std::string print_case(const GraphCase& c);
/// The reverse. errors: CompileError.
GraphCase parse_case(const std::string& text);

/// One step of shrinking: variant number `n` of `c`, counted from the most drastic; not every one exists.
struct Variant {
  bool exists = false, is_last = false;
  GraphCase made;
};
Variant shrink_variant(const GraphCase& c, int n);

/// The smallest case for which `fails` still holds that a greedy search finds: outputs dropped, nodes cut off or
/// replaced by an operand, dims and values made small. `fails` is asked at most `budget` times.
template <typename Fails> GraphCase shrink_case(GraphCase failing, Fails fails, int budget = 300) {
  for (int n = 0; budget > 0;) {
    Variant v = shrink_variant(failing, n);
    if (v.is_last) break;
    ++n;
    if (!v.exists) continue;
    --budget;
    if (!fails(v.made)) continue;
    failing = std::move(v.made);
    n = 0;
  }
  return failing;
}

} // namespace tgc
