// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators whose value is known at import: constants, fills and ranges.
#include <cmath>
#include <cstring>

#include "frontend/constant.h"
#include "frontend/onnx/op.h"

namespace tgc::onnx {
namespace {

using namespace tensor;

template <typename T> Ref from_list(OpContext& c, DType dtype, const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return add_constant(*c.weights().module, c.node().outputs[0],
                      {dtype, {static_cast<int64_t>(values.size())}, bytes_of(std::move(bytes))});
}

void constant_op(OpContext& c) {
  c.check(!c.node().outputs.empty(), "has no output");
  if (c.has_attr("value")) {
    Tensor named = c.attr_tensor("value");
    named.name = c.node().outputs[0];
    return c.out(constant(c.weights(), named));
  }
  if (c.has_attr("value_float")) return c.out(c.ctx().constant(DType::F32, c.attr_float("value_float")));
  if (c.has_attr("value_int")) return c.out(c.ctx().constant_int(DType::I64, c.attr("value_int")));
  if (c.has_attr("value_ints")) return c.out(from_list(c, DType::I64, c.attr_ints("value_ints")));
  if (const Attribute* a = c.find("value_floats", AttrKind::Floats)) return c.out(from_list(c, DType::F32, a->floats));
  if (c.node().attributes.empty()) c.fail("has no value");
  c.unsupported("attribute " + c.node().attributes[0].name + " is not supported");
}

void constant_of_shape(OpContext& c) {
  Dims dims = c.known_dims(0);
  for (Ref d : dims) c.check(d->lo >= 0, "the shape has a negative dim");
  if (!c.has_attr("value")) return c.out(full(c.ctx(), dims, DType::F32, 0));
  Ref value = constant(c.weights(), c.attr_tensor("value"));
  c.check(dim_int(numel(c.ctx(), value->shape)) == 1, "value must have one element");
  c.out(broadcast_to(reshape(value, {}), dims));
}

/// start + i*step for i < max(0, ceil((limit - start)/step)).
void range_op(OpContext& c) {
  DType type = c.in(0)->dtype;
  c.check(c.in(1)->dtype == type && c.in(2)->dtype == type, "inputs have different types");
  Context& ctx = c.ctx();
  Ref count, start = broadcast_to(c.in(0), c.in(0)->shape), step = c.in(2);
  if (is_float(type)) {
    double n = std::ceil((c.known_number(1) - c.known_number(0)) / c.known_number(2));
    c.check(n < 1e9 && c.known_number(2) != 0, "the range has too many elements");
    count = ctx.index(n > 0 ? static_cast<int64_t>(n) : 0);
  } else {
    Dims lo = c.known_dims(0), hi = c.known_dims(1), by = c.known_dims(2);
    c.check(lo.size() == 1 && hi.size() == 1 && by.size() == 1, "operands must be scalars");
    std::optional<int64_t> step_value = dim_int(by[0]);
    if (!step_value) c.unsupported("the step is symbolic");
    c.check(*step_value != 0, "the step is 0");
    bool up = *step_value > 0;
    c.check(*step_value > INT64_MIN / 2, "the step is too large");
    Ref distance = up ? dim_sub(hi[0], lo[0]) : dim_sub(lo[0], hi[0]),
        size = ctx.index(up ? *step_value : -*step_value);
    count = dim_floordiv(dim_add(distance, dim_sub(size, ctx.index(1))), size);
    if (distance->hi <= 0) count = ctx.index(0);
    if (count->lo < 0)
      c.unsupported("the range may be empty or not, by a symbolic dim", "pin the dim with --dim NAME=VALUE");
  }
  DType wide = accumulator(type);
  Ref i = iota(ctx, Dims{count}, 0, wide);
  Ref scaled = mul(i, to(reshape(step, {}), wide));
  c.out(to(add(to(reshape(start, {}), wide), scaled), type));
}

DType eye_type(OpContext& c) {
  return c.has_attr("dtype") ? dtype_of(static_cast<int32_t>(c.attr("dtype"))) : c.in(0)->dtype;
}

void eye_like(OpContext& c) {
  Ref x = c.in(0);
  c.check(x->rank() == 2, "input " + shape_text(x->shape) + " is not a matrix");
  int64_t k = c.attr("k", 0);
  c.check(k > -(int64_t{1} << 40) && k < (int64_t{1} << 40), "k=" + std::to_string(k));
  Ref row = iota(c.ctx(), x->shape, 0, DType::I64), column = iota(c.ctx(), x->shape, 1, DType::I64);
  Ref shifted = add(row, full(c.ctx(), x->shape, DType::I64, static_cast<double>(k)));
  c.out(to(elementwise(Ops::Eq, {shifted, column}), eye_type(c)));
}

/// Keeps the elements on one side of diagonal k of the last two dims.
void trilu(OpContext& c) {
  Ref x = c.in(0);
  c.check(x->rank() >= 2, "input " + shape_text(x->shape) + " is not a matrix");
  bool upper = c.attr("upper", 1) != 0;
  Ref k = c.has(1) ? to(reshape(c.in(1), {}), DType::I64) : c.ctx().constant_int(DType::I64, 0);
  Ref row = iota(c.ctx(), x->shape, x->rank() - 2, DType::I64),
      column = iota(c.ctx(), x->shape, x->rank() - 1, DType::I64);
  Ref offset = sub(column, row);
  Ref keep = upper ? elementwise(Ops::Le, {k, offset}) : elementwise(Ops::Le, {offset, k});
  c.out(select(keep, x, full_like(x, 0)));
}

constexpr int kEnd = kLatestOpset;
constexpr OpRow kRows[] = {
    {"Constant", 1, kEnd, 0, 0, constant_op}, {"ConstantOfShape", 9, kEnd, 1, 1, constant_of_shape},
    {"Range", 11, kEnd, 3, 3, range_op},      {"EyeLike", 9, kEnd, 1, 1, eye_like},
    {"Trilu", 14, kEnd, 1, 2, trilu},
};

} // namespace

extern const OpTable kOnnxOps_constant;
const OpTable kOnnxOps_constant = {"constant", kRows};

} // namespace tgc::onnx
