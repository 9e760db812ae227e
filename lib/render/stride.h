// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include "uop/uop.h"

namespace tgc {

/// A load whose lanes stand `step` elements apart, taken as one of `step` times as many lanes that follow each other:
/// lane i is lane i * step + first of that.
struct StridedLoad {
  int64_t step, first;
  Ref index; ///< of the first lane; its last dim is 1
  Ref gate;  ///< for all lanes; null: none
};

/// How to read `load`, whose lanes have positions of their own, by its stride; none if they have no stride from 2 to 4.
/// What is read is in the buffer wherever what `load` reads is.
std::optional<StridedLoad> strided(Ref load);

} // namespace tgc
