// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The JSON graph format: its examples evaluate to the documented numbers, and its errors name their place.
#include <cmath>

#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace tgc {
namespace {

Module read(const std::string& text, const ImportOptions& options = {}) {
  return import_bytes(bytes_of(text), "g.json", options);
}

std::vector<double> run(const std::string& text, const std::vector<HostTensor>& inputs = {},
                        const VarValues& vars = {}) {
  HostTensor y = eval(read(text), inputs, vars)[0];
  std::vector<double> out;
  for (int64_t i = 0; i < y.numel(); ++i) out.push_back(y.at(i));
  return out;
}

/// A graph of one f32 input x [4] and the nodes given; output y.
std::string graph(const std::string& nodes) {
  return R"({"tgc":1,"inputs":[{"name":"x","type":"f32","shape":[4]}],"nodes":[)" + nodes + R"(],"outputs":["y"]})";
}
std::vector<double> run_on_x(const std::string& nodes) {
  return run(graph(nodes), {tensor_of(DType::F32, {4}, {1, 2, 3, 4})});
}

std::string errors(const std::string& text, const ImportOptions& options = {}) {
  try {
    read(text, options);
  } catch (const CompileError& e) {
    std::string out;
    for (const Diagnostic& d : e.all()) out += (out.empty() ? "" : "\n") + to_string(d);
    return out;
  }
  return "no error";
}

using Values = std::vector<double>;

TEST(Json, SumOfSquares) {
  std::string nodes =
      R"({"op":"mul","name":"xx","in":["x","x"]},{"op":"reduce","name":"y","in":["xx"],"kind":"add","axes":[0]})";
  EXPECT_EQ(run_on_x(nodes), Values{30});
  EXPECT_EQ(run(R"({"tgc":1,"constants":[{"name":"x","type":"f32","shape":[4],"data":[1,2,3,4]}],"nodes":[)" + nodes +
                R"(],"outputs":["y"]})"),
            Values{30});
}

TEST(Json, ProductOfSymbolicOperandsSummedOverTheLastAxis) {
  std::string text = R"({"tgc":1,"dims":{"N":[1,64]},
    "inputs":[{"name":"a","type":"f32","shape":["N",1,"N"]},{"name":"b","type":"f32","shape":[1,"N","N"]}],
    "nodes":[{"op":"mul","name":"p","in":["a","b"]},{"op":"reduce","name":"y","in":["p"],"kind":"add","axes":[-1]}],
    "outputs":["y"]})";
  EXPECT_EQ(run(text, {tensor_of(DType::F32, {2, 1, 2}, {1, 2, 3, 4}), tensor_of(DType::F32, {1, 2, 2}, {5, 6, 7, 8})},
                {{"N", 2}}),
            (Values{17, 23, 39, 53}));
  ImportOptions pinned;
  pinned.dims["N"] = {3, 3};
  EXPECT_EQ(shape_text(read(text, pinned).root->src[0]->src[0]->src[0]->shape), "[3,3]");
}

TEST(Json, EveryMovement) {
  EXPECT_EQ(run_on_x(R"({"op":"flip","name":"y","in":["x"],"axes":[0]})"), (Values{4, 3, 2, 1}));
  EXPECT_EQ(run_on_x(R"({"op":"shrink","name":"y","in":["x"],"offset":[1],"size":[2]})"), (Values{2, 3}));
  EXPECT_EQ(run_on_x(R"({"op":"pad","name":"y","in":["x"],"lo":[1],"hi":[0],"value":9})"), (Values{9, 1, 2, 3, 4}));
  EXPECT_EQ(
      run_on_x(
          R"({"op":"reshape","name":"m","in":["x"],"shape":[2,2]},{"op":"permute","name":"y","in":["m"],"axes":[1,0]})"),
      (Values{1, 3, 2, 4}));
  EXPECT_EQ(
      run_on_x(
          R"({"op":"shrink","name":"s","in":["x"],"offset":[3],"size":[1]},{"op":"expand","name":"y","in":["s"],"shape":[2,1]})"),
      (Values{4, 4}));
  EXPECT_EQ(run_on_x(R"({"op":"concat","name":"y","in":["x","x"],"axis":0})"), (Values{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(Json, ElementwiseNumbersTakeTheOperandsType) {
  EXPECT_EQ(run_on_x(R"({"op":"sub","name":"y","in":[10,"x"]})"), (Values{9, 8, 7, 6}));
  EXPECT_EQ(run_on_x(R"({"op":"lt","name":"c","in":["x",3]},{"op":"where","name":"y","in":["c","x",-1]})"),
            (Values{1, 2, -1, -1}));
  EXPECT_EQ(run_on_x(R"({"op":"cast","name":"i","in":["x"],"to":"i32"},{"op":"shl","name":"y","in":["i",2]})"),
            (Values{4, 8, 12, 16}));
}

TEST(Json, MatmulConvSoftmax) {
  std::string head =
      R"({"tgc":1,"constants":[{"name":"a","type":"f32","shape":[1,1,4],"data":[[[1,2,3,4]]]},{"name":"w","type":"f32","shape":[1,1,2],"data":[1,-1]},{"name":"b","type":"f32","shape":[1],"data":[10]}],"nodes":[)";
  EXPECT_EQ(run(head + R"({"op":"conv","name":"y","in":["a","w","b"],"stride":[2],"pad":[1,0]}],"outputs":["y"]})"),
            (Values{9, 9}));
  EXPECT_EQ(
      run(head +
          R"({"op":"reshape","name":"m","in":["a"],"shape":[2,2]},{"op":"matmul","name":"y","in":["m","m"]}],"outputs":["y"]})"),
      (Values{7, 10, 15, 22}));
  EXPECT_EQ(
      run(head +
          R"({"op":"mul","name":"z","in":["a",0]},{"op":"softmax","name":"y","in":["z"],"axis":-1}],"outputs":["y"]})"),
      (Values{0.25, 0.25, 0.25, 0.25}));
}

TEST(Json, ConstantsOfEveryKind) {
  EXPECT_EQ(run(R"({"tgc":1,"constants":[{"name":"y","type":"f64","shape":[2],"data":["-inf",0.5]}],"outputs":["y"]})"),
            (Values{-INFINITY, 0.5}));
  EXPECT_EQ(run(R"({"tgc":1,"constants":[{"name":"y","type":"i8","shape":[3],"data":-7}],"outputs":["y"]})"),
            (Values{-7, -7, -7}));
  EXPECT_EQ(
      run(R"({"tgc":1,"constants":[{"name":"y","type":"bool","shape":[2],"data":[true,false]}],"outputs":["y"]})"),
      (Values{1, 0}));
  EXPECT_EQ(
      eval(
          read(
              R"({"tgc":1,"constants":[{"name":"y","type":"i64","shape":[2],"data":[9007199254740993,1]}],"outputs":["y"]})"),
          {})[0]
          .int_at(0),
      9007199254740993);
}

TEST(Json, ReportsEveryProblemWithItsPlace) {
  EXPECT_EQ(errors(R"({"tgc":1,"inputs":[{"name":"x","type":"f99","shape":[2]}],
                      "constants":[{"name":"c","type":"f32","shape":[2],"data":[1,2,3]}],
                      "nodes":[{"op":"frob","name":"n","in":["c2"]},{"op":"add","name":"m","in":["x","x"]},{"op":"neg","name":"k","in":["x"],"axs":1}],
                      "outputs":["m","q"]})"),
            "g.json: /inputs/0/type: error TGC-E208: \"f99\" is no element type\n"
            "  note: types are bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64\n"
            "g.json: /constants/0/data: error TGC-E208: has 3 elements, the shape has 2\n"
            "g.json: /nodes/0/in/0: error TGC-E208: \"c2\" is not defined above\n"
            "g.json: /outputs/1: error TGC-E208: \"q\" is not defined");
}

TEST(Json, EachMistakeHasItsMessage) {
  EXPECT_EQ(errors("{\"tgc\":1"), "g.json: error TGC-E208: byte 9: not JSON\n  note: a JSON checker names the mistake");
  EXPECT_EQ(errors("{}"), "g.json: /: error TGC-E208: \"tgc\" is missing");
  EXPECT_EQ(errors(R"({"tgc":2,"outputs":["y"]})").substr(0, 62),
            "g.json: /tgc: error TGC-E208: is a format version other than 1");
  EXPECT_EQ(errors(graph(R"({"op":"frob","name":"y","in":["x"]})")),
            "g.json: /nodes/0/op: error TGC-E208: \"frob\" is no operator\n  note: docs/json-graph.md lists them");
  EXPECT_EQ(errors(graph(R"({"op":"neg","name":"y","in":["x"],"axs":1})")),
            "g.json: /nodes/0: error TGC-E208: has the unknown member \"axs\"");
  EXPECT_EQ(errors(graph(R"({"op":"reduce","name":"y","in":["x"],"kind":"add","axes":[1]})")),
            "g.json: /nodes/0: error TGC-E208: axis=1 is outside [-1, 1) of a rank-1 tensor");
  EXPECT_EQ(errors(graph(R"({"op":"add","name":"y","in":["x"]})")),
            "g.json: /nodes/0/in: error TGC-E208: has 1 operands, needs 2");
  EXPECT_EQ(errors(graph(R"({"op":"add","name":"x","in":["x","x"]})")).substr(0, 74),
            "g.json: /nodes/0: error TGC-E208: \"x\" is already the name of another value");
  EXPECT_EQ(
      errors(graph(R"({"op":"cast","name":"i","in":["x"],"to":"i32"},{"op":"matmul","name":"y","in":["x","i"]})")),
      "g.json: /nodes/1/in: error TGC-E208: operands have different types");
  for (const auto& [data, place] : {std::pair{"[[1,2],[3]]", "/1"}, {"[1,[2,3]]", "/1"}, {"[[1],2,3]", "/1"}})
    EXPECT_EQ(errors(R"({"tgc":1,"constants":[{"name":"y","type":"f32","shape":[3],"data":)" + std::string(data) +
                     R"(}],"outputs":["y"]})")
                  .substr(0, 81),
              "g.json: /constants/0/data" + std::string(place) +
                  ": error TGC-E208: is not nested as what is before it");
  EXPECT_EQ(errors(graph(R"({"op":"shrink","name":"y","in":["x"],"offset":[3],"size":[2]})")),
            "g.json: /nodes/0: error TGC-E208: the part ends beyond [4]");
  EXPECT_EQ(errors("[1]"), "g.json: /: error TGC-E208: is array, not an object");
  EXPECT_EQ(errors("{\"a\":" + std::string(100000, '[')),
            "g.json: error TGC-E207: byte 68: nested deeper than 64 levels");
  EXPECT_EQ(errors(R"({"tgc":1e999})"),
            "g.json: error TGC-E208: a number is out of range\n  note: write \"inf\" or \"-inf\"");
}

} // namespace
} // namespace tgc
