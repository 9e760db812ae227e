// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// Rows of a kernel of several nests (one that stages a sum of products, as attention does) that each nest computes
/// together. axis: position of the row axis, whose blocks all nests share; no value: there is none to cut.
struct NestRows {
  std::optional<int64_t> axis;
  int64_t rows = 1;   ///< of one block
  bool lanes = false; ///< whether what nests share has the rows of a block innermost, to be lanes
};

/// Whether `func` (lowered stages, ranges numbered by nesting) has several nests, and the rows that suit them: so many
/// that what one nest copies is used often, and that the last block is not mostly repeats.
std::optional<NestRows> choose_nest_rows(Ref func);

/// `func` with each nest walking a block of rows by itself. Loops that all nests share get axis "block" and come first;
/// what a nest stores for another one has space "tile" and a row per row of the block. Rows past the last repeat the
/// last one; they are not stored to the result. With `lanes` all that is staged per row, and each sum over a staged row
/// that the result reads, is a nest. Returns null if `func` has no such nests or `rows` does not fit it.
Ref with_nests(Ref func, const NestRows& rows);

/// The nests of a func that with_nests made, in order of execution, each a func of its own: the block ranges, its own
/// ranges, one store; the result's nest is last.
std::vector<Ref> nests_of(Ref func);

/// Puts transformed nests of `func` together again, as loops and scratch.
Ref join_nests(Ref func, const std::vector<Ref>& nests);

} // namespace tgc
