// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of products of quantised values: computed by dot4 and equal in every bit to what the model says, whatever the
// types, the zero points, the number of terms, the target and the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "compiled.h"
#include "frontend/onnx_writer.h"
#include "render/compile_c.h"
#include "uop/eval.h"
#include "uop/text.h"

namespace tgc {
namespace {

constexpr int kU8 = 2, kI8 = 3, kI32 = 6; // of ONNX

DType type_of(int onnx) { return onnx == kU8 ? DType::U8 : DType::I8; }

/// Every third value is the least or the greatest there is.
HostTensor bytes_like(DType t, const std::vector<int64_t>& shape, unsigned seed) {
  HostTensor out = zeros(t, shape);
  const IntRange all = int_range(t);
  for (int64_t i = 0; i < out.numel(); ++i) {
    seed = seed * 1664525 + 1013904223;
    const unsigned pick = seed >> 16;
    const int64_t value = pick % 6 == 0 ? all.lo : pick % 6 == 1 ? all.hi : all.lo + pick / 6 % 256;
    out.set(i, static_cast<double>(value));
  }
  return out;
}

Wire initializer(const std::string& name, int type, const HostTensor& t) {
  return tensor_head(name, type, t.shape)
      .text(9, std::string(reinterpret_cast<const char*>(t.data.data()), t.data.size()));
}
Wire byte(const std::string& name, int type, int64_t value, int64_t count = 0) {
  HostTensor t = zeros(type_of(type), count > 0 ? std::vector<int64_t>{count} : std::vector<int64_t>{});
  for (int64_t i = 0; i < t.numel(); ++i) t.set(i, static_cast<double>(value));
  return initializer(name, type, t);
}
Wire number(const std::string& name, float value) { return tensor_floats(name, {}, {value}); }

std::vector<float> scales(int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(0.001f + 0.0001f * static_cast<float>(i % 7));
  return out;
}

struct Types {
  int a = kU8, b = kI8;
  int64_t a_zero = 0, b_zero = 0;
};

std::string linear(const std::string& onnx, const CompileOptions& given = {}) {
  CompileOptions options = given;
  Compilation c = start_compilation(import_bytes(bytes_of(onnx), "m.onnx", options.import), options);
  run_pipeline(c, options);
  return print(c.module);
}
bool uses_words(const std::string& onnx, const CompileOptions& options = {}) {
  return linear(onnx, options).find("dot4") != std::string::npos;
}

void expect_equal(const HostTensor& got, const HostTensor& want) {
  ASSERT_EQ(got.shape, want.shape);
  for (int64_t i = 0; i < want.numel(); ++i) ASSERT_EQ(got.at(i), want.at(i)) << i;
}

/// By the model's own meaning, on targets with and without an instruction for it.
void expect_exact(const std::string& onnx, const std::vector<HostTensor>& inputs,
                  const std::map<std::string, int64_t>& dims = {}) {
  const HostTensor want = eval(import_bytes(bytes_of(onnx), "m.onnx"), inputs, dims)[0];
  static int count = 0; // a C compiler takes long: it does every third model
  for (const char* target : {"cpu:llvm", "cpu:llvm:x86-64-v3", "cpu:llvm:x86-64", "cpu:c"}) {
    if (std::string_view(target) == "cpu:c" && (count++ % 3 != 0 || !has_c_compiler())) continue;
    SCOPED_TRACE(target);
    CompileOptions options;
    options.target = target;
    const Compiled compiled(onnx, options);
    for (const uint32_t threads : {1U, 2U, 4U}) expect_equal(compiled.run(inputs, threads)[0], want);
  }
}

/// MatMulInteger of [m,k] and a constant or given [k,n].
std::string product(const Types& t, const DimSpec& m, int64_t k, int64_t n, bool constant = true) {
  ModelSpec s;
  s.inputs = {value_info("a", t.a, {m, k})};
  if (constant)
    s.initializers = {initializer("b", t.b, bytes_like(type_of(t.b), {k, n}, 5))};
  else
    s.inputs.push_back(value_info("b", t.b, {k, n}));
  s.initializers.push_back(byte("az", t.a, t.a_zero));
  s.initializers.push_back(byte("bz", t.b, t.b_zero));
  s.nodes = {node({"MatMulInteger", {"a", "b", "az", "bz"}, {"y"}})};
  s.outputs = {Wire().text(1, "y")};
  return model(s);
}

struct Picture {
  int64_t channels, outputs, size, kernel, stride = 1, pad = 1, group = 1;
  DimSpec batch = 1;
  bool is_open = false; ///< its height and width are symbolic
};

/// QLinearConv with a scale per channel and a bias, twice if `again`: the second reads what the first stores.
std::string convolution(const Types& t, const Picture& p, bool again = false) {
  ModelSpec s;
  const DimSpec height = p.is_open ? DimSpec("h") : p.size, width = p.is_open ? DimSpec("w") : p.size;
  s.inputs = {value_info("x", t.a, {p.batch, p.channels, height, width})};
  const std::vector<int64_t> w = {p.outputs, p.channels / p.group, p.kernel, p.kernel}, w2 = {16, p.outputs, 3, 3};
  HostTensor bias = zeros(DType::I32, {p.outputs});
  for (int64_t i = 0; i < p.outputs; ++i) bias.set(i, static_cast<double>(100 * i - 300));
  s.initializers = {initializer("w", t.b, bytes_like(type_of(t.b), w, 7)),
                    initializer("w2", t.b, bytes_like(type_of(t.b), w2, 9)),
                    initializer("bias", kI32, bias),
                    tensor_floats("ws", {p.outputs}, scales(p.outputs)),
                    number("xs", 0.02f),
                    number("ys", 0.9f),
                    byte("xz", t.a, t.a_zero),
                    byte("wz", t.b, t.b_zero, p.outputs),
                    byte("wz2", t.b, t.b_zero)};
  const std::vector<int64_t> pads(4, p.pad);
  s.nodes = {node({"QLinearConv",
                   {"x", "xs", "xz", "w", "ws", "wz", "ys", "xz", "bias"},
                   {"y"},
                   {attr("pads", pads), attr("strides", std::vector<int64_t>(2, p.stride)), attr("group", p.group)}})};
  if (again)
    s.nodes.push_back(node({"QLinearConv",
                            {"y", "xs", "xz", "w2", "xs", "wz2", "ys", "xz"},
                            {"z"},
                            {attr("pads", std::vector<int64_t>(4, 1))}}));
  s.outputs = {Wire().text(1, again ? "z" : "y")};
  return model(s);
}

void expect_exact_picture(const Types& t, const Picture& p, bool again = false, int64_t batch = 1) {
  SCOPED_TRACE(std::to_string(p.channels) + " of " + std::to_string(p.size));
  std::map<std::string, int64_t> dims;
  if (!p.batch.param.empty()) dims[p.batch.param] = batch;
  if (p.is_open) dims["h"] = dims["w"] = p.size;
  expect_exact(convolution(t, p, again), {bytes_like(type_of(t.a), {batch, p.channels, p.size, p.size}, 3)}, dims);
}

/// Gemm of a dequantised input and constant, relu, quantised.
std::string dequantised(const Types& t, int64_t k, int64_t n) {
  ModelSpec s;
  s.inputs = {value_info("x", t.a, {5, k})};
  s.initializers = {initializer("w", t.b, bytes_like(type_of(t.b), {k, n}, 11)),
                    tensor_floats("ws", {n}, scales(n)),
                    tensor_floats("bias", {n}, scales(n)),
                    number("xs", 0.02f),
                    number("ys", 0.3f),
                    byte("xz", t.a, t.a_zero),
                    byte("wz", t.b, t.b_zero, n)};
  s.nodes = {node({"DequantizeLinear", {"x", "xs", "xz"}, {"xf"}}),
             node({"DequantizeLinear", {"w", "ws", "wz"}, {"wf"}, {attr("axis", int64_t{1})}}),
             node({"Gemm", {"xf", "wf", "bias"}, {"p"}}), node({"Relu", {"p"}, {"r"}}),
             node({"QuantizeLinear", {"r", "ys", "xz"}, {"y"}})};
  s.outputs = {Wire().text(1, "y")};
  return model(s);
}

} // namespace

TEST(Bytes, ProductsOfAllTypesAndZeroPointsAreExact) {
  const Types all[] = {{kU8, kI8, 0, 0},   {kU8, kI8, 255, -128}, {kI8, kI8, -128, 127}, {kU8, kU8, 3, 255},
                       {kI8, kU8, 127, 0}, {kI8, kI8, 0, 0},      {kU8, kU8, 128, 128}};
  for (const Types& t : all) {
    SCOPED_TRACE(std::to_string(t.a) + " " + std::to_string(t.b) + " " + std::to_string(t.a_zero));
    for (const bool constant : {true, false}) {
      const std::string onnx = product(t, 7, 24, 33, constant);
      EXPECT_TRUE(uses_words(onnx));
      std::vector<HostTensor> inputs = {bytes_like(type_of(t.a), {7, 24}, 1)};
      if (!constant) inputs.push_back(bytes_like(type_of(t.b), {24, 33}, 2));
      expect_exact(onnx, inputs);
    }
  }
}

TEST(Bytes, ExtremesDoNotSaturate) {
  HostTensor a = zeros(DType::U8, {4, 64});
  for (int64_t i = 0; i < a.numel(); ++i) a.set(i, 255);
  HostTensor b = zeros(DType::I8, {64, 16});
  for (int64_t i = 0; i < b.numel(); ++i) b.set(i, -128);
  const std::string onnx = product({kU8, kI8, 0, 0}, 4, 64, 16, false);
  EXPECT_EQ(eval(import_bytes(bytes_of(onnx), "m.onnx"), {a, b}, {})[0].at(0), -255.0 * 128 * 64);
  expect_exact(onnx, {a, b});
}

TEST(Bytes, TakesAnyNumberOfTermsAndAnOpenBatch) {
  for (const int64_t k : {3, 7, 66}) {
    SCOPED_TRACE(k);
    const std::string onnx = product({kI8, kU8, -5, 7}, "n", k, 20);
    EXPECT_TRUE(uses_words(onnx));
    expect_exact(onnx, {bytes_like(DType::I8, {9, k}, 4)}, {{"n", 9}});
  }
}

TEST(Bytes, WordsOfAMaskedTileAreLoadedLaneByLane) {
  const std::string onnx = product({kU8, kI8, 0, 0}, 5, 4, 1, false);
  const std::vector<HostTensor> inputs = {bytes_like(DType::U8, {5, 4}, 1), bytes_like(DType::I8, {4, 1}, 2)};
  const HostTensor want = eval(import_bytes(bytes_of(onnx), "m.onnx"), inputs, {})[0];
  for (const char* opts : {"split 0 3; lane 1; word 2", "word 1; split 0 4; lane 1", "split 0 3; word 2; upcast 1",
                           "split 0 4; split 1 2; upcast 1; lane 2; word 3"})
    for (const char* target : {"cpu:llvm", "cpu:llvm:x86-64", "cpu:c"}) {
      if (std::string_view(target) == "cpu:c" && !has_c_compiler()) continue;
      SCOPED_TRACE(std::string(opts) + " for " + target);
      CompileOptions options;
      options.target = target;
      options.find_opts = [&](Ref, const std::vector<bool>&) { return FoundOpts{opts, "here"}; };
      expect_equal(Compiled(onnx, options).run(inputs)[0], want);
    }
}

TEST(Bytes, ConvolutionsReadZeroPointsAroundThePicture) {
  const Types all[] = {{kU8, kI8, 3, 0}, {kI8, kI8, -128, 0}, {kU8, kI8, 0, 5}, {kU8, kU8, 200, 128}};
  for (const Types& t : all) {
    expect_exact_picture(t, {16, 32, 7, 3});
    expect_exact_picture(t, {3, 20, 9, 3, 2}); // channels are filled up
    expect_exact_picture(t, {16, 16, 6, 1, 1, 0});
  }
  EXPECT_TRUE(uses_words(convolution({kU8, kI8, 3, 0}, {16, 32, 7, 3})));
  EXPECT_TRUE(uses_words(convolution({kU8, kI8, 3, 0}, {3, 20, 9, 3, 2})));
  expect_exact_picture({kU8, kI8, 9, 0}, {16, 32, 7, 3, 1, 1, 2});  // groups
  expect_exact_picture({kU8, kI8, 9, 0}, {16, 16, 7, 3, 1, 1, 16}); // as many as channels
  expect_exact_picture({kU8, kI8, 3, 0}, {8, 16, 6, 3, 1, 1, 1, "n"}, false, 3);
}

TEST(Bytes, ChainedConvolutionsStoreWhatIsReadNext) {
  expect_exact_picture({kU8, kI8, 3, 0}, {16, 32, 7, 3}, true);
  expect_exact_picture({kI8, kI8, -128, 0}, {5, 20, 7, 3}, true);
}

TEST(Bytes, PicturesOfOpenSizeHaveTheirZeroPointsStoredAroundThem) {
  for (const int64_t stride : {1, 2}) {
    const Picture p = {
        .channels = 5, .outputs = 19, .size = 7, .kernel = 3, .stride = stride, .batch = "n", .is_open = true};
    expect_exact_picture({kU8, kI8, 3, 0}, p, true, 2);
    std::istringstream lines(linear(convolution({kU8, kI8, 3, 0}, p, true)));
    size_t words = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("= load i32") == std::string::npos || line.find("lanes=") != std::string::npos) continue;
      ++words;                                                         // of the picture: one for all lanes
      EXPECT_LE(std::count(line.begin(), line.end(), '%'), 3) << line; // result, buffer, index: no gate
    }
    EXPECT_GT(words, 0U);
  }
}

TEST(Bytes, DequantisedProductsAreSumsOfBytes) {
  for (const Types& t : {Types{kU8, kI8, 3, 0}, Types{kI8, kI8, -10, 4}}) {
    const std::string onnx = dequantised(t, 40, 35);
    const std::vector<HostTensor> inputs = {bytes_like(type_of(t.a), {5, 40}, 6)};
    const HostTensor want = eval(import_bytes(bytes_of(onnx), "m.onnx"), inputs, {})[0];
    EXPECT_TRUE(uses_words(onnx));
    CompileOptions options;
    const HostTensor got = Compiled(onnx, options).run(inputs)[0];
    for (int64_t i = 0; i < want.numel(); ++i) ASSERT_NEAR(got.at(i), want.at(i), 1) << i; // a tie may fall otherwise
    options.target = "cpu:c";
    expect_equal(Compiled(onnx, options).run(inputs, 2)[0], got);
    options.numerics = Numerics::Strict;
    EXPECT_FALSE(uses_words(onnx, options));
  }
}

} // namespace tgc
