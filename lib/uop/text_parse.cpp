// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reading half of the text form. A statement is a line; a name must be defined above its use, so cycles cannot be
// written and one pass suffices. Nodes are built by Context::make, which checks them; its diagnostics get the place.
// Shapes are derived and only compared with what is written, so hand-written text may leave them out.
// The text is untrusted: sizes that could cost more than the text itself are capped (kMax...).

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "uop/diag.h"
#include "uop/scalar.h"
#include "uop/text.h"
#include "uop/text_lex.h"

namespace tgc {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;
constexpr size_t kMaxNodes = size_t{1} << 24;
constexpr size_t kMaxSources = size_t{1} << 20; // of sink, linear, call and the like
constexpr size_t kMaxDims = 130;                // sources of every other op: a box over 64 dims
constexpr int kMaxRank = 64;
constexpr size_t kMaxRanges = 256; // open ranges of one node
constexpr std::string_view kGoldenEnd = "\n; ----";

using Names = std::unordered_map<uint64_t, Ref>;

class Parser {
public:
  Parser(std::string_view text, Module& module) : in_(text, module.source), module_(module) {}

  void run() {
    in_.skip_lines();
    if (in_.take_word("weights")) weights();
    for (in_.skip_lines(); in_.take_word("func"); in_.skip_lines()) func();
    std::vector<Ref> params;
    if (!in_.at_end()) module_.root = body(params);
    if (!in_.at_end()) in_.fail(in_.pos(), "a line or the end of the text");
    if (!module_.root) in_.fail(in_.pos(), "a func or a line");
  }

private:
  Context& ctx() { return *module_.ctx; }

  // Runs `build`, giving diagnostics about an illegal node their place.
  template <class F> Ref checked(size_t at, F build) {
    try {
      const Ref node = build();
      if (node->rank() > kMaxRank) in_.fail_because(at, "a shape has more than " + std::to_string(kMaxRank) + " dims");
      if (node->ranges.size() > kMaxRanges)
        in_.fail_because(at, "more than " + std::to_string(kMaxRanges) + " open ranges");
      if (ctx().size() > kMaxNodes) in_.fail_because(at, "more than " + std::to_string(kMaxNodes) + " nodes");
      return node;
    } catch (const CompileError& e) {
      std::vector<Diagnostic> all = e.all();
      for (Diagnostic& d : all)
        if (d.where.empty()) d.where = in_.place(at);
      throw CompileError(std::move(all));
    }
  }

  // ---- weights ------------------------------------------------------------------------------------------------------
  void weights() {
    in_.expect('{', "\"{\"");
    in_.end_line();
    for (in_.skip_lines(); !in_.take('}'); in_.skip_lines()) weight();
    in_.end_line();
  }

  void weight() {
    const size_t at = in_.pos();
    std::string key = in_.quoted();
    in_.expect('=', "\"=\"");
    WeightData w;
    if (in_.take_word("mapped")) {
      w.kind = WeightData::Kind::Mapped;
      in_.skip_blanks();
      w.file = in_.quoted();
      w.offset = in_.unsigned_integer("an offset in bytes");
      w.length = in_.unsigned_integer("a length in bytes");
    } else if (in_.take_word("splat")) {
      w.kind = WeightData::Kind::Splat;
      hex_bytes(w);
    } else if (in_.take_word("inline")) {
      hex_bytes(w);
    } else {
      in_.fail(in_.pos(), "mapped, splat or inline");
    }
    w.hash = in_.hex("the content hash as 0x…");
    in_.end_line();
    if (!module_.weights.emplace(std::move(key), std::move(w)).second) in_.fail_because(at, "a weight is given twice");
  }

  void hex_bytes(WeightData& w) {
    in_.skip_blanks();
    const size_t at = in_.pos();
    std::string_view digits = in_.until_blank();
    if (!digits.starts_with('x') || digits.size() % 2 == 0) in_.fail(at, "bytes as x followed by pairs of hex digits");
    digits.remove_prefix(1);
    auto bytes = std::make_shared<std::vector<std::byte>>(digits.size() / 2);
    for (size_t i = 0; i < bytes->size(); ++i) {
      uint8_t value = 0;
      const char* first = digits.data() + 2 * i;
      if (std::from_chars(first, first + 2, value, 16).ptr != first + 2) in_.fail(at + 1 + 2 * i, "two hex digits");
      (*bytes)[i] = std::byte{value};
    }
    w.data = bytes->data();
    w.length = bytes->size();
    w.owner = std::move(bytes);
  }

  // ---- funcs --------------------------------------------------------------------------------------------------------
  void func() {
    in_.expect('@', "\"@name\"");
    const size_t at = in_.pos();
    const std::string label = in_.name("a name");
    in_.expect('{', "\"{\"");
    Attrs attrs;
    std::string origin;
    if (!at_line_end()) { // else this brace opens the body
      attributes(Ops::Func, DType::Void, attrs);
      origin = origin_text();
      in_.expect('{', "\"{\"");
    }
    in_.end_line();
    bool named = false;
    for (const AttrItem& a : attrs) named = named || a.key == Attr::Name;
    if (!named) attrs.push_back({Attr::Name, label});
    std::vector<Ref> params;
    const Ref root = body(params);
    in_.expect('}', "\"}\"");
    in_.end_line();
    const auto slot = [](Ref x) { return x->is(Ops::Param) ? x->i(Attr::Slot) : std::numeric_limits<int64_t>::max(); };
    std::stable_sort(params.begin(), params.end(), [&](Ref a, Ref b) { return slot(a) < slot(b); });
    const Ref node =
        checked(at, [&] { return ctx().make(Ops::Func, DType::Void, make_func("", root, params)->src, attrs); });
    if (!funcs_.emplace(label, node).second) in_.fail_because(at, "func @" + label + " is defined twice");
    if (!origin.empty()) module_.origin[node->id] = std::move(origin);
    module_.root = node;
  }

  bool at_body_end() {
    in_.skip_lines();
    return in_.at_end() || in_.peek() == '}';
  }
  bool at_line_end() {
    in_.skip_blanks();
    return in_.at_end() || in_.peek() == '\n';
  }

  /// The last line's node; `params` gets every line of a param or check.
  Ref body(std::vector<Ref>& params) {
    Names names;
    std::vector<Ref> sequence; // every line but leaves, repeats included: what a short linear means
    Ref last;
    std::optional<size_t> repeat;
    for (in_.skip_lines(); !in_.at_end() && in_.peek() != '}'; in_.skip_lines()) {
      const size_t start = in_.pos();
      last = line(names, sequence);
      if (is_repeat_) repeat = start;
      if ((last->is(Ops::Param) || last->is(Ops::Check)) && !is_repeat_) params.push_back(last);
      if (!is_linear_leaf(last->op)) sequence.push_back(last);
    }
    if (!last) in_.fail(in_.pos(), "a line");
    if (repeat && !is_short_linear_) in_.fail_because(*repeat, "only a linear body repeats a line");
    return last;
  }

  // ---- lines --------------------------------------------------------------------------------------------------------
  Ref line(Names& names, const std::vector<Ref>& sequence) {
    const size_t start = in_.pos();
    std::optional<uint64_t> number;
    is_repeat_ = is_short_linear_ = false;
    if (in_.take('%')) {
      number = in_.unsigned_integer("a number");
      const auto known = names.find(*number);
      is_repeat_ = known != names.end() && at_line_end();
      if (is_repeat_) return known->second;
      in_.expect('=', "\"=\"");
      in_.skip_blanks();
    }
    const size_t at = in_.pos();
    const std::optional<Ops> op = parse_op(in_.word());
    if (!op) in_.fail(at, "an op");
    if (*op == Ops::Func) in_.fail(at, "an op other than func inside a body");
    const DType dtype = type(*op, at);
    const size_t shape_at = in_.pos();
    const std::string_view shape = in_.peek() == '[' ? in_.bracketed() : std::string_view{};
    std::vector<Ref> src = sources(*op, names);
    if (*op == Ops::Call && (src.empty() || !src[0]->is(Ops::Func))) in_.fail(at, "call @func");
    Attrs attrs;
    if (in_.take('{')) attributes(*op, dtype, attrs);
    std::string origin = origin_text();
    in_.end_line();
    is_short_linear_ = *op == Ops::Linear && src.empty() && at_body_end();
    if (is_short_linear_) src = sequence;
    const Ref node = checked(at, [&] { return ctx().make(*op, dtype, src, std::move(attrs)); });
    if (node->dtype != dtype && dtype != DType::Void)
      in_.fail_because(at, std::string("the type is ") + name(node->dtype) + ", not " + name(dtype));
    if (!shape.empty() && shape != shape_text(node->shape))
      in_.fail_because(shape_at, "the shape is " + shape_text(node->shape) + ", not " + std::string(shape));
    if (number && !names.emplace(*number, node).second)
      in_.fail_because(start, "%" + std::to_string(*number) + " is defined twice");
    if (!origin.empty()) module_.origin[node->id] = std::move(origin);
    return node;
  }

  DType type(Ops op, size_t op_at) {
    in_.skip_blanks();
    const bool needed = info(op).dtype == DTypeRule::Given;
    const char c = in_.peek();
    if (c < 'a' || c > 'z') {
      if (needed && c != '{') in_.fail(in_.pos(), "an element type");
      if (needed) in_.fail(op_at + std::string_view(name(op)).size(), "an element type");
      return DType::Void;
    }
    const size_t at = in_.pos();
    const std::string_view word = in_.word();
    if (std::optional<DType> dtype = parse_dtype(word)) return *dtype;
    if (needed) in_.fail(at, "an element type");
    in_.rewind(at);
    return DType::Void;
  }

  std::vector<Ref> sources(Ops op, const Names& names) {
    const OpClass cls = info(op).cls;
    const size_t limit = cls == OpClass::Control ? kMaxSources : kMaxDims;
    std::vector<Ref> out;
    for (in_.skip_blanks(); !in_.at_end() && in_.peek() != '\n' && in_.peek() != '{' && in_.peek() != '!';
         in_.skip_blanks()) {
      if (out.size() == limit) in_.fail_because(in_.pos(), "more than " + std::to_string(limit) + " sources");
      out.push_back(source(names));
    }
    return out;
  }

  Ref source(const Names& names) {
    const size_t at = in_.pos();
    if (in_.take('%')) {
      const auto found = names.find(in_.unsigned_integer("a number"));
      if (found == names.end()) in_.fail(at, "a value defined above");
      return found->second;
    }
    if (in_.take('@')) {
      const auto found = funcs_.find(in_.name("a name"));
      if (found == funcs_.end()) in_.fail(at, "a func defined above");
      return found->second;
    }
    const std::string_view token = in_.until_blank();
    const size_t colon = token.find(':');
    DType dtype = token == "true" || token == "false" ? DType::Bool : DType::Index;
    if (colon != std::string_view::npos) {
      const std::optional<DType> given = parse_dtype(token.substr(colon + 1));
      if (!given || *given == DType::Void) in_.fail(at + colon + 1, "an element type");
      dtype = *given;
    }
    const AttrValue value = constant(token.substr(0, colon), dtype, at, "a source: %n, @func or a constant");
    return checked(at, [&] { return ctx().make(Ops::Const, dtype, Refs{}, {{Attr::Value, value}}); });
  }

  AttrValue constant(std::string_view token, DType dtype, size_t at, const char* expected) {
    const char* const first = token.data();
    const char* const last = first + token.size();
    if (is_float(dtype)) {
      double wide = 0;
      float narrow = 0;
      const auto end = dtype == DType::F64 ? std::from_chars(first, last, wide) : std::from_chars(first, last, narrow);
      if (token.empty() || end.ec != std::errc() || end.ptr != last) in_.fail(at, expected);
      return dtype == DType::F64 ? wide : static_cast<double>(narrow);
    }
    if (dtype == DType::Bool && (token == "true" || token == "false")) return int64_t{token == "true"};
    int64_t value = 0;
    uint64_t bits = 0;
    const auto end = dtype == DType::U64 ? std::from_chars(first, last, bits) : std::from_chars(first, last, value);
    if (dtype == DType::Bool || token.empty() || end.ec != std::errc() || end.ptr != last) in_.fail(at, expected);
    if (dtype == DType::U64) return static_cast<int64_t>(bits);
    if (dtype != DType::Void && to_int(dtype, from_int(dtype, value)) != value)
      in_.fail(at, std::string("a value of type ") + name(dtype));
    return value;
  }

  // ---- attributes ---------------------------------------------------------------------------------------------------
  // After "{", up to and including "}".
  void attributes(Ops op, DType dtype, Attrs& attrs) {
    while (!in_.take('}')) {
      const size_t at = in_.pos();
      const std::optional<Attr> key = parse_attr(in_.word());
      if (!key) in_.fail(at, "an attribute name or \"}\"");
      in_.expect('=', "\"=\"");
      in_.skip_blanks();
      attrs.push_back({*key, attribute_value(*key, op == Ops::Const ? dtype : DType::Void)});
      if (attrs.size() > 32) in_.fail_because(at, "more than 32 attributes");
    }
  }

  AttrValue attribute_value(Attr key, DType const_type) {
    switch (info(key).type) {
    case AttrType::Int: return in_.integer("an integer");
    case AttrType::String: return in_.quoted();
    case AttrType::Ints: return integers();
    case AttrType::Number: break;
    }
    const size_t at = in_.pos();
    return constant(in_.until_blank(), const_type, at, "a number");
  }

  std::vector<int64_t> integers() {
    in_.expect('[', "\"[\"");
    std::vector<int64_t> out;
    if (in_.take(']')) return out;
    do {
      out.push_back(in_.integer("an integer"));
      if (out.size() > kMaxDims) in_.fail_because(in_.pos(), "more than " + std::to_string(kMaxDims) + " integers");
    } while (in_.take(','));
    in_.expect(']', "\"]\"");
    return out;
  }

  std::string origin_text() { return in_.take('!') ? in_.name("a name") : std::string(); }

  Scanner in_;
  Module& module_;
  std::unordered_map<std::string, Ref> funcs_; // by label
  bool is_repeat_ = false;                     // the line just read executes an earlier one again
  bool is_short_linear_ = false;               // the line just read is a linear of all lines above
};

} // namespace

bool is_uop_text(std::string_view text) { return text.starts_with(kTextHeader); }

Module parse(std::string_view text, std::string source) {
  Module module;
  module.source = std::move(source);
  const Scanner start(text, module.source);
  if (!is_uop_text(text)) start.fail(0, "the header \"" + std::string(kTextHeader) + "\"");
  if (text.size() > kMaxText) start.fail_because(0, "the text is larger than 1 GiB");
  Parser(text.substr(0, text.find(kGoldenEnd)), module).run();
  return module;
}

} // namespace tgc
