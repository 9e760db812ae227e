// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operator tables against ONNX's own list of operator versions (onnx_operators.txt, made by
// scripts/onnx_operators.py; $TGC_ONNX_OPS names another one) and against what trained models use.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "frontend/onnx/op.h"

namespace tgc {
namespace {

using onnx::OpRow;

std::vector<const OpRow*> rows_of(const std::string& op) {
  std::vector<const OpRow*> rows;
  for (const onnx::OpTable* table : onnx::op_tables())
    for (const OpRow& row : table->rows)
      if (op == row.op) rows.push_back(&row);
  return rows;
}

// ---- ONNX's list ----------------------------------------------------------------------------------------------------

struct Version {
  bool deprecated;
  int min_inputs, max_inputs; ///< INT_MAX: any number
};
using Versions = std::map<int, Version>; ///< by the opset that brought it

/// "13:1..2", "10:deprecated" or "8:1..*".
std::pair<int, Version> parse_version(const std::string& text) {
  const std::string inputs = text.substr(text.find(':') + 1);
  const int since = std::stoi(text);
  if (inputs == "deprecated") return {since, {true, 0, INT_MAX}};
  const std::string most = inputs.substr(inputs.find("..") + 2);
  return {since, {false, std::stoi(inputs), most == "*" ? INT_MAX : std::stoi(most)}};
}

std::map<std::string, Versions> known_versions() {
  const char* chosen = std::getenv("TGC_ONNX_OPS");
  std::ifstream in(chosen ? chosen : std::string(TGC_SOURCE_DIR) + "/test/frontend/onnx_operators.txt");
  std::map<std::string, Versions> known;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string op, version;
    if (line.starts_with("#") || !(words >> op)) continue;
    while (words >> version) known[op].insert(parse_version(version));
  }
  return known;
}

class OpTable : public testing::Test {
protected:
  const std::map<std::string, Versions> known_ = known_versions();
};

TEST_F(OpTable, RowsStartAtAVersionOfTheOperator) {
  EXPECT_GT(known_.size(), 190u);
  for (const onnx::OpTable* table : onnx::op_tables())
    for (const OpRow& row : table->rows) {
      auto found = known_.find(row.op);
      ASSERT_NE(found, known_.end()) << row.op << " is no operator";
      EXPECT_TRUE(found->second.count(row.first)) << row.op << " has no version " << row.first;
      bool to_next = row.last == onnx::kLatestOpset || found->second.count(row.last + 1);
      EXPECT_TRUE(to_next) << row.op << " " << row.first << ".." << row.last << " ends inside a version";
    }
}

TEST_F(OpTable, EveryVersionOfASupportedOperatorIsCovered) {
  for (const auto& [op, versions] : known_) {
    if (rows_of(op).empty()) continue;
    for (const auto& [since, version] : versions) {
      bool withdrawn = op == "Upsample" || op == "Scatter"; // its last version only says what replaces it
      EXPECT_EQ(onnx::find_op(op, since) != nullptr, !(version.deprecated && withdrawn)) << op << " " << since;
    }
  }
}

/// A row takes every number of inputs that one of its versions takes, and no other.
TEST_F(OpTable, InputCounts) {
  for (const onnx::OpTable* table : onnx::op_tables())
    for (const OpRow& row : table->rows) {
      int least = INT_MAX, most = 0;
      auto found = known_.find(row.op);
      ASSERT_NE(found, known_.end());
      for (const auto& [since, version] : found->second) {
        if (since < row.first || since > row.last || version.deprecated) continue;
        least = std::min(least, version.min_inputs);
        most = std::max(most, version.max_inputs);
      }
      if (least == INT_MAX) continue; // deprecated versions have no signature in the list
      EXPECT_EQ(row.min_inputs, least) << row.op << " " << row.first;
      EXPECT_EQ(row.max_inputs < 0 ? INT_MAX : row.max_inputs, most) << row.op << " " << row.first;
    }
}

TEST_F(OpTable, TheLatestOpsetIsTheLists) {
  int latest = 0;
  for (const auto& [op, versions] : known_) latest = std::max(latest, versions.rbegin()->first);
  EXPECT_EQ(onnx::kLatestOpset, latest);
}

// ---- what models use ------------------------------------------------------------------------------------------------

struct Use {
  const char* op;
  std::vector<int> opsets;
};

/// Operators and the opsets of the models that use them: vision, text and audio models of several exporters.
const Use kUses[] = {
    // clang-format off
    {"Add", {8, 9, 11, 13, 15, 16, 18}},
    {"AveragePool", {9, 15}},
    {"BatchNormalization", {9, 11, 13, 16}},
    {"Cast", {9, 13, 15, 16}},
    {"Clip", {9, 11, 16}},
    {"Concat", {7, 9, 11, 13, 15, 16, 18}},
    {"Constant", {9, 10, 11, 13, 15, 16}},
    {"ConstantOfShape", {9, 15, 16}},
    {"Conv", {7, 8, 9, 10, 11, 13, 15, 16, 18}},
    {"ConvTranspose", {11}},
    {"Cos", {16}},
    {"DepthToSpace", {15}},
    {"DequantizeLinear", {15}},
    {"Div", {9, 11, 13, 16}},
    {"Dropout", {7, 9}},
    {"Equal", {15, 16, 18}},
    {"Erf", {13, 16}},
    {"Exp", {9}},
    {"Expand", {13, 16}},
    {"Flatten", {11, 16}},
    {"Gather", {9, 13, 15, 16, 18}},
    {"Gemm", {9, 10, 13, 16, 18}},
    {"GlobalAveragePool", {7, 9, 11, 16}},
    {"Greater", {16}},
    {"HardSigmoid", {9, 11}},
    {"Identity", {15, 16}},
    {"InstanceNormalization", {16}},
    {"LRN", {9}},
    {"LeakyRelu", {13}},
    {"LogSoftmax", {16}},
    {"MatMul", {8, 9, 11, 13, 15, 16}},
    {"Max", {13}},
    {"MaxPool", {7, 8, 9, 10, 11, 13, 15, 16}},
    {"Mul", {9, 11, 13, 15, 16, 18}},
    {"Neg", {16}},
    {"Not", {15, 16}},
    {"OneHot", {13}},
    {"Pad", {15, 16, 18}},
    {"Pow", {15, 16, 18}},
    {"QuantizeLinear", {15}},
    {"Reciprocal", {13}},
    {"ReduceL2", {16}},
    {"ReduceMax", {13}},
    {"ReduceMean", {13, 15, 16, 18}},
    {"ReduceProd", {13}},
    {"ReduceSum", {16}},
    {"ReduceSumSquare", {13}},
    {"Relu", {7, 8, 9, 10, 11, 13, 15, 16, 18}},
    {"Reshape", {8, 9, 10, 11, 13, 15, 16, 18}},
    {"Resize", {11, 16}},
    {"Shape", {9, 13, 15, 16}},
    {"Sigmoid", {11, 15, 16, 18}},
    {"Sin", {16}},
    {"Size", {15, 16}},
    {"Slice", {9, 11, 13, 15, 16, 18}},
    {"Softmax", {7, 9, 11, 13, 15, 16}},
    {"Split", {16, 18}},
    {"Sqrt", {13, 15, 16, 18}},
    {"Squeeze", {11, 13, 15, 16, 18}},
    {"Sub", {9, 13, 15, 16}},
    {"Sum", {9}},
    {"Tanh", {18}},
    {"Transpose", {9, 11, 13, 15, 16}},
    {"Unsqueeze", {9, 11, 13, 15, 16, 18}},
    {"Where", {16}},
    // clang-format on
};

TEST(OpUses, AreCovered) {
  for (const Use& use : kUses)
    for (int opset : use.opsets) EXPECT_NE(onnx::find_op(use.op, opset), nullptr) << use.op << " " << opset;
}

} // namespace
} // namespace tgc
