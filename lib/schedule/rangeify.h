// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>

#include "schedule/fusion.h"
#include "uop/uop.h"

namespace tgc {

/// Names of the model's nodes by UOp::id, as in Module::origin.
using Origins = std::map<uint32_t, std::string>;

/// Turns a tensor graph into kernels.
///   root:   func{main}(sink(store(param_out, value)…)) of the tensor spec
///   result: func{main}(linear(call(func kernel, output storage, input storages…)…)) of the plan spec; each kernel is
///           func(sink(store(param 0, index, value))) over ranges, its params flat and numbered by call argument.
///           Buffers are numbered from 0 in order of production, one slot each; equal kernels are one func.
/// Ranges of a kernel are numbered by nesting: output axes first, then reductions, outer before inner.
/// Each call says in `origin` which of the model's nodes it computes, where `origins` (may be null) names them.
/// errors: CompileError E301 for a node that has no place in a tensor graph.
Ref rangeify(Ref root, FusionPolicy policy = default_fusion, const Origins* origins = nullptr);

} // namespace tgc
