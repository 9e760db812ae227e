// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One operator under test: a model of one node, evaluated by the reference interpreter.
#pragma once

#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "frontend/onnx_writer.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace tgc {

using Values = std::vector<double>;
using Ints = std::vector<int64_t>;

/// The first output of one node of `spec` on f32 inputs x, a, b … of the shapes given, filled 1, 2, 3, ….
struct OneNode {
  NodeSpec spec;
  int64_t opset = 13;
  std::vector<Ints> shapes = {{2, 3}};
  std::vector<Wire> initializers = {};

  HostTensor run(const VarValues& vars = {}, const ImportOptions& options = {}) const {
    static const char* const kNames[] = {"x", "a", "b"};
    ModelSpec m;
    m.opset = opset;
    m.initializers = initializers;
    NodeSpec n = spec;
    n.outputs = {"y"};
    m.nodes = {node(n)};
    std::vector<HostTensor> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      m.inputs.push_back(value_info(kNames[i], 1, {shapes[i].begin(), shapes[i].end()}));
      HostTensor t = zeros(DType::F32, shapes[i]);
      for (int64_t e = 0; e < t.numel(); ++e) t.set(e, static_cast<double>(e + 1));
      inputs.push_back(t);
    }
    m.outputs = {Wire().text(1, "y")};
    return eval(import_bytes(bytes_of(model(m)), "m.onnx", options), inputs, vars)[0];
  }
  Values values() const {
    HostTensor t = run();
    Values out;
    for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
    return out;
  }
  std::string error() const {
    try {
      run();
    } catch (const CompileError& e) {
      return e.all()[0].message;
    }
    return "no error";
  }
};

} // namespace tgc
