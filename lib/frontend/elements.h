// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <vector>

#include "uop/module.h"

namespace tgc {

/// One element of a tensor that is known at import: an Index expression over Vars for integers and bool, a number for
/// floats.
struct Element {
  Ref index;        ///< null for a float
  double value = 0; ///< for a float
};

/// Tensors of more elements are never known.
constexpr int64_t kMostKnownElements = 4096;

/// The elements of `tensor`, row-major, where they follow from constants, small weights, shapes and arithmetic on them
/// (the shape operands that exporters compute). Nothing when an element depends on a Param, needs a library function
/// such as exp, is an undecidable choice between symbolic values, or takes more than about 2^18 steps.
std::optional<std::vector<Element>> known_elements(const Module& module, Ref tensor);

/// Element `i` of a weight's bytes.
Element weight_element(Context& ctx, const WeightData& weight, DType dtype, int64_t i);

} // namespace tgc
