// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// What Context::make derives before a node exists: its op, dtype, sources and attributes.
struct Draft {
  Ops op;
  DType dtype;
  Refs src;
  const Attrs& attrs;
  Context& ctx;
  const AttrValue* find(Attr key) const;
};

/// The shape of a draft by its op's shape rule. errors: throws CompileError E101 naming the op and the shapes.
std::vector<Ref> infer_shape(const Draft& draft);
/// Bounds of an integer, index or bool draft by interval arithmetic; the type's own range where nothing better is
/// known.
IntRange infer_bounds(const Draft& draft);
/// [E101] "op: message".
[[noreturn]] void illegal_node(Ops op, const std::string& message);

} // namespace tgc
