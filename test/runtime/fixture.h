// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bundles for the runtime's tests: small models whose kernels are C, compiled by the host's `cc`. Tests that need one
// skip where there is none.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/tgrt.h"
#include "runtime/tgrt_bundle.h"
#include "testing.h"
#include "tgc/bundle_writer.h"

namespace tgc::test {

using tgc::testing::error_of;
using tgc::testing::read_file;
using tgc::testing::write_file;

/// A folder of this process, removed at its end.
inline const std::string& temp_folder() {
  struct Folder {
    std::string path = ::testing::TempDir() + "tgrt_XXXXXX";
    Folder() {
      if (!::mkdtemp(path.data())) std::abort();
    }
    ~Folder() { (void)!std::system(("rm -rf " + path).c_str()); }
  };
  static const Folder folder;
  return folder.path;
}

/// The shared object that `cc` makes of C source, or "" without cc. Each source is compiled once.
inline std::string compile_c(const std::string& source, const std::string& flags = "") {
  static std::map<std::string, std::string> known;
  std::string& image = known[flags + source];
  if (!image.empty() || std::system("command -v cc > /dev/null") != 0) return image;
  const std::string base = temp_folder() + "/kernel";
  write_file(base + ".c", source);
  const std::string command = "cc -shared -nostdlib -fPIC -O2 -fno-builtin -fno-stack-protector -Wl,--build-id=none " +
                              flags + " -o " + base + ".so " + base + ".c";
  if (std::system(command.c_str()) != 0) ADD_FAILURE() << command;
  image = read_file(base + ".so");
  return image;
}

inline const std::string kPrelude = R"(
typedef long i64;
struct args { void *const *bufs; const i64 *vars; void *scratch; };
#define KERNEL(name) void name(const struct args *a, i64 begin, i64 end)
)";

/// y[N,4] = max(x[N,4] * w[4] + b[4], 0) in two kernels over a buffer of N*16 bytes; N = 1..1024.
inline const std::string kAffineSource = kPrelude + R"(
static const float zero[4] = {0, 0, 0, 0};
KERNEL(k_scale) {
  const float *x = a->bufs[0], *w = a->bufs[1];
  float *t = a->bufs[2], *row = a->scratch;
  for (i64 n = begin; n < end; ++n) {
    for (int i = 0; i < 4; ++i) row[i] = x[n * 4 + i] * w[i];
    for (int i = 0; i < 4; ++i) t[n * 4 + i] = row[i];
  }
}
KERNEL(k_bias) {
  const float *t = a->bufs[0], *b = a->bufs[1];
  float *y = a->bufs[2];
  for (i64 n = begin; n < end; ++n)
    for (int i = 0; i < 4; ++i) {
      float v = t[n * 4 + i] + b[i];
      y[n * 4 + i] = v > zero[i] ? v : zero[i];
    }
}
)";

inline WeightData inline_weight(const std::vector<float>& values) {
  const auto owner = std::make_shared<std::vector<float>>(values);
  WeightData data;
  data.length = values.size() * sizeof(float);
  data.data = reinterpret_cast<const std::byte*>(owner->data());
  data.owner = owner;
  return data;
}

inline const std::vector<float> kScale = {1, 2, -1, 0.5f}, kBias = {0, -1, 3, 0.25f};

inline BundleContents affine_model(Context& ctx, const std::string& code) {
  using Kind = BundleContents::Arg::Kind;
  const Ref n = ctx.var("N", 1, 1024);
  const auto times = [&](int64_t k) { return n * ctx.index(k); };
  BundleContents c;
  c.vars = {{"N", 1, 1024}};
  c.inputs = {{"x", DType::F32, {n, ctx.index(4)}}};
  c.outputs = {{"y", DType::F32, {n, ctx.index(4)}}};
  c.weights = {{"w", inline_weight(kScale), 16}, {"b", inline_weight(kBias), 16}};
  c.buffers = {{times(16), 0}};
  c.kernels = {{"k_scale", "thread n", ctx.index(16), n, times(4 << 20), times(48)},
               {"k_bias", "thread n", Ref(), n, times(8 << 20), times(48)}};
  c.steps = {{0, {{Kind::Input, 0}, {Kind::Weight, 0}, {Kind::Buffer, 0}}, "mul1"},
             {1, {{Kind::Buffer, 0}, {Kind::Weight, 1}, {Kind::Output, 0}}, "add1, relu1", {0}}};
  c.code = code;
  c.meta = {{"target", "cpu:c:test"}, {"source", "affine"}};
  return c;
}

inline float affine(float x, size_t column) { return std::max(x * kScale[column] + kBias[column], 0.0f); }

/// Writes the affine model once; "" without cc.
inline std::string affine_bundle() {
  static const std::string path = [] {
    const std::string code = compile_c(kAffineSource);
    if (code.empty()) return std::string();
    Context ctx;
    std::string file = temp_folder() + "/affine.bundle";
    write_bundle(affine_model(ctx, code), file);
    return file;
  }();
  return path;
}

#define TGRT_NEED_CC(path)                                                                                             \
  if ((path).empty()) GTEST_SKIP() << "no C compiler called cc on this machine"

/// A bundle's bytes at a 64-byte aligned address.
class Aligned {
public:
  explicit Aligned(const std::string& bytes)
      : size_(bytes.size()), data_(std::aligned_alloc(64, (bytes.size() + 64) / 64 * 64), std::free) {
    std::memcpy(data_.get(), bytes.data(), bytes.size());
  }
  unsigned char* data() { return static_cast<unsigned char*>(data_.get()); }
  size_t size() const { return size_; }
  tgrt_header& header() { return *static_cast<tgrt_header*>(data_.get()); }
  tgrt_section& section(uint32_t kind) {
    for (auto& s : header().sections)
      if (s.kind == kind) return s;
    std::abort();
  }
  /// Makes the hashes fit again after a change, so that checks behind them are reached.
  void rehash() {
    tgrt_header& h = header();
    for (uint32_t i = 0; i < h.section_count && i < TGRT_MAX_SECTIONS; ++i) {
      tgrt_section& s = h.sections[i];
      if (s.offset <= size_ && s.bytes <= size_ - s.offset) s.hash = tgrt_hash(data() + s.offset, s.bytes);
    }
    h.hash = 0;
    h.hash = tgrt_hash(&h, sizeof h);
  }

private:
  size_t size_;
  std::unique_ptr<void, void (*)(void*)> data_;
};

struct FreeModel {
  void operator()(tgrt_model* m) const { tgrt_free_model(m); }
};
struct FreeContext {
  void operator()(tgrt_context* c) const { tgrt_free_context(c); }
};
using Model = std::unique_ptr<tgrt_model, FreeModel>;
using RunContext = std::unique_ptr<tgrt_context, FreeContext>;

inline Model load(const std::string& path, tgrt_error* error = nullptr) {
  tgrt_model* model = nullptr;
  tgrt_load_file(path.c_str(), nullptr, &model, error);
  return Model(model);
}
inline Model load(Aligned& bytes, tgrt_error* error = nullptr) {
  tgrt_model* model = nullptr;
  tgrt_load_memory(bytes.data(), bytes.size(), nullptr, &model, error);
  return Model(model);
}
inline RunContext new_context(const Model& model, uint32_t threads = 1, uint32_t flags = 0) {
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  options.flags = flags;
  tgrt_context* context = nullptr;
  tgrt_error error;
  EXPECT_EQ(tgrt_create_context(model.get(), &options, &context, &error), 0) << error.text;
  return RunContext(context);
}
inline std::vector<float> sample(int64_t rows) {
  std::vector<float> x(static_cast<size_t>(rows) * 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11) * 0.5f;
  return x;
}
/// The affine model's result for `x`.
inline std::vector<float> run_affine(tgrt_context* context, const std::vector<float>& x) {
  tgrt_error error{};
  const int64_t dims[] = {static_cast<int64_t>(x.size()) / 4, 4};
  EXPECT_EQ(tgrt_set_shape(context, 0, dims, 2, &error), 0) << error.text;
  std::vector<float> y(x.size());
  EXPECT_EQ(tgrt_bind_input(context, 0, x.data(), x.size() * 4, &error), 0) << error.text;
  EXPECT_EQ(tgrt_bind_output(context, 0, y.data(), y.size() * 4, &error), 0) << error.text;
  EXPECT_EQ(tgrt_run(context, &error), 0) << error.text;
  return y;
}
inline std::vector<float> expected_affine(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = affine(x[i], i % 4);
  return y;
}

} // namespace tgc::test
