// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The exact text of every runtime error that a user can meet. TGR-E102 and E214's device list depend on the machine and
// are checked by number.
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>
#include <functional>

#include "runtime/fixture.h"

using namespace tgc;
using namespace tgc::test;

namespace {

/// Error text of loading the affine bundle after `change`.
std::string load_error(const std::function<void(Aligned&)>& change, bool rehash = true) {
  Aligned bytes(read_file(affine_bundle()));
  change(bytes);
  if (rehash) bytes.rehash();
  tgrt_error error{};
  EXPECT_EQ(load(bytes, &error), nullptr);
  return error.text;
}

/// Error text of `step` on a fresh context of the affine model.
std::string context_error(const std::function<int(tgrt_context*, tgrt_error*)>& step) {
  const Model model = load(affine_bundle());
  const RunContext context = new_context(model);
  tgrt_error error{};
  const int rc = step(context.get(), &error);
  EXPECT_EQ(rc, error.code);
  return error.text;
}

} // namespace

TEST(LoadError, NoSuchFile) {
  tgrt_error error{};
  EXPECT_EQ(load("/nowhere/m.bundle", &error), nullptr);
  EXPECT_EQ(error.code, TGRT_E_FILE);
  EXPECT_STREQ(error.text,
               "TGR-E201: /nowhere/m.bundle: No such file or directory. Check the path and its permissions.");
  EXPECT_EQ(load("/tmp", &error), nullptr);
  EXPECT_STREQ(error.text, "TGR-E201: /tmp: it is not a regular file. Check the path and its permissions.");
}

TEST(LoadError, NotABundle) {
  const std::string path = temp_folder() + "/text";
  for (const std::string& bytes : {std::string(), std::string("hello, world"), std::string(100000, 'x')}) {
    write_file(path, bytes);
    tgrt_error error{};
    EXPECT_EQ(load(path, &error), nullptr);
    EXPECT_STREQ(error.text, "TGR-E202: it does not start as a bundle does. Make one with: tgc model.onnx -o "
                             "model.bundle");
  }
}

TEST(LoadError, OtherVersion) {
  TGRT_NEED_CC(affine_bundle());
  EXPECT_EQ(load_error([](Aligned& b) { b.header().major = 4; }),
            "TGR-E203: its format is 4.0, this libtgrt reads 3.x. Compile the model again with the tgc of this "
            "libtgrt's version.");
}

TEST(LoadError, Truncated) {
  TGRT_NEED_CC(affine_bundle());
  const std::string whole = read_file(affine_bundle());
  const std::string path = temp_folder() + "/short.bundle";
  write_file(path, whole.substr(0, 100));
  tgrt_error error{};
  EXPECT_EQ(load(path, &error), nullptr);
  EXPECT_STREQ(error.text, "TGR-E204: it has 100 bytes, a bundle's header alone 568. The copy is incomplete or was "
                           "appended to; copy it again, in binary mode.");
  write_file(path, whole.substr(0, 70000));
  EXPECT_EQ(load(path, &error), nullptr);
  EXPECT_EQ(error.text, "TGR-E204: it has 70000 bytes, its header says " + std::to_string(whole.size()) +
                            ". The copy is incomplete or was appended to; copy it again, in binary mode.");
}

TEST(LoadError, DamagedHeader) {
  TGRT_NEED_CC(affine_bundle());
  EXPECT_EQ(load_error([](Aligned& b) { b.header().sections[0].bytes ^= 1; }, false),
            "TGR-E205: the header does not have the hash that it states. Copy or compile the bundle again.");
}

TEST(LoadError, DamagedSection) {
  TGRT_NEED_CC(affine_bundle());
  const std::string text =
      load_error([](Aligned& b) { b.data()[b.section(TGRT_SECTION_CODE).offset + 200] ^= 16; }, false);
  EXPECT_EQ(text.substr(0, 27), "TGR-E206: section \"code\" (" + text.substr(26, 1));
  EXPECT_NE(text.find(" bytes at 65536) does not have the hash that the header states. Copy or compile"),
            std::string::npos);
}

TEST(LoadError, InvalidPlan) {
  TGRT_NEED_CC(affine_bundle());
  const auto plan_of = [](Aligned& b) {
    return reinterpret_cast<tgrt_plan*>(b.data() + b.section(TGRT_SECTION_PLAN).offset);
  };
  EXPECT_EQ(load_error([&](Aligned& b) { plan_of(b)->steps.count = 1 << 30; }),
            "TGR-E207: plan: a table lies outside the section. The bundle was not written by tgc; compile the model "
            "again.");
  EXPECT_EQ(load_error([&](Aligned& b) {
              const uint32_t at = plan_of(b)->args.offset;
              reinterpret_cast<tgrt_plan_arg*>(reinterpret_cast<char*>(plan_of(b)) + at)[1].index = 9;
            }),
            "TGR-E207: plan: args entry 1: refers to nothing. The bundle was not written by tgc; compile the model "
            "again.");
  EXPECT_EQ(load_error([&](Aligned& b) {
              const uint32_t at = plan_of(b)->waits.offset;
              *reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(plan_of(b)) + at) = 1;
            }),
            "TGR-E207: plan: steps entry 1: waits for no earlier one. The bundle was not written by tgc; compile the "
            "model again.");
}

TEST(LoadError, InvalidCode) {
  TGRT_NEED_CC(affine_bundle());
  EXPECT_EQ(load_error([](Aligned& b) { b.data()[b.section(TGRT_SECTION_CODE).offset] = 0; }),
            "TGR-E208: section \"code\": not a 64-bit shared object. The bundle was not written by tgc; compile the "
            "model again.");
}

TEST(LoadError, OtherMachine) {
  TGRT_NEED_CC(affine_bundle());
  Aligned probe(read_file(affine_bundle()));
  const bool is_x86 = probe.header().machine == 62;
  const std::string here = is_x86 ? "x86-64" : "aarch64", there = is_x86 ? "aarch64" : "x86-64";
  EXPECT_EQ(load_error([&](Aligned& b) { b.header().machine = is_x86 ? 183 : 62; }),
            "TGR-E209: its code is for " + there + ", this is " + here +
                ". Compile the model for this one: tgc --target=cpu:llvm:ARCH");
}

TEST(LoadError, MissingCpuFeatures) {
  TGRT_NEED_CC(affine_bundle());
  Aligned probe(read_file(affine_bundle()));
  if (probe.header().machine != 62) GTEST_SKIP() << "the feature table is for x86-64";
  // xop and sse4a are AMD's, avx512vp2intersect nearly nobody's: no CPU has all three.
  EXPECT_NE(load_error([](Aligned& b) {
              b.header().features[0] |= 1ull << 21 | 1ull << 23 | 1ull << 47;
            }).find("TGR-E210: its code needs CPU features that this CPU or system lacks: "),
            std::string::npos);
  EXPECT_EQ(load_error([](Aligned& b) { b.header().features[1] |= 1ull << 63; }),
            "TGR-E210: its code needs CPU features that this CPU or system lacks: (unknown to this libtgrt). Compile "
            "for this CPU: tgc --target=cpu, run here, or name an older one, as in cpu:llvm:x86-64-v2.");
}

TEST(LoadError, OtherKernelInterface) {
  TGRT_NEED_CC(affine_bundle());
  EXPECT_EQ(load_error([](Aligned& b) { b.header().abi = 7; }),
            "TGR-E211: its kernels have interface 7, this libtgrt 1. Compile the model again with the tgc of this "
            "libtgrt's version.");
}

TEST(LoadError, UnalignedMemory) {
  TGRT_NEED_CC(affine_bundle());
  Aligned bytes(read_file(affine_bundle()));
  tgrt_model* model = nullptr;
  tgrt_error error{};
  EXPECT_EQ(tgrt_load_memory(bytes.data() + 8, bytes.size() - 8, nullptr, &model, &error), TGRT_E_ALIGNMENT);
  const std::string text = error.text;
  EXPECT_EQ(text.substr(0, 32), "TGR-E212: its address ends in 0x");
  EXPECT_EQ(text.substr(34), ". Place it at a multiple of 64 bytes.");
}

TEST(LoadError, FlippedWeightIsFoundByVerifyOnly) {
  TGRT_NEED_CC(affine_bundle());
  Aligned bytes(read_file(affine_bundle()));
  bytes.data()[bytes.section(TGRT_SECTION_WEIGHTS).offset + 3] ^= 1;
  const Model model = load(bytes);
  ASSERT_TRUE(model);
  tgrt_error error{};
  EXPECT_EQ(tgrt_verify(model.get(), &error), TGRT_E_WEIGHTS);
  EXPECT_STREQ(error.text, "TGR-E213: section \"weights\" (80 bytes at 196608) does not have the hash that the header "
                           "states. Copy or compile the bundle again.");
}

TEST(LoadError, UnknownDevice) {
  TGRT_NEED_CC(affine_bundle());
  tgrt_load_options options{};
  options.struct_size = sizeof options;
  options.device = "abacus";
  tgrt_model* model = nullptr;
  tgrt_error error{};
  EXPECT_EQ(tgrt_load_file(affine_bundle().c_str(), &options, &model, &error), TGRT_E_DEVICE);
  EXPECT_STREQ(error.text, "TGR-E214: device \"abacus\" is not part of this libtgrt. tgrun --list-devices prints those "
                           "of this build.");
}

TEST(LoadError, OptionsOfOtherSizes) {
  TGRT_NEED_CC(affine_bundle());
  struct {
    tgrt_load_options known;
    uint64_t later;
  } options{};
  tgrt_model* model = nullptr;
  tgrt_error error{};
  options.known.device = "abacus"; // with a size of 0 it would be ignored
  EXPECT_EQ(tgrt_load_file(affine_bundle().c_str(), &options.known, &model, &error), TGRT_E_ARGUMENT);
  EXPECT_STREQ(error.text, ("TGR-E101: the options' struct_size is 0, their size " +
                            std::to_string(sizeof options.known) + ". See the function's comment in tgrt.h.")
                               .c_str());
  options.known.struct_size = sizeof options;
  options.known.device = nullptr;
  options.later = 1;
  EXPECT_EQ(tgrt_load_file(affine_bundle().c_str(), &options.known, &model, &error), TGRT_E_ARGUMENT);
  options.known.struct_size = SIZE_MAX; // never set
  EXPECT_EQ(tgrt_load_file(affine_bundle().c_str(), &options.known, &model, &error), TGRT_E_ARGUMENT);
  options.known.struct_size = sizeof options;
  options.later = 0;
  ASSERT_EQ(tgrt_load_file(affine_bundle().c_str(), &options.known, &model, &error), 0) << error.text;
  tgrt_context_options context{};
  tgrt_context* made = nullptr;
  EXPECT_EQ(tgrt_create_context(model, &context, &made, &error), TGRT_E_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  tgrt_free_model(model);
}

TEST(RunError, Shapes) {
  TGRT_NEED_CC(affine_bundle());
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              const int64_t dims[] = {2};
              return tgrt_set_shape(c, 0, dims, 1, e);
            }),
            "TGR-E301: input \"x\" has 1 dims, the model needs 2. Pass the shape that the message gives.");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              const int64_t dims[] = {2, 5};
              tgrt_set_shape(c, 0, dims, 2, e);
              return tgrt_run(c, e);
            }),
            "TGR-E301: input \"x\" has the shape [2,5], the model needs [N=2,4]. Pass the shape that the message "
            "gives.");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              const int64_t dims[] = {2, 4};
              tgrt_set_shape(c, 0, dims, 2, e);
              tgrt_set_var(c, "N", 3, e);
              return tgrt_prepare(c, e);
            }),
            "TGR-E301: input \"x\": dim 0 is 2, but N = 3. Pass the shape that the message gives.");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              const int64_t dims[] = {1025, 4};
              tgrt_set_shape(c, 0, dims, 2, e);
              return tgrt_run(c, e);
            }),
            "TGR-E302: dim N = 1025 is outside 1..1024. Stay within the bounds, or compile with others: tgc --dim "
            "NAME=LO..HI");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) { return tgrt_run(c, e); }),
            "TGR-E303: dim N (1..1024) has no value. Set the shape of an input that has it, or the dim itself "
            "(tgrt_set_var, tgrun --dim).");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) { return tgrt_set_var(c, "M", 1, e); }),
            "TGR-E101: the model has no dim called M. See the function's comment in tgrt.h.");
}

TEST(RunError, Bindings) {
  TGRT_NEED_CC(affine_bundle());
  alignas(64) static float x[8] = {};
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              tgrt_set_var(c, "N", 1, e);
              tgrt_bind_input(c, 0, x, 12, e);
              return tgrt_run(c, e);
            }),
            "TGR-E305: \"x\": 12 bytes are bound, the tensor has 16. Pass exactly the tensor's bytes, aligned to its "
            "element, in memory of no other.");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              return tgrt_bind_input(c, 0, reinterpret_cast<const char*>(x) + 2, 16, e);
            }),
            "TGR-E305: \"x\": its address is not a multiple of 4 bytes. Pass exactly the tensor's bytes, aligned to "
            "its element, in memory of no other.");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) {
              tgrt_set_var(c, "N", 1, e);
              tgrt_bind_input(c, 0, x, 16, e);
              tgrt_bind_output(c, 0, x + 3, tgrt_bytes(c, TGRT_OUTPUT, 0, e), e);
              return tgrt_run(c, e);
            }),
            "TGR-E305: output \"y\" shares memory with \"x\". Pass exactly the tensor's bytes, aligned to its "
            "element, in memory of no other.");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) { // the context's own memory of the input
              tgrt_set_var(c, "N", 1, e);
              void* own = tgrt_data(c, TGRT_INPUT, 0, e);
              tgrt_bind_output(c, 0, own, tgrt_bytes(c, TGRT_OUTPUT, 0, e), e);
              return tgrt_run(c, e);
            })
                .substr(0, 48),
            "TGR-E305: output \"y\" shares memory with \"x\". Pas");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) { // and of the output
              tgrt_set_var(c, "N", 1, e);
              void* own = tgrt_data(c, TGRT_OUTPUT, 0, e);
              tgrt_bind_input(c, 0, own, tgrt_bytes(c, TGRT_INPUT, 0, e), e);
              return tgrt_run(c, e);
            })
                .substr(0, 48),
            "TGR-E305: output \"y\" shares memory with \"x\". Pas");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) { // beside it is fine, and so is to take turns
              tgrt_set_var(c, "N", 1, e);
              const size_t bytes = tgrt_bytes(c, TGRT_OUTPUT, 0, e);
              tgrt_bind_input(c, 0, x, 16, e);
              tgrt_bind_output(c, 0, x + 4, bytes, e);
              if (tgrt_run(c, e) != 0) return e->code;
              tgrt_bind_input(c, 0, x + 4, 16, e);
              tgrt_bind_output(c, 0, x, bytes, e);
              return tgrt_run(c, e);
            }),
            "");
  EXPECT_EQ(context_error([](tgrt_context* c, tgrt_error* e) { return tgrt_bind_output(c, 3, x, 16, e); }),
            "TGR-E101: output 3; the model has 1. See the function's comment in tgrt.h.");
}

TEST(RunError, TrapsAreReportedAfterTheRun) {
  const std::string code = compile_c(kAffineSource + R"(
KERNEL(k_trap) {
  const float *x = a->bufs[0];
  *(unsigned char *)a->bufs[1] = 0;
  for (i64 n = 0; n < a->vars[0]; ++n) *(unsigned char *)a->bufs[1] |= x[n * 4] == 1e9f;
}
)");
  TGRT_NEED_CC(code);
  Context ctx;
  BundleContents c = affine_model(ctx, code);
  c.outputs.push_back({"node \"g\" (Gather, opset 13)", DType::Bool, {}});
  c.traps = 1;
  c.kernels.push_back({"k_trap", "", Ref(), ctx.index(1), ctx.index(0), ctx.index(0)});
  c.steps.push_back({2, {{BundleContents::Arg::Kind::Input, 0}, {BundleContents::Arg::Kind::Output, 1}}, "g"});
  const std::string path = temp_folder() + "/trap.bundle";
  write_bundle(c, path);
  tgrt_model* model = nullptr;
  tgrt_context* context = nullptr;
  tgrt_error error{};
  ASSERT_EQ(tgrt_load_file(path.c_str(), nullptr, &model, &error), 0) << error.text;
  EXPECT_EQ(tgrt_tensor_count(model, TGRT_OUTPUT), 1U);
  ASSERT_EQ(tgrt_create_context(model, nullptr, &context, &error), 0) << error.text;
  float x[8] = {1, 0, 0, 0, 1e9f, 0, 0, 0};
  EXPECT_EQ(tgrt_set_var(context, "N", 2, &error), 0);
  EXPECT_EQ(tgrt_bind_input(context, 0, x, sizeof x, &error), 0) << error.text;
  EXPECT_EQ(tgrt_run(context, &error), TGRT_E_INDEX);
  EXPECT_STREQ(error.text, "TGR-E307: node \"g\" (Gather, opset 13): an index is outside its tensor. The outputs are "
                           "not valid; an index counts from 0, or from -1 at the end.");
  x[4] = 2;
  EXPECT_EQ(tgrt_run(context, &error), 0) << error.text;
  tgrt_free_context(context);
  tgrt_free_model(model);
}

TEST(RunError, ChecksAndOverflow) {
  Context ctx;
  const Ref n = ctx.var("N", 1, int64_t{1} << 40), m = ctx.var("M", 1, 1000);
  BundleContents c;
  c.vars = {{"N", 1, int64_t{1} << 40}, {"M", 1, 1000}};
  c.inputs = {{"a", DType::F32, {n, m}}, {"b", DType::F32, {n + ctx.index(1)}}};
  c.outputs = {{"y", DType::F64, {n * n}}};
  c.checks = {{m, floormod(n, ctx.index(6)) + ctx.index(1), true, "node \"split1\" says so"}};
  const std::string path = temp_folder() + "/checks.bundle";
  write_bundle(c, path);
  const Model model = load(path);
  const RunContext context = new_context(model);
  tgrt_error error{};
  const int64_t a[] = {10, 4}, b[] = {11}, wrong_b[] = {10}, good_a[] = {10, 5};
  tgrt_set_shape(context.get(), 0, a, 2, nullptr);
  tgrt_set_shape(context.get(), 1, b, 1, nullptr);
  EXPECT_EQ(tgrt_prepare(context.get(), &error), TGRT_E_CHECK);
  EXPECT_STREQ(error.text, "TGR-E306: M = 4 (dim 1 of input \"a\") must equal 5 (for N = 10): node \"split1\" says so. "
                           "Pass inputs whose shapes meet the condition; a dim that is to broadcast must be 1 when "
                           "compiled: tgc --dim NAME=1");
  tgrt_set_shape(context.get(), 0, good_a, 2, nullptr);
  EXPECT_EQ(tgrt_prepare(context.get(), &error), 0) << error.text;
  tgrt_set_shape(context.get(), 1, wrong_b, 1, nullptr);
  EXPECT_EQ(tgrt_prepare(context.get(), &error), TGRT_E_SHAPE);
  EXPECT_STREQ(error.text, "TGR-E301: input \"b\" has the shape [10], the model needs [11]. Pass the shape that the "
                           "message gives.");
  tgrt_reset_shapes(context.get());
  tgrt_set_var(context.get(), "N", int64_t{1} << 36, nullptr);
  tgrt_set_var(context.get(), "M", 5, nullptr);
  EXPECT_EQ(tgrt_prepare(context.get(), &error), TGRT_E_OVERFLOW);
  EXPECT_STREQ(error.text, "TGR-E304: output \"y\": its size is negative or passes 2^63 bytes. Choose smaller dims.");
  EXPECT_EQ(tgrt_run(context.get(), nullptr), TGRT_E_OVERFLOW); // the error struct is optional
}

TEST(RunError, AnEqualityMayGiveNoValue) {
  Context ctx;
  const Ref n = ctx.var("N", 0, 9), m = ctx.var("M", 1, 9);
  const Ref least = n * ctx.index(-(int64_t{1} << 40)) * ctx.index(int64_t{1} << 23); // of 64 bits, for N = 1
  BundleContents c;
  c.vars = {{"N", 0, 9}, {"M", 1, 9}};
  c.inputs = {{"a", DType::F32, {n}}};
  c.outputs = {{"y", DType::F32, {m}}};
  const std::string path = temp_folder() + "/least.bundle";
  for (const auto& [left, right] : {std::pair{m, least}, std::pair{least, m}}) {
    c.checks = {{left, right, true, "never"}};
    write_bundle(c, path);
    const Model model = load(path);
    const RunContext context = new_context(model);
    tgrt_error error{};
    tgrt_set_var(context.get(), "N", 1, nullptr);
    EXPECT_EQ(tgrt_prepare(context.get(), &error), TGRT_E_UNSET);
    EXPECT_EQ(std::string(error.text).substr(0, 36), "TGR-E303: dim M (1..9) has no value.");
  }
}

/// Inputs a [A], b [B], c [C], d [D], p [P] with A = B, C a multiple of 4, D = A + P and 7 <= C.
BundleContents demanding(Context& ctx) {
  BundleContents c;
  const auto var = [&](const char* name, int64_t hi) {
    c.vars.push_back({name, 1, hi});
    return ctx.var(name, 1, hi);
  };
  const Ref a = var("A", 100), b = var("B", 100), n = var("C", 100), part = var("C/4", 25), d = var("D", 100),
            p = var("P", 100);
  c.inputs = {{"a", DType::F32, {a}},
              {"b", DType::F32, {b}},
              {"c", DType::F32, {n}},
              {"d", DType::F32, {d}},
              {"p", DType::F32, {p}}};
  c.outputs = {{"y", DType::F32, {a, part, d}}};
  c.checks = {{b, a, true, "added"},
              {n, part * ctx.index(4), true, "joined"},
              {d, a + p, true, "masked"},
              {ctx.index(7), n, false, "a window"}};
  return c;
}

struct Demands {
  Context ctx;
  Model model;
  RunContext context;
  tgrt_error error{};

  explicit Demands(uint32_t flags = 0) {
    const std::string path = temp_folder() + "/demanding.bundle";
    write_bundle(demanding(ctx), path);
    model = load(path);
    context = new_context(model, 1, flags);
  }
  void set(uint32_t input, int64_t dim) { tgrt_set_shape(context.get(), input, &dim, 1, nullptr); }
  std::string prepared(std::vector<int64_t> dims) {
    for (uint32_t i = 0; i < dims.size(); ++i) set(i, dims[i]);
    error = {};
    return tgrt_prepare(context.get(), &error) == 0 ? std::string() : std::string(error.text);
  }
  std::vector<int64_t> output() {
    std::vector<int64_t> dims(3);
    tgrt_shape(context.get(), TGRT_OUTPUT, 0, dims.data(), nullptr);
    return dims;
  }
};

TEST(RunError, DimsThatTheModelRelates) {
  Demands demands;
  const std::string remedy = std::string(". ") + tgrt_error_remedy(TGRT_E_CHECK);
  EXPECT_EQ(demands.prepared({3, 3, 8, 5, 2}), "");
  EXPECT_EQ(demands.output(), (std::vector<int64_t>{3, 2, 5}));
  EXPECT_EQ(demands.prepared({3, 4, 8, 5, 2}),
            "TGR-E306: B = 4 (dim 0 of input \"b\") must equal A = 3 (dim 0 of input \"a\"): added" + remedy);
  EXPECT_EQ(demands.error.code, TGRT_E_CHECK);
  EXPECT_EQ(demands.prepared({3, 3, 10, 5, 2}),
            "TGR-E306: C = 10 (dim 0 of input \"c\") must be a multiple of 4: joined" + remedy);
  EXPECT_EQ(demands.prepared({3, 3, 8, 6, 2}),
            "TGR-E306: D = 6 (dim 0 of input \"d\") must equal 5 (for A = 3, P = 2): masked" + remedy);
  EXPECT_EQ(demands.prepared({3, 3, 4, 5, 2}),
            "TGR-E306: C = 4 (dim 0 of input \"c\") must be at least 7: a window" + remedy);
  EXPECT_EQ(demands.prepared({3, 3, 8, 5, 2}), "");
}

TEST(Run, RelatedDimsGiveEachOtherValues) {
  Demands demands;
  demands.set(1, 3); // B alone: A = B
  demands.set(2, 8);
  demands.set(4, 2);
  EXPECT_EQ(tgrt_prepare(demands.context.get(), &demands.error), 0) << demands.error.text;
  EXPECT_EQ(demands.output(), (std::vector<int64_t>{3, 2, 5}));
  tgrt_reset_shapes(demands.context.get());
  tgrt_set_var(demands.context.get(), "B", 4, nullptr);
  tgrt_set_var(demands.context.get(), "C/4", 3, nullptr);
  tgrt_set_var(demands.context.get(), "P", 1, nullptr);
  EXPECT_EQ(tgrt_prepare(demands.context.get(), &demands.error), 0) << demands.error.text;
  EXPECT_EQ(demands.output(), (std::vector<int64_t>{4, 3, 5}));
}

TEST(Run, DimsWithoutAValueTakeTheirMinimumOnRequest) {
  Demands demands(TGRT_CONTEXT_MINIMA);
  demands.set(1, 3);
  demands.set(2, 12);
  EXPECT_EQ(tgrt_prepare(demands.context.get(), &demands.error), 0) << demands.error.text;
  EXPECT_EQ(demands.output(), (std::vector<int64_t>{3, 3, 4})); // P = 1, so D = 4
}

TEST(RunError, OutOfMemoryAndTooManyThreads) {
  TGRT_NEED_CC(affine_bundle());
  const Model model = load(affine_bundle());
  tgrt_allocator none = {nullptr, [](void*, size_t, size_t) -> void* { return nullptr; }, [](void*, void*, size_t) {}};
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.allocator = &none;
  tgrt_context* context = nullptr;
  tgrt_error error{};
  EXPECT_EQ(tgrt_create_context(model.get(), &options, &context, &error), TGRT_E_NO_MEMORY);
  options.allocator = nullptr;
  options.threads = 5000;
  EXPECT_EQ(tgrt_create_context(model.get(), &options, &context, &error), TGRT_E_ARGUMENT);
  EXPECT_STREQ(error.text, "TGR-E101: 5000 threads; the limit is 1024. See the function's comment in tgrt.h.");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which need address space themselves
TEST(RunError, ThreadsThatCannotBeStarted) {
  TGRT_NEED_CC(affine_bundle());
  const Model model = load(affine_bundle());
  tgrt_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 1024;
  // In a process of its own, in which stacks of threads soon do not fit.
  const pid_t child = ::fork();
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (8 << 20);
    const rlimit limit = {bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
    tgrt_context* context = nullptr;
    tgrt_error error{};
    const int code = tgrt_create_context(model.get(), &options, &context, &error);
    const std::string text = error.text;
    const bool is_right =
        code == TGRT_E_NO_THREADS && !context && text.starts_with("TGR-E103: thread ") &&
        text.ends_with(" of 1024 cannot be started. Ask for fewer threads, or raise the process limit.");
    if (!is_right) std::fprintf(stderr, "%d %s\n", code, error.text);
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif
