// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model through the whole pipeline: bytes of ONNX in, a bundle written, loaded and run, values out.
#pragma once

#include <unistd.h>

#include <filesystem>

#include "frontend/frontend.h"
#include "tgc/bundle_writer.h"
#include "tgc/pipeline.h"
#include "tgc/run_bundle.h"
#include "uop/tensor_value.h"
#include "gtest/gtest.h"

namespace tgc {

/// A loaded bundle of an ONNX model. What the runtime refuses is thrown.
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
    model_ = load_bundle(path_);
  }
  ~Compiled() { std::filesystem::remove(path_); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  int64_t bytes = 0; ///< of the bundle
  const tgrt_model* model() const { return model_.get(); }

  /// The outputs for `inputs`, in the model's order.
  std::vector<HostTensor> run(const std::vector<HostTensor>& inputs, uint32_t threads = 1) const {
    return run_bundle(model(), inputs, {.threads = threads});
  }

private:
  std::string path_;
  ModelHandle model_{nullptr, tgrt_free_model};
};

} // namespace tgc
