// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tgc/options.h"
#include "tgc/pipeline.h"
#include "uop/eval.h"

namespace tgc {

/// `--verify`: the reference interpreter's outputs of the imported model on seeded random inputs, against the bundle's;
/// with `Stages` also against every stage in between, naming the first that differs.
class Verifier {
public:
  /// Remembers the imported module and, for Stages, hooks `options.after_pass`. Does nothing for Verify::None.
  Verifier(Compilation& imported, Verify how, CompileOptions& options);
  /// Runs the bundle and prints the largest error of each output to standard error; true if all agree.
  bool run(const std::string& bundle);

private:
  HostTensor sample(const Module& module, const std::vector<HostTensor>& inputs, uint64_t& seed);
  Verify how_;
  std::vector<HostTensor> inputs_, want_;
  std::vector<std::vector<int64_t>> sampled_; ///< Sample: element numbers per output; empty otherwise
  std::vector<std::vector<int64_t>> shapes_;  ///< of the outputs
  VarValues vars_;
  std::string first_difference_;
};

} // namespace tgc
