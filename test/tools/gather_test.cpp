// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Indexed reads as compiled code: a load for each element and never one outside the tensor, the element's own bits,
// data behind views and arithmetic, and an error of the run that names the node when an index is outside.
#include <gtest/gtest.h>

#include <cmath>

#include "compiled.h"
#include "frontend/onnx_writer.h"
#include "uop/text.h"

namespace tgc {
namespace {

ModelSpec gather(const std::vector<DimSpec>& data, const std::vector<DimSpec>& index, int64_t axis) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, data), value_info("i", 7, index)};
  m.nodes = {node({"Gather", {"x", "i"}, {"y"}, {attr("axis", axis)}, "pick"})};
  m.outputs = {Wire().text(1, "y")};
  return m;
}
std::vector<double> values(const HostTensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.numel(); ++i) out.push_back(t.at(i));
  return out;
}
HostTensor indices(const std::vector<double>& at) {
  return tensor_of(DType::I64, {static_cast<int64_t>(at.size())}, at);
}

} // namespace

TEST(Gather, IsOneLoadAnElement) {
  const CompileOptions options;
  Compilation c = start_compilation(import_bytes(bytes_of(model(gather({100000, 64}, {8}, 0))), "m.onnx", {}), options);
  run_pipeline(c, options);
  int64_t trips = 0;
  for (Ref node : toposort(c.module.root, true))
    if (node->is(Ops::Range)) trips = std::max(trips, node->hi + 1);
  EXPECT_LE(trips, 64) << print(c.module); // nothing runs along the table
}

/// Words, positions and kinds: rows of three tables, their sum and its norm are one kernel and three for wrong indices.
TEST(Gather, EmbeddingsAndTheirNormAreOneKernel) {
  ModelSpec m;
  m.inputs = {value_info("i", 7, {"b", "s"}), value_info("j", 7, {"s"}), value_info("k", 7, {"b", "s"})};
  const auto table = [](const char* name, int64_t rows) {
    std::vector<float> values(static_cast<size_t>(rows * 32));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 17);
    return tensor_floats(name, {rows, 32}, values);
  };
  m.initializers = {table("w", 40), table("p", 70), table("t", 2), table("scale", 1)};
  m.nodes = {node({"Gather", {"w", "i"}, {"a"}}), node({"Gather", {"p", "j"}, {"b"}}),
             node({"Gather", {"t", "k"}, {"c"}}), node({"Add", {"a", "b"}, {"ab"}}),
             node({"Add", {"ab", "c"}, {"abc"}}), node({"LayerNormalization", {"abc", "scale"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  m.opset = 17;
  CompileOptions options;
  options.import.dims = {{"b", {1, 16}}, {"s", {1, 256}}};
  Compilation c = start_compilation(import_bytes(bytes_of(model(m)), "m.onnx", options.import), options);
  run_pipeline(c, options);
  int64_t norms = 0;
  for (Ref call : c.module.root->src[0]->src)
    norms += call->s(Attr::Origin).find("LayerNormalization") != std::string::npos;
  EXPECT_EQ(norms, 1) << print(c.module);
}

TEST(Gather, KeepsBitsAndCountsFromTheEnd) {
  const Compiled c(model(gather({2, 3}, {4}, 1)));
  const HostTensor x = tensor_of(DType::F32, {2, 3}, {-0.0, 1, INFINITY, 3, NAN, 5});
  const HostTensor y = c.run({x, indices({0, -1, 1, -3})})[0];
  EXPECT_EQ(y.shape, (std::vector<int64_t>{2, 4}));
  EXPECT_TRUE(std::signbit(y.at(0)) && std::signbit(y.at(3)));
  EXPECT_EQ(y.at(1), INFINITY);
  EXPECT_EQ((std::vector<double>{y.at(4), y.at(5), y.at(7)}), (std::vector<double>{3, 5, 3}));
  EXPECT_TRUE(std::isnan(y.at(6)));
}

TEST(Gather, ReadsThroughViewsAndArithmetic) {
  ModelSpec m;
  m.inputs = {value_info("x", 1, {3, 4}), value_info("i", 7, {2})};
  m.nodes = {node({"Transpose", {"x"}, {"t"}}), node({"Gather", {"t", "i"}, {"a"}}),
             node({"Mul", {"x", "x"}, {"s"}}),  node({"Gather", {"s", "i"}, {"b"}, {attr("axis", int64_t{1})}}),
             node({"Transpose", {"b"}, {"c"}}), node({"Sub", {"c", "a"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  std::vector<double> ramp(12);
  for (size_t i = 0; i < 12; ++i) ramp[i] = static_cast<double>(i);
  const HostTensor y = Compiled(model(m)).run({tensor_of(DType::F32, {3, 4}, ramp), indices({3, 1})})[0];
  EXPECT_EQ(values(y), (std::vector<double>{6, 42, 110, 0, 20, 72})); // v*v - v of columns 3 and 1
}

TEST(Gather, AnIndexOutsideIsAnErrorThatNamesTheNode) {
  const Compiled c(model(gather({5, 7}, {3}, 0)));
  EXPECT_EQ(tgrt_tensor_count(c.model(), TGRT_OUTPUT), 1U);
  tgrt_context* context = nullptr;
  tgrt_error error{};
  ASSERT_EQ(tgrt_create_context(c.model(), nullptr, &context, &error), 0) << error.text;
  auto* at = static_cast<int64_t*>(tgrt_data(context, TGRT_INPUT, 1, &error));
  const int64_t cases[][3] = {{0, 4, 5}, {-6, 0, 0}, {0, INT64_MAX, 0}, {0, 0, INT64_MIN}};
  auto* x = static_cast<float*>(tgrt_data(context, TGRT_INPUT, 0, &error));
  for (int i = 0; i < 35; ++i) x[i] = static_cast<float>(i) + 0.1f;
  for (const auto& wrong : cases) {
    std::memcpy(at, wrong, sizeof wrong);
    EXPECT_EQ(tgrt_run(context, &error), TGRT_E_INDEX);
    for (int i = 0; i < 35; ++i) EXPECT_EQ(x[i], static_cast<float>(i) + 0.1f); // a trap has storage of its own
    EXPECT_STREQ(error.text,
                 "TGR-E307: node \"pick\" (Gather, opset 13): an index is outside its tensor. The outputs are "
                 "not valid; an index counts from 0, or from -1 at the end.");
  }
  const int64_t right[] = {4, -5, 0};
  std::memcpy(at, right, sizeof right);
  EXPECT_EQ(tgrt_run(context, &error), 0) << error.text;
  tgrt_free_context(context);
}

} // namespace tgc
