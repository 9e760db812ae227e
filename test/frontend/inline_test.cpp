// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that a model brings along: their values once inlined, and every way in which a call can be wrong.
#include <gtest/gtest.h>

#include <ctime>

#include "frontend/frontend.h"
#include "frontend/onnx_reader.h"
#include "frontend/onnx_writer.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace tgc {
namespace {

using Values = std::vector<double>;

struct FunctionSpec {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::vector<Wire> nodes;
  std::vector<std::string> attributes = {};
  std::vector<Wire> defaults = {};
  std::string overload = {};
  int64_t opset = 13;
};
Wire function(const FunctionSpec& s) {
  Wire w = Wire().text(1, s.name);
  for (const std::string& in : s.inputs) w.text(4, in);
  for (const std::string& out : s.outputs) w.text(5, out);
  for (const std::string& a : s.attributes) w.text(6, a);
  for (const Wire& n : s.nodes) w.add(7, n);
  w.add(9, Wire().text(1, "").number(2, s.opset)).add(9, Wire().text(1, "local").number(2, 1)).text(10, "local");
  for (const Wire& d : s.defaults) w.add(11, d);
  return s.overload.empty() ? w : w.text(13, s.overload);
}
/// An attribute of a node in a function that stands for one of the function's.
Wire reference(const std::string& name, const std::string& of, int type) {
  return Wire().text(1, name).text(21, of).number(20, type);
}
Wire call(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
          std::vector<Wire> attributes = {}, const std::string& name = "") {
  return node({op, std::move(inputs), std::move(outputs), std::move(attributes), name, "local"});
}

struct Functions {
  std::vector<FunctionSpec> functions;
  std::vector<Wire> nodes;

  std::string bytes() const {
    ModelSpec m;
    m.inputs = {value_info("x", 1, {3})};
    m.outputs = {Wire().text(1, "y")};
    m.nodes = nodes;
    m.other_domains = {{"local", 1}};
    for (const FunctionSpec& f : functions) m.functions.push_back(function(f));
    return model(m);
  }
  Values values() const {
    HostTensor y = eval(import_bytes(bytes_of(bytes()), "m.onnx"), {tensor_of(DType::F32, {3}, {-1, 2, 3})})[0];
    return {y.at(0), y.at(1), y.at(2)};
  }
  std::string error(const ImportOptions& options = {}) const {
    try {
      import_bytes(bytes_of(bytes()), "m.onnx", options);
    } catch (const CompileError& e) {
      return e.what();
    }
    return "no error";
  }
};

const FunctionSpec kTwice{"Twice", {"a"}, {"b"}, {node({"Add", {"a", "a"}, {"b"}})}};

TEST(Inline, NestedCallsKeepTheirNamesApart) {
  Functions m{{kTwice,
               {"Six",
                {"a"},
                {"c"},
                {call("Twice", {"a"}, {"b"}), node({"Mul", {"b", "t"}, {"c"}}),
                 node({"Constant", {}, {"t"}, {attr_tensor("value", tensor_floats("", {}, {3}))}})}}},
              {call("Six", {"x"}, {"b"}, {}, "s"), call("Six", {"b"}, {"t"}, {}, "s"), node({"Neg", {"t"}, {"y"}})}};
  EXPECT_EQ(m.values(), (Values{36, -72, -108}));
}

TEST(Inline, AttributesComeFromTheCallTheDefaultOrNowhere) {
  Functions m{{{"Leaky",
                {"a"},
                {"b"},
                {node({"LeakyRelu", {"a"}, {"b"}, {reference("alpha", "slope", 1)}})},
                {},
                {attr("slope", 0.5f)}}},
              {call("Leaky", {"x"}, {"y"})}};
  EXPECT_EQ(m.values(), (Values{-0.5, 2, 3}));
  m.nodes = {call("Leaky", {"x"}, {"y"}, {attr("slope", 0.25f)})};
  EXPECT_EQ(m.values(), (Values{-0.25, 2, 3}));
  m.functions[0].defaults.clear();
  m.functions[0].attributes = {"slope"};
  m.nodes = {call("Leaky", {"x"}, {"y"})};
  EXPECT_FLOAT_EQ(static_cast<float>(m.values()[0]), -0.01f); // LeakyRelu's own default
}

TEST(Inline, NodesMeanTheirFunctionsOpset) {
  // Before opset 13 Softmax takes everything from `axis` on together; the model itself says 13.
  Functions m{{{"Soft", {"a"}, {"b"}, {node({"Softmax", {"a"}, {"b"}, {attr("axis", int64_t{0})}})}, {}, {}, {}, 11}},
              {node({"Reshape", {"x", "s"}, {"m"}}), call("Soft", {"m"}, {"n"}), node({"ReduceSum", {"n"}, {"r"}}),
               node({"Add", {"x", "r"}, {"w"}}), node({"Reshape", {"w", "t"}, {"y"}}),
               node({"Constant", {}, {"s"}, {attr_tensor("value", tensor_ints("", {2}, {3, 1}))}}),
               node({"Constant", {}, {"t"}, {attr_tensor("value", tensor_ints("", {1}, {-1}))}})}};
  ImportOptions none;
  EXPECT_EQ(m.error(none), "no error");
  HostTensor y = eval(import_bytes(bytes_of(m.bytes()), "m.onnx"), {tensor_of(DType::F32, {3}, {0, 0, 0})})[0];
  EXPECT_NEAR(y.at(0), 1, 1e-6); // one softmax over three elements, not three over one
}

TEST(Inline, OverloadsAreToldApart) {
  FunctionSpec thrice{"Twice", {"a"}, {"b"}, {node({"Sum", {"a", "a", "a"}, {"b"}})}};
  thrice.overload = "three";
  Functions m{{kTwice, thrice}, {call("Twice", {"x"}, {"y"}).text(8, "three")}};
  EXPECT_EQ(m.values(), (Values{-3, 6, 9}));
  m.nodes = {call("Twice", {"x"}, {"y"})};
  EXPECT_EQ(m.values(), (Values{-2, 4, 6}));
}

TEST(Inline, OperandsMayBeLeftOutOrPassedOn) {
  Functions m{{{"Cut", {"a", "lo", "hi"}, {"a", "b"}, {node({"Clip", {"a", "lo", "hi"}, {"b"}})}}},
              {call("Cut", {"x", "", "m"}, {"same", "cut"}), node({"Sub", {"same", "cut"}, {"y"}}),
               node({"Constant", {}, {"m"}, {attr_tensor("value", tensor_floats("", {}, {2}))}})}};
  EXPECT_EQ(m.values(), (Values{0, 0, 1}));
}

TEST(Inline, FunctionsComeBeforeOperators) {
  Functions m{{}, {node({"Relu", {"x"}, {"y"}})}};
  ModelSpec s;
  s.inputs = {value_info("x", 1, {3})};
  s.outputs = {Wire().text(1, "y")};
  s.nodes = m.nodes;
  s.functions = {Wire()
                     .text(1, "Relu")
                     .text(4, "a")
                     .text(5, "b")
                     .add(7, node({"Neg", {"a"}, {"b"}}))
                     .add(9, Wire().text(1, "").number(2, 13))};
  HostTensor y = eval(import_bytes(bytes_of(model(s)), "m.onnx"), {tensor_of(DType::F32, {3}, {-1, 2, 3})})[0];
  EXPECT_EQ(y.at(1), -2);
}

TEST(Inline, WrongCallsAreAllReported) {
  Functions m{{kTwice},
              {call("Twice", {"x", "x"}, {"a"}, {}, "t"), call("Twice", {"a"}, {"b", "c"}, {}, "u"),
               call("Twice", {"b"}, {"y"}, {attr("n", int64_t{1})})}};
  EXPECT_EQ(m.error(),
            "m.onnx: node \"t\" (local.Twice, opset 1): error TGC-E204: has 2 inputs, the function takes 1\n"
            "m.onnx: node \"u\" (local.Twice, opset 1): error TGC-E204: has 2 outputs, the function makes 1\n"
            "m.onnx: node \"#2\" (local.Twice, opset 1): error TGC-E204: attribute n is not one of the function's "
            "attributes");
  m.functions.push_back(kTwice);
  EXPECT_EQ(m.error(), "m.onnx: error TGC-E204: two functions are named local.Twice");
}

TEST(Inline, RecursionIsRefused) {
  Functions m{{{"Even", {"a"}, {"b"}, {call("Odd", {"a"}, {"b"}, {}, "o")}},
               {"Odd", {"a"}, {"b"}, {call("Even", {"a"}, {"b"}, {}, "e")}}},
              {call("Even", {"x"}, {"y"}, {}, "n")}};
  EXPECT_EQ(m.error(), "m.onnx: node \"n/o/e\" (local.Even, opset 1): error TGC-E204: the function calls itself");
}

TEST(Inline, GrowthIsLimited) {
  Functions m{{kTwice}, {call("F9", {"x"}, {"y"})}}; // each calls the one before twice: 2^10 nodes
  for (int i = 0; i < 10; ++i) {
    std::string inner = i == 0 ? "Twice" : "F" + std::to_string(i - 1);
    m.functions.push_back(
        {"F" + std::to_string(i), {"a"}, {"c"}, {call(inner, {"a"}, {"b"}), call(inner, {"b"}, {"c"})}});
  }
  ImportOptions options;
  options.limits.nodes = 1000;
  EXPECT_EQ(m.error(options), "m.onnx: error TGC-E207: inlining its functions gives more than 1000 nodes");
  options.limits.nodes = 4000;
  EXPECT_EQ(m.error(options), "no error");
}

TEST(Inline, CallsOfOneNameGetNumberedValues) {
  Functions m{{{"Odd", {"a"}, {"b"}, {node({"Neg", {"a"}, {"t"}}), node({"Frob", {"t"}, {"b"}, {}, "f"})}}}, {}};
  m.nodes = {call("Odd", {"x"}, {"p"}, {}, "s"), call("Odd", {"p"}, {"q"}, {}, "s"),
             call("Odd", {"q"}, {"y"}, {}, "s")};
  onnx::Model read = onnx::read_model(bytes_of(m.bytes()).bytes);
  onnx::inline_functions(read, "m.onnx", 100);
  std::vector<std::string> made;
  for (const onnx::Node& n : read.nodes) made.push_back(n.outputs[0]);
  EXPECT_EQ(made, (std::vector<std::string>{"s/t", "p", "s/t'2", "q", "s/t'3", "y"}));
}

TEST(Inline, ManyCallsOfOneNameTakeLittleTime) {
  constexpr int kCalls = 8000;
  FunctionSpec two{"Two", {"a"}, {"b"}, {node({"Neg", {"a"}, {"t"}}), node({"Neg", {"t"}, {"b"}})}};
  Functions m{{two}, {}};
  for (int i = 0; i < kCalls; ++i)
    m.nodes.push_back(call("Two", {i == 0 ? "x" : "v" + std::to_string(i)},
                           {i + 1 == kCalls ? "y" : "v" + std::to_string(i + 1)}, {}, "s"));
  onnx::Model read = onnx::read_model(bytes_of(m.bytes()).bytes);
  const std::clock_t start = std::clock();
  onnx::inline_functions(read, "m.onnx", 100000);
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
  ASSERT_EQ(read.nodes.size(), size_t{2} * kCalls);
  EXPECT_EQ(read.nodes[size_t{2} * kCalls - 2].outputs[0], "s/t'8000");
}

/// f1 calls f2 calls … Neg, `depth` functions.
Functions nested(int depth) {
  Functions m{{}, {call("F1", {"x"}, {"y"}, {}, "c")}};
  for (int i = 1; i <= depth; ++i)
    m.functions.push_back(
        {"F" + std::to_string(i),
         {"a"},
         {"b"},
         {i == depth ? node({"Neg", {"a"}, {"b"}}) : call("F" + std::to_string(i + 1), {"a"}, {"b"}, {}, "c")}});
  return m;
}

TEST(Inline, DepthIsLimited) {
  EXPECT_EQ(nested(256).values(), (Values{1, -2, -3}));
  const std::string error = nested(257).error();
  EXPECT_NE(
      error.find("c/c/c\" (local.F257, opset 1): error TGC-E207: calls of functions are nested more than 256 deep"),
      std::string::npos)
      << error;
}

TEST(Inline, CallsShareTheElementsOfTensors) {
  std::vector<int64_t> elements(1000);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<int64_t>(i % 100);
  FunctionSpec f{
      "Big", {}, {"b"}, {node({"Constant", {}, {"b"}, {attr_tensor("value", tensor_ints("", {1000}, elements))}})}};
  Functions m{{f}, {call("Big", {}, {"p"}), call("Big", {}, {"y"})}};
  onnx::Model read = onnx::read_model(bytes_of(m.bytes()).bytes);
  onnx::inline_functions(read, "m.onnx", 100);
  ASSERT_EQ(read.nodes.size(), 2u);
  const FileBytes &first = read.nodes[0].attributes[0].tensors[0].typed,
                  &second = read.nodes[1].attributes[0].tensors[0].typed;
  EXPECT_EQ(first.bytes.size(), 8000u);
  EXPECT_EQ(first.bytes.data(), second.bytes.data());
}

TEST(Inline, BytesAreLimited) {
  const std::string megabyte(1 << 20, 'n');
  Functions m{{{"Label", {"a"}, {"b"}, {node({"Neg", {"a"}, {"b"}, {attr("text", megabyte)}})}}}, {}};
  for (int i = 0; i < 600; ++i)
    m.nodes.push_back(
        call("Label", {i == 0 ? "x" : "v" + std::to_string(i)}, {i == 599 ? "y" : "v" + std::to_string(i + 1)}));
  EXPECT_EQ(m.error(),
            "m.onnx: node \"#511\" (local.Label, opset 1): error TGC-E207: inlining the model's functions "
            "takes more than 512 MiB\n  note: export the model without local functions, or with shorter names");
}

TEST(Inline, UnsupportedNodesInsideAreNamed) {
  Functions m{{{"Odd", {"a"}, {"b"}, {node({"Frob", {"a"}, {"b"}, {}, "f"})}}}, {call("Odd", {"x"}, {"y"}, {}, "o")}};
  EXPECT_EQ(m.error(), "m.onnx: node \"o/f\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
                       "m.onnx: error TGC-E202: 1 node needs an unsupported operator: Frob 1");
}

} // namespace
} // namespace tgc
