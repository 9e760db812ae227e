// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The printing half of the text form. Lines are numbered in the order of a source-first walk, which depends only on the
// graph; constants are written where they are used, so that a line reads like the expression it is. A linear body
// prints in its own order, and its last line lists its sources only when they are not simply the lines above.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <unordered_map>

#include "uop/text.h"
#include "uop/text_lex.h"

namespace tgc {
namespace {

std::string int_text(int64_t v) { return std::to_string(v); }

/// The shortest decimal that reads back as `v`, read as a float unless the type is f64.
std::string float_text(DType dtype, double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[32];
  char* const last = buffer + sizeof buffer;
  const auto end =
      dtype == DType::F64 ? std::to_chars(buffer, last, v) : std::to_chars(buffer, last, static_cast<float>(v));
  return std::string(buffer, end.ptr);
}

std::string hex_text(uint64_t v) {
  char buffer[16];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, 16);
  return "0x" + std::string(buffer, end.ptr);
}

std::string const_text(Ref c) {
  if (std::optional<double> f = const_float(c)) return float_text(c->dtype, *f);
  const int64_t v = *const_int(c);
  if (c->dtype == DType::Bool) return v != 0 ? "true" : "false";
  return c->dtype == DType::U64 ? std::to_string(static_cast<uint64_t>(v)) : int_text(v);
}

std::string quoted(std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : s) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (u < 0x20 || u == 0x7f)
      out += "\\x", out += kHex[u >> 4], out += kHex[u & 15];
    else
      out += c;
  }
  return out + '"';
}

/// A name as written after '@' or '!': bare when it has only word characters.
std::string name_text(std::string_view s) {
  const bool bare = !s.empty() && std::all_of(s.begin(), s.end(), is_name_char);
  return bare ? std::string(s) : quoted(s);
}

std::string attr_text(const AttrValue& value, Ref node) {
  if (node->is(Ops::Const)) return const_text(node);
  if (const int64_t* i = std::get_if<int64_t>(&value)) return int_text(*i);
  if (const double* d = std::get_if<double>(&value)) return float_text(DType::F64, *d);
  if (const std::string* s = std::get_if<std::string>(&value)) return quoted(*s);
  std::string out = "[";
  for (int64_t i : std::get<std::vector<int64_t>>(value)) out += (out.size() > 1 ? "," : "") + int_text(i);
  return out + "]";
}

/// Unique labels of funcs: their name, or name.2, name.3 … for further funcs of the same name.
class Labels {
public:
  void add(Ref func) {
    const std::string base = func->s(Attr::Name);
    std::string label = base;
    for (int k = 2; !used_.insert(label).second; ++k) label = base + "." + std::to_string(k);
    labels_[func->id] = label;
  }
  /// The label, and whether it is not the name.
  std::string operator[](Ref func) const {
    const auto found = labels_.find(func->id);
    return found != labels_.end() ? found->second : func->s(Attr::Name);
  }

private:
  std::set<std::string> used_;
  std::unordered_map<uint32_t, std::string> labels_;
};

class BodyPrinter {
public:
  BodyPrinter(const Labels& labels, const std::map<uint32_t, std::string>& origin, std::string indent)
      : labels_(labels), origin_(origin), indent_(std::move(indent)) {}

  /// `unread`: leaves that get a line although `root` does not reach them.
  std::string print(Ref root, Refs unread = {}) {
    std::vector<Ref> lines, all(unread.begin(), unread.end());
    all.push_back(root);
    for (Ref node : toposort(all))
      if (!node->is(Ops::Func) && (node == root || !is_inline(node))) lines.push_back(node);
    std::vector<Ref> sequence;
    if (root->is(Ops::Linear)) sequence = executed(root, lines);
    short_linear_ = !sequence.empty();
    if (!short_linear_) sequence = lines;
    number(lines, sequence, root);
    std::vector<bool> printed(root->ctx->size());
    for (Ref node : sequence) {
      if (printed[node->id])
        out_ += indent_ + source(node) + "\n";
      else
        line(node, node == root);
      printed[node->id] = true;
    }
    return std::move(out_);
  }

private:
  static bool is_inline(Ref node) { return node->is(Ops::Const); }

  // A line has a number if it has a value or is mentioned again: as a source or as a repeated line.
  void number(const std::vector<Ref>& lines, const std::vector<Ref>& sequence, Ref root) {
    std::vector<bool> mentioned(root->ctx->size()), seen(root->ctx->size());
    for (Ref node : lines)
      if (!(short_linear_ && node == root))
        for (Ref s : node->src) mentioned[s->id] = true;
    for (Ref node : sequence) {
      if (seen[node->id]) mentioned[node->id] = true;
      seen[node->id] = true;
    }
    for (Ref node : lines)
      if (node->dtype != DType::Void || mentioned[node->id]) number_.emplace(node->id, number_.size());
  }

  // The sources of `linear` in order, repeats included, with each leaf before its first use and `linear` last; empty
  // when leaves are among the sources or the order is not that of first uses. requires: lines in source-first order.
  static std::vector<Ref> executed(Ref linear, const std::vector<Ref>& lines) {
    std::vector<Ref> out;
    std::vector<bool> done(linear->ctx->size());
    size_t next = 0;
    for (Ref s : linear->src) {
      if (is_linear_leaf(s->op)) return {};
      if (done[s->id]) out.push_back(s);
      while (!done[s->id]) {
        const Ref node = lines[next++];
        if (!(node == s) && !is_linear_leaf(node->op)) return {};
        done[node->id] = true;
        out.push_back(node);
      }
    }
    out.push_back(linear);
    return out;
  }

  std::string source(Ref s) const {
    if (s->is(Ops::Func)) return "@" + name_text(labels_[s]);
    if (!is_inline(s)) return "%" + std::to_string(number_.at(s->id));
    if (s->dtype == DType::Index || s->dtype == DType::Bool) return const_text(s);
    return const_text(s) + ":" + name(s->dtype);
  }

  void line(Ref node, bool is_root) {
    out_ += indent_;
    if (const auto number = number_.find(node->id); number != number_.end())
      out_ += "%" + std::to_string(number->second) + " = ";
    out_ += name(node->op);
    if (node->dtype != DType::Void) {
      out_ += std::string(" ") + name(node->dtype);
      if (node->rank() > 0) out_ += shape_text(node->shape);
    }
    if (!(is_root && short_linear_))
      for (Ref s : node->src) out_ += " " + source(s);
    std::string attrs;
    for (const AttrItem& a : *node->attrs)
      attrs += (attrs.empty() ? "" : " ") + std::string(info(a.key).name) + "=" + attr_text(a.value, node);
    if (!attrs.empty()) out_ += " {" + attrs + "}";
    if (const auto origin = origin_.find(node->id); origin != origin_.end() && !origin->second.empty())
      out_ += " !" + name_text(origin->second);
    out_ += '\n';
  }

  const Labels& labels_;
  const std::map<uint32_t, std::string>& origin_;
  std::string indent_, out_;
  std::unordered_map<uint32_t, size_t> number_;
  bool short_linear_ = false;
};

std::string func_text(Ref func, const Labels& labels, const std::map<uint32_t, std::string>& origin) {
  const std::string label = labels[func];
  std::string attrs;
  if (label != func->s(Attr::Name)) attrs = "name=" + quoted(func->s(Attr::Name));
  if (func->has(Attr::Opts)) attrs += (attrs.empty() ? "opts=" : " opts=") + quoted(func->s(Attr::Opts));
  std::string out = "func @" + name_text(label);
  const auto at = origin.find(func->id);
  const bool has_origin = at != origin.end() && !at->second.empty();
  if (!attrs.empty() || has_origin) out += " {" + attrs + "}";
  if (has_origin) out += " !" + name_text(at->second);
  return out + " {\n" + BodyPrinter(labels, origin, "  ").print(func->src[0], func->src.subspan(1)) + "}\n";
}

std::string bytes_text(const std::byte* data, uint64_t n) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out(2 * n, '0');
  for (uint64_t i = 0; i < n; ++i) {
    out[2 * i] = kHex[std::to_integer<unsigned>(data[i]) >> 4];
    out[2 * i + 1] = kHex[std::to_integer<unsigned>(data[i]) & 15];
  }
  return out;
}

std::string weights_text(const std::map<std::string, WeightData>& weights) {
  if (weights.empty()) return "";
  std::string out = "weights {\n";
  for (const auto& [key, w] : weights) {
    out += "  " + quoted(key) + " = ";
    if (w.kind == WeightData::Kind::Mapped)
      out += "mapped " + quoted(w.file) + " " + std::to_string(w.offset) + " " + std::to_string(w.length);
    else
      out += std::string(w.kind == WeightData::Kind::Splat ? "splat " : "inline ") + "x" + bytes_text(w.data, w.length);
    out += " " + hex_text(w.hash) + "\n";
  }
  return out + "}\n";
}

std::string print_root(Ref root, const std::map<uint32_t, std::string>& origin) {
  Labels labels;
  std::vector<Ref> funcs;
  for (Ref node : toposort(root, true))
    if (node->is(Ops::Func)) funcs.push_back(node);
  for (Ref func : funcs) labels.add(func);
  std::string out;
  for (Ref func : funcs) out += func_text(func, labels, origin);
  if (!root->is(Ops::Func)) out += BodyPrinter(labels, origin, "").print(root);
  return out;
}

} // namespace

bool is_linear_leaf(Ops op) { return info(op).cls == OpClass::Leaf && op != Ops::Range; }

std::string print(const Module& module) {
  std::string out = std::string(kTextHeader) + "\n" + weights_text(module.weights);
  if (module.root) out += print_root(module.root, module.origin);
  return out;
}

std::string print(Ref root) { return std::string(kTextHeader) + "\n" + print_root(root, {}); }

std::string print_func(Ref func, const std::map<uint32_t, std::string>& origin) {
  return func_text(func, Labels{}, origin);
}

} // namespace tgc
