// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "render/rows.h"

namespace tgc {

/// The C11 text of one kernel, complete: needs <stdint.h> only, and no library. `register_lanes`: f32 lanes of a vector
/// register; what is wider is split.
std::string print_c(const RowCode& code, int register_lanes);

} // namespace tgc
