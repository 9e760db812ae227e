// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "uop/uop.h"

namespace tgc {

/// `node` as one line for messages, "add(range(10){id=0,axis=loop}, 3)": expression form, cut with "…" below `depth`
/// levels. Not the text form (it repeats shared nodes and cannot be read back).
std::string node_text(Ref node, int depth = 4);

} // namespace tgc
