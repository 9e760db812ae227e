// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "render/rows.h"

namespace tgc {

/// The C11 text of one kernel, complete: needs <stdint.h> only, and no library.
std::string print_c(const RowCode& code);

} // namespace tgc
