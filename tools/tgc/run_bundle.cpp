// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a bundle in this process through libtgrt's public interface, as any program would, for what judges results:
// --verify, the ONNX suite, tests. Shapes are set before anything else, since a dim may follow from another input's.
#include "tgc/run_bundle.h"

#include <cstring>

#include "render/temporary.h"

namespace tgc {
namespace {

HostTensor output_of(const tgrt_model* model, tgrt_context* context, uint32_t index) {
  tgrt_error error{};
  tgrt_tensor_info info{};
  if (tgrt_get_tensor(model, TGRT_OUTPUT, index, &info) != 0) throw std::runtime_error("no such output");
  std::vector<int64_t> shape(info.rank);
  if (tgrt_shape(context, TGRT_OUTPUT, index, shape.data(), &error) != 0) throw RuntimeFailure(error);
  HostTensor tensor = zeros(static_cast<DType>(info.dtype), std::move(shape));
  if (tensor.data.empty()) return tensor;
  const void* data = tgrt_data(context, TGRT_OUTPUT, index, &error);
  if (!data) throw RuntimeFailure(error);
  if (tgrt_bytes(context, TGRT_OUTPUT, index, &error) != tensor.data.size())
    throw std::runtime_error("an output's bytes are not those of its shape");
  std::memcpy(tensor.data.data(), data, tensor.data.size());
  return tensor;
}

} // namespace

LoadedContents load_contents(const BundleContents& contents, int threads) {
  LoadedContents loaded;
  TemporaryFolder folder;
  const std::string path = folder.file("bundle");
  write_bundle(contents, path);
  tgrt_error error{};
  tgrt_model* model = nullptr;
  tgrt_context* context = nullptr;
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = static_cast<uint32_t>(threads);
  if (tgrt_load_file(path.c_str(), nullptr, &model, &error) == 0) {
    loaded.model.reset(model);
    if (tgrt_create_context(model, &options, &context, &error) == 0) loaded.context.reset(context);
  }
  loaded.problem = error.text;
  return loaded;
}

ModelHandle load_bundle(const std::string& path) {
  tgrt_model* model = nullptr;
  tgrt_error error{};
  if (tgrt_load_file(path.c_str(), nullptr, &model, &error) != 0) throw RuntimeFailure(error);
  return {model, tgrt_free_model};
}

std::vector<HostTensor> run_bundle(const tgrt_model* model, const std::vector<HostTensor>& inputs,
                                   const BundleRun& how) {
  tgrt_error error{};
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = how.threads;
  options.flags = how.guard ? TGRT_CONTEXT_GUARD : 0;
  tgrt_context* raw = nullptr;
  if (tgrt_create_context(model, &options, &raw, &error) != 0) throw RuntimeFailure(error);
  const ContextHandle context(raw, tgrt_free_context);
  for (const auto& [name, value] : how.vars) tgrt_set_var(raw, name.c_str(), value, nullptr);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t>& shape = inputs[i].shape;
    if (tgrt_set_shape(raw, i, shape.data(), static_cast<uint32_t>(shape.size()), &error) != 0)
      throw RuntimeFailure(error);
  }
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (tgrt_bind_input(raw, i, inputs[i].data.data(), inputs[i].data.size(), &error) != 0) throw RuntimeFailure(error);
  const int code = tgrt_run(raw, &error);
  if (code != 0 && !(how.may_be_trapped && code == TGRT_E_INDEX)) throw RuntimeFailure(error);
  std::vector<HostTensor> outputs;
  for (uint32_t i = 0; i < tgrt_tensor_count(model, TGRT_OUTPUT); ++i) outputs.push_back(output_of(model, raw, i));
  return outputs;
}

} // namespace tgc
