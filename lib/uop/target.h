// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// What a target can do, as data. The scheduler and the legalisation rules read it; decompositions fill the gaps.
struct TargetInfo {
  std::string device;                ///< "cpu", "null"
  std::string renderer;              ///< "llvm", "c"
  std::string arch;                  ///< resolved, never "native": "x86-64-v3", "sapphirerapids"
  std::vector<std::string> features; ///< "+avx512f" …, sorted; what a loader must find (CPU)
  std::bitset<kNumOps> ops;          ///< ops with a native form; every other elementwise op is decomposed
  std::bitset<kNumDTypes> dtypes;    ///< element types that loads, stores and arithmetic take
  int vector_bytes = 16;             ///< bytes of one vector register
  int vector_registers = 16;         ///< architectural vector registers
  int fma_latency = 4, fma_ports = 2;
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10;
  int max_threads = 64;                           ///< upper bound of useful chunks
  bool has_vectors = true, masked_memory = false; ///< shaped values stay shaped; masked loads are cheap

  bool supports(Ops op) const { return ops.test(static_cast<size_t>(op)); }
  bool supports(DType t) const { return dtypes.test(static_cast<size_t>(t)); }
};

/// The parts of `--target=device[:renderer][:arch[,+feat,-feat]]`, as written; empty parts are defaults.
struct TargetSpec {
  std::string device, renderer, arch;
  std::vector<std::string> features;
};
/// errors: throws CompileError TGC-E401 with the text and the grammar.
TargetSpec parse_target(std::string_view text);

} // namespace tgc
