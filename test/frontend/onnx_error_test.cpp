// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a user reads when a model is wrong: exact texts, all problems at once, and never a crash.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "frontend/onnx_writer.h"
#include "uop/diag.h"

namespace tgc {
namespace {

std::string errors(const std::string& bytes, const ImportOptions& options = {}) {
  try {
    import_bytes(bytes_of(bytes), "m.onnx", options);
  } catch (const CompileError& e) {
    std::string out;
    for (const Diagnostic& d : e.all()) out += (out.empty() ? "" : "\n") + to_string(d);
    return out;
  }
  return "no error";
}

/// x f32 [2,3] → nodes → y.
ModelSpec with_nodes(std::vector<Wire> nodes, int64_t opset = 13) {
  ModelSpec s;
  s.nodes = std::move(nodes);
  s.inputs = {value_info("x", 1, {2, 3})};
  s.outputs = {value_info("y", 1, {2, 3})};
  s.opset = opset;
  return s;
}
std::string errors_of(std::vector<Wire> nodes, int64_t opset = 13) {
  return errors(model(with_nodes(std::move(nodes), opset)));
}

TEST(OnnxErrors, ListsEveryUnsupportedNodeThenCounts) {
  EXPECT_EQ(
      errors_of({node({"Frob", {"x"}, {"a"}, {}, "first"}), node({"Mish", {"a"}, {"b"}}), node({"Relu", {"b"}, {"c"}}),
                 node({"Frob", {"c"}, {"d"}, {}, "last"}), node({"Magic", {"d"}, {"y"}, {}, "m", "com.example"})}),
      "m.onnx: node \"first\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
      "m.onnx: node #1 (Mish, opset 13): error TGC-E202: operator Mish is not supported\n"
      "  note: supported in opsets 18..28\n"
      "m.onnx: node \"last\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
      "m.onnx: node \"m\" (com.example.Magic, opset 0): error TGC-E202: operator com.example.Magic is not supported\n"
      "  note: the model does not import domain com.example\n"
      "m.onnx: error TGC-E202: 4 nodes need unsupported operators: Frob 2, Mish 1, com.example.Magic 1");
}

TEST(OnnxErrors, ListsNodesOfSubgraphsToo) {
  const Wire inner = Wire().add(1, node({"Frob", {}, {"z"}, {}, "f"})).add(1, node({"Relu", {"z"}, {"y"}}));
  auto branch = [](const std::string& name, const Wire& graph) {
    return Wire().text(1, name).add(6, graph).number(20, 5);
  };
  const Wire nested = Wire().add(1, node({"If", {"x"}, {"y"}, {branch("else_branch", inner)}}));
  EXPECT_EQ(errors_of({node({"If", {"x"}, {"y"}, {branch("then_branch", inner), branch("else_branch", nested)}, "i"})}),
            "m.onnx: node \"i\" (If, opset 13): error TGC-E202: operator If is not supported\n"
            "m.onnx: node \"f\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
            "  note: it is in then_branch of node \"i\"\n"
            "m.onnx: node #0 (If, opset 13): error TGC-E202: operator If is not supported\n"
            "  note: it is in else_branch of node \"i\"\n"
            "m.onnx: node \"f\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
            "  note: it is in else_branch of node #0\n"
            "m.onnx: error TGC-E202: 4 nodes need unsupported operators: Frob 2, If 2");
}

TEST(OnnxErrors, InvalidNodesAreAllReported) {
  EXPECT_EQ(
      errors_of({node({"Softmax", {"x"}, {"a"}, {attr("axis", int64_t{2})}, "s"}),
                 node({"Relu", {"a"}, {"b"}, {}, "silent"}), // its input failed already
                 node({"Transpose", {"x"}, {"c"}, {attr("perm", std::vector<int64_t>{0, 0})}, "t"}),
                 node({"Relu", {"x"}, {"y"}, {attr("slope", 1.0f)}, "r"})}),
      "m.onnx: node \"s\" (Softmax, opset 13): error TGC-E203: axis=2 is outside [-2, 2) of a rank-2 tensor\n"
      "m.onnx: node \"t\" (Transpose, opset 13): error TGC-E203: perm is no permutation of the axes of [2,3]\n"
      "m.onnx: node \"r\" (Relu, opset 13): error TGC-E203: attribute slope is not one of this operator's attributes");
}

TEST(OnnxErrors, BadAttributes) {
  EXPECT_EQ(errors_of({node({"Softmax", {"x"}, {"y"}, {attr("axis", 1.5f)}, "s"})}),
            "m.onnx: node \"s\" (Softmax, opset 13): error TGC-E203: attribute axis is a float, not an int");
  EXPECT_EQ(errors_of({node({"Concat", {"x", "x"}, {"y"}, {}, "c"})}),
            "m.onnx: node \"c\" (Concat, opset 13): error TGC-E203: attribute axis is missing");
  EXPECT_EQ(errors_of({node({"Add", {"x"}, {"y"}, {}, "a"})}),
            "m.onnx: node \"a\" (Add, opset 13): error TGC-E203: has 1 inputs, takes 2 to 2");
}

TEST(OnnxErrors, ConvGroups) {
  ModelSpec s = with_nodes({node({"Conv", {"x", "w"}, {"y"}, {attr("group", int64_t{3})}, "conv1"})});
  s.inputs = {value_info("x", 1, {1, 64, 8, 8}), value_info("w", 1, {32, 21, 3, 3})};
  EXPECT_EQ(errors(model(s)),
            "m.onnx: node \"conv1\" (Conv, opset 13): error TGC-E203: group=3 does not divide channels=64");
}

TEST(OnnxErrors, GraphNames) {
  EXPECT_EQ(errors_of({node({"Add", {"x", "gone"}, {"y"}, {}, "a"}), node({"Relu", {"x"}, {"y"}, {}, "b"})}),
            "m.onnx: node \"b\" (Relu, opset 13): error TGC-E204: output \"y\" is already the name of another value\n"
            "m.onnx: node \"a\" (Add, opset 13): error TGC-E204: input \"gone\" is made by no node and is no input of "
            "the graph");
  EXPECT_EQ(errors_of({node({"Relu", {"x"}, {"z"}, {}, "a"})}),
            "m.onnx: error TGC-E204: graph output \"y\" is made by no node");
}

TEST(OnnxErrors, ACycleIsFoundAndDisorderForgiven) {
  EXPECT_EQ(
      errors_of({node({"Add", {"x", "b"}, {"a"}, {}, "n1"}), node({"Relu", {"a"}, {"b"}, {}, "n2"}),
                 node({"Relu", {"b"}, {"y"}})}),
      "m.onnx: node \"n1\" (Add, opset 13): error TGC-E204: the node depends on its own output: the graph has a cycle "
      "through it or before it");
  EXPECT_EQ(errors_of({node({"Relu", {"a"}, {"y"}}), node({"Neg", {"x"}, {"a"}})}), "no error");
}

TEST(OnnxErrors, TypesThatDisagree) {
  ModelSpec s = with_nodes({node({"Add", {"x", "i"}, {"y"}, {}, "a"})});
  s.inputs.push_back(value_info("i", 7, {2, 3}));
  EXPECT_EQ(errors(model(s)), "m.onnx: node \"a\" (Add, opset 13): error TGC-E203: inputs have types f32 and i64");
  s = with_nodes({node({"Relu", {"x"}, {"y"}})});
  s.outputs = {value_info("y", 7, {2, 3})};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E204: graph output \"y\" is declared int64, but its value is f32");
}

TEST(OnnxErrors, Inputs) {
  ModelSpec s = with_nodes({node({"Relu", {"x"}, {"y"}})});
  s.inputs = {value_info("x", 8, {2})};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E205: input \"x\" has element type string, which is not supported");
  s.inputs = {value_info("x", 1, {-2})};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E204: input \"x\" has dim -2\n"
                              "  note: a dim known only at run time has a name, or is -1");
  s.inputs = {Wire().text(1, "x").add(2, Wire().add(1, Wire().number(1, 1)))};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E204: input \"x\" has no shape, not even a rank\n"
                              "  note: export the model with input shapes");
  s.inputs = {value_info("x", 1, std::vector<DimSpec>(17, 1))};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E207: input \"x\" has rank 17, the limit is 16");
  s.inputs = {value_info("x", 1, {int64_t{1} << 40, int64_t{1} << 40})};
  EXPECT_EQ(errors(model(s)),
            "m.onnx: error TGC-E207: input \"x\" of shape [1099511627776,1099511627776] has 2^55 bytes or more\n"
            "  note: check the dims and the operands that decide it");
  s.inputs[0] = value_info("x", 1, {int64_t{0}, int64_t{1} << 60});
  EXPECT_EQ(errors(model(s)), "no error");
}

TEST(OnnxErrors, ResultsThatAreTooLargeNameTheirNode) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  ModelSpec s = with_nodes({});
  s.initializers = {tensor_ints("n", {1}, {kHuge}), tensor_ints("zero", {}, {0}), tensor_ints("most", {}, {kHuge}),
                    tensor_ints("one", {}, {1}), tensor_floats("f", {1}, {1})};
  const auto expect = [&](const std::string& op, const Wire& node) {
    s.nodes = {node};
    EXPECT_EQ(errors(model(s)), "m.onnx: node \"a\" (" + op +
                                    ", opset 13): error TGC-E207: the result of shape [4611686018427387904] has 2^55 "
                                    "bytes or more\n  note: check the dims and the operands that decide it");
  };
  expect("Expand", node({"Expand", {"f", "n"}, {"y"}, {}, "a"}));
  expect("ConstantOfShape", node({"ConstantOfShape", {"n"}, {"y"}, {}, "a"}));
  expect("Range", node({"Range", {"zero", "most", "one"}, {"y"}, {}, "a"}));
}

TEST(OnnxErrors, LimitsOfTheGraph) {
  ModelSpec s = with_nodes({node({"Relu", {"x"}, {"a"}}), node({"Unsqueeze", {"a", "axes"}, {"y"}})});
  s.initializers = {tensor_ints("axes", {16}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})};
  s.inputs = {value_info("x", 1, {2})};
  EXPECT_EQ(errors(model(s)),
            "m.onnx: node #1 (Unsqueeze, opset 13): error TGC-E207: the result has rank 17, the limit is 16");
  ImportOptions options;
  options.limits.rank = 17;
  EXPECT_EQ(errors(model(s), options), "no error");
  options.limits.nodes = 1;
  EXPECT_EQ(errors(model(s), options), "m.onnx: error TGC-E207: 2 nodes, the limit is 1");
  options.limits.nodes = 2;
  options.limits.graph_size = 3;
  EXPECT_EQ(errors(model(s), options), "m.onnx: error TGC-E207: the graph has more than 3 nodes");
}

TEST(OnnxErrors, DimOptions) {
  ModelSpec s = with_nodes({node({"Relu", {"x"}, {"y"}})});
  s.inputs = {value_info("x", 1, {"batch", 3})};
  ImportOptions options;
  options.dims["bacth"] = {4, 4};
  EXPECT_EQ(errors(model(s), options), "m.onnx: error TGC-E209: there is no dim \"bacth\" to set\n"
                                       "  note: the model's symbolic dims are: batch");
  options.dims = {{"batch", {4, 2}}};
  EXPECT_EQ(errors(model(s), options),
            "m.onnx: error TGC-E209: dim batch cannot be 4..2\n  note: bounds are 1 <= LO <= HI");
}

TEST(OnnxErrors, TensorsThatLie) {
  ModelSpec s = with_nodes({node({"Add", {"x", "w"}, {"y"}})});
  s.initializers = {tensor_floats("w", {2, 3}, {1, 2, 3})};
  EXPECT_EQ(errors(model(s)),
            "m.onnx: error TGC-E204: tensor \"w\" of type float and shape [2,3] needs 24 bytes, has 12");
  s.initializers = {tensor_floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {1})};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E207: tensor \"w\" has more than 2^62 bytes");
  s.initializers = {tensor_floats("w", {-3}, {1})};
  EXPECT_EQ(errors(model(s)), "m.onnx: error TGC-E204: tensor \"w\" has dim -3");
}

TEST(OnnxErrors, TruncatedFiles) {
  std::string whole = model(with_nodes({node({"Relu", {"x"}, {"y"}})}));
  EXPECT_EQ(errors(""), "m.onnx: error TGC-E201: the file is empty\n"
                        "  note: the file is not a complete ONNX model; export or download it again");
  EXPECT_EQ(errors(whole.substr(0, whole.size() - 10)),
            "m.onnx: error TGC-E201: byte 3: a field of 59 bytes runs past the end (55 bytes are left)\n"
            "  note: the file is not a complete ONNX model; export or download it again");
  for (size_t n = 1; n < whole.size(); ++n) EXPECT_NE(errors(whole.substr(0, n)), "no error") << n;
}

TEST(OnnxErrors, DeepNestingIsCapped) {
  std::string graph;
  for (int i = 0; i < 200; ++i) graph = Wire().add(1, Wire().add(5, Wire().text(1, "g").add(6, Wire{graph}))).bytes;
  EXPECT_EQ(
      errors(Wire().number(1, 7).add(7, Wire{graph}).bytes),
      "m.onnx: error TGC-E207: messages are nested deeper than 96 levels\n  note: no exporter nests graphs this deep");
}

class ExternalData : public testing::Test {
protected:
  std::filesystem::path root = std::filesystem::path(TGC_BINARY_DIR) / "external_data_test";
  void SetUp() override {
    std::filesystem::create_directories(root / "model");
    std::ofstream(root / "model" / "w.bin") << std::string(32, '\1');
    std::ofstream(root / "secret.bin") << std::string(32, '\1');
    std::error_code ignored;
    std::filesystem::create_symlink(root / "secret.bin", root / "model" / "link.bin", ignored);
  }
  std::string import(const std::string& location, const std::string& offset, const std::string& length) {
    ModelSpec s = with_nodes({node({"Add", {"x", "w"}, {"y"}})});
    s.initializers = {tensor_external("w", {2, 3}, location, offset, length)};
    ImportOptions options;
    options.folder = (root / "model").string();
    return errors(model(s), options);
  }
};

TEST_F(ExternalData, StaysInTheModelsFolder) {
  EXPECT_EQ(import("w.bin", "8", "24"), "no error");
  EXPECT_EQ(import("w.bin", "8", ""), "no error");
  const std::string leaves = "m.onnx: error TGC-E206: tensor \"w\": external data \"",
                    folder = "external data must lie in the model's folder";
  EXPECT_EQ(import("../secret.bin", "0", "24"),
            leaves + "../secret.bin\" leaves the model's folder\n  note: " + folder);
  EXPECT_EQ(import("link.bin", "0", "24"), leaves + "link.bin\" leaves the model's folder\n  note: " + folder);
  EXPECT_EQ(import("/etc/passwd", "0", "24"),
            leaves + "/etc/passwd\" is not a path relative to the model\n  note: " + folder);
  EXPECT_EQ(import("none.bin", "0", "24"), leaves + "none.bin\" is not a file\n  note: put the file beside the model");
}

TEST_F(ExternalData, RangesAreChecked) {
  EXPECT_EQ(import("w.bin", "16", "24"),
            "m.onnx: error TGC-E206: tensor \"w\": external data \"w.bin\" has 32 bytes; range 16+24 "
            "passes its end\n  note: download the data again");
  EXPECT_EQ(import("w.bin", "999999999999999999", "24").substr(0, 75),
            "m.onnx: error TGC-E206: tensor \"w\": external data \"w.bin\" has 32 bytes; ran");
  EXPECT_EQ(import("w.bin", "-1", "24"),
            "m.onnx: error TGC-E206: tensor \"w\": external data has offset=\"-1\", which is not a number");
}

TEST(OnnxErrors, UnreadableFile) {
  try {
    import_model("/nonexistent/m.onnx");
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(to_string(e.all()[0]), "/nonexistent/m.onnx: error TGC-E501: No such file or directory\n"
                                     "  note: check the path and its permissions");
  }
}

} // namespace
} // namespace tgc
