// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small graph under test: inputs with values, one result, evaluated by the reference interpreter.
#pragma once

#include <gtest/gtest.h>

#include "frontend/tensor.h"
#include "uop/eval.h"
#include "uop/module.h"

namespace tgc {

struct Graph {
  Module module;
  std::vector<HostTensor> inputs;

  Context& ctx() { return *module.ctx; }
  Ref input(const std::vector<int64_t>& shape, const std::vector<double>& values, DType dtype = DType::F32) {
    inputs.push_back(tensor_of(dtype, shape, values));
    return param(tensor::index_dims(ctx(), shape), dtype);
  }
  /// An input with dims of its own, whose value is `value`.
  Ref symbolic_input(const tensor::Dims& dims, const HostTensor& value) {
    inputs.push_back(value);
    return param(dims, value.dtype);
  }
  /// 0, 1, 2, … scaled and shifted to small distinct numbers.
  Ref ramp(const std::vector<int64_t>& shape, double step = 1, double start = 0, DType dtype = DType::F32) {
    std::vector<double> values(static_cast<size_t>(zeros(dtype, shape).numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = start + step * static_cast<double>(i);
    return input(shape, values, dtype);
  }
  HostTensor run(Ref value, const VarValues& vars = {}) {
    Ref out = ctx().make(Ops::Param, value->dtype, value->shape, {{Attr::Slot, static_cast<int64_t>(inputs.size())}});
    Ref sink = ctx().make(Ops::Sink, DType::Void, {ctx().make(Ops::Store, DType::Void, {out, value})});
    module.root = ctx().make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("main")}});
    return eval(module, inputs, vars)[0];
  }

private:
  Ref param(const tensor::Dims& dims, DType dtype) {
    return ctx().make(Ops::Param, dtype, dims, {{Attr::Slot, static_cast<int64_t>(inputs.size()) - 1}});
  }
};

inline std::vector<double> values_of(const HostTensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
  return out;
}

} // namespace tgc
