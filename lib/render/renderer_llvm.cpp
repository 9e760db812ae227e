// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cpu:llvm, the default: row code → LLVM IR text → machine code in this process, no tools needed. The instruction set
// is stated as plain "x86-64" plus every feature by name, so that the code uses exactly what TargetInfo::features tells
// a loader to check; the arch's own name is used for tuning only. Built without LLVM, it renders but cannot compile.
#include "render/compile_llvm.h"
#include "render/cpu_target.h"
#include "render/llvm_ir.h"
#include "render/renderer.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

TargetInfo target(const TargetSpec& spec) { return resolve_cpu(spec, "llvm"); }

std::string render(Ref func, const TargetInfo& info, std::span<const std::string> vars) {
  const RowCode code = lower_to_rows(func, vars, {.target = &info, .native_f16 = has_feature(info, "f16c")});
  // LLVM knows the x86-64 levels as instruction sets, not as something to tune for.
  const std::string tune = info.arch.starts_with("x86-64") ? "generic" : info.arch;
  return print_llvm(code, {kTriple, "x86-64", tune, join(info.features, ","), info.vector_bytes * 8});
}

#ifdef TGC_LLVM
LlvmMachine machine(const TargetInfo& info) { return {kTriple, "x86-64", join(info.features, ",")}; }
CompiledCode compile(std::span<const KernelSource> kernels, const TargetInfo& info, int jobs, ObjectCache* cache) {
  return compile_llvm(kernels, machine(info), jobs, cache);
}
std::string assembly(const KernelSource& kernel, const TargetInfo& info) {
  return assemble_llvm(kernel, machine(info));
}
Availability probe() { return {}; }
#else
Availability probe() {
  return {false, "this tgc was built without LLVM", "configure with -DTGC_LLVM=ON, or use cpu:c"};
}
[[noreturn]] void no_llvm() { throw CompileError({ErrorCode::E404, "", probe().reason, probe().remedy}); }
CompiledCode compile(std::span<const KernelSource>, const TargetInfo&, int, ObjectCache*) { no_llvm(); }
std::string assembly(const KernelSource&, const TargetInfo&) { no_llvm(); }
#endif

} // namespace

extern const Renderer renderer_llvm;
const Renderer renderer_llvm = {"cpu",   "llvm",   true, "machine code by LLVM, in process", target, render,
                                compile, assembly, probe};

} // namespace tgc
