// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uop/target.h"
#include "uop/uop.h"

namespace tgc {

class ObjectCache;

/// The text of one kernel in a renderer's language.
struct KernelSource {
  std::string name; ///< the exported symbol, a C identifier
  std::string text;
};

/// One shared-object image of several kernels, exactly as it goes into a bundle: position-independent, no relocations,
/// no imports, no writable data, no thread-local storage (checked after every link).
struct CompiledCode {
  std::vector<std::byte> image;  ///< an ELF .so
  std::vector<uint64_t> entries; ///< of each kernel, in the order given: address relative to the image's base
};

/// Whether a renderer can compile here.
struct Availability {
  bool ok = true;
  std::string reason, remedy; ///< when not ok
};

/// A way to turn linear kernels into code: data and functions. One file `renderer_<name>.cpp` exports one table
/// `renderer_<name>`; CMake collects them.
///
/// A linear kernel is `func{name}(linear(…))`; its code is the C function
///   void NAME(const struct tgrt_kernel_args* args, int64_t chunk_begin, int64_t chunk_end)
///   struct tgrt_kernel_args { void* const* bufs; const int64_t* vars; void* scratch; uint32_t* status; };
/// with bufs[slot] per Param, vars[i] the value of the i-th name of `vars`, and scratch 64-byte aligned with at least
/// scratch_bytes(func) bytes. Distinct bufs do not overlap, except that a store may overwrite what the same iteration
/// loaded from the same index. The value of every float expression is the one that `eval` computes, bit for bit (NaN
/// payloads excepted); a Reduce over dims folds them in the order given at `reduce_is_tree`.
struct Renderer {
  const char* device; ///< "cpu"
  const char* name;   ///< "llvm"
  bool is_default;    ///< the renderer of `--target=<device>`
  const char* doc;    ///< one line for --list-targets
  /// The target that `spec` means; "native" and empty parts are resolved. errors: CompileError TGC-E401.
  TargetInfo (*target)(const TargetSpec& spec);
  /// The text of one kernel. `vars`: the names of the module's Vars, sorted. Deterministic. errors: TGC-E402.
  std::string (*render)(Ref func, const TargetInfo& target, std::span<const std::string> vars);
  /// Code of all kernels. `jobs` threads, at least 1. `cache`: where compiled kernels may be found and kept, or null.
  /// The image depends on neither. Names must differ.
  /// errors: TGC-E403 for each kernel that does not compile, TGC-E404 when there is no compiler.
  CompiledCode (*compile)(std::span<const KernelSource> kernels, const TargetInfo& target, int jobs,
                          ObjectCache* cache);
  /// Assembly text of one kernel, for reading. errors: as compile.
  std::string (*assembly)(const KernelSource& kernel, const TargetInfo& target);
  Availability (*probe)();
};

/// Every renderer, sorted by device, then name.
std::span<const Renderer* const> renderers();
/// The renderer that `spec` means. errors: TGC-E401 naming the nearest known device or renderer and listing all.
const Renderer& find_renderer(const TargetSpec& spec);

/// One row of `--list-targets`.
struct TargetRow {
  std::string device, renderer, doc;
  bool is_default;
  Availability state;
  std::vector<std::string> archs;
};
std::vector<TargetRow> list_targets();

/// Bytes of per-thread scratch that a linear kernel uses, over the dims of its buffers, each rounded up to 64 bytes.
Ref scratch_bytes(Ref func);

/// The order of a Reduce over the dims of a shaped value, on which eval and all renderers agree. Leading dims
/// (registers) fold first, row-major; then the last dim (lanes), when it is reduced. Of n values each fold is, for a
/// power of two, a tree, v = op(v[0 : n/2], v[n/2 : n]) until one is left; else in order from the first.
constexpr bool reduce_is_tree(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

} // namespace tgc
