// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX import end to end: the quickstart model gives its reference output, pinned and with a symbolic batch.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "frontend/onnx_data.h"
#include "frontend/onnx_writer.h"
#include "uop/bytes_hash.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace tgc {
namespace {

const std::string kFashion = std::string(TGC_SOURCE_DIR) + "/models/fashion_cnn/";
constexpr double kRelative = 1e-3, kAbsolute = 1e-7; // as ONNX's own test runner

TEST(Onnx, FashionCnnGivesItsReferenceOutput) {
  HostTensor input = read_pb(kFashion + "test_data_set_0/input_0.pb"),
             expected = read_pb(kFashion + "test_data_set_0/output_0.pb");
  ImportOptions pinned;
  pinned.dims["batch"] = {16, 16};
  Module fixed = import_model(kFashion + "model.onnx", pinned);
  EXPECT_EQ(difference(eval(fixed, {input})[0], expected, kRelative, kAbsolute), "");
  Module symbolic = import_model(kFashion + "model.onnx");
  EXPECT_EQ(shape_text(symbolic.root->src[0]->src[0]->src[0]->shape), "[batch,10]");
  EXPECT_EQ(difference(eval(symbolic, {input}, {{"batch", 16}})[0], expected, kRelative, kAbsolute), "");
}

TEST(Onnx, DimsWithoutANameAreOpen) {
  ModelSpec spec;
  spec.nodes = {node({"Relu", {"x"}, {"y"}})};
  spec.inputs = {value_info("x", 1, {-1, "?", "?", "w", 3})};
  spec.outputs = {Wire().text(1, "y")};
  const Module m = import_bytes(bytes_of(model(spec)), "m.onnx");
  EXPECT_EQ(shape_text(m.root->src[0]->src[0]->src[0]->shape), "[x_dim0,x_dim1,x_dim2,w,3]");
}

TEST(Onnx, WeightsAreRangesOfTheModelFile) {
  Module m = import_model(kFashion + "model.onnx");
  ASSERT_EQ(m.weights.size(), 10u); // 3 convolutions, 2 linear layers
  FileBytes file = open_bytes(kFashion + "model.onnx");
  for (const auto& [key, w] : m.weights) {
    EXPECT_EQ(w.kind, WeightData::Kind::Mapped);
    EXPECT_EQ(w.file, kFashion + "model.onnx");
    ASSERT_LE(w.offset + w.length, file.bytes.size());
    EXPECT_EQ(std::memcmp(file.bytes.data() + w.offset, w.data, w.length), 0);
    EXPECT_EQ(hash_bytes(file.bytes.subspan(w.offset, w.length)), w.hash);
  }
}

} // namespace
} // namespace tgc
