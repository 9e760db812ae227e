// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints a bundle as JSON, from the tables of its plan section, which the loader has checked. Sizes that depend on
// variables are written as expressions.
#include <cstdio>
#include <cstring>

#include "runtime/tgrt_bundle.h"
#include "tgrun/run_model.h"

namespace tgc {

namespace {

/// The tables of a checked plan.
class Plan {
public:
  explicit Plan(const tgrt_model* model) {
    size_t bytes = 0;
    base_ = static_cast<const char*>(tgrt_section_data(model, TGRT_SECTION_PLAN, &bytes));
    header_ = reinterpret_cast<const tgrt_plan*>(base_);
  }
  const tgrt_plan& operator*() const { return *header_; }
  const tgrt_plan* operator->() const { return header_; }
  template <typename T> const T* rows(tgrt_table table) const {
    return reinterpret_cast<const T*>(base_ + table.offset);
  }
  std::string text(tgrt_text at) const { return rows<char>(header_->text) + at; }
  std::string quoted(tgrt_text at) const { return json_string(text(at)); }

  /// An expression in infix form; a constant is a JSON number, anything else a JSON string.
  std::string expr(tgrt_expr at) const {
    static constexpr const char* kOps[] = {"+", "-", "*", "//", "%", "min", "max"};
    std::vector<std::string> stack;
    const int64_t* word = rows<int64_t>(header_->code) + at;
    const bool is_constant = (word[0] & 0xff) == TGRT_EXPR_CONST && word[1] == TGRT_EXPR_END;
    for (; *word != TGRT_EXPR_END; ++word) {
      const int64_t op = *word & 0xff, operand = *word >> 8;
      if (op == TGRT_EXPR_CONST)
        stack.push_back(std::to_string(operand));
      else if (op == TGRT_EXPR_VAR)
        stack.push_back(text(rows<tgrt_plan_var>(header_->vars)[operand].name));
      else {
        const std::string right = stack.back(), symbol = kOps[op - TGRT_EXPR_ADD];
        stack.pop_back();
        std::string& left = stack.back();
        left = op >= TGRT_EXPR_MIN ? symbol + "(" + left + ", " + right + ")"
                                   : "(" + left + " " + symbol + " " + right + ")";
      }
    }
    std::string& all = stack.back();
    if (all.starts_with('(')) all = all.substr(1, all.size() - 2);
    return is_constant ? all : json_string(all);
  }

private:
  const char* base_;
  const tgrt_plan* header_;
};

/// "  \"name\": [\n    row,\n    row\n  ]"
template <typename Row> std::string list(const char* name, uint32_t count, Row row) {
  std::string text = std::string("  \"") + name + "\": [";
  for (uint32_t i = 0; i < count; ++i) text += (i ? ",\n    " : "\n    ") + row(i);
  return text + (count ? "\n  ]" : "]");
}

std::string field(const char* name, const std::string& value) { return std::string("\"") + name + "\": " + value; }
std::string field(const char* name, uint64_t value) { return field(name, std::to_string(value)); }

std::string object(std::initializer_list<std::string> fields) {
  std::string text = "{";
  for (const std::string& f : fields) text += (text.size() > 1 ? ", " : "") + f;
  return text + "}";
}

std::string tensors(const Plan& plan, const char* name, tgrt_table table) {
  return list(name, table.count, [&](uint32_t i) {
    const tgrt_plan_tensor& t = plan.rows<tgrt_plan_tensor>(table)[i];
    std::string dims;
    for (uint32_t axis = 0; axis < t.rank; ++axis)
      dims += (axis ? ", " : "") + plan.expr(plan.rows<tgrt_expr>(plan->dims)[t.first_dim + axis]);
    return object({field("name", plan.quoted(t.name)), field("dtype", json_string(dtype_name(t.dtype))),
                   field("dims", "[" + dims + "]")});
  });
}

std::string kernels(const Plan& plan) {
  return list("kernels", plan->kernels.count, [&](uint32_t i) {
    const tgrt_plan_kernel& k = plan.rows<tgrt_plan_kernel>(plan->kernels)[i];
    return object({field("name", plan.quoted(k.name)), field("address", k.address), field("code_bytes", k.code_bytes),
                   field("scratch_bytes", plan.expr(k.scratch_bytes)), field("chunks", plan.expr(k.chunks)),
                   field("flops", plan.expr(k.flops)), field("bytes", plan.expr(k.bytes)),
                   field("opts", plan.quoted(k.opts))});
  });
}

std::string steps(const Plan& plan) {
  static constexpr const char* kKinds[] = {"input", "output", "weight", "buffer"};
  return list("steps", plan->steps.count, [&](uint32_t i) {
    const tgrt_plan_step& s = plan.rows<tgrt_plan_step>(plan->steps)[i];
    std::string args;
    for (uint32_t a = 0; a < s.arg_count; ++a) {
      const tgrt_plan_arg& arg = plan.rows<tgrt_plan_arg>(plan->args)[s.first_arg + a];
      args += std::string(a ? ", \"" : "\"") + kKinds[arg.kind] + " " + std::to_string(arg.index) + "\"";
    }
    std::string waits;
    for (uint32_t w = 0; w < s.wait_count; ++w)
      waits += (w ? ", " : "") + std::to_string(plan.rows<uint32_t>(plan->waits)[s.first_wait + w]);
    return object({field("kernel", plan.quoted(plan.rows<tgrt_plan_kernel>(plan->kernels)[s.kernel].name)),
                   field("args", "[" + args + "]"), field("waits", "[" + waits + "]"),
                   field("nodes", plan.quoted(s.origin))});
  });
}

std::string storage(const Plan& plan) {
  const std::string weights = list("weights", plan->weights.count, [&](uint32_t i) {
    const tgrt_plan_weight& w = plan.rows<tgrt_plan_weight>(plan->weights)[i];
    return object({field("key", plan.quoted(w.key)), field("offset", w.offset), field("bytes", w.bytes)});
  });
  const std::string buffers = list("buffers", plan->buffers.count, [&](uint32_t i) {
    const tgrt_plan_buffer& b = plan.rows<tgrt_plan_buffer>(plan->buffers)[i];
    return object({field("bytes", plan.expr(b.bytes)), field("slot", b.slot), field("at", b.at)});
  });
  return weights + ",\n" + buffers;
}

std::string shapes(const Plan& plan) {
  const std::string vars = list("vars", plan->vars.count, [&](uint32_t i) {
    const tgrt_plan_var& v = plan.rows<tgrt_plan_var>(plan->vars)[i];
    return object(
        {field("name", plan.quoted(v.name)), field("min", std::to_string(v.min)), field("max", std::to_string(v.max))});
  });
  const std::string checks = list("checks", plan->checks.count, [&](uint32_t i) {
    const tgrt_plan_check& c = plan.rows<tgrt_plan_check>(plan->checks)[i];
    return object({field(c.relation == TGRT_CHECK_EQUAL ? "equal" : "at_most",
                         "[" + plan.expr(c.left) + ", " + plan.expr(c.right) + "]"),
                   field("because", plan.quoted(c.text))});
  });
  tgrt_table outputs = plan->outputs;
  outputs.count -= plan->trap_count;
  const std::string traps = list("traps", plan->trap_count, [&](uint32_t i) {
    return plan.quoted(plan.rows<tgrt_plan_tensor>(plan->outputs)[outputs.count + i].name);
  });
  return vars + ",\n" + tensors(plan, "inputs", plan->inputs) + ",\n" + tensors(plan, "outputs", outputs) + ",\n" +
         checks + ",\n" + traps;
}

/// Architecture and CPU features that the code needs.
std::string requirements(const tgrt_model* model) {
  struct Feature {
    unsigned bit;
    const char* name;
  };
  static constexpr Feature kFeatures[] = {
#define TGRT_X86(Bit, Name, ...) {Bit, Name},
#include "runtime/features.def"
  };
  size_t bytes = 0;
  const auto* header = static_cast<const tgrt_header*>(tgrt_section_data(model, 0, &bytes));
  std::string features;
  for (const Feature& feature : kFeatures)
    if (header->features[feature.bit / 64] >> (feature.bit % 64) & 1)
      features += (features.empty() ? "" : ", ") + json_string(feature.name);
  const char* machine = header->machine == 62 ? "x86-64" : header->machine == 183 ? "aarch64" : "none";
  return "  " + field("machine", json_string(machine)) + ",\n  " + field("cpu_features", "[" + features + "]") + ",\n";
}

} // namespace

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else
      out += c;
  }
  return out + "\"";
}

std::string bundle_json(const tgrt_model* model) {
  static constexpr const char* kNames[] = {"code", "plan", "weights", "source", "tests"};
  const Plan plan(model);
  std::string meta, sections;
  for (uint32_t i = 0; i < plan->meta.count; ++i) {
    const tgrt_plan_meta& m = plan.rows<tgrt_plan_meta>(plan->meta)[i];
    meta += "  " + plan.quoted(m.key) + ": " + plan.quoted(m.value) + ",\n";
  }
  for (uint32_t kind = 1; kind <= std::size(kNames); ++kind) {
    size_t bytes = 0;
    if (tgrt_section_data(model, kind, &bytes))
      sections += (sections.empty() ? "" : ", ") + field(kNames[kind - 1], bytes);
  }
  return "{\n" + meta + requirements(model) + "  \"format\": \"" + std::to_string(TGRT_MAJOR) + "." +
         std::to_string(TGRT_MINOR) + "\",\n  \"section_bytes\": {" + sections + "},\n" + shapes(plan) + ",\n" +
         storage(plan) + ",\n" + kernels(plan) + ",\n" + steps(plan) + "\n}\n";
}

RunExit describe(const RunOptions& options) {
  const ModelPtr model = load_model(options, true);
  std::fputs(bundle_json(model.get()).c_str(), stdout);
  return RunExit::Ok;
}

} // namespace tgc
