// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Documentation from the code's tables (ops.def, attrs.def, kDTypes, errors.def), so that it cannot be out of date: a
// test compares the pages with these texts and rewrites them on request.

#include "uop/docs.h"

#include <string>

#include "uop/diag.h"
#include "uop/uop.h"

namespace tgc {
namespace {

const char* class_name(OpClass cls) {
  switch (cls) {
  case OpClass::Leaf: return "Leaves";
  case OpClass::Movement: return "Movement (tensor level)";
  case OpClass::Unary: return "Conversion and unary";
  case OpClass::Binary: return "Binary";
  case OpClass::Compare: return "Comparison (result bool)";
  case OpClass::Ternary: return "Ternary";
  case OpClass::Reduce: return "Reduction";
  case OpClass::Memory: return "Memory";
  case OpClass::Control: return "Structure";
  }
  return "";
}

std::string arity(const OpInfo& op) {
  if (op.max_src == op.min_src) return std::to_string(op.min_src);
  return std::to_string(op.min_src) + ".." + (op.max_src < 0 ? "" : std::to_string(op.max_src));
}

/// Table cells cannot hold a bar.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string op_table() {
  std::string out;
  const OpClass* last = nullptr;
  for (int i = 0; i < kNumOps; ++i) {
    const OpInfo& op = info(static_cast<Ops>(i));
    if (last == nullptr || *last != op.cls)
      out += std::string(i == 0 ? "" : "\n") + "**" + class_name(op.cls) +
             "**\n\n| op | sources | attributes | meaning |\n|---|---|---|---|\n";
    last = &op.cls;
    out += std::string("| `") + op.name + "` | " + arity(op) + " | " + cell(op.attrs) + " | " + cell(op.doc) + " |\n";
  }
  return out;
}

constexpr const char* kAttrNames[] = {
#define TGC_ATTR(Name, text, type) text,
#include "uop/attrs.def"
};

std::string attr_table() {
  static constexpr const char* kForm[] = {"integer", "constant", "\"string\"", "[integer,…]"};
  std::string out = "| attribute | value | ops |\n|---|---|---|\n";
  for (const char* attr : kAttrNames) {
    std::string ops;
    for (int i = 0; i < kNumOps; ++i) {
      std::string_view list = info(static_cast<Ops>(i)).attrs;
      while (!list.empty()) {
        std::string_view word = list.substr(0, list.find(' '));
        list.remove_prefix(word.size() < list.size() ? word.size() + 1 : word.size());
        if (word.ends_with('?')) word.remove_suffix(1);
        if (word == attr) ops += std::string(ops.empty() ? "" : " ") + name(static_cast<Ops>(i));
      }
    }
    const Attr key = *parse_attr(attr);
    out += std::string("| `") + attr + "` | " + kForm[static_cast<int>(info(key).type)] + " | " + ops + " |\n";
  }
  return out;
}

std::string dtype_table() {
  static constexpr const char* kKind[] = {"no value", "truth value", "signed integer", "unsigned integer", "float"};
  std::string out = "| type | bytes | kind |\n|---|---|---|\n";
  for (const DTypeInfo& t : kDTypes) {
    out += std::string("| `") + t.name + "` | " + std::to_string(t.bytes) + " | " + kKind[static_cast<int>(t.kind)];
    if (t.mantissa_bits > 0) out += ", " + std::to_string(t.mantissa_bits) + " mantissa bits";
    out += " |\n";
  }
  return out;
}

std::string error_table() {
  static constexpr int kCodes[] = {
#define TGC_ERROR(Number, ...) Number,
#include "uop/errors.def"
  };
  std::string out = "| error | title | what to do |\n|---|---|---|\n";
  for (int code : kCodes) {
    const ErrorInfo& e = info(static_cast<ErrorCode>(code));
    out += "| TGC-E" + std::to_string(code) + " | " + cell(e.title) + " | " + cell(e.remedy) + " |\n";
  }
  return out;
}

} // namespace

std::vector<DocTable> ir_doc() { return {{"ops", op_table()}, {"attributes", attr_table()}, {"types", dtype_table()}}; }
std::vector<DocTable> errors_doc() { return {{"errors", error_table()}}; }

std::string fill_tables(std::string_view page, const std::vector<DocTable>& tables) {
  std::string out(page);
  for (const DocTable& table : tables) {
    const std::string open = "<!-- table: " + table.name + " -->\n";
    const size_t start = out.find(open);
    const size_t end = start == std::string::npos ? start : out.find("<!-- end -->", start);
    if (end != std::string::npos) out.replace(start + open.size(), end - start - open.size(), table.text);
  }
  return out;
}

} // namespace tgc
