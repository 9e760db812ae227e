// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "schedule/kernelize.h"

namespace tgc {

/// `kernels`, in their order, with concatenations made in place: a kernel that chooses between values by where its own
/// loop stands becomes one kernel for each part, without those that copy elements to where they are. Kernels of
/// constants alone stay whole, so that they can be folded.
std::vector<KernelDraft> make_in_place(const std::vector<KernelDraft>& kernels);

/// Whether that is worth it for a result of so many elements.
bool is_cut_into_parts(Ref elements);

} // namespace tgc
