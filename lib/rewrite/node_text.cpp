// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Short expression text of a node, for diagnostics that must show what a rule or a spec met. Depth-limited, so its
// cost and length do not depend on the graph.
#include "rewrite/node_text.h"

#include <charconv>

namespace tgc {
namespace {
std::string number(double v) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), v).ptr);
}

std::string value_text(const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) return number(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  std::string text;
  for (int64_t v : std::get<std::vector<int64_t>>(value)) text += (text.empty() ? "" : ",") + std::to_string(v);
  return "[" + text + "]";
}

std::string const_text(Ref node) {
  if (const std::optional<double> f = const_float(node)) return number(*f) + ":" + name(node->dtype);
  const std::string i = std::to_string(const_int(node).value_or(0));
  return node->dtype == DType::Index ? i : i + ":" + name(node->dtype);
}
} // namespace

std::string node_text(Ref node, int depth) {
  if (node->is(Ops::Const)) return const_text(node);
  if (node->is(Ops::Var)) return node->s(Attr::Name);
  if (depth == 0) return "…";
  std::string text = name(node->op);
  if (info(node->op).dtype == DTypeRule::Given) text += std::string(":") + name(node->dtype);
  if (!node->src.empty()) {
    text += "(";
    for (size_t i = 0; i < node->src.size(); ++i) {
      if (i == 8) return text + ", …)";
      text += (i ? ", " : "") + node_text(node->src[i], depth - 1);
    }
    text += ")";
  }
  if (node->attrs->empty()) return text;
  std::string attrs;
  for (const AttrItem& item : *node->attrs)
    attrs += (attrs.empty() ? "" : ",") + std::string(info(item.key).name) + "=" + value_text(item.value);
  return text + "{" + attrs + "}";
}

} // namespace tgc
