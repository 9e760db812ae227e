// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Helpers of the render tests: building linear kernels by hand, compiling them, and calling the code.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "render/renderer.h"
#include "uop/uop.h"

namespace tgc {

/// A linear kernel in the making: `emit` appends an instruction and returns it.
struct LinearKernel {
  Context& ctx;
  std::string name = "kernel";
  std::vector<Ref> body = {};

  Ref emit(Ref x) {
    body.push_back(x);
    return x;
  }
  Ref param(int64_t slot, DType t, int64_t n) { return ctx.make(Ops::Param, t, {ctx.index(n)}, {{Attr::Slot, slot}}); }
  Ref buffer(int64_t slot, const char* space, DType t, std::vector<int64_t> dims) {
    std::vector<Ref> src;
    for (const int64_t d : dims) src.push_back(ctx.index(d));
    return emit(ctx.make(Ops::Buffer, t, src, {{Attr::Slot, slot}, {Attr::Space, std::string(space)}}));
  }
  Ref iota(int64_t n, int64_t dim = 0, int64_t rank = 1) {
    return ctx.make(Ops::Iota, DType::Index, {ctx.index(n)}, {{Attr::Dim, dim}, {Attr::Rank, rank}});
  }
  Ref range(Ref extent, const char* axis = "loop") { return emit(ctx.range(extent, int64_t(body.size()), axis)); }
  Ref range(int64_t extent, const char* axis = "loop") { return range(ctx.index(extent), axis); }
  void end(Ref r) { emit(ctx.make(Ops::End, DType::Void, {r})); }
  Ref load(std::vector<Ref> src, int64_t lanes = 0) {
    return emit(ctx.make(Ops::Load, src[0]->dtype, src, lanes > 0 ? Attrs{{Attr::Lanes, lanes}} : Attrs{}));
  }
  /// A vector load; what lies `ahead` elements further is read soon.
  Ref load_ahead(std::vector<Ref> src, int64_t lanes, int64_t ahead) {
    return emit(ctx.make(Ops::Load, src[0]->dtype, src, {{Attr::Lanes, lanes}, {Attr::Ahead, ahead}}));
  }
  void store(std::vector<Ref> src, int64_t lanes = 0) {
    emit(ctx.make(Ops::Store, DType::Void, src, lanes > 0 ? Attrs{{Attr::Lanes, lanes}} : Attrs{}));
  }
  /// The whole value of a register buffer.
  Ref get(Ref reg) { return load({reg, ctx.index(0)}); }
  void set(Ref reg, Ref value) { store({reg, ctx.index(0), value}); }
  Ref func() {
    return ctx.make(Ops::Func, DType::Void, {ctx.make(Ops::Linear, DType::Void, body)}, {{Attr::Name, name}});
  }
};

struct KernelArgs {
  void* const* bufs;
  const int64_t* vars;
  void* scratch;
};
using KernelFn = void (*)(const KernelArgs*, int64_t, int64_t);

/// Compiled code, mapped by the system's loader.
class LoadedCode {
public:
  explicit LoadedCode(const std::vector<std::byte>& image) {
    const int fd = memfd_create("code", 0);
    if (write(fd, image.data(), image.size()) != ssize_t(image.size())) std::abort();
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    close(fd);
    if (!handle_) std::fprintf(stderr, "%s\n", dlerror());
  }
  ~LoadedCode() {
    if (handle_) dlclose(handle_);
  }
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  KernelFn operator[](const std::string& name) const {
    return reinterpret_cast<KernelFn>(dlsym(handle_, name.c_str()));
  }

private:
  void* handle_ = nullptr;
};

inline TargetSpec spec_of(const char* renderer, const char* arch = "native") { return {"cpu", renderer, arch, {}}; }

/// Renders, compiles and calls one kernel on `bufs`, chunks [begin, end).
inline void run_kernel(Ref func, const TargetSpec& spec, std::vector<void*> bufs, std::vector<int64_t> vars = {},
                       std::vector<std::string> names = {}, int64_t begin = 0, int64_t end = 1) {
  const Renderer& r = find_renderer(spec);
  const TargetInfo target = r.target(spec);
  const KernelSource source{func->s(Attr::Name), r.render(func, target, names)};
  const LoadedCode code(r.compile({&source, 1}, target, 1, nullptr).image);
  std::vector<char> scratch(size_t(scratch_bytes(func)->hi) + 64);
  auto base = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t{63};
  const KernelArgs args{bufs.data(), vars.data(), reinterpret_cast<void*>(base)};
  code[source.name](&args, begin, end);
}

} // namespace tgc
