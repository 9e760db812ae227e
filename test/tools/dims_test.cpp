// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One bundle for many sizes: what it computes at each of them is, bit for bit, what a bundle compiled for that size
// alone computes; its arena is no larger; and what its dims must not be is refused when it runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "runtime/tgrt.h"
#include "tgc/pipeline.h"
#include "tgc/sample_dims.h"
#include "uop/diag.h"

namespace tgc {
namespace {

/// One head of attention between two layers, then a mean over the sequence: every way in which a sequence length can be
/// a loop, a row, a lane and a reduction. x [b, s, 32], mask [b2, s2] with b2 = b and s2 = s.
constexpr const char* kAttention = R"({"tgc":1,
  "dims":{"b":[1,5],"s":[1,70]},
  "inputs":[{"name":"x","type":"f32","shape":["b","s",32]},{"name":"mask","type":"f32","shape":["b2",1,"s2"]}],
  "constants":[{"name":"wq","type":"f32","shape":[32,32],"data":0.03},{"name":"wk","type":"f32","shape":[32,32],"data":-0.05}],
  "nodes":[
    {"op":"matmul","name":"q","in":["x","wq"]},
    {"op":"mul","name":"xx","in":["x","x"]},
    {"op":"matmul","name":"k","in":["xx","wk"]},
    {"op":"add","name":"k2","in":["k","x"]},
    {"op":"permute","name":"kt","in":["k2"],"axes":[0,2,1]},
    {"op":"add","name":"q2","in":["q","x"]},
    {"op":"matmul","name":"scores","in":["q2","kt"]},
    {"op":"add","name":"masked","in":["scores","mask"]},
    {"op":"softmax","name":"p","in":["masked"],"axis":-1},
    {"op":"matmul","name":"mixed","in":["p","x"]},
    {"op":"reduce","name":"total","in":["mixed"],"kind":"add","axes":[1]},
    {"op":"reduce","name":"norm","in":["mask"],"kind":"add","axes":[1,2]},
    {"op":"exp","name":"e","in":["norm"]},
    {"op":"reshape","name":"col","in":["e"],"shape":["b",1]},
    {"op":"add","name":"y","in":["total","col"]}],
  "outputs":["y","p"]})";

std::string folder() {
  const std::string dir = testing::TempDir() + "tgc_dims_" + std::to_string(getpid());
  std::filesystem::create_directories(dir);
  return dir;
}

std::string compiled(const char* graph, const std::map<std::string, DimBounds>& dims, const std::string& name,
                     CompileOptions options = {}) {
  options.import.dims = dims;
  Compilation c = start_compilation(import_bytes(bytes_of(graph), "g.json", options.import), options);
  run_pipeline(c, options);
  fold_constants(c);
  render(c);
  write_bundle(assemble(c, options), folder() + "/" + name);
  return folder() + "/" + name;
}

struct Loaded {
  tgrt_model* model = nullptr;
  tgrt_context* context = nullptr;
  tgrt_error error{};

  explicit Loaded(const std::string& path) {
    tgrt_context_options options{};
    options.struct_size = sizeof options;
    options.threads = 2;
    const bool ok = tgrt_load_file(path.c_str(), nullptr, &model, &error) == 0 &&
                    tgrt_create_context(model, &options, &context, &error) == 0;
    EXPECT_TRUE(ok) << error.text;
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    tgrt_free_context(context);
    tgrt_free_model(model);
  }
  bool set(uint32_t input, const std::vector<int64_t>& dims) {
    return tgrt_set_shape(context, input, dims.data(), static_cast<uint32_t>(dims.size()), &error) == 0;
  }
  /// Fixed values for the inputs, and the bytes of all outputs.
  std::string run() {
    for (uint32_t i = 0; i < tgrt_tensor_count(model, TGRT_INPUT); ++i) {
      auto* data = static_cast<float*>(tgrt_data(context, TGRT_INPUT, i, &error));
      for (size_t n = tgrt_bytes(context, TGRT_INPUT, i, &error) / 4, k = 0; k < n; ++k)
        data[k] = std::sin(static_cast<float>(k * 7 + i)) * 0.8f;
    }
    EXPECT_EQ(tgrt_run(context, &error), 0) << error.text;
    std::string out;
    for (uint32_t i = 0; i < tgrt_tensor_count(model, TGRT_OUTPUT); ++i)
      out.append(static_cast<const char*>(tgrt_data(context, TGRT_OUTPUT, i, &error)),
                 tgrt_bytes(context, TGRT_OUTPUT, i, &error));
    return out;
  }
};

/// The probabilities as an output of their own: then the result of a kernel with two nests; else within one.
void compare_sizes(const std::string& graph) {
  Loaded any(compiled(graph.c_str(), {}, "any"));
  const std::pair<int64_t, int64_t> sizes[] = {{1, 1}, {1, 16}, {2, 17}, {5, 70}, {3, 64}, {1, 5}, {4, 31}, {2, 11}};
  for (const auto& [b, s] : sizes) {
    SCOPED_TRACE(std::to_string(b) + " x " + std::to_string(s));
    Loaded one(compiled(graph.c_str(), {{"b", {b, b}}, {"b2", {b, b}}, {"s", {s, s}}, {"s2", {s, s}}}, "one"));
    any.set(0, {b, s, 32});
    any.set(1, {b, 1, s});
    EXPECT_TRUE(any.run() == one.run());
    // Of two threads: a panel of keys or queries, copied also where there is but one row; and of 32 rows, where one
    // size may have one, the scores, their exponentials and the sums of these. Buffers that a size of 1 does without.
    const size_t scratch = static_cast<size_t>(8192 + 2 * 32 * (2 * s + 1) * 4 + 6 * 64);
    EXPECT_LE(tgrt_arena_bytes(any.context, nullptr), tgrt_arena_bytes(one.context, nullptr) * 5 / 4 + scratch);
  }
}

TEST(Dims, OneBundleComputesWhatABundlePerSizeDoes) {
  const std::string with_p = kAttention, outputs = R"("outputs":["y","p"])";
  compare_sizes(with_p);
  compare_sizes(std::string(with_p).replace(with_p.find(outputs), outputs.size(), R"("outputs":["y"])"));
}

TEST(Dims, SumsOfRowsHaveOneOrderHoweverLong) {
  const char* graph = R"({"tgc":1,"dims":{"k":[1,70]},"inputs":[{"name":"x","type":"f32","shape":[64,"k"]}],
    "nodes":[{"op":"reduce","name":"y","in":["x"],"kind":"add","axes":[1]}],"outputs":["y"]})";
  Loaded any(compiled(graph, {}, "any_rows"));
  for (const int64_t k : {1, 3, 7, 8, 17, 40, 70}) {
    Loaded one(compiled(graph, {{"k", {k, k}}}, "one_row"));
    any.set(0, {64, k});
    EXPECT_TRUE(any.run() == one.run()) << k;
  }
}

TEST(Dims, PicturesOfOpenSizeAreConvolvedAsThoseOfOneSize) {
  const std::string graph = R"({"tgc":1,"dims":{"n":[1,4],"h":[1,90],"w":[1,90]},
    "inputs":[{"name":"x","type":"f32","shape":["n",3,"h","w"]}],
    "constants":[{"name":"w1","type":"f32","shape":[17,3,3,3],"data":0.03},
                 {"name":"w2","type":"f32","shape":[20,17,3,3],"data":-0.05}],
    "nodes":[{"op":"conv","name":"a","in":["x","w1"],"pad":[1,1,1,1],"stride":[2,2]},
             {"op":"abs","name":"r","in":["a"]},
             {"op":"conv","name":"y","in":["r","w2"],"pad":[1,1,1,1]}],"outputs":["y"]})";
  CompileOptions options;
  options.numerics = Numerics::Strict; // else one size may be summed over transformed tiles
  Loaded any(compiled(graph.c_str(), {}, "any_picture", options));
  const int64_t sizes[][3] = {{1, 1, 1}, {1, 2, 33}, {2, 31, 6}, {4, 5, 90}, {1, 64, 32}};
  for (const auto& [n, h, w] : sizes) {
    SCOPED_TRACE(std::to_string(h) + " x " + std::to_string(w));
    Loaded one(compiled(graph.c_str(), {{"n", {n, n}}, {"h", {h, h}}, {"w", {w, w}}}, "one_picture", options));
    any.set(0, {n, 3, h, w});
    EXPECT_TRUE(any.run() == one.run());
  }
}

TEST(Dims, DimsThatDisagreeAreRefused) {
  Loaded any(compiled(kAttention, {}, "any"));
  any.set(0, {2, 5, 32});
  any.set(1, {3, 1, 5});
  EXPECT_EQ(tgrt_prepare(any.context, &any.error), TGRT_E_CHECK);
  EXPECT_EQ(std::string(any.error.text).substr(0, 80),
            "TGR-E306: b2 = 3 (dim 0 of input \"mask\") must equal b = 2 (dim 0 of input \"x\"): ");
  any.set(0, {2, 71, 32});
  any.set(1, {2, 1, 71});
  EXPECT_EQ(tgrt_prepare(any.context, &any.error), TGRT_E_VARIABLE);
  EXPECT_EQ(std::string(any.error.text).substr(0, 39), "TGR-E302: dim s = 71 is outside 1..70. ");
}

/// A convolution of 7 taps, its maximum: with fewer elements than taps there is none.
TEST(Dims, AWindowLargerThanTheInputIsRefused) {
  constexpr const char* kGraph = R"({"tgc":1,"inputs":[{"name":"x","type":"f32","shape":[1,1,"w"]}],
    "constants":[{"name":"k","type":"f32","shape":[1,1,7],"data":0.5}],
    "nodes":[{"op":"conv","name":"c","in":["x","k"],"stride":[4]},
             {"op":"reduce","name":"y","in":["c"],"kind":"max","axes":[2]}],"outputs":["y"]})";
  Loaded any(compiled(kGraph, {}, "window"));
  any.set(0, {1, 1, 6});
  EXPECT_EQ(tgrt_prepare(any.context, &any.error), TGRT_E_CHECK);
  EXPECT_EQ(std::string(any.error.text).substr(0, 67),
            "TGR-E306: w = 6 (dim 2 of input \"x\") must be at least 7: /nodes/0: ");
  any.set(0, {1, 1, 7});
  float y = 0;
  std::memcpy(&y, any.run().data(), 4);
  float want = 0;
  for (int k = 0; k < 7; ++k) want += std::sin(static_cast<float>(k * 7)) * 0.8f * 0.5f;
  EXPECT_NEAR(y, want, 1e-6f);
}

/// A root with these checks only.
VarValues sampled(Context& ctx, const std::vector<Ref>& conditions) {
  std::vector<Ref> checks;
  for (Ref c : conditions) checks.push_back(ctx.make(Ops::Check, DType::Void, {c}, {{Attr::Why, std::string("so")}}));
  return sample_dims(ctx.make(Ops::Sink, DType::Void, checks));
}

TEST(SampleDims, FreeDimsAreTwoAndTheOthersFollow) {
  Context ctx;
  const Ref a = ctx.var("a", 1, 99), b = ctx.var("b", 1, 99), s = ctx.var("s", 1, 99), half = ctx.var("z", 1, 99);
  const auto equal = [&](Ref x, Ref y) { return ctx.make(Ops::Eq, DType::Bool, {x, y}); };
  EXPECT_EQ(sampled(ctx, {equal(a, b)}), (VarValues{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(sampled(ctx, {equal(s, dim_add(a, b))}), (VarValues{{"a", 2}, {"b", 2}, {"s", 4}}));
  EXPECT_EQ(sampled(ctx, {equal(s, dim_mul(half, ctx.index(2)))}), (VarValues{{"s", 4}, {"z", 2}}));
}

TEST(SampleDims, BoundsAndConditionsAreMet) {
  Context ctx;
  const Ref a = ctx.var("a", 1, 99), b = ctx.var("b", 1, 99), s = ctx.var("s", 2, 3), h = ctx.var("h", 1, 1 << 20);
  const auto make = [&](Ops op, Ref x, Ref y) { return ctx.make(op, DType::Bool, {x, y}); };
  VarValues v = sampled(ctx, {make(Ops::Eq, s, dim_add(a, b)), make(Ops::Le, ctx.index(200), dim_add(h, a))});
  EXPECT_EQ(v.at("s"), v.at("a") + v.at("b"));
  EXPECT_LE(v.at("s"), 3);
  EXPECT_GE(v.at("h") + v.at("a"), 200);
  EXPECT_THROW(sampled(ctx, {make(Ops::Le, dim_add(a, b), ctx.index(1))}), CompileError);
}

} // namespace
} // namespace tgc
