// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model through the whole pipeline: bytes of ONNX in, a bundle written, loaded and run, values out.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "frontend/frontend.h"
#include "runtime/tgrt.h"
#include "tgc/bundle_writer.h"
#include "tgc/pipeline.h"
#include "uop/tensor_value.h"
#include "gtest/gtest.h"

namespace tgc {

/// A loaded bundle of an ONNX model. Failures of the runtime fail the test.
class Compiled {
public:
  explicit Compiled(const std::string& onnx, const CompileOptions& options = {}) {
    static int count = 0;
    path_ = ::testing::TempDir() + "tgc_compiled_" + std::to_string(getpid()) + "_" + std::to_string(count++);
    Compilation c = start_compilation(import_bytes(bytes_of(onnx), "m.onnx", options.import), options);
    run_pipeline(c, options);
    fold_constants(c, options.jobs);
    render(c);
    write_bundle(assemble(c, options), path_);
    bytes = static_cast<int64_t>(std::filesystem::file_size(path_));
    tgrt_error error{};
    EXPECT_EQ(tgrt_load_file(path_.c_str(), nullptr, &model_, &error), 0) << error.text;
  }
  ~Compiled() {
    tgrt_free_model(model_);
    std::filesystem::remove(path_);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  int64_t bytes = 0; ///< of the bundle
  const tgrt_model* model() const { return model_; }

  /// The outputs for `inputs`, in the model's order.
  std::vector<HostTensor> run(const std::vector<HostTensor>& inputs, uint32_t threads = 1) const {
    tgrt_context_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    tgrt_context* context = nullptr;
    tgrt_error error{};
    EXPECT_EQ(tgrt_create_context(model_, &options, &context, &error), 0) << error.text;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const HostTensor& t = inputs[i];
      EXPECT_EQ(tgrt_set_shape(context, i, t.shape.data(), static_cast<uint32_t>(t.shape.size()), &error), 0)
          << error.text;
      EXPECT_EQ(tgrt_bind_input(context, i, t.data.data(), t.data.size(), &error), 0) << error.text;
    }
    EXPECT_EQ(tgrt_run(context, &error), 0) << error.text;
    std::vector<HostTensor> outputs;
    for (uint32_t i = 0; i < tgrt_tensor_count(model_, TGRT_OUTPUT); ++i) outputs.push_back(output(context, i));
    tgrt_free_context(context);
    return outputs;
  }

private:
  HostTensor output(tgrt_context* context, uint32_t i) const {
    constexpr DType kTypes[] = {DType::Void, DType::Bool, DType::I8,  DType::U8,  DType::I16,  DType::U16, DType::I32,
                                DType::U32,  DType::I64,  DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64};
    tgrt_error error{};
    tgrt_tensor_info info{};
    EXPECT_EQ(tgrt_get_tensor(model_, TGRT_OUTPUT, i, &info), 0);
    std::vector<int64_t> shape(info.rank);
    EXPECT_EQ(tgrt_shape(context, TGRT_OUTPUT, i, shape.data(), &error), 0) << error.text;
    HostTensor t = zeros(kTypes[info.dtype], shape);
    EXPECT_EQ(tgrt_bytes(context, TGRT_OUTPUT, i, &error), t.data.size()) << error.text;
    if (!t.data.empty()) std::memcpy(t.data.data(), tgrt_data(context, TGRT_OUTPUT, i, &error), t.data.size());
    return t;
  }
  std::string path_;
  tgrt_model* model_ = nullptr;
};

} // namespace tgc
