// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

inline bool is_movement(Ref x) { return x->cls() == OpClass::Movement; }

Ref reshaped(Ref x, Refs dims);
/// `scalar` everywhere in `dims`.
Ref filled(Ref scalar, Refs dims);
/// The one value that all elements of `x` have, as a scalar; null if they may differ.
Ref uniform(Ref x);
/// x <op> number, a scalar, done before `x` is repeated or moved.
Ref scaled_view(Ref x, Ref number, Ops op);

} // namespace tgc
