// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// Turns each Buffer of a plan that a call computes from weights alone into a Weight, if it is no larger than what it
/// is computed from. Its call stays in the plan: calls that write a Weight are done at compile time.
Ref mark_constants(Ref plan);

/// Is `call` done at compile time?
bool is_constant_call(Ref call);

} // namespace tgc
