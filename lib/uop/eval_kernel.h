// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to the interpreter: the two forms of a kernel's body.
#pragma once

#include "uop/eval_node.h"

namespace tgc {

/// What a kernel body runs on.
struct KernelEnv {
  std::string name;
  std::span<const BufferArg> buffers; ///< by slot
  const VarValues* vars = nullptr;
};
/// The argument behind a Param (through Afters). errors: TGC-E105 when there is none or its dtype differs.
const BufferArg& kernel_buffer(const KernelEnv& env, Ref param);

void eval_sink_body(Ref sink, const KernelEnv& env);
void eval_linear_body(Ref linear, const KernelEnv& env);

} // namespace tgc
