// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "rewrite/context.h"
#include "uop/uop.h"

namespace tgc {

/// A tensor graph in which sums of products of quantised values are sums of products of a u8 and an i8, with what zero
/// points and scales contribute apart. Integer sums are the same in every bit; sums of dequantised values are exact
/// integers, scaled once, and stay as they are under strict numerics.
Ref byte_products(Ref root, PassContext& context);

/// The constant that `node` has around the values of its source 1, a Pad; null where `node` is something else.
Ref constant_around(Ref node);
/// A value with a constant around it near enough to be stored there (storage.h).
bool is_stored_around(Ref node);
/// A byte made an i32, which is not to be stored in four times its size.
bool is_widened_byte(Ref node);

} // namespace tgc
