// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "uop/module.h"
#include "uop/uop.h"

namespace tgc {

/// All that a bundle holds. Expressions (dims, sizes, counts) are Index `Ref`s of Const, Var, add, sub, neg, mul,
/// floordiv, floormod, min and max over the Vars listed in `vars`; a null Ref means 0.
struct BundleContents {
  struct Var {
    std::string name;
    int64_t min, max; ///< inclusive
  };
  /// Graph input or output, row-major. An input dim that is a bare Var gives it its value at run time; every other
  /// input dim is compared with what the caller passes.
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<Ref> dims;
  };
  /// left = right (or left <= right), else the run fails with `text`: 'node "add1": shapes [n] and [m] do not
  /// broadcast unless n = m'. An equality whose left side is a bare Var gives it its value.
  struct Check {
    Ref left, right;
    bool equal;
    std::string text;
  };
  struct Weight {
    std::string key;
    WeightData data;
    uint64_t bytes; ///< whole tensor; a Splat repeats its element to this size
  };
  /// An intermediate buffer of the arena, `at` bytes into its slot. Those of one slot that overlap share storage (the
  /// memory plan promises that their lives are disjoint). `tgrun --guard` gives each buffer its own.
  struct Buffer {
    Ref bytes;
    int slot;
    uint64_t at = 0; ///< a multiple of 64
  };
  struct Kernel {
    std::string name;  ///< its symbol in `code`
    std::string opts;  ///< opt list as text
    Ref scratch_bytes; ///< per thread
    Ref chunks;        ///< extent of the thread range; 1 for a serial kernel
    Ref flops, bytes;  ///< estimates of one launch: operations, bytes moved
  };
  struct Arg {
    enum class Kind : uint8_t { Input, Output, Weight, Buffer };
    Kind kind;
    int index; ///< into inputs, outputs, weights or buffers
  };
  struct Step {
    int kernel;
    std::vector<Arg> args;       ///< by Param slot of the kernel
    std::string origin;          ///< names of the model's nodes, for profiles; may be empty
    std::vector<int> waits = {}; ///< earlier steps that must have ended before this one begins
  };

  std::vector<Var> vars; ///< in any order; stored sorted by name, which is the order of `tgrt_kernel_args::vars`
  std::vector<Tensor> inputs, outputs;
  int traps = 0; ///< the last outputs: bool [] that make the run an error when true, with their name
  std::vector<Check> checks;
  std::vector<Weight> weights;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::string code;                  ///< the shared object's bytes; empty when there are no kernels
  std::vector<std::string> features; ///< CPU features the code needs, LLVM's names, with or without '+'
  std::vector<std::pair<std::string, std::string>> meta; ///< "tool", "source", "target", "numerics"; any order
  std::string source_text;                               ///< optional section: kernels as text
  std::string tests;                                     ///< optional section: sample data
};

/// Where each of the weights lies in its section; equal ones lie at one place.
std::vector<uint64_t> place_weights(const BundleContents& contents);

/// Writes the bundle to `path`, or leaves whatever was there (OutputFile, boundary.h). The bytes are a function of
/// `contents` alone. Weights are streamed, equal ones stored once.
/// errors: CompileError TGC-E502 (cannot write), E501 (a mapped weight cannot be read), E403 (code with relocations,
/// imports, writable data or TLS, or without one of the kernels), E401 (a feature without a run-time check);
/// InternalError for inconsistent contents.
void write_bundle(const BundleContents& contents, const std::string& path);

} // namespace tgc
