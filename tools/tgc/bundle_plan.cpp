// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds the plan section: every table of tgrt_plan as an array of plain structs, one text pool, one code pool, all
// offsets relative to the plan. Equal texts and equal expressions are stored once. The order of the tables is fixed and
// the contents' order is kept, so that the bytes are a function of the contents.
#include <algorithm>
#include <cstring>

#include "tgc/bundle_parts.h"
#include "uop/diag.h"

namespace tgc {
namespace {

uint32_t narrow(size_t value) {
  TGC_CHECK(value <= UINT32_MAX, "the plan is too large");
  return static_cast<uint32_t>(value);
}

class TextPool {
public:
  TextPool() { add(""); }
  tgrt_text add(const std::string& text) {
    const auto [entry, added] = known_.try_emplace(text, narrow(bytes_.size()));
    if (added) bytes_.append(text.c_str(), text.size() + 1);
    return entry->second;
  }
  const std::string& bytes() const { return bytes_; }

private:
  std::map<std::string, tgrt_text> known_;
  std::string bytes_;
};

class PlanBuilder {
public:
  PlanBuilder(const BundleContents& contents, const CodeImage& code)
      : in_(contents), code_(code), vars_(sorted_vars(contents)), exprs_(vars_) {
    std::memset(&plan_, 0, sizeof plan_);
    bytes_.resize(sizeof plan_);
  }

  std::string build(const std::vector<uint64_t>& weight_offsets) {
    add_vars();
    plan_.inputs = put(tensors(in_.inputs));
    plan_.outputs = put(tensors(in_.outputs));
    plan_.trap_count = narrow(static_cast<size_t>(in_.traps));
    plan_.dims = put(dims_);
    add_checks();
    add_weights(weight_offsets);
    add_buffers();
    add_kernels();
    add_steps();
    add_meta();
    plan_.code = put(exprs_.words());
    plan_.text = put(std::vector<char>(texts_.bytes().begin(), texts_.bytes().end()));
    plan_.plan_bytes = narrow(bytes_.size());
    std::memcpy(bytes_.data(), &plan_, sizeof plan_);
    return std::move(bytes_);
  }

private:
  static std::vector<BundleContents::Var> sorted_vars(const BundleContents& contents) {
    std::vector<BundleContents::Var> vars = contents.vars;
    std::sort(vars.begin(), vars.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (size_t i = 1; i < vars.size(); ++i)
      TGC_CHECK(vars[i - 1].name != vars[i].name, "variable " + vars[i].name + " is listed twice");
    return vars;
  }

  /// Appends a table; tables start at multiples of 8.
  template <typename T> tgrt_table put(const std::vector<T>& rows) {
    const tgrt_table table = {narrow(bytes_.size()), narrow(rows.size())};
    bytes_.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return table;
  }

  void add_vars() {
    std::vector<tgrt_plan_var> rows;
    for (const auto& var : vars_) {
      TGC_CHECK(var.min <= var.max, "variable " + var.name + " has no values");
      rows.push_back({texts_.add(var.name), 0, var.min, var.max});
    }
    plan_.vars = put(rows);
  }

  std::vector<tgrt_plan_tensor> tensors(const std::vector<BundleContents::Tensor>& list) {
    std::vector<tgrt_plan_tensor> rows;
    for (const auto& tensor : list) {
      TGC_CHECK(byte_size(tensor.dtype) > 0 && tensor.dtype != DType::Index, "tensor " + tensor.name + " has no type");
      rows.push_back({texts_.add(tensor.name), static_cast<uint32_t>(tensor.dtype), narrow(tensor.dims.size()),
                      narrow(dims_.size())});
      for (const Ref dim : tensor.dims) dims_.push_back(exprs_.add(dim));
    }
    return rows;
  }

  void add_checks() {
    std::vector<tgrt_plan_check> rows;
    for (const auto& check : in_.checks)
      rows.push_back({exprs_.add(check.left), exprs_.add(check.right),
                      static_cast<uint32_t>(check.equal ? TGRT_CHECK_EQUAL : TGRT_CHECK_AT_MOST),
                      texts_.add(check.text)});
    plan_.checks = put(rows);
  }

  void add_weights(const std::vector<uint64_t>& offsets) {
    std::vector<tgrt_plan_weight> rows;
    for (size_t i = 0; i < in_.weights.size(); ++i)
      rows.push_back({texts_.add(in_.weights[i].key), 0, offsets[i], in_.weights[i].bytes});
    plan_.weights = put(rows);
  }

  void add_buffers() {
    std::vector<tgrt_plan_buffer> rows;
    for (const auto& buffer : in_.buffers) {
      TGC_CHECK(buffer.slot >= 0 && static_cast<size_t>(buffer.slot) < in_.buffers.size(),
                "slots must be numbered from 0 without gaps");
      rows.push_back({exprs_.add(buffer.bytes), narrow(static_cast<size_t>(buffer.slot)), buffer.at});
      plan_.slot_count = std::max(plan_.slot_count, rows.back().slot + 1);
    }
    plan_.buffers = put(rows);
  }

  void add_kernels() {
    std::vector<tgrt_plan_kernel> rows;
    for (const auto& kernel : in_.kernels) {
      const auto symbol = code_.symbols.find(kernel.name);
      if (symbol == code_.symbols.end())
        throw CompileError(Diagnostic{ErrorCode::E403, "linked code", "it does not define kernel " + kernel.name, {}});
      tgrt_plan_kernel row{};
      row.name = texts_.add(kernel.name);
      row.opts = texts_.add(kernel.opts);
      row.address = symbol->second.address;
      row.code_bytes = symbol->second.bytes;
      row.scratch_bytes = exprs_.add(kernel.scratch_bytes);
      row.chunks = exprs_.add(kernel.chunks);
      row.flops = exprs_.add(kernel.flops);
      row.bytes = exprs_.add(kernel.bytes);
      rows.push_back(row);
    }
    plan_.kernels = put(rows);
  }

  size_t limit_of(BundleContents::Arg::Kind kind) const {
    switch (kind) {
    case BundleContents::Arg::Kind::Input: return in_.inputs.size();
    case BundleContents::Arg::Kind::Output: return in_.outputs.size();
    case BundleContents::Arg::Kind::Weight: return in_.weights.size();
    case BundleContents::Arg::Kind::Buffer: return in_.buffers.size();
    }
    return 0;
  }

  void add_steps() {
    std::vector<tgrt_plan_step> rows;
    std::vector<tgrt_plan_arg> args;
    std::vector<uint32_t> waits;
    for (const auto& step : in_.steps) {
      TGC_CHECK(static_cast<size_t>(step.kernel) < in_.kernels.size(), "step of a kernel that does not exist");
      rows.push_back({narrow(static_cast<size_t>(step.kernel)), narrow(args.size()), narrow(step.args.size()),
                      texts_.add(step.origin), narrow(waits.size()), narrow(step.waits.size())});
      for (const int wait : step.waits) {
        TGC_CHECK(wait >= 0 && static_cast<size_t>(wait) + 1 < rows.size(), "a step waits for no earlier one");
        waits.push_back(static_cast<uint32_t>(wait));
      }
      for (const auto& arg : step.args) {
        TGC_CHECK(static_cast<size_t>(arg.index) < limit_of(arg.kind),
                  "kernel " + in_.kernels[static_cast<size_t>(step.kernel)].name + " has an argument out of range");
        args.push_back({static_cast<uint32_t>(arg.kind), narrow(static_cast<size_t>(arg.index))});
      }
    }
    plan_.steps = put(rows);
    plan_.args = put(args);
    plan_.waits = put(waits);
  }

  void add_meta() {
    std::vector<std::pair<std::string, std::string>> sorted = in_.meta;
    std::sort(sorted.begin(), sorted.end());
    std::vector<tgrt_plan_meta> rows;
    for (const auto& [key, value] : sorted) rows.push_back({texts_.add(key), texts_.add(value)});
    plan_.meta = put(rows);
  }

  const BundleContents& in_;
  const CodeImage& code_;
  std::vector<BundleContents::Var> vars_;
  ExprPool exprs_;
  TextPool texts_;
  std::vector<tgrt_expr> dims_;
  tgrt_plan plan_;
  std::string bytes_;
};

} // namespace

std::string make_plan(const BundleContents& contents, const CodeImage& code,
                      const std::vector<uint64_t>& weight_offsets) {
  return PlanBuilder(contents, code).build(weight_offsets);
}

} // namespace tgc
