// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small models that other compilers and runtimes got wrong, by their users' reports, with the right values: compiled,
// loaded and run. Values are numpy's or worked out by hand. Numbers are those of the list that they come from; missing
// ones need what the compiler does not have (control flow, data-dependent shapes, other domains) or are other tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "compiled.h"
#include "frontend/onnx_writer.h"
#include "render/compile_c.h"

namespace tgc {
namespace {

using Values = std::vector<double>;
using Ints = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
enum Type { F32 = 1, U8 = 2, I8 = 3, I32 = 6, I64 = 7, F16 = 10 };

struct Want {
  Values values;
  Ints shape;
  int ulps = 0; ///< units in the last place of f32 that may differ; without any, the sign of a zero counts too
};
struct Case {
  const char* name;
  ModelSpec model;
  std::vector<HostTensor> inputs;
  std::vector<Want> want;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

Values ramp(size_t n, double first, double step = 1) {
  Values v;
  for (size_t i = 0; i < n; ++i) v.push_back(first + step * static_cast<double>(i));
  return v;
}
HostTensor f32(Ints shape, const Values& values) { return tensor_of(DType::F32, std::move(shape), values); }
HostTensor i32(Ints shape, const Values& values) { return tensor_of(DType::I32, std::move(shape), values); }
HostTensor i64(Ints shape, const Values& values) { return tensor_of(DType::I64, std::move(shape), values); }

int onnx_type(DType t) {
  switch (t) {
  case DType::U8: return U8;
  case DType::I8: return I8;
  case DType::I32: return I32;
  case DType::I64: return I64;
  case DType::F16: return F16;
  default: return F32;
  }
}

/// Nodes over inputs named a, b, c … whose types and shapes are those of `inputs`.
struct Builder {
  std::vector<Wire> nodes;
  std::vector<HostTensor> inputs;
  std::vector<std::string> outputs = {"y"};
  std::vector<Wire> initializers = {};
  int64_t opset = 17;

  ModelSpec spec() const {
    ModelSpec m;
    m.nodes = nodes;
    m.initializers = initializers;
    m.opset = opset;
    char name = 'a';
    for (const HostTensor& t : inputs)
      m.inputs.push_back(value_info(std::string(1, name++), onnx_type(t.dtype), {t.shape.begin(), t.shape.end()}));
    for (const std::string& out : outputs) m.outputs.push_back(Wire().text(1, out));
    return m;
  }
};
Case make(const char* name, const Builder& b, std::vector<Want> want) {
  return {name, b.spec(), b.inputs, std::move(want)};
}
Wire text(const char* name, const char* value) { return attr(name, std::string(value)); }
Wire number(const char* name, int64_t value) { return attr(name, value); }

// ---- the cases ------------------------------------------------------------------------------------------------------

void add_arithmetic(std::vector<Case>& all) {
  all.push_back(make("R01_ErfOfTinyNumbers", {{node({"Erf", {"a"}, {"y"}})}, {f32({4}, {3e-12, 5e-20, -7e-15, .4})}},
                     {{{3.3851374e-12, 5.6418959e-20, -7.8986542e-15, .42839235}, {4}, 2}}));
  all.push_back(
      make("R02_CastToInt8Saturates",
           {{node({"Cast", {"a"}, {"y"}, {number("to", I8)}})}, {f32({6}, {300, kNan, kInf, -kInf, 50, -50})}},
           {{{127, 0, 127, -128, 50, -50}, {6}}}));
  const HostTensor x = f32({5}, {.5, -3, 4.5, 11, kNan}), zero = f32({}, {0});
  all.push_back(make("R03_ClipIgnoresABoundThatIsNan",
                     {{node({"Clip", {"a", "b", "c"}, {"y"}})}, {x, zero, f32({}, {kNan})}},
                     {{{.5, 0, 4.5, 11, kNan}, {5}}}));
  all.push_back(make("R03_ClipKeepsNan", {{node({"Clip", {"a", "b", "c"}, {"y"}})}, {x, zero, f32({}, {6})}},
                     {{{.5, 0, 4.5, 6, kNan}, {5}}}));
  Builder known{{node({"Clip", {"a", "lo", "hi"}, {"y"}})}, {x}};
  known.initializers = {tensor_floats("lo", {}, {0}), tensor_floats("hi", {}, {std::nanf("")})};
  all.push_back(make("R03_ClipIgnoresAKnownBoundThatIsNan", known, {{{.5, 0, 4.5, 11, kNan}, {5}}}));
  const Wire rows = attr("axes", Ints{1});
  all.push_back(
      make("R04_ReluSignAndExtremesKeepNan",
           {{node({"Relu", {"a"}, {"r"}}), node({"Sign", {"a"}, {"s"}}),
             node({"ReduceMax", {"b"}, {"hi"}, {rows, number("keepdims", 0)}}),
             node({"ReduceMin", {"b"}, {"lo"}, {rows, number("keepdims", 0)}})},
            {f32({4}, {kNan, 1, kNan, -2}), f32({2, 2}, {kNan, 1, 2, kNan})},
            {"r", "s", "hi", "lo"}},
           {{{kNan, 1, kNan, 0}, {4}}, {{kNan, 1, kNan, -1}, {4}}, {{kNan, kNan}, {2}}, {{kNan, kNan}, {2}}}));
  const std::vector<Wire> second = {number("axis", 1), number("keepdims", 0)};
  all.push_back(make("R05_ArgMaxAndArgMinTakeTheFirstNan",
                     {{node({"ArgMax", {"a"}, {"hi"}, second}), node({"ArgMin", {"a"}, {"lo"}, second})},
                      {f32({3, 5}, {2, kNan, 7, 4, 1, kNan, 2, 7, 4, 1, 2, 4, 7, 1, kNan})},
                      {"hi", "lo"}},
                     {{{1, 0, 4}, {3}}, {{1, 0, 4}, {3}}}));
  all.push_back(make("R06_MinAndMaxKeepNan",
                     {{node({"Min", {"a", "b"}, {"lo"}}), node({"Max", {"a", "b"}, {"hi"}})},
                      {f32({4}, {kNan, 5, 4, kNan}), f32({1}, {7})},
                      {"lo", "hi"}},
                     {{{kNan, 5, 4, kNan}, {4}}, {{kNan, 7, 7, kNan}, {4}}}));
  all.push_back(make(
      "R07_SinhAndCoshUpToTheLastFloat",
      {{node({"Sinh", {"a"}, {"s"}}), node({"Cosh", {"a"}, {"c"}})}, {f32({4}, {88.85, 89, 89.2, -88.95})}, {"s", "c"}},
      {{{1.9321198e38, 2.2448064e38, 2.7418043e38, -2.1353193e38}, {4}, 4},
       {{1.9321198e38, 2.2448064e38, 2.7418043e38, 2.1353193e38}, {4}, 4}}));
  Builder fmod{{node({"Mod", {"a", "b"}, {"m"}}), node({"Mod", {"a", "b"}, {"f"}, {number("fmod", 1)}}),
                node({"Div", {"a", "b"}, {"d"}})},
               {i32({4}, {-7, 7, -7, 7}), i32({4}, {3, -3, -3, 3})},
               {"m", "f", "d"}};
  all.push_back(
      make("R20_IntegerModAndDiv", fmod, {{{2, -2, -1, 1}, {4}}, {{-1, 1, -1, 1}, {4}}, {{-2, -2, 2, 2}, {4}}}));
  all.push_back(make("R23_RoundHalfToEven",
                     {{node({"Round", {"a"}, {"y"}})}, {f32({7}, {.5, 1.5, 2.5, -.5, -1.5, -2.5, .49999997})}},
                     {{{0, 2, 2, -0.0, -2, -2, 0}, {7}}}));
  all.push_back(make("R28_IntegerPow",
                     {{node({"Pow", {"a", "b"}, {"y"}})}, {i32({3}, {2, -3, 2}), i32({3}, {10, 3, -1})}},
                     {{{1024, -27, 0}, {3}}}));
}

void add_half(std::vector<Case>& all) {
  // a + b rounds to 11.625, whose sigmoid rounds to 1: the output, and what the cast to an integer sees.
  const HostTensor a = tensor_of(DType::F16, {}, {4.742}), b = tensor_of(DType::F16, {}, {6.883});
  Builder m{{node({"Add", {"a", "b"}, {"s"}}), node({"Sigmoid", {"s"}, {"p"}}), node({"Sigmoid", {"s"}, {"q"}}),
             node({"Cast", {"q"}, {"i"}, {number("to", I64)}}), node({"Clip", {"i", "lo", "hi"}, {"y"}})},
            {a, b},
            {"p", "y"}};
  m.initializers = {tensor_ints("lo", {}, {-1}), tensor_ints("hi", {}, {1})};
  all.push_back(make("R12_HalvesThatBecomeIntegersAreRounded", m, {{{1}, {}}, {{1}, {}}}));
}

void add_resize(std::vector<Case>& all) {
  Builder nearest{{node({"Resize",
                         {"a", "", "s"},
                         {"y"},
                         {text("mode", "nearest"), text("coordinate_transformation_mode", "half_pixel"),
                          text("nearest_mode", "round_prefer_floor")}})},
                  {f32({1, 1, 3, 3}, ramp(9, 0))}};
  nearest.initializers = {tensor_floats("s", {4}, {1, 1, 1.5f, 1.5f})};
  nearest.opset = 13;
  all.push_back(
      make("R08_ResizeNearestTies", nearest, {{{0, 0, 1, 2, 0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8}, {1, 1, 4, 4}}}));
  Builder cubic{{node({"Resize",
                       {"a", "", "", "s"},
                       {"y"},
                       {text("mode", "cubic"), attr("cubic_coeff_a", -.75f),
                        text("coordinate_transformation_mode", "pytorch_half_pixel")}})},
                {f32({1, 1, 4, 4}, ramp(16, 0))}};
  cubic.initializers = {tensor_ints("s", {4}, {1, 1, 1, 1})};
  cubic.opset = 13;
  // The text of the specification puts a result of one element at position 0, and so does ONNX Runtime.
  all.push_back(make("R13_ResizeCubicToOneElement", cubic, {{{0}, {1, 1, 1, 1}}}));
}

void add_movement(std::vector<Case>& all) {
  auto cumsum = [&](int64_t exclusive) {
    Builder b{{node({"CumSum", {"a", "axis"}, {"y"}, {number("reverse", 1), number("exclusive", exclusive)}})},
              {f32({3, 4}, ramp(12, 1))}};
    b.initializers = {tensor_ints("axis", {}, {1})};
    return b;
  };
  all.push_back(make("R09_CumSumFromTheEnd", cumsum(0), {{{10, 9, 7, 4, 26, 21, 15, 8, 42, 33, 23, 12}, {3, 4}}}));
  all.push_back(
      make("R09_CumSumFromTheEndWithoutItself", cumsum(1), {{{9, 7, 4, 0, 21, 15, 8, 0, 33, 23, 12, 0}, {3, 4}}}));
  Builder flat{{node({"Flatten", {"a"}, {"f"}, {number("axis", 0)}}), node({"Abs", {"f"}, {"p"}}),
                node({"ReduceSum", {"p", "axes"}, {"y"}, {number("keepdims", 1)}})},
               {f32({3, 3, 2, 3, 2, 5}, ramp(540, 0, -1))}};
  flat.initializers = {tensor_ints("axes", {1}, {0})};
  flat.opset = 13;
  all.push_back(make("R10_FlattenToOneRow", flat, {{ramp(540, 0), {1, 540}}}));
  Builder gather{{node({"Gather", {"a", "i"}, {"y"}, {number("axis", 1)}})}, {f32({2, 3}, ramp(6, 0))}};
  gather.initializers = {tensor_ints("i", {2}, {-1, -3})};
  all.push_back(make("R22_GatherFromTheEnd", gather, {{{2, 0, 5, 3}, {2, 2}}}));
  all.push_back(
      make("R22_GatherFromTheEndAtRunTime",
           {{node({"Gather", {"a", "b"}, {"y"}, {number("axis", 1)}})}, {f32({2, 3}, ramp(6, 0)), i64({2}, {-1, -3})}},
           {{{2, 0, 5, 3}, {2, 2}}}));
  Builder top{{node({"TopK", {"a", "k"}, {"v", "i"}})}, {f32({5}, {1, 3, 3, 2, 3})}, {"v", "i"}};
  top.initializers = {tensor_ints("k", {1}, {3})};
  all.push_back(make("R25_TopKTakesTheLowestIndexFirst", top, {{{3, 3, 3}, {3}}, {{1, 2, 4}, {3}}}));
  Builder prelu{{node({"PRelu", {"a", "slope"}, {"y"}})}, {f32({1, 2, 2, 2}, ramp(8, 0, -1))}};
  prelu.initializers = {tensor_floats("slope", {2, 1, 1}, {.5f, .25f})};
  all.push_back(make("R27_PReluPerChannel", prelu, {{{-0.0, -.5, -1, -1.5, -1, -1.25, -1.5, -1.75}, {1, 2, 2, 2}, 1}}));
  Builder empty{{node({"ReduceSum", {"a", "axes"}, {"s"}, {number("keepdims", 0)}}),
                 node({"Concat", {"a", "b"}, {"j"}, {number("axis", 0)}})},
                {f32({0, 3}, {}), f32({2, 3}, Values(6, 1))},
                {"s", "j"}};
  empty.initializers = {tensor_ints("axes", {1}, {0})};
  all.push_back(make("R30_EmptyTensors", empty, {{{0, 0, 0}, {3}}, {Values(6, 1), {2, 3}}}));
  Builder constant{{node({"Identity", {"w"}, {"y"}})}, {}, {"y", "w"}};
  constant.initializers = {tensor_floats("w", {2}, {3, 4})};
  all.push_back(make("R21_ConstantsAsOutputs", constant, {{{3, 4}, {2}}, {{3, 4}, {2}}}));
}

void add_networks(std::vector<Case>& all) {
  Builder integer{{node({"MatMulInteger", {"a", "b"}, {"y"}})}, {tensor_of(DType::U8, {1, 4}, {255, 255, 255, 255})}};
  integer.inputs.push_back(tensor_of(DType::I8, {4, 1}, {127, 127, 127, 127}));
  all.push_back(make("R14_IntegerProductsDoNotSaturate", integer, {{{129540}, {1, 1}}}));
  Builder conv{{node({"Conv", {"a", "w", "bias"}, {"y"}})}, {f32({2, 1, 2, 2}, ramp(8, 0))}};
  conv.initializers = {tensor_floats("w", {3, 1, 1, 1}, {1, 1, 1}), tensor_floats("bias", {3}, {10, 20, 30})};
  all.push_back(make("R15_BiasIsPerChannel", conv,
                     {{{10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 14, 15, 16, 17, 24, 25, 26, 27, 34, 35, 36, 37},
                       {2, 3, 2, 2}}}));
  Builder groups{{node({"Conv", {"a", "w", "bias"}, {"y"}, {number("group", 2), attr("pads", Ints{4, 4})}})},
                 {f32({1, 4, 5}, ramp(20, 1))}};
  groups.initializers = {tensor_floats("w", {4, 2, 8}, std::vector<float>(64, 1)),
                         tensor_floats("bias", {4}, {0, 1, 2, 3})};
  all.push_back(make(
      "R16_GroupedConv1d", groups,
      {{{40, 55, 55, 55, 55, 48, 41, 56, 56, 56, 56, 49, 122, 157, 157, 157, 157, 130, 123, 158, 158, 158, 158, 131},
        {1, 4, 6}}}));
  const Wire last = number("axis", -1);
  all.push_back(make("R24_SoftmaxOfInfinities",
                     {{node({"Softmax", {"a"}, {"p"}, {last}}), node({"LogSoftmax", {"a"}, {"l"}, {last}})},
                      {f32({2, 3}, {-kInf, -kInf, -kInf, 1000, 1001, -kInf})},
                      {"p", "l"}},
                     {{{kNan, kNan, kNan, .26894143, .7310586, 0}, {2, 3}, 2},
                      {{kNan, kNan, kNan, -1.3132616, -.31326166, -kInf}, {2, 3}, 2}}));
  Builder quant{{node({"QuantizeLinear", {"a", "s", "z"}, {"q"}}), node({"DequantizeLinear", {"q", "s", "z"}, {"d"}})},
                {f32({8}, {-300, -257, -256, -1, 1, 3, 255, 1000})},
                {"q", "d"}};
  quant.initializers = {tensor_floats("s", {}, {2}), tensor_head("z", U8, {}).number(5, 128)};
  all.push_back(make("R26_QuantizeHalfToEven", quant,
                     {{{0, 0, 0, 128, 128, 130, 255, 255}, {8}}, {{-256, -256, -256, 0, 0, 4, 254, 254}, {8}}}));
  all.push_back(make("R29_AveragePoolCeilMode",
                     {{node({"AveragePool",
                             {"a"},
                             {"y"},
                             {attr("kernel_shape", Ints{2, 2}), attr("strides", Ints{2, 2}), number("ceil_mode", 1),
                              number("count_include_pad", 1)}})},
                      {f32({1, 1, 3, 3}, ramp(9, 1))}},
                     {{{3, 4.5, 7.5, 9}, {1, 1, 2, 2}}}));
  Builder local{{node({"Lin", {"a", "w", "b"}, {"y"}, {}, "", "local"})}, {f32({1, 2}, {1, 2})}};
  local.initializers = {tensor_floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}), tensor_floats("b", {3}, {.5f, .5f, .5f})};
  Case with_function = make("R19_LocalFunction", local, {{{5.5, 11.5, 17.5}, {1, 3}}});
  with_function.model.other_domains = {{"local", 1}};
  with_function.model.functions = {Wire()
                                       .text(1, "Lin")
                                       .text(4, "x")
                                       .text(4, "w")
                                       .text(4, "b")
                                       .text(5, "z")
                                       .add(7, node({"Gemm", {"x", "w", "b"}, {"z"}, {number("transB", 1)}}))
                                       .add(9, Wire().text(1, "").number(2, 17))
                                       .text(10, "local")};
  all.push_back(with_function);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (auto add : {add_arithmetic, add_half, add_resize, add_movement, add_networks}) add(list);
    return list;
  }();
  return all;
}

// ---- comparison -----------------------------------------------------------------------------------------------------

double ulp(double value) { return std::ldexp(1.0, std::max(-126, std::ilogb(value == 0 ? 1e-38 : value)) - 23); }

void expect_equal(const HostTensor& got, const Want& want) {
  EXPECT_EQ(got.shape, want.shape);
  ASSERT_EQ(got.numel(), static_cast<int64_t>(want.values.size()));
  for (int64_t i = 0; i < got.numel(); ++i) {
    double g = got.at(i), w = want.values[static_cast<size_t>(i)];
    if (std::isnan(w) || std::isinf(w) || want.ulps == 0) {
      EXPECT_TRUE(std::isnan(w) ? std::isnan(g) : g == w) << "element " << i << " is " << g << ", not " << w;
      if (want.ulps == 0 && w == 0 && is_float(got.dtype)) {
        EXPECT_EQ(std::signbit(g), std::signbit(w)) << i;
      }
    } else {
      EXPECT_LE(std::fabs(g - w), (want.ulps + 0.5) * ulp(w)) << "element " << i << " is " << g << ", not " << w;
    }
  }
}

class Regressions : public testing::TestWithParam<Case> {};

TEST_P(Regressions, HaveTheRightValues) {
  const Case& c = GetParam();
  Compiled compiled(model(c.model));
  std::vector<HostTensor> got = compiled.run(c.inputs);
  ASSERT_EQ(got.size(), c.want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    expect_equal(got[i], c.want[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Values, Regressions, testing::ValuesIn(cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// ---- what is not one run of one model
// --------------------------------------------------------------------------------

/// Shape → Gather → Unsqueeze → Concat → Reshape of x [dim, 2, 3]: rows of whatever the batch is.
ModelSpec flattened_by_shape(const char* dim) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {dim, 2, 3})};
  m.outputs = {value_info("y", 1, {dim, 6})};
  m.initializers = {tensor_ints("zero", {}, {0}), tensor_ints("first", {1}, {0}), tensor_ints("rest", {1}, {-1})};
  m.nodes = {node({"Shape", {"x"}, {"shape"}}), node({"Gather", {"shape", "zero"}, {"n"}}),
             node({"Unsqueeze", {"n", "first"}, {"n1"}}),
             node({"Concat", {"n1", "rest"}, {"target"}, {number("axis", 0)}}),
             node({"Reshape", {"x", "target"}, {"y"}})};
  return m;
}

TEST(Regression, R17_ShapeArithmeticWorksForEveryBatch) {
  for (const char* dim : {"N", "Dyn.0"}) {
    Compiled compiled(model(flattened_by_shape(dim)));
    for (int64_t n : {1, 5}) {
      const Values values = ramp(static_cast<size_t>(6 * n), 1);
      expect_equal(compiled.run({f32({n, 2, 3}, values)})[0], {values, {n, 6}});
    }
  }
}

TEST(Regression, R18_SqueezeOfADimThatMayBeOneIsAnError) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {"N", 1, 3})};
  m.outputs = {Wire().text(1, "y")};
  m.nodes = {node({"Squeeze", {"x"}, {"y"}, {}, "s"})};
  try {
    Compiled compiled(model(m));
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_STREQ(e.what(),
                 "m.onnx: node \"s\" (Squeeze, opset 13): error TGC-E202: without axes the rank of the result "
                 "depends on whether a dim of [N,1,3] is 1\n"
                 "  note: pin the dim with --dim NAME=VALUE or bound it from below: --dim NAME=2..HI");
  }
  CompileOptions two, one, more;
  two.import.dims["N"] = {2, 2};
  one.import.dims["N"] = {1, 1};
  more.import.dims["N"] = {2, 9};
  expect_equal(Compiled(model(m), one).run({f32({1, 1, 3}, ramp(3, 0))})[0], {ramp(3, 0), {3}});
  expect_equal(Compiled(model(m), two).run({f32({2, 1, 3}, ramp(6, 0))})[0], {ramp(6, 0), {2, 3}});
  expect_equal(Compiled(model(m), more).run({f32({4, 1, 3}, ramp(12, 0))})[0], {ramp(12, 0), {4, 3}});
}

std::string offset_model(const char* op, float operand) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {4})};
  m.outputs = {Wire().text(1, "y")};
  m.initializers = {tensor_floats("w", {1}, {operand})};
  m.nodes = {node({op, {"x", "w"}, {"y"}})};
  return model(m);
}

TEST(Regression, R33_TwoModelsInOneProcess) {
  Compiled add(offset_model("Add", 1)), twice(offset_model("Mul", 2));
  const HostTensor x = f32({4}, {1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    expect_equal(add.run({x})[0], {{2, 3, 4, 5}, {4}});
    expect_equal(twice.run({x})[0], {{2, 4, 6, 8}, {4}});
  }
}

std::vector<float> weights(size_t n) {
  std::vector<float> w;
  for (size_t i = 0; i < n; ++i) w.push_back(static_cast<float>(static_cast<int>(i * 7919 % 101) - 50) / 64);
  return w;
}

/// Conv, Relu, MatMul, Softmax over [batch, 3, height, width].
ModelSpec small_network(const DimSpec& batch) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {batch, 3, 6, 6})};
  m.outputs = {Wire().text(1, "p")};
  m.initializers = {tensor_floats("w", {8, 3, 3, 3}, weights(216)), tensor_floats("m", {128, 10}, weights(1280))};
  m.nodes = {node({"Conv", {"x", "w"}, {"c"}}), node({"Relu", {"c"}, {"r"}}), node({"Flatten", {"r"}, {"f"}}),
             node({"MatMul", {"f", "m"}, {"l"}}), node({"Softmax", {"l"}, {"p"}, {number("axis", -1)}})};
  return m;
}
Values picture() {
  Values v;
  for (float w : weights(108)) v.push_back(static_cast<double>(w) * 1.37);
  return v;
}

TEST(Regression, R38_EqualRowsHaveEqualResultsWhateverTheBatchAndThreads) {
  Compiled compiled(model(small_network("batch")));
  const HostTensor alone = compiled.run({f32({1, 3, 6, 6}, picture())})[0];
  Values four;
  for (int i = 0; i < 4; ++i)
    for (double v : picture()) four.push_back(v);
  for (uint32_t threads : {1, 2, 8}) {
    const HostTensor rows = compiled.run({f32({4, 3, 6, 6}, four)}, threads)[0];
    ASSERT_EQ(rows.shape, (Ints{4, 10}));
    for (size_t row = 0; row < 4; ++row)
      EXPECT_EQ(std::memcmp(rows.data.data() + row * alone.data.size(), alone.data.data(), alone.data.size()), 0)
          << "row " << row << ", " << threads << " threads";
  }
}

TEST(Regression, R44_SymbolicExtentsGiveTheBitsOfStaticBuilds) {
  auto conv = [](const DimSpec& h, const DimSpec& w, bool depthwise) {
    ModelSpec m;
    m.inputs = {value_info("x", 1, {1, 3, h, w})};
    m.outputs = {Wire().text(1, "y")};
    m.initializers = {depthwise ? tensor_floats("w", {3, 1, 3, 3}, weights(27))
                                : tensor_floats("w", {4, 3, 3, 3}, weights(108))};
    std::vector<Wire> attributes = {attr("pads", Ints{1, 1, 1, 1})};
    if (depthwise) attributes.insert(attributes.end(), {number("group", 3), attr("strides", Ints{2, 2})});
    m.nodes = {node({"Conv", {"x", "w"}, {"y"}, attributes})};
    return model(m);
  };
  for (const bool depthwise : {false, true}) {
    Compiled symbolic(conv("H", "W", depthwise));
    for (const auto& [h, w] : {std::pair<int64_t, int64_t>{5, 7}, {64, 48}, {3, 2}}) {
      Values values;
      for (float v : weights(static_cast<size_t>(3 * h * w))) values.push_back(static_cast<double>(v));
      const HostTensor x = f32({1, 3, h, w}, values), got = symbolic.run({x})[0];
      EXPECT_EQ(got.shape, depthwise ? (Ints{1, 3, (h + 1) / 2, (w + 1) / 2}) : (Ints{1, 4, h, w}));
      EXPECT_EQ(got.data, Compiled(conv(h, w, depthwise)).run({x})[0].data) << h << "x" << w;
    }
  }
}

TEST(Regression, R45_OneRepeatedValueStaysOneValue) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {1})};
  m.outputs = {Wire().text(1, "y")};
  m.initializers = {tensor_ints("s", {2}, {8192, 8192}), tensor_ints("last", {1}, {-1})};
  m.nodes = {node({"ConstantOfShape", {"s"}, {"c"}, {attr_tensor("value", tensor_floats("", {1}, {1}))}}),
             node({"Add", {"c", "x"}, {"z"}}), node({"ReduceMax", {"z"}, {"y"}, {number("keepdims", 0)}})};
  Compiled compiled(model(m));
  EXPECT_LT(compiled.bytes, 1 << 20);
  expect_equal(compiled.run({f32({1}, {2.5})})[0], {{3.5}, {}});
}

TEST(Regression, R46_AnInternalValueAsOutputChangesNoOther) {
  ModelSpec m = small_network(int64_t{1});
  const HostTensor x = f32({1, 3, 6, 6}, picture()), alone = Compiled(model(m)).run({x})[0];
  m.outputs.push_back(Wire().text(1, "r"));
  const std::vector<HostTensor> both = Compiled(model(m)).run({x});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].data, alone.data);
  EXPECT_EQ(both[1].shape, (Ints{1, 8, 4, 4}));
}

/// gcc 12 ended with an internal error on the masks of its stores (render/c_style.cpp).
TEST(Regression, ConvolutionsOfUniformWeightsCompileAsC) {
  if (!has_c_compiler()) GTEST_SKIP() << "no `cc` in PATH";
  ModelSpec m;
  m.inputs = {value_info("x", F32, {1, 16, 11, 11})};
  m.outputs = {Wire().text(1, "y")};
  m.initializers = {tensor_ints("s1", {4}, {16, 16, 1, 1}), tensor_ints("s2", {4}, {64, 16, 3, 3})};
  const Wire value = attr_tensor("value", tensor_floats("", {1}, {0.5f}));
  m.nodes = {node({"ConstantOfShape", {"s1"}, {"w1"}, {value}}),
             node({"ConstantOfShape", {"s2"}, {"w2"}, {value}}),
             node({"Conv", {"x", "w1"}, {"c1"}}),
             node({"Relu", {"c1"}, {"r1"}}),
             node({"Conv", {"r1", "w2"}, {"c2"}, {attr("pads", Ints{1, 1, 1, 1})}}),
             node({"Relu", {"c2"}, {"y"}})};
  CompileOptions options;
  options.target = "cpu:c:x86-64-v4";
  Compilation c = start_compilation(import_bytes(bytes_of(model(m)), "m.onnx", options.import), options);
  run_pipeline(c, options);
  render(c);
  EXPECT_FALSE(assemble(c, options).code.empty());
}

} // namespace
} // namespace tgc
