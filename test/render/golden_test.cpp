// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text that renderers print for a few small kernels, in full (test/render/golden/; TGC_BLESS=1 rewrites it), and
// properties of the compiled image.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "render/compile_llvm.h"
#include "render/elf_image.h"
#include "render/linear_kernel.h"
#include "uop/diag.h"

using namespace tgc;

namespace {

/// y[i] = max(x[i] * w + b, 0) over chunks of 16, threads outermost.
Ref relu_kernel(Context& ctx, const std::string& name = "relu") {
  LinearKernel k{ctx, name};
  const DType t = DType::F32;
  const Ref x = k.param(0, t, 256), y = k.param(1, t, 256);
  const Ref r = k.range(16, "thread");
  const Ref at = k.emit(k.emit(r * 16.0) + k.iota(1));
  const Ref v =
      k.emit(ctx.make(Ops::Fma, DType::Void, {k.load({x, at}, 16), ctx.constant(t, 0.5), ctx.constant(t, 3)}));
  k.store({y, at, k.emit(binary(Ops::Max, v, ctx.constant(t, 0)))}, 16);
  k.end(r);
  return k.func();
}

/// Sum of x over n (a Var) with a register accumulator of 8 lanes and a masked tail.
Ref sum_kernel(Context& ctx) {
  LinearKernel k{ctx, "sum"};
  const DType t = DType::F32;
  const Ref x = k.param(0, t, 64), y = k.param(1, t, 1), n = ctx.var("n", 1, 64), acc = k.buffer(0, "reg", t, {8});
  k.set(acc, ctx.constant(t, 0));
  const Ref r = k.range(k.emit(floordiv(k.emit(n + 7.0), ctx.index(8))), "reduce");
  const Ref first = k.emit(r * 8.0);
  const Ref gate = k.emit(lt(k.emit(first + k.iota(8)), n));
  const Ref next = k.load({x, k.emit(first + k.iota(1)), gate}, 8); // before the accumulator, on every compiler
  k.set(acc, k.emit(k.get(acc) + next));
  k.end(r);
  const Attrs attrs{{Attr::Kind, std::string("add")}, {Attr::Axes, std::vector<int64_t>{0}}};
  k.store({y, ctx.index(0), k.emit(ctx.make(Ops::Reduce, DType::Void, {k.get(acc)}, attrs))});
  return k.func();
}

void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(TGC_SOURCE_DIR) + "/test/render/golden/" + file;
  if (std::getenv("TGC_BLESS")) std::ofstream(path) << text;
  std::stringstream stored;
  stored << std::ifstream(path).rdbuf();
  EXPECT_EQ(stored.str(), text) << path;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const CompileError& e) {
    std::string text;
    for (const Diagnostic& d : e.all()) text += to_string(d) + "\n";
    return text;
  }
  return "no error";
}

TEST(Golden, Llvm) {
  Context ctx;
  const TargetSpec spec = spec_of("llvm", "x86-64-v3");
  const Renderer& r = find_renderer(spec);
  expect_golden("relu.ll.txt", r.render(relu_kernel(ctx), r.target(spec), {}));
  const std::vector<std::string> vars{"m", "n"};
  expect_golden("sum.ll.txt", r.render(sum_kernel(ctx), r.target(spec), vars));
}

TEST(Golden, C) {
  Context ctx;
  const TargetSpec spec = spec_of("c", "x86-64-v3");
  const Renderer& r = find_renderer(spec);
  expect_golden("relu.c.txt", r.render(relu_kernel(ctx), r.target(spec), {}));
  const std::vector<std::string> vars{"m", "n"};
  expect_golden("sum.c.txt", r.render(sum_kernel(ctx), r.target(spec), vars));
}

class Image : public testing::TestWithParam<const char*> {};

TEST_P(Image, DoesNotDependOnJobsAndFindsEveryKernel) {
  Context ctx;
  const TargetSpec spec = spec_of(GetParam(), "x86-64-v3");
  const Renderer& r = find_renderer(spec);
  if (!r.probe().ok) GTEST_SKIP() << r.probe().reason;
  const TargetInfo target = r.target(spec);
  std::vector<KernelSource> sources;
  for (const char* name : {"z", "b", "a", "m"}) sources.push_back({name, r.render(relu_kernel(ctx, name), target, {})});
  const CompiledCode one = r.compile(sources, target, 1, nullptr), two = r.compile(sources, target, 2, nullptr);
  EXPECT_TRUE(one.image == two.image);
  EXPECT_EQ(one.entries, two.entries);
  EXPECT_EQ(check_image(one.image), "");
  ASSERT_EQ(one.entries.size(), 4u);
  EXPECT_LT(one.entries[0], one.entries[1]); // in the order given
  EXPECT_EQ(find_symbols(one.image, std::vector<std::string>{"nothing"})[0], UINT64_MAX);
}
INSTANTIATE_TEST_SUITE_P(Renderers, Image, testing::Values("llvm", "c"),
                         [](const auto& p) { return std::string(p.param); });

TEST(Image, FaultsAreNamed) {
  std::vector<std::byte> bytes(100);
  EXPECT_EQ(check_image(bytes), "not a 64-bit ELF shared object with a dynamic table");
}

TEST(Compile, FailuresNameTheKernel) {
  const TargetSpec spec = spec_of("llvm", "x86-64");
  const Renderer& r = find_renderer(spec);
  if (!r.probe().ok) GTEST_SKIP() << r.probe().reason;
  const KernelSource sources[] = {{"broken", "define void @broken() { ret i32 }"},
                                  {"absent", "define void @other() { ret void }"}};
  EXPECT_EQ(message_of([&] { r.compile({sources, 1}, r.target(spec), 1, nullptr); }),
            "kernel \"broken\": error TGC-E403: LLVM cannot compile it for x86_64-unknown-linux-gnu: line 1: expected "
            "value token: define void @broken() { ret i32 }\n"
            "  note: report this with the kernel's text (--emit=source), or try --target=cpu:c\n");
  EXPECT_NE(
      message_of([&] { r.compile({sources + 1, 1}, r.target(spec), 1, nullptr); }).find("defines no such function"),
      std::string::npos);
}

/// PATH without any program, for the life of the object.
class EmptyPath {
public:
  EmptyPath() : old_(std::getenv("PATH")) { setenv("PATH", "/nowhere", 1); }
  ~EmptyPath() { setenv("PATH", old_.c_str(), 1); }
  EmptyPath(const EmptyPath&) = delete;
  EmptyPath& operator=(const EmptyPath&) = delete;

private:
  std::string old_;
};

TEST(Compile, WithoutACCompilerSaysSo) {
  const TargetSpec spec = spec_of("c", "x86-64");
  const Renderer& r = find_renderer(spec);
  const EmptyPath path;
  EXPECT_FALSE(r.probe().ok);
  EXPECT_EQ(r.probe().reason, "no program `cc` in PATH");
  const KernelSource kernel{"any", "void any(void) {}\n"};
  EXPECT_EQ(message_of([&] { r.compile({&kernel, 1}, r.target(spec), 1, nullptr); }),
            "error TGC-E404: cpu:c needs the program `cc`, which is not in PATH\n"
            "  note: Install one (apt-get install gcc), or use --target=cpu, which needs none.\n");
}

TEST(Compile, AnImportIsRefused) {
  const TargetSpec spec = spec_of("llvm", "x86-64");
  const Renderer& r = find_renderer(spec);
  if (!r.probe().ok) GTEST_SKIP() << r.probe().reason;
  const KernelSource calls{
      "calls", "declare void @malloc_like()\ndefine void @calls() {\n call void @malloc_like()\n ret void\n}\n"};
  EXPECT_NE(
      message_of([&] { r.compile({&calls, 1}, r.target(spec), 1, nullptr); }).find("undefined symbol: malloc_like"),
      std::string::npos);
}

Ref kernel_of(Context& ctx, Ops op, DType t, const std::string& name = "waves") {
  LinearKernel k{ctx, name};
  const Ref x = k.param(0, t, 4), at = k.emit(k.iota(1) + 0.0);
  const Ref v = k.load({x, at}, 4);
  k.store({x, at, k.emit(ctx.make(op, t, Refs(std::vector<Ref>(size_t(info(op).max_src), v))))}, 4);
  return k.func();
}

TEST(Render, WhatHasNoFormIsNamed) {
  Context ctx;
  const TargetSpec spec = spec_of("llvm", "x86-64");
  const Renderer& r = find_renderer(spec);
  const auto message = [&](Ref func) { return message_of([&] { r.render(func, r.target(spec), {}); }); };
  const std::string note = "\n  note: it must be decomposed before rendering; report the kernel (--emit=linear)\n";
  EXPECT_EQ(message(kernel_of(ctx, Ops::Sin, DType::F32)),
            "kernel \"waves\": error TGC-E402: `sin f32[4]` is not native to cpu:llvm:x86-64" + note);
  EXPECT_EQ(message(kernel_of(ctx, Ops::Fma, DType::F64)),
            "kernel \"waves\": error TGC-E402: `fma f64[4]` is not native to cpu:llvm:x86-64" + note);
  EXPECT_EQ(message(kernel_of(ctx, Ops::Mod, DType::F32)),
            "kernel \"waves\": error TGC-E402: `mod f32[4]` has no native form for this type" + note);
  EXPECT_EQ(
      message(kernel_of(ctx, Ops::Add, DType::F32, "a b")),
      "kernel \"a b\": error TGC-E403: its name is not a C identifier\n  note: kernel names are letters, digits and "
      "underscores\n");
}

TEST(Target, ResolvesArchsAndFeatures) {
  const auto resolve = [](const char* text) {
    const TargetSpec spec = parse_target(text);
    return find_renderer(spec).target(spec);
  };
  const TargetInfo v3 = resolve("cpu:llvm:x86-64-v3");
  EXPECT_EQ(v3.renderer, "llvm");
  EXPECT_EQ(v3.vector_bytes, 32);
  EXPECT_EQ(v3.vector_registers, 16);
  EXPECT_TRUE(v3.supports(Ops::Fma));
  EXPECT_TRUE(v3.supports(Ops::Round));
  EXPECT_FALSE(v3.supports(Ops::Exp));
  const std::vector<std::string> features{"+avx",   "+avx2",   "+bmi",  "+bmi2",   "+f16c",   "+fma",  "+lzcnt",
                                          "+movbe", "+popcnt", "+sse3", "+sse4.1", "+sse4.2", "+ssse3"};
  EXPECT_EQ(v3.features, features);

  const TargetInfo base = resolve("cpu::x86-64");
  EXPECT_TRUE(base.features.empty());
  EXPECT_FALSE(base.supports(Ops::Floor));
  // What a feature needs comes with it, what needs it goes with it.
  EXPECT_EQ(resolve("cpu:c:x86-64,+fma").features,
            (std::vector<std::string>{"+avx", "+fma", "+sse3", "+sse4.1", "+sse4.2", "+ssse3"}));
  EXPECT_EQ(resolve("cpu:llvm:sapphirerapids,-avx").vector_bytes, 16);
  EXPECT_FALSE(resolve("cpu:llvm:sapphirerapids,-avx").supports(Ops::Fma));
  EXPECT_EQ(resolve("cpu:llvm:znver4").vector_bytes, 64);
  EXPECT_EQ(resolve("cpu").renderer, "llvm");
  EXPECT_NE(resolve("cpu").arch, "native");
  // Both renderers see the same target, hence the same kernels.
  EXPECT_EQ(resolve("cpu:c").features, resolve("cpu:llvm").features);
  EXPECT_EQ(resolve("cpu:c").ops, resolve("cpu:llvm").ops);
}

TEST(Target, UnknownNamesAreExplained) {
  const auto message = [](const char* text) {
    return message_of([&] {
      const TargetSpec spec = parse_target(text);
      find_renderer(spec).target(spec);
    });
  };
  EXPECT_EQ(message("cpi"), "error TGC-E401: unknown device `cpi`; did you mean `cpu`?\n  note: known: cpu\n");
  EXPECT_EQ(message("cpu:lvm"),
            "error TGC-E401: device `cpu` has no renderer `lvm`; did you mean `llvm`?\n  note: known: c, llvm\n");
  EXPECT_EQ(
      message("cpu:c:znver33"),
      "error TGC-E401: unknown architecture `znver33`; did you mean `znver3`?\n  note: known: native, x86-64, "
      "x86-64-v2, x86-64-v3, x86-64-v4, haswell, skylake, skylake-avx512, icelake-server, sapphirerapids, znver1, "
      "znver2, znver3, znver4\n");
  EXPECT_EQ(
      message("cpu:c:x86-64,+fma3"),
      "error TGC-E401: unknown CPU feature `fma3`; did you mean `fma`?\n  note: known: sse3, ssse3, sse4.1, sse4.2, "
      "popcnt, avx, f16c, fma, avx2, bmi, bmi2, lzcnt, movbe, avx512f, avx512cd, avx512bw, avx512dq, avx512vl, "
      "avx512vbmi, avx512vnni\n");
}

TEST(Target, ListShowsEveryRendererOnce) {
  const std::vector<TargetRow> rows = list_targets();
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ(rows[0].renderer, "c");
  EXPECT_EQ(rows[1].renderer, "llvm");
  EXPECT_FALSE(rows[0].is_default);
  EXPECT_TRUE(rows[1].is_default);
  EXPECT_EQ(rows[1].archs.front(), "native");
}

/// The C text compiles under sanitizers and runs clean: an image of its own, since these have imports.
TEST(CText, RunsUnderSanitizers) {
  if (!find_renderer(spec_of("c")).probe().ok) GTEST_SKIP() << "no C compiler";
  Context ctx;
  const TargetSpec spec = spec_of("c", "x86-64-v3");
  const Renderer& r = find_renderer(spec);
  const std::vector<std::string> vars{"m", "n"};
  const std::string folder = std::string(TGC_BINARY_DIR) + "/sanitized";
  ASSERT_EQ(std::system(("mkdir -p " + folder).c_str()), 0);
  std::ofstream(folder + "/main.c") << r.render(sum_kernel(ctx), r.target(spec), vars) << R"(
int printf(const char*, ...);
int main(void) {
  float x[21], y = 0;
  for (int i = 0; i < 21; ++i) x[i] = i;
  void* bufs[] = {x, &y};
  const int64_t v[] = {0, 21};
  const struct tgrt_kernel_args args = {bufs, v, 0, 0};
  sum(&args, 0, 1);
  printf("%g\n", y);
  return y != 210;
}
)";
  for (const char* flags : {"-O1 -fsanitize=address,undefined -fno-sanitize-recover=all", "-O0 -fsanitize=thread",
                            "-O2 -U__GNUC__ -D'__attribute__(x)=' -lm"}) {
    const std::string build = "cc -std=c11 -ffp-contract=off " + std::string(flags) + " " + folder + "/main.c -o " +
                              folder + "/main -lm > " + folder + "/log 2>&1 && " + folder + "/main > " + folder +
                              "/out 2>&1";
    EXPECT_EQ(std::system(build.c_str()), 0) << flags << ": see " << folder;
  }
}

} // namespace
