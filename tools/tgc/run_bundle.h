// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/tgrt.h"
#include "tgc/bundle_writer.h"
#include "uop/eval.h"
#include "uop/tensor_value.h"

namespace tgc {

/// What libtgrt said.
class RuntimeFailure : public std::runtime_error {
public:
  explicit RuntimeFailure(const tgrt_error& error) : std::runtime_error(error.text), code(error.code) {}
  int code; ///< TGRT_E_…
};

using ModelHandle = std::unique_ptr<tgrt_model, decltype(&tgrt_free_model)>;
using ContextHandle = std::unique_ptr<tgrt_context, decltype(&tgrt_free_context)>;

struct BundleRun {
  uint32_t threads = 0;        ///< 0: the CPUs of the process
  bool guard = false;          ///< TGRT_CONTEXT_GUARD
  bool may_be_trapped = false; ///< results beside an index out of range are wanted too: they are defined
  VarValues vars = {};         ///< dims that no input has; those that the model does not have are ignored
};

/// A bundle that exists in this process alone.
struct LoadedContents {
  ModelHandle model{nullptr, tgrt_free_model};
  ContextHandle context{nullptr, tgrt_free_context}; ///< null: this machine cannot run it
  std::string problem;                               ///< why not
};
/// errors: as write_bundle.
LoadedContents load_contents(const BundleContents& contents, int threads);

/// errors: RuntimeFailure.
ModelHandle load_bundle(const std::string& path);
/// Every output of the model for `inputs`, which also set the dims.
/// errors: RuntimeFailure.
std::vector<HostTensor> run_bundle(const tgrt_model* model, const std::vector<HostTensor>& inputs,
                                   const BundleRun& how = {});

} // namespace tgc
