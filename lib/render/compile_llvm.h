// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>

#include "render/renderer.h"

namespace tgc {

/// What LLVM needs to know of a target; spelled as LLVM spells it.
struct LlvmMachine {
  std::string triple;   ///< "x86_64-unknown-linux-gnu"
  std::string cpu;      ///< the instruction set without `features`: "x86-64"
  std::string features; ///< "+avx2,+fma"
};

/// LLVM IR text of each kernel (one module each) → one checked .so image. In process; no files but one temporary and
/// those of `cache`, which may be null. Thread-safe. errors: CompileError with one TGC-E403 per kernel that does not
/// compile.
CompiledCode compile_llvm(std::span<const KernelSource> kernels, const LlvmMachine& machine, int jobs,
                          ObjectCache* cache);

/// Assembly text of one kernel. errors: CompileError TGC-E403.
std::string assemble_llvm(const KernelSource& kernel, const LlvmMachine& machine);

} // namespace tgc
