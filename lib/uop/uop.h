// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "uop/dtype.h"

namespace tgc {

/// Every op of ops.def, in its order (the order is a tie-break of canonical ordering, so it is part of the format).
enum class Ops : uint8_t {
#define TGC_OP(Name, ...) Name,
#include "uop/ops.def"
};
enum class OpClass : uint8_t { Leaf, Movement, Unary, Binary, Compare, Ternary, Reduce, Memory, Control };
enum class DTypeRule : uint8_t { Given, Src0, Src1, Bool, Void, Index, Loaded };
enum class ShapeRule : uint8_t {
  Scalar,
  Dims,
  Iota,
  Reshape,
  Permute,
  Expand,
  Pad,
  Shrink,
  Same,
  Broadcast,
  Reduce,
  Load,
  Gather,
  Pick,
  Get,
};
struct OpInfo {
  const char* name;
  int min_src, max_src; ///< inclusive; max_src -1 is unbounded
  OpClass cls;
  DTypeRule dtype;
  ShapeRule shape;
  const char* attrs; ///< names of its attributes, '?' after an optional one
  const char* doc;
};
const OpInfo& info(Ops op);
inline constexpr int kNumOps = 0
#define TGC_OP(...) +1
#include "uop/ops.def"
    ;
std::optional<Ops> parse_op(std::string_view text);
inline const char* name(Ops op) { return info(op).name; }

enum class Attr : uint8_t {
#define TGC_ATTR(Name, ...) Name,
#include "uop/attrs.def"
};
enum class AttrType : uint8_t { Int, Number, String, Ints };
struct AttrInfo {
  const char* name;
  AttrType type;
};
const AttrInfo& info(Attr attr);
std::optional<Attr> parse_attr(std::string_view text);

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
struct AttrItem {
  Attr key;
  AttrValue value;
};
using Attrs = std::vector<AttrItem>; ///< sorted by key, no key twice

struct UOp;
class Context;

/// A handle to an interned node: equal node ⇔ equal handle (within one Context). Never owns; lives as long as the
/// Context. Null by default.
class Ref {
public:
  Ref() = default;
  Ref(const UOp* node) : node_(node) {}
  const UOp* operator->() const { return node_; }
  const UOp& operator*() const { return *node_; }
  const UOp* get() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Ref a, Ref b) { return a.node_ == b.node_; }

private:
  const UOp* node_ = nullptr;
};
using Refs = std::span<const Ref>;

/// One immutable node. All fields are fixed at construction; shape, bounds and ranges are derived from the sources.
struct UOp {
  Ops op;
  DType dtype;
  uint32_t id;   ///< dense creation number in its Context: an index for side tables, never an order
  uint64_t hash; ///< content hash of the whole sub-graph, independent of Context and creation order: the order of ties
  Refs src;
  Refs shape;         ///< dims, row-major, outermost first; `Index` scalars
  const Attrs* attrs; ///< never null
  Context* ctx;
  int64_t lo,
      hi; ///< inclusive bounds of every element of an integer or bool node (saturating; the type's own range at worst)
  Refs ranges; ///< the open ranges: `Range` nodes it depends on and does not close, ordered by (id, hash)

  bool is(Ops o) const { return op == o; }
  OpClass cls() const { return info(op).cls; }
  int rank() const { return static_cast<int>(shape.size()); }
  bool has(Attr key) const { return find(key) != nullptr; }
  const AttrValue* find(Attr key) const;
  /// Attribute readers: the value, or the fallback when absent; without a fallback an absent one is an internal error.
  int64_t i(Attr key) const;
  int64_t i(Attr key, int64_t fallback) const;
  const std::string& s(Attr key) const;
  std::string s(Attr key, std::string fallback) const;
  const std::vector<int64_t>& ints(Attr key) const;
};

/// Owns nodes and interns them. One thread at a time; nothing is freed before the Context.
class Context {
public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The node (op, dtype, src, attrs), new or existing. `dtype` is used by ops whose dtype rule is Given and ignored
  /// otherwise. Only infers: no folding, no simplification. Source `ctx`s must be this one.
  /// errors: throws CompileError (TGC-E101) naming the op when arity, attributes, dtypes or shapes are illegal.
  Ref make(Ops op, DType dtype, Refs src, Attrs attrs = {});
  Ref make(Ops op, DType dtype, std::initializer_list<Ref> src, Attrs attrs = {});
  /// `node` with other sources (itself when they are equal).
  Ref with_src(Ref node, Refs src);

  Ref index(int64_t value);                    ///< Index constant
  Ref constant(DType dtype, double value);     ///< any dtype; rounds to it (ints: value must be exact)
  Ref constant_int(DType dtype, int64_t bits); ///< integer, bool or index constant, wrapped to the type
  Ref var(std::string name, int64_t min, int64_t max);
  Ref range(Ref extent, int64_t id, std::string axis = "loop");

  size_t size() const;         ///< number of nodes
  Ref node(uint32_t id) const; ///< by UOp::id

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- constants ------------------------------------------------------------------------------------------------------
bool is_const(Ref x);                     ///< a Const node
bool is_const(Ref x, double value);       ///< a Const equal to value (0.0 matches -0.0)
std::optional<int64_t> const_int(Ref x);  ///< value of an integer, bool or index Const
std::optional<double> const_float(Ref x); ///< value of a float Const
Ref const_like(Ref x, double value);      ///< Const of x's dtype, scalar

// ---- dims (shape arithmetic folds constants and keeps a canonical form, so that equal dims are usually equal nodes)
// --
std::optional<int64_t> dim_int(Ref dim);
Ref dim_add(Ref a, Ref b);
Ref dim_sub(Ref a, Ref b);
Ref dim_mul(Ref a, Ref b);
Ref dim_floordiv(Ref a, Ref b);
bool dims_equal(Ref a, Ref b); ///< provably equal (as polynomials over their non-linear terms)
bool shapes_equal(Refs a, Refs b);
Ref numel(Context& ctx, Refs shape); ///< product of the dims
std::optional<std::vector<int64_t>> static_shape(Refs shape);
std::string shape_text(Refs shape); ///< "[batch,1,28,28]"

// ---- builders: `a + b` and so on build nodes with no folding; a number is a constant of the other side's dtype ------
Ref operator+(Ref a, Ref b);
Ref operator-(Ref a, Ref b);
Ref operator*(Ref a, Ref b);
Ref operator+(Ref a, double b);
Ref operator-(Ref a, double b);
Ref operator*(Ref a, double b);
Ref operator-(Ref a);
Ref floordiv(Ref a, Ref b);
Ref floormod(Ref a, Ref b);
Ref lt(Ref a, Ref b);
Ref logical_and(Ref a, Ref b);
Ref where(Ref cond, Ref a, Ref b);
Ref unary(Ops op, Ref a);
Ref binary(Ops op, Ref a, Ref b);
Ref cast(Ref a, DType dtype);
Ref bitcast(Ref a, DType dtype);

// ---- funcs
// ------------------------------------------------------------------------------------------------------------
/// A func called `name`. Those of `params` (sorted by slot) that `body` does not reach become sources of the func, so
/// that its signature is whole.
Ref make_func(std::string name, Ref body, Refs params = {});
/// `func` with another body; params of the old one that the new one does not reach become sources of the func.
Ref with_body(Ref func, Ref body);
/// Elements of its buffer that an element of `load` is: 4 where an i32 is read from bytes, else 1.
int64_t elements_per_load(Ref load);
/// A Param with space=trap.
inline bool is_trap(Ref x) { return x->is(Ops::Param) && x->s(Attr::Space, "") == "trap"; }

// ---- graph walks (all iterative: a 10,000-node chain is fine) -------------------------------------------------------
/// Every node reachable from `root`, sources first, each once; deterministic (source order). Does not enter the func of
/// a Call unless `enter_funcs`.
std::vector<Ref> toposort(Ref root, bool enter_funcs = false);
std::vector<Ref> toposort(Refs roots, bool enter_funcs = false);
/// Strict total order by structure: (op, dtype, attrs, hash, sources). Independent of creation order.
bool structural_less(Ref a, Ref b);
/// A copy of `root` in another Context (equal hash, equal text).
Ref import(Context& to, Ref root);

} // namespace tgc
