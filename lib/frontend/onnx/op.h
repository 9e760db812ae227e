// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "frontend/bytes.h"
#include "frontend/onnx/model.h"
#include "frontend/tensor.h"
#include "uop/module.h"

namespace tgc::onnx {

/// What an import that starts again need not do again.
struct WeightCache {
  std::map<std::string, FileBytes> opened;                        ///< external files, by location
  std::map<std::pair<const std::byte*, size_t>, uint64_t> hashes; ///< of ranges of these and of the model
};
/// Where the model's bytes and weights come from and go to.
struct Weights {
  Module* module;
  FileBytes file;     ///< the model's own bytes
  std::string folder; ///< of external data
  WeightCache* cache;
};
/// The tgc type of an ONNX element type. errors: E205.
DType dtype_of(int32_t type);
std::optional<DType> find_dtype(int32_t type);
/// The tensor as add_constant (frontend/constant.h) makes it. errors: E205 type, E206 external data, E204 sizes that do
/// not match, E207 rank or overflow.
Ref constant(Weights& weights, const Tensor& tensor);

/// What a handler sees of its node: operands as Refs, attributes by name, and where results go. Every attribute must be
/// read (or ignored by name): an unread one is reported, so that no attribute is silently without effect.
class OpContext {
public:
  OpContext(const Node& node, int64_t opset, std::vector<Ref> inputs, Weights& weights)
      : node_(node), opset_(opset), inputs_(std::move(inputs)), outputs_(node.outputs.size()), weights_(weights) {}

  int64_t opset() const { return opset_; }
  Context& ctx() const { return *weights_.module->ctx; }
  Weights& weights() { return weights_; }
  const Node& node() const { return node_; }

  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  Ref in(size_t i) const;
  /// in(i), which must be a float tensor.
  Ref in_float(size_t i) const;

  bool has_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  void out(Ref value) { out(0, value); }
  void out(size_t i, Ref value);
  const std::vector<Ref>& outputs() const { return outputs_; }

  // Attributes. errors: E203 when the attribute has another type, or is absent and has no default.
  bool has_attr(const char* name);
  int64_t attr(const char* name, std::optional<int64_t> fallback = std::nullopt);
  double attr_float(const char* name, std::optional<double> fallback = std::nullopt);
  std::string attr_string(const char* name, std::optional<std::string> fallback = std::nullopt);
  std::vector<int64_t> attr_ints(const char* name, std::optional<std::vector<int64_t>> fallback = std::nullopt);
  const Tensor& attr_tensor(const char* name);
  void ignore(const char* name) { read_.insert(name); }
  /// An attribute with the default `fallback` that must be `value`: other values are not supported.
  void require(const char* name, int64_t value, int64_t fallback);
  const Attribute* find(const char* name, AttrKind kind);

  // Operands that must be known at import.
  /// Each element of integer input i as a dim expression. errors: E202 when they are not known.
  tensor::Dims known_dims(size_t i);
  std::vector<int64_t> known_ints(size_t i);
  std::optional<std::vector<int64_t>> try_known_ints(size_t i);
  std::optional<std::vector<double>> try_known_floats(size_t i);
  std::vector<double> known_floats(size_t i);
  /// The one element of a float or integer input.
  double known_number(size_t i);
  /// A dim as a number. errors: E202 when it is symbolic.
  int64_t known_extent(Ref dim) const;
  /// Axes from attribute `name` before opset `since`, from input i since then; nothing if absent.
  std::optional<std::vector<int64_t>> axes(const char* name, int64_t since, size_t i);

  /// Positions, known at import or not, must be in [0, extent). errors: E203, or of the run.
  void require_inside(Ref positions, Ref extent);
  /// tensor::positions that are required to be inside.
  Ref positions(Ref indices, Ref extent);
  /// bool []: true when the node's inputs were not valid.
  const std::vector<Ref>& traps() const { return traps_; }

  [[noreturn]] void fail(const std::string& message, const std::string& note = "") const;
  [[noreturn]] void unsupported(const std::string& message, const std::string& note = "") const;
  void check(bool holds, const std::string& message) const {
    if (!holds) fail(message);
  }
  /// Reports attributes that no one read and outputs that no one made.
  void finish();

private:
  const Node& node_;
  int64_t opset_;
  std::vector<Ref> inputs_, outputs_, traps_;
  Weights& weights_;
  std::set<std::string> read_;
};

using Handler = void (*)(OpContext&);

constexpr int kLatestOpset = 28;
/// One operator over a span of opset versions that have the same meaning to its handler.
struct OpRow {
  const char* op;
  int first, last;            ///< opset versions, inclusive
  int min_inputs, max_inputs; ///< max -1: any number
  Handler handler;
};
/// One family of operators; ops_<family>.cpp defines kOnnxOps_<family>.
struct OpTable {
  const char* family;
  std::span<const OpRow> rows;
};
/// Every table, in the order of their files' names.
std::span<const OpTable* const> op_tables();
/// The row for an operator of domain ai.onnx, or null.
const OpRow* find_op(const std::string& op, int64_t opset);
/// "opsets 7..28" of an operator's rows; empty when there are none.
std::string supported_opsets(const std::string& op);

} // namespace tgc::onnx
