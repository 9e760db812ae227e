// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tgc/options.h"
#include "tgc/pipeline.h"

namespace tgc {

/// Does what a command line asks: lists, prints a stage, checks, verifies or writes a bundle.
/// errors: CompileError, UsageError.
Exit run_tgc(const Options& options);

/// The compile that a command line describes.
CompileOptions compile_options(const Options& options);

} // namespace tgc
