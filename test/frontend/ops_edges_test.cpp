// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators at the edges of what they are defined on: the largest floats, infinities and -0, f64, indices that come
// with the data and lie outside, operands that do not fit. Values are the mathematical functions' or worked out by
// hand.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "frontend/one_node.h"

namespace tgc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max(), kLargest64 = std::numeric_limits<double>::max();

Wire text(const char* name, const char* value) { return attr(name, std::string(value)); }
Wire number(const char* name, int64_t value) { return attr(name, value); }
HostTensor f32(Ints shape, const Values& v) { return tensor_of(DType::F32, std::move(shape), v); }
HostTensor f64(Ints shape, const Values& v) { return tensor_of(DType::F64, std::move(shape), v); }
HostTensor i64(Ints shape, const Values& v) { return tensor_of(DType::I64, std::move(shape), v); }

Values values(const HostTensor& t) {
  Values out;
  for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
  return out;
}

/// One node on inputs a, b, c …, known when it runs.
struct AtRunTime {
  NodeSpec spec;
  int64_t opset;
  std::vector<HostTensor> inputs;
  std::vector<Wire> initializers = {};
  size_t outputs = 1;

  /// The outputs, then the traps.
  std::vector<HostTensor> all() const {
    ModelSpec m;
    m.opset = opset;
    m.initializers = initializers;
    NodeSpec n = spec;
    for (size_t i = 0; i < outputs; ++i) {
      n.outputs.push_back("y" + std::to_string(i));
      m.outputs.push_back(Wire().text(1, n.outputs.back()));
    }
    m.nodes = {node(n)};
    char name = 'a';
    for (const HostTensor& t : inputs)
      m.inputs.push_back(value_info(std::string(1, name++),
                                    t.dtype == DType::I64   ? 7
                                    : t.dtype == DType::F64 ? 11
                                                            : 1,
                                    {t.shape.begin(), t.shape.end()}));
    return eval(import_bytes(bytes_of(model(m)), "m.onnx"), inputs);
  }
  Values value(size_t i = 0) const { return values(all()[i]); }
  /// Whether the run is an error.
  bool traps() const {
    const std::vector<HostTensor> results = all();
    EXPECT_GT(results.size(), outputs) << "no trap";
    bool any = false;
    for (size_t i = outputs; i < results.size(); ++i) any |= results[i].at(0) != 0;
    return any;
  }
  /// As traps, with other values of input i.
  bool traps_with(size_t i, const Values& v) const {
    AtRunTime other = *this;
    other.inputs[i] = tensor_of(inputs[i].dtype, inputs[i].shape, v);
    return other.traps();
  }
  std::string error() const {
    try {
      all();
    } catch (const CompileError& e) {
      return e.all()[0].message;
    }
    return "no error";
  }
};

void expect_close(const Values& got, const Values& want, double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], want[i], relative * std::fabs(want[i])) << "element " << i;
}

Values mapped(const Values& x, double (*f)(double)) {
  Values out;
  for (double v : x) out.push_back(f(v));
  return out;
}

TEST(OpEdges, InverseHyperbolicFunctionsUpToInfinity) {
  constexpr double kUlps = 4e-7, kUlps64 = 1e-15;
  const double next = 268435488.0; // above 2^28, where another formula begins
  const Values x = {-kInf, -1e30, -3, 0.5, 3, 268435456, next, 2e19, 1e30, kLargest, kInf};
  AtRunTime n{{"Asinh", {"a"}}, 9, {f32({11}, x)}};
  expect_close(n.value(), mapped(x, std::asinh), kUlps);
  const Values wide = {-kLargest64, -1e300, 1e8, 1e9, 1e155, kLargest64, kInf};
  n.inputs = {f64({7}, wide)};
  expect_close(n.value(), mapped(wide, std::asinh), kUlps64);
  const Values y = {1, 1.5, 3, 268435456, next, 1e20, kLargest, kInf};
  n = {{"Acosh", {"a"}}, 9, {f32({8}, y)}};
  expect_close(n.value(), mapped(y, std::acosh), kUlps);
  const Values above = {1.5, 1e9, 1e155, kLargest64, kInf};
  n.inputs = {f64({5}, above)};
  expect_close(n.value(), mapped(above, std::acosh), kUlps64);
  n.inputs = {f32({2}, {0.5, NAN})};
  for (double v : n.value()) EXPECT_TRUE(std::isnan(v));
}

TEST(OpEdges, OddFunctionsKeepTheSignOfZero) {
  for (const char* op : {"Asin", "Atan", "Asinh", "Atanh", "Sinh", "Sin", "Tan", "Tanh", "Erf", "Round", "Softsign",
                         "Gelu", "HardSwish", "LeakyRelu", "Elu", "Floor", "Ceil", "Sqrt"}) {
    const AtRunTime n{{op, {"a"}}, 20, {f32({2}, {-0.0, 0.0})}};
    const Values y = n.value();
    EXPECT_TRUE(y[0] == 0 && std::signbit(y[0])) << op;
    EXPECT_TRUE(y[1] == 0 && !std::signbit(y[1])) << op;
  }
}

TEST(OpEdges, MeanVarianceNormalizationOfLargeMeans) {
  AtRunTime n{{"MeanVarianceNormalization", {"a"}}, 13, {f32({1, 1, 2, 2}, {4096, 4097, 4096, 4097})}};
  expect_close(n.value(), {-1, 1, -1, 1}, 1e-6);
  n.inputs = {f32({1, 1, 2, 2}, {1e4, 1e4, 1e4, 1e4})};
  EXPECT_EQ(n.value(), (Values{0, 0, 0, 0}));
}

/// y_t = decay*y_(t-1) + v_t with one head of size 1 and q = k = 1.
TEST(OpEdges, LinearAttentionForgetsAtADecayOfZero) {
  const Wire form[] = {number("q_num_heads", 1), number("kv_num_heads", 1), attr("scale", 1.0f)};
  const double half = std::log(0.5);
  AtRunTime n{{"LinearAttention", {"a", "a", "b", "c", "d"}, {}, {form[0], form[1], form[2]}},
              27,
              {f32({1, 4, 1}, {1, 1, 1, 1}), f32({1, 4, 1}, {1, 2, 3, 4}), f32({1, 1, 1, 1}, {4}),
               f32({1, 4, 1}, {half, -kInf, half, half})}};
  n.spec.attributes.push_back(text("update_rule", "gated"));
  n.outputs = 2;
  expect_close(n.value(0), {3, 2, 4, 6}, 1e-6);
  expect_close(n.value(1), {6}, 1e-6);
  n.inputs[3] = f32({1, 4, 1}, {-kInf, half, half, -1e30}); // e^-1e30 is 0 too
  expect_close(n.value(0), {1, 2.5, 4.25, 4}, 1e-6);
  expect_close(n.value(1), {4}, 1e-6);
}

TEST(OpEdges, ReductionsOverNoAxesDoNotOverflow) {
  const std::vector<Wire> noop = {number("noop_with_empty_axes", 1)};
  AtRunTime n{{"ReduceLogSumExp", {"a"}, {}, noop}, 18, {f32({3}, {1000, -1000, kInf})}};
  EXPECT_EQ(n.value(), (Values{1000, -1000, kInf}));
  n = {{"ReduceL2", {"a"}, {}, noop}, 18, {f32({2}, {-3e30, 2})}};
  expect_close(n.value(), {3e30, 2}, 1e-7);
}

// ---- indices that come with the data --------------------------------------------------------------------------------

TEST(OpEdges, RoiAlignTrapsOnAnImageThatIsNot) {
  AtRunTime n{{"RoiAlign", {"a", "b", "c"}, {}, {number("sampling_ratio", 1)}},
              16,
              {f32({2, 1, 1, 1}, {5, 7}), f32({2, 4}, {0, 0, 1, 1, 0, 0, 1, 1}), i64({2}, {1, 0})}};
  EXPECT_EQ(n.value(), (Values{7, 5}));
  EXPECT_FALSE(n.traps());
  EXPECT_TRUE(n.traps_with(2, {0, 2}));
  EXPECT_TRUE(n.traps_with(2, {-1, 0})); // the text gives negative ones no meaning
  n.spec.attributes.push_back(text("coordinate_transformation_mode", "asymmetric"));
  EXPECT_EQ(n.error(), "coordinate_transformation_mode=\"asymmetric\" is neither half_pixel nor output_half_pixel");
}

TEST(OpEdges, TensorScatterTrapsOnAWriteBeyondTheCache) {
  AtRunTime n{{"TensorScatter", {"a", "b", "c"}, {}, {number("axis", 1)}},
              24,
              {f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({2, 2}, {7, 8, 9, 10}), i64({2}, {1, 0})}};
  EXPECT_EQ(n.value(), (Values{1, 7, 8, 9, 10, 6}));
  EXPECT_FALSE(n.traps());
  EXPECT_TRUE(n.traps_with(2, {2, 0}));
  EXPECT_TRUE(n.traps_with(2, {0, -1}));
  n.spec.attributes.push_back(text("mode", "circular"));
  n.inputs[2] = i64({2}, {5, -1}); // modulo 3: 2 and 2
  EXPECT_EQ(n.value(), (Values{8, 2, 7, 10, 5, 9}));
  EXPECT_EQ(n.all().size(), 1U);
  n.inputs[1] = f32({2, 4}, Values(8, 1));
  EXPECT_EQ(n.error(), "update [2,4] is longer than past_cache [2,3]");
}

TEST(OpEdges, MaxUnpoolTrapsOnAPositionOutside) {
  const AtRunTime n{{"MaxUnpool", {"a", "b"}, {}, {attr("kernel_shape", Ints{2}), attr("strides", Ints{2})}},
                    13,
                    {f32({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {3, 0})}};
  EXPECT_EQ(n.value(), (Values{6, 0, 0, 5}));
  EXPECT_FALSE(n.traps());
  EXPECT_TRUE(n.traps_with(1, {4, 0}));
  EXPECT_TRUE(n.traps_with(1, {0, -1}));
}

TEST(OpEdges, LossesTrapOnAClassThatIsNot) {
  AtRunTime n{{"NegativeLogLikelihoodLoss", {"a", "b"}, {}, {text("reduction", "sum")}},
              13,
              {f32({2, 3}, {-1, -2, -3, -4, -5, -6}), i64({2}, {2, 0})}};
  EXPECT_EQ(n.value(), (Values{7}));
  EXPECT_FALSE(n.traps());
  EXPECT_TRUE(n.traps_with(1, {3, 0}));
  EXPECT_TRUE(n.traps_with(1, {0, -1}));
  n.spec.attributes.push_back(number("ignore_index", -1));
  EXPECT_FALSE(n.traps_with(1, {0, -1}));
  EXPECT_TRUE(n.traps_with(1, {0, -2}));
  n = {{"SoftmaxCrossEntropyLoss", {"a", "b"}}, 13, {f32({1, 2}, {0, 0}), i64({1}, {1})}};
  expect_close(n.value(), {std::log(2.0)}, 1e-6);
  EXPECT_TRUE(n.traps_with(1, {2}));
}

TEST(OpEdges, ReverseSequenceTrapsOnALengthBeyondTheTime) {
  const AtRunTime n{{"ReverseSequence", {"a", "b"}, {}, {number("time_axis", 1), number("batch_axis", 0)}},
                    13,
                    {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({2}, {3, 2})}};
  EXPECT_EQ(n.value(), (Values{3, 2, 1, 5, 4, 6}));
  EXPECT_FALSE(n.traps());
  EXPECT_TRUE(n.traps_with(1, {4, 0}));
  EXPECT_TRUE(n.traps_with(1, {0, -1}));
}

TEST(OpEdges, IndicesKnownAtImportAreErrorsOfTheImport) {
  AtRunTime n{{"ReverseSequence", {"a", "n"}}, 13, {f32({2, 1}, {1, 2})}, {tensor_ints("n", {1}, {3})}};
  EXPECT_EQ(n.error(), "index 3 is outside [0, 3)");
  n.initializers = {tensor_ints("n", {1}, {2})};
  EXPECT_EQ(n.value(), (Values{2, 1}));
  EXPECT_EQ(n.all().size(), 1U); // and no trap when they are right
}

// ---- positions and extents ------------------------------------------------------------------------------------------

/// Slice of 1..count along its one axis.
Values sliced(int64_t count, int64_t start, int64_t end, int64_t step) {
  Values x;
  for (int64_t i = 1; i <= count; ++i) x.push_back(static_cast<double>(i));
  return AtRunTime{{"Slice", {"a", "s", "e", "ax", "st"}},
                   13,
                   {f32({count}, x)},
                   {tensor_ints("s", {1}, {start}), tensor_ints("e", {1}, {end}), tensor_ints("ax", {1}, {0}),
                    tensor_ints("st", {1}, {step})}}
      .value();
}

TEST(OpEdges, SlicesClampWhatIsOutside) {
  EXPECT_EQ(sliced(4, 0, INT64_MAX, INT64_MAX), (Values{1}));
  EXPECT_EQ(sliced(4, 1, 4, int64_t{1} << 40), (Values{2}));
  EXPECT_EQ(sliced(4, -1, INT64_MIN, INT64_MIN), (Values{4}));
  EXPECT_EQ(sliced(4, INT64_MAX, INT64_MIN, -3), (Values{4, 1}));
  EXPECT_EQ(sliced(4, 2, -10, -1), (Values{3, 2, 1}));
  EXPECT_EQ(sliced(4, -10, INT64_MIN, -1), (Values{1})); // by the operator's text, start is clamped to [0, n-1]
  EXPECT_EQ(sliced(4, -10, 0, -1), Values{});
  EXPECT_EQ(sliced(4, 3, INT64_MAX, -1), Values{});
  EXPECT_EQ(sliced(4, 7, INT64_MAX, 1), Values{});
  EXPECT_EQ(sliced(4, 3, 1, 1), Values{});
  EXPECT_EQ(sliced(0, -1, INT64_MIN, -1), Values{});
}

TEST(OpEdges, PaddingWrapsMoreThanOnce) {
  AtRunTime n{{"Pad", {"a", "p"}, {}, {text("mode", "wrap")}}, 19, {f32({3}, {1, 2, 3})}};
  n.initializers = {tensor_ints("p", {2}, {4, 7})};
  EXPECT_EQ(n.value(), (Values{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1}));
  n.initializers = {tensor_ints("p", {2}, {1, 0})};
  EXPECT_EQ(n.value(), (Values{3, 1, 2, 3}));
  n.spec.attributes = {text("mode", "reflect")};
  n.initializers = {tensor_ints("p", {2}, {2, 2})};
  EXPECT_EQ(n.value(), (Values{3, 2, 1, 2, 3, 2, 1}));
  n.initializers = {tensor_ints("p", {2}, {0, 3})};
  EXPECT_EQ(n.error(), "padding of 3 is too wide for an extent of 3");
  n.spec.attributes = {};
  n.initializers = {tensor_ints("p", {2}, {-2, -2})};
  EXPECT_EQ(n.error(), "negative pads remove more than there is");
}

TEST(OpEdges, OperandsOfShapesHaveALimit) {
  const AtRunTime n{{"Reshape", {"a", "s"}}, 13, {f32({1}, {1})}, {tensor_ints("s", {4097}, Ints(4097, 1))}};
  EXPECT_EQ(n.error(), "input 1 (\"s\") has 4097 elements, the limit is 4096 for an operand known at compile time");
}

// ---- types and attributes -------------------------------------------------------------------------------------------

TEST(OpEdges, AffineGridInItsOwnType) {
  AtRunTime n{{"AffineGrid", {"a", "s"}, {}, {number("align_corners", 1)}},
              20,
              {f64({1, 2, 3}, {1, 0, 0, 0, 1, 0})},
              {tensor_ints("s", {4}, {1, 1, 1, 4})}};
  expect_close(n.value(), {-1, 0, -1.0 / 3, 0, 1.0 / 3, 0, 1, 0}, 1e-15);
  n.initializers = {tensor_ints("s", {4}, {2, 1, 1, 4})};
  EXPECT_EQ(n.error(), "theta [1,2,3] does not fit a size of batch 2");
}

TEST(OpEdges, ResizeInItsOwnType) {
  const AtRunTime n{
      {"Resize", {"a", "", "s"}, {}, {text("mode", "linear")}}, 13, {f64({2}, {0, 1})}, {tensor_floats("s", {1}, {3})}};
  expect_close(n.value(), {0, 0, 1.0 / 3, 2.0 / 3, 1, 1}, 1e-15);
}

/// The element that a nearest Resize of 0, 1, … 6 to 17 copies: half of the positions are whole or half.
Values nearest_of_seven(const char* transform, const char* rounding) {
  const AtRunTime n{
      {"Resize",
       {"a", "", "", "s"},
       {},
       {text("mode", "nearest"), text("coordinate_transformation_mode", transform), text("nearest_mode", rounding)}},
      13,
      {f64({7}, {0, 1, 2, 3, 4, 5, 6})},
      {tensor_ints("s", {1}, {17})}};
  return n.value();
}

// Positions (2o + 1) * 7 / 34 - 1/2: element 8 is at 3, exactly; a division by 17 / 7 would give a little more.
TEST(OpEdges, ResizeKnowsWholePositions) {
  EXPECT_EQ(nearest_of_seven("half_pixel", "ceil"), (Values{0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 6, 6}));
  EXPECT_EQ(nearest_of_seven("half_pixel", "floor"), (Values{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6}));
  EXPECT_EQ(nearest_of_seven("align_corners", "round_prefer_ceil"),
            (Values{0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6}));
  EXPECT_EQ(nearest_of_seven("asymmetric", "floor"), (Values{0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6}));
}

TEST(OpEdges, ConvTransposeNeedsAPaddingModeThatIsOne) {
  AtRunTime n{{"ConvTranspose", {"a", "w"}, {}, {attr("output_shape", Ints{2}), text("auto_pad", "SAME")}},
              11,
              {f32({1, 1, 2}, {1, 2})},
              {tensor_floats("w", {1, 1, 1}, {3})}};
  EXPECT_EQ(n.error(), "auto_pad=\"SAME\" is not a padding mode");
  n.spec.attributes.pop_back();
  EXPECT_EQ(n.value(), (Values{3, 6}));
}

TEST(OpEdges, AttentionNeedsAScaleWithARoot) {
  AtRunTime n{{"Attention", {"a", "a", "a"}, {}, {attr("scale", -1.0f)}}, 23, {f32({1, 1, 1, 1}, {3})}};
  EXPECT_EQ(n.error(), "scale=-1.000000 has no root, by which Q and K are multiplied");
  n.spec.attributes = {attr("scale", 0.0f)};
  EXPECT_EQ(n.value(), (Values{3}));
}

} // namespace
} // namespace tgc
