// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference interpreter: what every node means, at every level. Slow, exact, and the judge of all tests.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "uop/module.h"
#include "uop/tensor_value.h"

namespace tgc {

using VarValues = std::map<std::string, int64_t>;

/// Outputs of a module in slot order, traps last, from `inputs[slot]`. Takes both levels: the root's body is a sink of
/// stores (tensor graph) or a linear of calls (scheduled module, executed in order with the memory it names). requires:
/// inputs have the params' dtypes; `vars` binds every Var that the result depends on. errors: TGC-E105 naming what is
/// missing, does not match or goes out of range.
std::vector<HostTensor> eval(const Module& module, const std::vector<HostTensor>& inputs, const VarValues& vars = {});

/// Elements `at` (flat, row-major) of output number `output`, computing only what they need: [at.size()] values.
/// Tensor graphs only. errors: as eval, and an element out of range.
HostTensor eval_at(const Module& module, const std::vector<HostTensor>& inputs, int output, std::span<const int64_t> at,
                   const VarValues& vars = {});

/// Values given to nodes in place of evaluating them, by UOp::id: how a test binds ranges, params and pattern leaves.
using LeafValues = std::map<uint32_t, HostTensor>;
/// The value of any expression without effects: tensor level, or kernel level with its ranges bound in `leaves`.
HostTensor eval_expr(Ref root, const LeafValues& leaves = {}, const VarValues& vars = {});
/// The value of an integer scalar over Vars (a dim).
int64_t eval_index(Ref dim, const VarValues& vars = {});

/// Storage given to a kernel: `numel` elements at `data`, read and written in place.
struct BufferArg {
  DType dtype = DType::Void;
  std::byte* data = nullptr;
  int64_t numel = 0;
};
BufferArg buffer_arg(HostTensor& tensor);
/// Runs one kernel func (body sink or linear) on `buffers[slot]`. A linear body is executed instruction by instruction:
/// every f32 result is that of the IEEE operation named, in the order given. Chunked loops run over their full extent.
/// errors: TGC-E105 for an access outside a buffer, naming kernel, access and index.
void eval_kernel(Ref func, std::span<const BufferArg> buffers, const VarValues& vars = {});

} // namespace tgc
