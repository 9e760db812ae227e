// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uop/target.h"

namespace tgc {

/// The x86-64 target that `spec` means, the same for every renderer but for `TargetInfo::renderer`, so that all render
/// the same kernels. An empty arch is "native"; "native" is the host's own row of the table, or its x86-64 level.
/// errors: CompileError TGC-E401 for an unknown arch or feature, or "native" on a host that is no x86-64.
TargetInfo resolve_cpu(const TargetSpec& spec, const char* renderer);

/// Every arch name that resolve_cpu takes, "native" included, in the table's order.
std::vector<std::string> cpu_archs();

bool has_feature(const TargetInfo& target, std::string_view feature); ///< "avx2"

/// "; did you mean `x`?" with the name nearest to `text`, or "" when none is near.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);
/// "a, b, c"
std::string join(const std::vector<std::string>& names, const char* separator);

} // namespace tgc
