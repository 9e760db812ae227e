// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tgc/pipeline.h"

namespace tgc {

/// What a bundle says of a linear plan, without code: variables, tensors, weights, buffers, kernels with estimates,
/// steps.
BundleContents bundle_contents(const Compilation& compilation, const CompileOptions& options);

} // namespace tgc
