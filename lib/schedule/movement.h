// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "uop/uop.h"

namespace tgc {

/// An element position: one index expression per axis, and the condition under which it exists (null: always).
struct Position {
  std::vector<Ref> index;
  Ref gate;
};

/// The position in `movement`'s source that holds its element at `at`. For a Pad the gate gains the condition that the
/// element comes from the source; elsewhere it is kept. Index expressions come back simplified.
Position source_position(Ref movement, const Position& at);

/// Row-major offset in elements of `index` in `shape`, simplified.
Ref flat_index(Context& ctx, Refs index, Refs shape);

/// a && b, where null is true.
Ref both(Ref a, Ref b);

/// The terms of a conjunction, in order.
std::vector<Ref> conjuncts(Ref gate);

} // namespace tgc
