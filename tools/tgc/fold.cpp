// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights made at compile time: packed panels and kernels of constants. They are kernels like any other, so they run
// like any other: compiled for the target with LLVM, in a bundle whose inputs are the weights they read (in place, in
// the mapped model) and whose outputs are the weights they make. A machine that cannot run the target's code, or a
// build without LLVM, lets `eval` run the same linear kernels; by the numerics contract the bits are the same. So do
// kernels that came as text: what they index is not known to lie within their arguments, and eval checks it.
#include <memory>
#include <optional>

#include "runtime/tgrt_bundle.h"
#include "schedule/constants.h"
#include "tgc/bundle_contents.h"
#include "tgc/run_bundle.h"
#include "tgc/weights.h"
#include "uop/eval.h"

namespace tgc {
namespace {

std::vector<Ref> calls_of(const Compilation& c, bool constant) {
  std::vector<Ref> calls;
  for (Ref call : c.module.root->src[0]->src)
    if (is_constant_call(call) == constant) calls.push_back(call);
  return calls;
}

void fold_by_eval(Module& module, const std::vector<Ref>& calls) {
  for (Ref call : calls) {
    std::vector<HostTensor> storage;
    for (Ref argument : call->src.subspan(1)) {
      const std::optional<std::vector<int64_t>> shape = static_shape(argument->shape);
      if (!shape)
        throw CompileError(Diagnostic{.code = ErrorCode::E105,
                                      .where = module.source,
                                      .message = "a weight made while compiling has a symbolic dim",
                                      .note = ""});
      storage.push_back(storage.empty() ? zeros(argument->dtype, *shape) : weight_tensor(module, argument, *shape));
    }
    std::vector<BufferArg> buffers;
    for (HostTensor& t : storage) buffers.push_back(buffer_arg(t));
    eval_kernel(call->src[0], buffers);
    module.weights[call->src[1]->s(Attr::Key)] = inline_weight(std::move(storage[0].data));
  }
}

/// Bytes of tensors, in one block but for those that are bound where they lie.
struct Operands {
  std::shared_ptr<std::byte> block;
  std::vector<std::span<std::byte>> each;
};

/// Weights of `module`, which are only read; null: results, zero so far.
Operands operands_of(const std::vector<BundleContents::Tensor>& tensors, const Module* module) {
  Operands out;
  std::vector<const WeightData*> data;
  uint64_t total = 0;
  for (const BundleContents::Tensor& t : tensors) {
    uint64_t bytes = static_cast<uint64_t>(byte_size(t.dtype));
    const std::optional<std::vector<int64_t>> dims = static_shape(t.dims);
    TGC_CHECK(dims, "\"" + t.name + "\" of a constant kernel has a symbolic dim");
    for (int64_t dim : *dims) bytes *= static_cast<uint64_t>(dim);
    data.push_back(module ? &weight_data(*module, t.name, bytes) : nullptr);
    const bool splat = module && data.back()->kind == WeightData::Kind::Splat;
    const bool aligned = module && reinterpret_cast<uintptr_t>(data.back()->data) % byte_size(t.dtype) == 0;
    std::byte* in_place = aligned && !splat ? const_cast<std::byte*>(data.back()->data) : nullptr;
    out.each.push_back({in_place, bytes});
    if (!in_place) total += (bytes + TGRT_DATA_ALIGN - 1) / TGRT_DATA_ALIGN * TGRT_DATA_ALIGN;
  }
  out.block = make_block(total);
  std::byte* next = out.block.get();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (out.each[i].data()) continue;
    out.each[i] = {next, out.each[i].size()};
    if (module) copy_weight(*data[i], out.each[i]);
    next += (out.each[i].size() + TGRT_DATA_ALIGN - 1) / TGRT_DATA_ALIGN * TGRT_DATA_ALIGN;
  }
  return out;
}

bool fold_compiled(Compilation& c, const std::vector<Ref>& calls, int jobs, ObjectCache* cache) {
  const Renderer& renderer = find_renderer(parse_target("cpu:llvm"));
  if (!renderer.probe().ok) return false;
  BundleContents contents = constant_contents(c, calls);
  std::vector<KernelSource> sources;
  for (const BundleContents::Step& step : contents.steps)
    if (step.kernel == static_cast<int>(sources.size())) {
      Ref kernel = calls[static_cast<size_t>(&step - contents.steps.data())]->src[0];
      sources.push_back({kernel->s(Attr::Name), renderer.render(kernel, c.target, c.vars)});
    }
  CompiledCode code = renderer.compile(sources, c.target, jobs, cache);
  contents.code.assign(reinterpret_cast<const char*>(code.image.data()), code.image.size());
  const LoadedContents loaded = load_contents(contents, jobs);
  if (!loaded.context) return false;

  const Operands read = operands_of(contents.inputs, &c.module), made = operands_of(contents.outputs, nullptr);
  tgrt_error error{};
  bool ok = true;
  for (uint32_t i = 0; i < read.each.size(); ++i)
    ok = ok && tgrt_bind_input(loaded.context.get(), i, read.each[i].data(), read.each[i].size(), &error) == 0;
  for (uint32_t i = 0; i < made.each.size(); ++i)
    ok = ok && tgrt_bind_output(loaded.context.get(), i, made.each[i].data(), made.each[i].size(), &error) == 0;
  TGC_CHECK(ok && tgrt_run(loaded.context.get(), &error) == 0,
            std::string("constant kernels do not run: ") + error.text);
  for (size_t i = 0; i < made.each.size(); ++i)
    c.module.weights[contents.outputs[i].name] = inline_weight(made.each[i], made.block);
  return true;
}

} // namespace

void drop_constant_calls(Compilation& c) {
  Ref body = c.module.ctx->make(Ops::Linear, DType::Void, calls_of(c, false));
  c.module.root = with_body(c.module.root, body);
}

void fold_constants(Compilation& c, int jobs, ObjectCache* cache) {
  std::vector<Ref> calls = calls_of(c, true);
  if (!calls.empty() && (c.from_text || !fold_compiled(c, calls, jobs, cache))) fold_by_eval(c.module, calls);
  drop_constant_calls(c);
}

} // namespace tgc
