// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to the interpreter: what its parts (tensor graphs, kernel bodies, modules) share.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "uop/dense.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace tgc {

[[noreturn]] void eval_error(const std::string& where, const std::string& message);
std::string describe(Ref node); ///< "add f32[4,8]"

/// Integer scalars over Vars and bound ranges, memoised; iterative. errors: TGC-E105 on an unbound Var.
class DimValues {
public:
  explicit DimValues(const VarValues& vars) : vars_(vars) {}
  int64_t operator()(Ref dim);
  std::vector<int64_t> operator()(Refs dims);
  void bind(Ref range, int64_t value); ///< forgets everything computed under the former value

private:
  int64_t compute(Ref node);
  const VarValues& vars_;
  std::unordered_map<uint32_t, int64_t> memo_, bound_;
};

/// Value of an op without effects from its sources' values; `shape` is its evaluated shape. Handles Const, Iota,
/// movement, Cast, Bitcast, elementwise ops and Reduce over axes. errors: TGC-E105 on other ops.
Dense eval_op(Ref node, std::span<const Dense> src, const std::vector<int64_t>& shape, DimValues& dims);

/// Elements of `buffer` (flat) at `index`; all operands have shape `shape`, `gate` and `alt` may be Void.
/// With lanes > 0 the last dim of `index` is 1 and the result's is `lanes` consecutive elements.
struct GatherArgs {
  Dense buffer, index, gate, alt;
  int64_t lanes = 0;
  std::string where;         ///< for messages
  DType dtype = DType::Void; ///< of the load, if not the buffer's
};
Dense eval_gather(const GatherArgs& args, const std::vector<int64_t>& shape);

Dense weight_value(const Module& module, Ref weight, const std::vector<int64_t>& shape);

/// Tensor graph evaluation, node by node.
struct GraphInputs {
  const Module* module = nullptr;                  ///< for weights
  const std::vector<HostTensor>* params = nullptr; ///< by slot
  const LeafValues* leaves = nullptr;
};
std::vector<Dense> eval_graph(Refs roots, const GraphInputs& inputs, DimValues& dims);
/// The elements `at` (flat) of one value, computing little else.
Dense eval_elements(Ref value, std::span<const int64_t> at, const GraphInputs& inputs, DimValues& dims);
Dense leaf_value(Ref leaf, const GraphInputs& inputs, DimValues& dims);
/// Whether `reduce` is evaluated from the factors of its source, a product, without storing it.
bool reduces_product(Ref reduce);
std::vector<bool> reduced_dims(Ref reduce);

} // namespace tgc
