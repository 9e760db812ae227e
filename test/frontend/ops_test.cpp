// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators whose meaning changed between opsets, operands known at import, and weights in every encoding: what the
// ONNX backend tests, which each use one opset, do not cover.
#include <cmath>

#include <gtest/gtest.h>

#include "frontend/one_node.h"
#include "frontend/onnx/op.h"

namespace tgc {
namespace {

TEST(Ops, SoftmaxFlattensBeforeOpset13) {
  OneNode n{{"Softmax", {"x"}, {}, {attr("axis", int64_t{0})}}, 11, {{2, 1}}};
  EXPECT_NEAR(n.run().at(0), 0.26894142, 1e-6); // over all elements: 1/(1 + e)
  n.opset = 13;
  n.shapes = {{1, 2}};
  EXPECT_EQ(n.values(), (Values{1, 1})); // each alone on axis 0
}

TEST(Ops, AddBroadcastsByAxisBeforeOpset7) {
  OneNode n{{"Add", {"x", "a"}, {}, {attr("broadcast", int64_t{1}), attr("axis", int64_t{0})}}, 6, {{2, 3}, {2}}};
  EXPECT_EQ(n.values(), (Values{2, 3, 4, 6, 7, 8}));
  n.spec.attributes.clear();
  EXPECT_EQ(n.error(), "shapes [2,3] and [2] differ, and broadcast is not 1");
  n.opset = 7;
  EXPECT_EQ(n.error(), "shapes [2,3] and [2] do not broadcast");
}

TEST(Ops, AxesMoveFromAttributeToInput) {
  OneNode n{{"ReduceSum", {"x"}, {}, {attr("axes", Ints{1}), attr("keepdims", int64_t{0})}}, 11};
  EXPECT_EQ(n.values(), (Values{6, 15}));
  n.opset = 13;
  EXPECT_EQ(n.error(), "attribute axes is not one of this operator's attributes");
  n.spec = {"ReduceSum", {"x", "axes"}, {}, {attr("keepdims", int64_t{0})}};
  n.initializers = {tensor_ints("axes", {1}, {-2})};
  EXPECT_EQ(n.values(), (Values{5, 7, 9}));
  n.opset = 11;
  EXPECT_EQ(n.error(), "takes axes as an attribute before opset 13");
}

TEST(Ops, SliceTakesAttributesThenInputs) {
  OneNode n{{"Slice", {"x"}, {}, {attr("starts", Ints{1}), attr("ends", Ints{INT64_MAX}), attr("axes", Ints{1})}}, 9};
  EXPECT_EQ(n.values(), (Values{2, 3, 5, 6}));
  n = {{"Slice", {"x", "s", "e", "ax", "st"}}, 13};
  n.initializers = {tensor_ints("s", {1}, {-1}), tensor_ints("e", {1}, {INT64_MIN}), tensor_ints("ax", {1}, {1}),
                    tensor_ints("st", {1}, {-2})};
  EXPECT_EQ(n.values(), (Values{3, 1, 6, 4}));
}

TEST(Ops, TileRepeatsOneAxisBeforeOpset6) {
  OneNode n{{"Tile", {"x", "n", "axis"}}, 1, {{2, 2}}};
  n.initializers = {tensor_floats("n", {1}, {2}), tensor_floats("axis", {1}, {0})};
  EXPECT_EQ(n.values(), (Values{1, 2, 3, 4, 1, 2, 3, 4}));
  n.initializers[0] = tensor_floats("n", {1}, {1.5});
  EXPECT_EQ(n.error(), "tiles is out of range");
}

TEST(Ops, SplitSizesAreAnAttributeAnInputOrEqual) {
  OneNode n{{"Split", {"x"}, {}, {attr("axis", int64_t{1}), attr("split", Ints{3})}}, 2};
  EXPECT_EQ(n.values(), (Values{1, 2, 3, 4, 5, 6}));
  n.opset = 1;
  EXPECT_EQ(n.values(), (Values{1, 2, 3, 4, 5, 6}));
  n = {{"Split", {"x", "s"}, {}, {attr("axis", int64_t{1})}}, 1};
  n.initializers = {tensor_ints("s", {1}, {3})};
  EXPECT_EQ(n.values(), (Values{1, 2, 3, 4, 5, 6}));
  n.opset = 11;
  EXPECT_EQ(n.error(), "takes split as an attribute before opset 13");
  n.opset = 13;
  EXPECT_EQ(n.values(), (Values{1, 2, 3, 4, 5, 6}));
}

TEST(Ops, ClipBoundsMoveToInputs) {
  OneNode n{{"Clip", {"x"}, {}, {attr("max", 4.0f)}}, 6};
  EXPECT_EQ(n.values(), (Values{1, 2, 3, 4, 4, 4}));
  n = {{"Clip", {"x", "lo"}}, 13};
  n.initializers = {tensor_floats("lo", {}, {3})};
  EXPECT_EQ(n.values(), (Values{3, 3, 3, 4, 5, 6}));
}

TEST(Ops, ReshapeCopiesZeroAndInfersOne) {
  OneNode n{{"Reshape", {"x", "s"}}, 13};
  n.initializers = {tensor_ints("s", {3}, {0, -1, 1})};
  EXPECT_EQ(n.run().shape, (Ints{2, 3, 1}));
  n.initializers = {tensor_ints("s", {2}, {-1, 4})};
  EXPECT_EQ(n.error(), "[2,3] does not reshape to [-1,4]");
}

TEST(Ops, SoftmaxOfAnUnknownOpsetIsRefused) {
  EXPECT_EQ((OneNode{{"Softmax", {"x"}}, 29}).error(), "the model uses ai.onnx opset 29");
}

/// Exporters compute Reshape's operand from Shape, Gather and Concat; a symbolic batch survives that.
TEST(Ops, ShapeArithmeticKeepsSymbolicDims) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {"batch", 4, 6})};
  m.initializers = {tensor_ints("zero", {}, {0}), tensor_ints("one", {}, {1}), tensor_ints("two", {1}, {2}),
                    tensor_ints("none", {1}, {-1})};
  m.nodes = {node({"Shape", {"x"}, {"shape"}}),
             node({"Gather", {"shape", "zero"}, {"n"}}),
             node({"Gather", {"shape", "one"}, {"c"}}),
             node({"Unsqueeze", {"n", "u"}, {"n1"}}),
             node({"Unsqueeze", {"c", "u"}, {"c1"}}),
             node({"Mul", {"n1", "two"}, {"n2"}}),
             node({"Div", {"c1", "two"}, {"half"}}),
             node({"Concat", {"n2", "half", "none"}, {"target"}, {attr("axis", int64_t{0})}}),
             node({"Reshape", {"x", "target"}, {"y"}})};
  m.initializers.push_back(tensor_ints("u", {1}, {0}));
  m.outputs = {Wire().text(1, "y")};
  Module module = import_bytes(bytes_of(model(m)), "m.onnx");
  Ref out = module.root->src[0]->src[0]->src[0];
  EXPECT_TRUE(dims_equal(out->shape[0], dim_mul(module.ctx->var("batch", 1, 1 << 20), module.ctx->index(2))));
  EXPECT_EQ(shape_text(out->shape.subspan(1)), "[2,6]");
  HostTensor y = eval(module, {zeros(DType::F32, {3, 4, 6})}, {{"batch", 3}})[0];
  EXPECT_EQ(y.shape, (Ints{6, 2, 6}));
}

/// Resize of [1,1,H,W] by scales, with H and W symbolic, at the extents of `x`.
HostTensor symbolic_resize(const std::vector<Wire>& attributes, const HostTensor& x, const std::vector<float>& scales) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {1, 1, "H", "W"})};
  m.initializers = {tensor_floats("scales", {4}, scales)};
  m.nodes = {node({"Resize", {"x", "", "scales"}, {"y"}, attributes})};
  m.outputs = {Wire().text(1, "y")};
  return eval(import_bytes(bytes_of(model(m)), "m.onnx"), {x}, {{"H", x.shape[2]}, {"W", x.shape[3]}})[0];
}

TEST(Ops, ResizeByWholeFactorsOfSymbolicExtents) {
  const HostTensor x = tensor_of(DType::F32, {1, 1, 1, 3}, {0, 4, 8});
  const Wire nearest = attr("mode", std::string("nearest")), linear = attr("mode", std::string("linear")),
             corner = attr("coordinate_transformation_mode", std::string("asymmetric"));
  auto values = [](const HostTensor& t) {
    Values out;
    for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
    return out;
  };
  HostTensor y = symbolic_resize({nearest}, x, {1, 1, 2, 2});
  EXPECT_EQ(y.shape, (Ints{1, 1, 2, 6}));
  EXPECT_EQ(values(y), (Values{0, 0, 4, 4, 8, 8, 0, 0, 4, 4, 8, 8}));
  // Positions o/2 - 1/4, kept inside: -1/4, 1/4, 3/4, 5/4, 7/4, 9/4.
  EXPECT_EQ(values(symbolic_resize({linear}, x, {1, 1, 1, 2})), (Values{0, 1, 3, 5, 7, 8}));
  EXPECT_EQ(values(symbolic_resize({linear, corner}, x, {1, 1, 1, 2})), (Values{0, 2, 4, 6, 8, 8}));
  EXPECT_EQ(values(symbolic_resize({nearest, corner, attr("nearest_mode", std::string("ceil"))}, x, {1, 1, 1, 2})),
            (Values{0, 4, 4, 8, 8, 8}));
  try {
    symbolic_resize({linear, attr("coordinate_transformation_mode", std::string("align_corners"))}, x, {1, 1, 1, 2});
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.all()[0].message, "this transformation needs known extents");
  }
  try {
    symbolic_resize({nearest}, x, {1, 1, 1, 1.5f});
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.all()[0].message,
              "resizing a symbolic extent by 1.500000 is not supported, only by whole factors from 1 to 64");
  }
}

TEST(Ops, OperandsThatDependOnInputsAreRefused) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {4}), value_info("s", 7, {1})};
  m.nodes = {node({"Reshape", {"x", "s"}, {"y"}, {}, "r"})};
  m.outputs = {Wire().text(1, "y")};
  try {
    import_bytes(bytes_of(model(m)), "m.onnx");
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(to_string(e.all()[0]),
              "m.onnx: node \"r\" (Reshape, opset 13): error TGC-E202: input 1 (\"s\") must be known at compile time\n"
              "  note: make it an initializer, or pin the dims it depends on with --dim NAME=VALUE");
  }
  ImportOptions options;
  options.bindings["s"] = {DType::I64, {1}, bytes_of(std::string("\4\0\0\0\0\0\0\0", 8))};
  EXPECT_EQ(eval(import_bytes(bytes_of(model(m)), "m.onnx", options), {zeros(DType::F32, {4})})[0].shape, Ints{4});
}

/// y = the constant itself.
HostTensor constant(const Wire& tensor) {
  ModelSpec m;
  m.nodes = {node({"Constant", {}, {"y"}, {attr_tensor("value", tensor)}})};
  m.outputs = {Wire().text(1, "y")};
  return eval(import_bytes(bytes_of(model(m)), "m.onnx"), {})[0];
}

TEST(Ops, TypedFieldsHoldEveryType) {
  HostTensor half = constant(tensor_head("", 10, {2}).number(5, 0x3c00).number(5, 0xc000)); // bits of f16
  EXPECT_EQ(half.dtype, DType::F16);
  EXPECT_EQ(half.at(0), 1);
  EXPECT_EQ(half.at(1), -2);
  HostTensor brain = constant(tensor_head("", 16, {2}).number(5, 0x3f80).number(5, 0x4040));
  EXPECT_EQ(brain.at(1), 3);
  HostTensor bytes = constant(tensor_head("", 3, {2}).number(5, -5).number(5, 7));
  EXPECT_EQ(bytes.dtype, DType::I8);
  EXPECT_EQ(bytes.at(0), -5);
  HostTensor wide = constant(tensor_head("", 13, {2}).number(11, -1).number(11, 1));
  EXPECT_EQ(wide.dtype, DType::U64);
  EXPECT_EQ(wide.int_at(0), -1); // all bits
  HostTensor flags = constant(tensor_head("", 9, {2}).number(5, 1).number(5, 0));
  EXPECT_EQ(flags.dtype, DType::Bool);
  EXPECT_EQ(flags.at(0), 1);
  EXPECT_EQ(constant(tensor_head("", 1, {1}).real(4, 2.5f)).at(0), 2.5);
}

/// y = a Constant node with one attribute.
HostTensor constant_by(const Wire& attribute) {
  ModelSpec m;
  m.nodes = {node({"Constant", {}, {"y"}, {attribute}})};
  m.outputs = {Wire().text(1, "y")};
  return eval(import_bytes(bytes_of(model(m)), "m.onnx"), {})[0];
}

TEST(Ops, ConstantsHoldEveryKindOfAttribute) {
  HostTensor whole = constant_by(attr("value_int", int64_t{-7}));
  EXPECT_EQ(whole.dtype, DType::I64);
  EXPECT_EQ(whole.shape, Ints{});
  EXPECT_EQ(whole.int_at(0), -7);
  HostTensor list = constant_by(attr("value_ints", Ints{INT64_MIN, 0, INT64_MAX}));
  EXPECT_EQ(list.shape, Ints{3});
  EXPECT_EQ((Ints{list.int_at(0), list.int_at(1), list.int_at(2)}), (Ints{INT64_MIN, 0, INT64_MAX}));
  EXPECT_EQ(constant_by(attr("value_float", 2.5f)).at(0), 2.5);
  HostTensor reals = constant_by(Wire().text(1, "value_floats").real(7, 1.5f).real(7, -2).number(20, 6));
  EXPECT_EQ(reals.dtype, DType::F32);
  EXPECT_EQ((Values{reals.at(0), reals.at(1)}), (Values{1.5, -2}));
  EXPECT_EQ(constant_by(attr_tensor("value", tensor_floats("", {1, 2}, {3, 4}))).shape, (Ints{1, 2}));
  for (const auto& [name, kind] : {std::pair{"value_string", 3}, {"sparse_value", 11}}) try {
      constant_by(Wire().text(1, name).text(4, "s").number(20, kind));
      FAIL();
    } catch (const CompileError& e) {
      EXPECT_EQ(e.all()[0].message, "attribute " + std::string(name) + " is not supported");
    }
}

/// IR version 3 lists initializers among the inputs too: they stay constants, known at import, and no inputs.
TEST(Ops, InitializersListedAsInputsAreConstants) {
  ModelSpec m;
  m.inputs = {value_info("s", 7, {1}), value_info("x", 1, {2, 2})};
  m.initializers = {tensor_ints("s", {1}, {4})};
  m.nodes = {node({"Reshape", {"x", "s"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  HostTensor y = eval(import_bytes(bytes_of(model(m)), "m.onnx"), {tensor_of(DType::F32, {2, 2}, {1, 2, 3, 4})})[0];
  EXPECT_EQ(y.shape, Ints{4});
  EXPECT_EQ(y.at(3), 4);
}

TEST(Ops, EqualElementsBecomeOneConstant) {
  ModelSpec m;
  m.initializers = {tensor_floats("w", {2, 2}, {3, 3, 3, 3}), tensor_floats("v", {2, 2}, {3, 3, 3, 4})};
  m.nodes = {node({"Add", {"w", "v"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  Module module = import_bytes(bytes_of(model(m)), "m.onnx");
  ASSERT_EQ(module.weights.size(), 1u);
  EXPECT_EQ(module.weights.begin()->first.substr(0, 2), "v@");
}

TEST(Ops, GatherReadsZeroOutsideItsExtent) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {3}), value_info("i", 7, {4})};
  m.nodes = {node({"Gather", {"x", "i"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  HostTensor y = eval(import_bytes(bytes_of(model(m)), "m.onnx"),
                      {tensor_of(DType::F32, {3}, {5, 6, INFINITY}), tensor_of(DType::I64, {4}, {-2, 0, 3, 2})})[0];
  EXPECT_EQ((Values{y.at(0), y.at(1), y.at(2), y.at(3)}), (Values{6, 5, 0, INFINITY}));
}

TEST(Ops, ScatterKeepsTheLastOfSeveral) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {3}), value_info("i", 7, {3}), value_info("u", 1, {3})};
  m.nodes = {node({"ScatterElements", {"x", "i", "u"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  HostTensor y = eval(import_bytes(bytes_of(model(m)), "m.onnx"),
                      {tensor_of(DType::F32, {3}, {1, 2, 3}), tensor_of(DType::I64, {3}, {1, 1, 7}),
                       tensor_of(DType::F32, {3}, {10, 20, 30})})[0];
  EXPECT_EQ((Values{y.at(0), y.at(1), y.at(2)}), (Values{1, 20, 3}));
}

/// No operator claims an opset at which it did not exist, and spans of one operator do not overlap.
TEST(Ops, TableRowsAreDisjoint) {
  std::vector<const onnx::OpRow*> all;
  for (const onnx::OpTable* table : onnx::op_tables())
    for (const onnx::OpRow& row : table->rows) all.push_back(&row);
  EXPECT_GT(all.size(), 130u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(all[i]->first, all[i]->last) << all[i]->op;
    for (size_t j = i + 1; j < all.size(); ++j)
      EXPECT_FALSE(std::string(all[i]->op) == all[j]->op && all[i]->first <= all[j]->last &&
                   all[j]->first <= all[i]->last)
          << all[i]->op;
  }
}

} // namespace
} // namespace tgc
