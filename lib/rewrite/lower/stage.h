// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/uop.h"

namespace tgc {

/// Gives staged values their storage: each Stage becomes a scratch Buffer (one element per value of its ranges, in
/// their order), a Store closed by an End over them, and each Pick a Load of the buffer After that End. kernel: a func
/// of the kernel spec → the same without Stage and Pick.
Ref lower_stage(Ref kernel);

} // namespace tgc
