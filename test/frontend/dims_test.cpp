// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a graph demands of its symbolic dims: which become one, which are narrowed, what is checked at run time, and
// what a user reads when it cannot be.
#include "frontend/dims.h"

#include <gtest/gtest.h>

#include "frontend/onnx_writer.h"
#include "uop/diag.h"
#include "uop/eval.h"
#include "uop/text.h"

namespace tgc {
namespace {

using Lines = std::vector<std::string>;

std::string side(Ref x) {
  std::string text = shape_text(std::vector<Ref>{x});
  return text.substr(1, text.size() - 2);
}

/// "b == a: why", and "7 <= h: why".
Lines checks(const Module& m) {
  Lines out;
  for (Ref s : m.root->src.subspan(1))
    if (s->is(Ops::Check))
      out.push_back(side(s->src[0]->src[0]) + (s->src[0]->is(Ops::Eq) ? " == " : " <= ") + side(s->src[0]->src[1]) +
                    ": " + s->s(Attr::Why));
  return out;
}

std::string output_shape(const Module& m) { return shape_text(m.root->src[0]->src[0]->src[0]->shape); }

DimBounds bounds_of(const Module& m, const std::string& name) {
  for (Ref x : toposort(m.root->src[0]))
    if (x->is(Ops::Var) && x->s(Attr::Name) == name) return {x->lo, x->hi};
  return {0, 0};
}

Module json(const std::string& inputs, const std::string& nodes, const ImportOptions& options = {}) {
  return import_bytes(bytes_of(R"({"tgc":1,"inputs":[)" + inputs + R"(],"nodes":[)" + nodes + R"(],"outputs":["y"]})"),
                      "g.json", options);
}

std::string input(const std::string& name, const std::string& shape) {
  return R"({"name":")" + name + R"(","type":"f32","shape":)" + shape + "}";
}

Module onnx(std::vector<Wire> nodes, std::vector<Wire> inputs, const ImportOptions& options = {},
            std::vector<Wire> initializers = {}) {
  ModelSpec s;
  s.nodes = std::move(nodes);
  s.inputs = std::move(inputs);
  s.initializers = std::move(initializers);
  s.outputs = {value_info("y", 1, {})};
  s.opset = 13;
  return import_bytes(bytes_of(model(s)), "m.onnx", options);
}

template <typename Action> std::string errors(Action action) {
  try {
    action();
  } catch (const CompileError& e) {
    std::string out;
    for (const Diagnostic& d : e.all()) out += (out.empty() ? "" : "\n") + to_string(d);
    return out;
  }
  return "no error";
}

const std::string kAdd = R"({"op":"add","name":"y","in":["p","q"]})";

TEST(Dims, EqualOnesBecomeTheFirstInInputOrder) {
  const Module m = json(input("p", R"(["b",4])") + "," + input("q", R"(["a",4])"), kAdd);
  EXPECT_EQ(output_shape(m), "[b,4]");
  EXPECT_EQ(checks(m), Lines{"a == b: /nodes/0: shapes [b,4] and [a,4] do not broadcast unless b = a"});
  const HostTensor x = tensor_of(DType::F32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(eval(m, {x, x}, {{"b", 2}})[0].at(7), 16);
}

TEST(Dims, BoundsOfBothHoldForTheOne) {
  ImportOptions options;
  options.dims = {{"a", {2, 9}}, {"b", {1, 5}}};
  const Module m = json(input("p", R"(["a"])") + "," + input("q", R"(["b"])"), kAdd, options);
  EXPECT_EQ(bounds_of(m, "a").lo, 2);
  EXPECT_EQ(bounds_of(m, "a").hi, 5);
  options.dims = {{"a", {6, 9}}, {"b", {1, 5}}};
  EXPECT_EQ(errors([&] { json(input("p", R"(["a"])") + "," + input("q", R"(["b"])"), kAdd, options); }),
            "g.json: /nodes/0: error TGC-E208: shapes [a] and [b] do not broadcast");
}

TEST(Dims, ManyNamesInOneImport) {
  const std::string inputs = input("p", R"(["a"])") + "," + input("q", R"(["b"])") + "," + input("r", R"(["c"])");
  const Module m = json(inputs, R"({"op":"add","name":"s","in":["q","r"]},{"op":"add","name":"y","in":["s","p"]})");
  EXPECT_EQ(output_shape(m), "[a]");
  EXPECT_EQ(checks(m), (Lines{"b == a: /nodes/1: shapes [b] and [a] do not broadcast unless b = a",
                              "c == a: /nodes/0: shapes [b] and [c] do not broadcast unless b = c"}));
}

TEST(Dims, ASumOfOthers) {
  const std::string inputs =
      input("mask", R"(["total"])") + "," + input("old", R"(["past"])") + "," + input("x", R"(["seq"])");
  const Module m = json(inputs, R"({"op":"concat","name":"all","in":["old","x"],"axis":0},
                                   {"op":"add","name":"y","in":["all","mask"]})");
  EXPECT_EQ(output_shape(m), "[past+seq]");
  EXPECT_EQ(
      checks(m),
      Lines{"total == past+seq: /nodes/1: shapes [past+seq] and [total] do not broadcast unless past+seq = total"});
}

TEST(Dims, ANumberTheGraphNeeds) {
  const Module m = json(input("p", R"(["n"])") + "," + input("q", "[4]"), kAdd);
  EXPECT_EQ(output_shape(m), "[4]");
  EXPECT_EQ(checks(m), Lines{"n == 4: /nodes/0: shapes [n] and [4] do not broadcast unless n = 4"});
}

Wire pool(const std::string& in, const std::string& out, int64_t kernel, int64_t stride) {
  return node({"MaxPool",
               {in},
               {out},
               {attr("kernel_shape", std::vector<int64_t>{kernel, kernel}),
                attr("strides", std::vector<int64_t>{stride, stride})},
               out});
}

TEST(Dims, AWindowNeedsElements) {
  const Module m = onnx({pool("x", "a", 3, 2), pool("a", "y", 2, 1)}, {value_info("x", 1, {1, 1, "h", 9})});
  EXPECT_EQ(bounds_of(m, "h").lo, 5); // (5 - 3)/2 + 1 = 2
  EXPECT_EQ(checks(m).size(), 2U);
  EXPECT_EQ(checks(m)[0], "3 <= h: node \"a\" (MaxPool, opset 13): a window of 3 elements does not fit in [h] unless "
                          "3 <= h");
  EXPECT_EQ(checks(m)[1].substr(0, 24), "5 <= h: node \"y\" (MaxPoo");
  ImportOptions options;
  options.dims["h"] = {1, 4};
  EXPECT_EQ(errors([&] {
              onnx({pool("x", "a", 3, 2), pool("a", "y", 2, 1)}, {value_info("x", 1, {1, 1, "h", 9})}, options);
            }),
            "m.onnx: node \"y\" (MaxPool, opset 13): error TGC-E203: a window of 2 elements does not fit in "
            "[(h+1)/2-1]");
}

TEST(Dims, AnEncoderAndItsDecoderMeetAtMultiples) {
  const std::vector<Wire> nodes = {
      pool("x", "a", 2, 2), pool("a", "b", 2, 2),
      node({"Resize",
            {"b", "", "scales"},
            {"c"},
            {attr("mode", std::string("nearest")), attr("coordinate_transformation_mode", std::string("asymmetric")),
             attr("nearest_mode", std::string("floor"))}}),
      node({"Add", {"x", "c"}, {"y"}, {}, "skip"})};
  const Module m = onnx(nodes, {value_info("x", 1, {1, 1, "h", 8})}, {}, {tensor_floats("scales", {4}, {1, 1, 4, 4})});
  EXPECT_EQ(output_shape(m), "[1,1,h/4*4,8]");
  ASSERT_EQ(checks(m).size(), 3U);
  EXPECT_EQ(checks(m)[0].substr(0, 41), "h == h/4*4: node \"skip\" (Add, opset 13): ");
}

TEST(Dims, AReshapeNeedsDivisibility) {
  const Module m = onnx({node({"Reshape", {"x", "to"}, {"y"}, {}, "r"})}, {value_info("x", 1, {"n", 4})}, {},
                        {tensor_ints("to", {2}, {-1, 8})});
  EXPECT_EQ(output_shape(m), "[n/2,8]");
  EXPECT_EQ(checks(m), Lines{"n == n/2*2: node \"r\" (Reshape, opset 13): [n,4] does not reshape to [-1,8] unless "
                             "n*4/8*8 = n*4"});
}

TEST(Dims, ATableMustBeLongEnough) {
  const Module m =
      onnx({node({"Shape", {"x"}, {"s"}}), node({"Slice", {"t", "zero", "s"}, {"part"}}),
            node({"Add", {"x", "part"}, {"y"}, {}, "a"})},
           {value_info("x", 1, {"n"})}, {}, {tensor_floats("t", {3}, {1, 2, 3}), tensor_ints("zero", {1}, {0})});
  EXPECT_EQ(bounds_of(m, "n").hi, 3);
  EXPECT_EQ(
      checks(m),
      Lines{"n <= 3: node \"a\" (Add, opset 13): shapes [n] and [min(n,3)] do not broadcast unless n = min(n,3)"});
  EXPECT_EQ(eval(m, {tensor_of(DType::F32, {2}, {5, 5})}, {{"n", 2}})[0].at(1), 7);
}

TEST(Dims, TextHasMinusSigns) {
  Context ctx;
  const Ref n = ctx.var("n", 1, 9), least = tensor::dim_min(n, ctx.index(3));
  EXPECT_EQ(side(dim_sub(n, least)), "n-min(n,3)");
  EXPECT_EQ(side(dim_sub(n, dim_mul(least, ctx.index(2)))), "n-min(n,3)*2");
  EXPECT_EQ(side(dim_mul(least, ctx.index(-1))), "-min(n,3)");
}

Wire slice(const std::string& in, const std::string& out) { return node({"Slice", {in, "s", "e", "ax", "st"}, {out}}); }
std::vector<Wire> slice_operands(int64_t start, int64_t end, int64_t step) {
  return {tensor_ints("s", {1}, {start}), tensor_ints("e", {1}, {end}), tensor_ints("ax", {1}, {0}),
          tensor_ints("st", {1}, {step})};
}

TEST(Dims, OneWithBoundsUnderWhichAClampHasNoEffectGivesTheOther) {
  const Module m = onnx({slice("x", "part"), node({"Add", {"part", "z"}, {"y"}, {}, "a"})},
                        {value_info("x", 1, {"n"}), value_info("z", 1, {"m"})}, {}, slice_operands(3, INT64_MAX, 1));
  const std::string why =
      ": node \"a\" (Add, opset 13): shapes [max(n-3,0)] and [m] do not broadcast unless max(n-3,0) = m";
  EXPECT_EQ(checks(m), (Lines{"n == m+3" + why, "3 <= n" + why}));
  const HostTensor y =
      eval(m, {tensor_of(DType::F32, {5}, {1, 2, 3, 4, 5}), tensor_of(DType::F32, {2}, {10, 20})}, {{"m", 2}})[0];
  EXPECT_EQ(y.shape, std::vector<int64_t>{2});
  EXPECT_EQ(y.at(0), 14);
  EXPECT_EQ(y.at(1), 25);
}

/// Slice of 1..n.
std::vector<double> sliced(const Module& m, int64_t n) {
  HostTensor x = zeros(DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) x.set(i, static_cast<double>(i + 1));
  const HostTensor y = eval(m, {x}, {{"n", n}})[0];
  std::vector<double> out;
  for (int64_t i = 0; i < y.numel(); ++i) out.push_back(y.at(i));
  return out;
}

TEST(Dims, SlicesOfAnyExtent) {
  using Values = std::vector<double>;
  auto of = [](int64_t start, int64_t end, int64_t step) {
    return onnx({slice("x", "y")}, {value_info("x", 1, {"n"})}, {}, slice_operands(start, end, step));
  };
  const Module back = of(5, 0, -2);
  EXPECT_EQ(sliced(back, 9), (Values{6, 4, 2}));
  EXPECT_EQ(sliced(back, 3), (Values{3}));
  EXPECT_EQ(sliced(back, 4), (Values{4, 2}));
  EXPECT_EQ(sliced(back, 1), Values{});
  const Module reversed = of(-1, INT64_MIN, -1);
  EXPECT_EQ(output_shape(reversed), "[n]");
  EXPECT_EQ(sliced(reversed, 3), (Values{3, 2, 1}));
  const Module last = of(-2, INT64_MAX, 1);
  EXPECT_EQ(output_shape(last), "[min(2,n)]");
  EXPECT_EQ(sliced(last, 4), (Values{3, 4}));
  EXPECT_EQ(sliced(last, 1), (Values{1}));
  EXPECT_EQ(sliced(of(1, -1, 2), 6), (Values{2, 4}));
  EXPECT_EQ(sliced(of(1, -1, 2), 1), Values{});
  EXPECT_EQ(sliced(of(1, INT64_MAX, INT64_MAX), 3), (Values{2}));
}

TEST(Dims, SplitsOfAnyExtent) {
  auto parts = [](int64_t opset, int64_t n) {
    ModelSpec s;
    s.nodes = {node({"Split", {"x"}, {"p", "q", "r"}})};
    if (opset >= 18) s.nodes = {node({"Split", {"x"}, {"p", "q", "r"}, {attr("num_outputs", int64_t{3})}})};
    s.inputs = {value_info("x", 1, {"n"})};
    s.outputs = {Wire().text(1, "p"), Wire().text(1, "q"), Wire().text(1, "r")};
    s.opset = opset;
    HostTensor x = zeros(DType::F32, {n});
    for (int64_t i = 0; i < n; ++i) x.set(i, static_cast<double>(i));
    const Module m = import_bytes(bytes_of(model(s)), "m.onnx");
    std::string out;
    for (const HostTensor& part : eval(m, {x}, opset < 18 ? VarValues{{"n/3", n / 3}} : VarValues{{"n", n}})) {
      for (int64_t i = 0; i < part.numel(); ++i) out += std::to_string(static_cast<int>(part.at(i)));
      out += "|";
    }
    return out;
  };
  EXPECT_EQ(parts(18, 7), "012|345|6|");
  EXPECT_EQ(parts(18, 6), "01|23|45|");
  EXPECT_EQ(parts(18, 4), "01|23||");
  EXPECT_EQ(parts(18, 1), "0|||");
  EXPECT_EQ(parts(13, 6), "01|23|45|"); // must be equal
}

TEST(Dims, OperatorsNeedElements) {
  const std::vector<Wire> x = {value_info("x", 1, {"n"})};
  auto bound = [&](const Wire& op, const std::vector<Wire>& initializers) {
    return bounds_of(onnx({op}, x, {}, initializers), "n").lo;
  };
  EXPECT_EQ(bound(node({"TopK", {"x", "k"}, {"y", "i"}}), {tensor_ints("k", {1}, {5})}), 5);
  EXPECT_EQ(bound(node({"Pad", {"x", "p"}, {"y"}}), {tensor_ints("p", {2}, {-2, -1})}), 3);
  ImportOptions options;
  options.dims["n"] = {1, 4};
  EXPECT_EQ(errors([&] {
              onnx({node({"TopK", {"x", "k"}, {"y", "i"}, {}, "t"})}, x, options, {tensor_ints("k", {1}, {5})});
            }),
            "m.onnx: node \"t\" (TopK, opset 13): error TGC-E203: k=5 for an extent of n");
  const std::vector<Wire> two = {value_info("x", 1, {2, "n"}), value_info("i", 7, {1, 3})};
  EXPECT_EQ(bounds_of(onnx({node({"GatherElements", {"x", "i"}, {"y"}})}, two), "n").lo, 3);
}

TEST(Dims, WhatNoOneDimSettlesIsAnError) {
  const std::vector<Wire> nodes = {node({"Concat", {"p", "q"}, {"c"}, {attr("axis", int64_t{2})}}),
                                   pool("c", "y", 3, 1)};
  const std::vector<Wire> inputs = {value_info("p", 1, {1, 1, "a", 8}), value_info("q", 1, {1, 1, "b", 8})};
  EXPECT_EQ(
      errors([&] { onnx(nodes, inputs); }),
      "m.onnx: node \"y\" (MaxPool, opset 13): error TGC-E209: a window of 3 elements does not fit in [a+b] unless "
      "3 <= a+b\n  note: pin or bound the dims: --dim NAME=VALUE or NAME=LO..HI");
  ImportOptions options;
  options.dims["a"] = {2, 9};
  EXPECT_EQ(checks(onnx(nodes, inputs, options)), Lines{});
}

TEST(Dims, ConditionsWithoutEndAreAnError) {
  std::vector<Wire> nodes;
  for (int i = 0; i < kMaxDimRounds + 1; ++i)
    nodes.push_back(pool(i == 0 ? "x" : "v" + std::to_string(i), "v" + std::to_string(i + 1), 2, 1));
  nodes.push_back(node({"Relu", {"v" + std::to_string(nodes.size())}, {"y"}}));
  const std::vector<Wire> inputs = {value_info("x", 1, {1, 1, "h", 300})};
  EXPECT_EQ(
      errors([&] { onnx(nodes, inputs); }),
      "m.onnx: error TGC-E207: the conditions on symbolic dims have no end\n  note: pin the dims: --dim NAME=VALUE");
  ImportOptions options;
  options.dims["h"] = {256, 512};
  EXPECT_EQ(checks(onnx(nodes, inputs, options)), Lines{});
}

TEST(Dims, ChecksReadBackFromText) {
  const Module m = json(input("p", R"(["a"])") + "," + input("q", R"(["b"])"), kAdd);
  const std::string text = print(m);
  EXPECT_NE(text.find("check %2 {why=\"/nodes/0: shapes [a] and [b] do not broadcast unless a = b\" sites=[1,0]}"),
            std::string::npos)
      << text;
  const Module again = parse(text, "m.uop");
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(checks(again), checks(m));
}

} // namespace
} // namespace tgc
