// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>
#include <vector>

#include "render/renderer.h"

namespace tgc {

/// Whether there is a C compiler to run.
bool has_c_compiler();

/// C text of each kernel → one checked .so image, by the program `cc`, in a temporary folder. `flags`: for the target.
/// errors: CompileError TGC-E403 with the compiler's own words for each kernel, TGC-E404 without a compiler.
CompiledCode compile_c(std::span<const KernelSource> kernels, const std::vector<std::string>& flags, int jobs);
/// Assembly text of one kernel. errors: as compile_c.
std::string assemble_c(const KernelSource& kernel, const std::vector<std::string>& flags);

} // namespace tgc
