// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "render/rows.h"

namespace tgc {

/// What the function attributes of every kernel say.
struct LlvmStyle {
  std::string triple, cpu, tune, features; ///< as LLVM spells them
  int vector_bits = 128;                   ///< preferred vector width
};

/// The LLVM 19 IR text of one kernel: one module, one exported function.
std::string print_llvm(const RowCode& code, const LlvmStyle& style);

} // namespace tgc
