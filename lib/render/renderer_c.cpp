// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cpu:c: row code → C11 text → the system's C compiler. For reading, for debugging (the text compiles under
// sanitizers), for checking cpu:llvm, and where LLVM is not wanted. Same targets, same kernels, same numbers as
// cpu:llvm.
#include "render/c_style.h"
#include "render/compile_c.h"
#include "render/cpu_target.h"
#include "render/renderer.h"

namespace tgc {
namespace {

TargetInfo target(const TargetSpec& spec) { return resolve_cpu(spec, "c"); }

std::string render(Ref func, const TargetInfo& info, std::span<const std::string> vars) {
  return print_c(lower_to_rows(func, vars, {.target = &info}), info.vector_bytes / 4);
}

/// The features by gcc's names, which are LLVM's, and no other.
std::vector<std::string> flags_of(const TargetInfo& info) {
  std::vector<std::string> flags{"-march=x86-64", "-mtune=generic"};
  for (const std::string& feature : info.features) flags.push_back("-m" + feature.substr(1));
  flags.push_back("-mprefer-vector-width=" + std::to_string(info.vector_bytes * 8));
  return flags;
}
/// Keeps nothing: what `cc` is, and whether it is still the same, its name does not say.
CompiledCode compile(std::span<const KernelSource> kernels, const TargetInfo& info, int jobs, ObjectCache*) {
  return compile_c(kernels, flags_of(info), jobs);
}
std::string assembly(const KernelSource& kernel, const TargetInfo& info) { return assemble_c(kernel, flags_of(info)); }

Availability probe() {
  if (has_c_compiler()) return {};
  return {false, "no program `cc` in PATH", "install a C compiler (apt-get install gcc)"};
}

} // namespace

extern const Renderer renderer_c;
const Renderer renderer_c = {"cpu",   "c",      false, "C11 text, compiled by the system's cc", target, render,
                             compile, assembly, probe};

} // namespace tgc
