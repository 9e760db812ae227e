// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "uop/eval.h"

namespace tgc {

/// Small values for the Vars of `root` (a module's root after import), within their bounds and such that every Check
/// holds. errors: CompileError E209 when none are found.
VarValues sample_dims(Ref root);

} // namespace tgc
