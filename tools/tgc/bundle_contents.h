// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tgc/pipeline.h"

namespace tgc {

/// What a bundle says of a linear plan, without code: variables, tensors, weights, buffers, kernels with estimates,
/// steps.
BundleContents bundle_contents(const Compilation& compilation, const CompileOptions& options);

/// The same for the calls that make weights at compile time: weights they read are inputs, weights they make are
/// outputs, in order of first use and under their keys.
BundleContents constant_contents(const Compilation& compilation, const std::vector<Ref>& calls);

} // namespace tgc
