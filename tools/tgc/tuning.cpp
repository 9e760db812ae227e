// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tuning database's text. It is an input like a model: it may be old, cut off, edited by hand or made by somebody
// else, so every line is checked to the last character before it is believed. What a line can do is limited by what
// opts can do: choose among programs that compute the same. A file is small (a line per kernel) and read whole.
#include "tgc/tuning.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <span>
#include <tuple>

#include "frontend/bytes.h"
#include "schedule/opt.h"
#include "tgc/boundary.h"
#include "tgc/file_lock.h"
#include "uop/bytes_hash.h"
#include "uop/diag.h"
#include "uop/text.h"

namespace tgc {
namespace {

constexpr std::string_view kForm = "tuned1";
constexpr size_t kMaxLine = 4096;
constexpr int64_t kMaxNumber = int64_t{1} << 31; // of an opt: an extent, a position
constexpr size_t kMaxTarget = 100;
constexpr const char* kAdvice = "remove the line; --beam times again what is missing";
constexpr const char* kOtherFile = "name a file that --beam wrote (docs/tuning.md)";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF"; // that some editors put before UTF-8

std::string hex(uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}
uint64_t digest(const std::string& text) { return hash_bytes(std::as_bytes(std::span(text.data(), text.size()))); }

/// One line, taken apart from the left.
class Line {
public:
  Line(std::string_view text, std::string where) : rest_(text), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& message, const char* note = kAdvice) const {
    throw CompileError(Diagnostic{.code = ErrorCode::E504, .where = where_, .message = message, .note = note});
  }
  std::string word(const char* what) {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    if (end == 0) fail("expected " + std::string(what) + ", found " + (rest_.empty() ? "the end" : "a blank"));
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  void keyword(std::string_view name) {
    if (const std::string found = word(std::string(name).c_str()); found != name)
      fail("expected " + std::string(name) + ", found \"" + found + "\"");
  }
  int64_t nanoseconds() {
    const std::string text = word("nanoseconds");
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1)
      fail("\"" + text + "\" is no number of nanoseconds");
    return value;
  }
  std::string kernel() {
    std::string key = word("a kernel's key");
    if (key.size() != 16 || key.find_first_not_of("0123456789abcdef") != std::string::npos)
      fail("\"" + key + "\" is no kernel's key: 16 hexadecimal digits");
    return key;
  }
  std::string target() {
    std::string key = word("a target's key");
    if (key.size() > kMaxTarget) fail("the target's key is longer than " + std::to_string(kMaxTarget) + " characters");
    return key;
  }
  /// All that is left, in the form that printing gives.
  std::string opts() const {
    std::string text;
    for (std::string_view rest = rest_;;) {
      const size_t bar = rest.find('|');
      text += list(rest.substr(0, bar));
      if (bar == std::string_view::npos) return text;
      text += " | ";
      rest.remove_prefix(bar + 1);
    }
  }

private:
  std::string list(std::string_view text) const {
    if (text.find_first_not_of(' ') == std::string_view::npos) return "";
    try {
      const std::vector<Opt> opts = parse_opts(text);
      for (const Opt& opt : opts)
        for (const int64_t number : opt.args)
          if (number < 0 || number > kMaxNumber) fail("opt \"" + to_string(opt) + "\": a number is out of range");
      return to_string(opts);
    } catch (const CompileError& error) {
      fail(error.all()[0].message);
    }
  }

  std::string_view rest_;
  std::string where_;
};

} // namespace

std::string kernel_key(Ref func, const std::vector<bool>& constant, Numerics numerics) {
  TGC_CHECK(!func->has(Attr::Opts), "a kernel's key is that of what it computes, without opts");
  const Ref nameless = func->ctx->make(Ops::Func, DType::Void, func->src, {{Attr::Name, std::string("k")}});
  std::string text = print_func(nameless) + "constant ";
  for (const bool c : constant) text += c ? '1' : '0';
  return hex(digest(text + " numerics " + std::to_string(static_cast<int>(numerics))));
}

std::string target_key(const TargetInfo& t) {
  std::string text;
  for (const std::string& feature : t.features) text += feature + " ";
  for (const int64_t size : {int64_t{t.vector_bytes}, int64_t{t.vector_registers}, int64_t{t.fma_latency},
                             int64_t{t.fma_ports}, t.l1_bytes, t.l2_bytes})
    text += std::to_string(size) + " ";
  return t.device + ":" + t.renderer + ":" + t.arch + ":" + hex(digest(text)).substr(0, 8);
}

TuningDatabase TuningDatabase::parse(std::string_view text, const std::string& path) {
  TuningDatabase all;
  int number = 0;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (; !text.empty();) {
    const size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    if (end != std::string_view::npos && content.ends_with('\r')) content.remove_suffix(1);
    Line line(content, path + ":" + std::to_string(++number));
    const bool is_entry = !content.empty() && content[0] != '#';
    const auto is_odd = [](char c) { return c < ' ' || c > '~'; };
    if (is_entry && std::any_of(content.begin(), content.end(), is_odd))
      line.fail("a character is no printable ASCII: the file is damaged, or no tuning database", kOtherFile);
    if (end == std::string_view::npos && is_entry && !content.starts_with(kForm))
      line.fail("the file does not end as a tuning database does", kOtherFile);
    if (end == std::string_view::npos) line.fail("the last line has no end: the file is cut off");
    if (content.size() > kMaxLine) line.fail("the line is longer than " + std::to_string(kMaxLine) + " characters");
    text.remove_prefix(end + 1);
    if (!is_entry) continue;
    line.keyword(kForm);
    std::string kernel = line.kernel(), target = line.target();
    TunedKernel tuned;
    tuned.line = number;
    line.keyword("ns");
    tuned.ns = line.nanoseconds();
    line.keyword("was");
    tuned.default_ns = line.nanoseconds();
    line.keyword("opts");
    tuned.opts = line.opts();
    const TunedKernel* known = all.find(kernel, target);
    const auto rank = [](const TunedKernel& k) { return std::tie(k.ns, k.opts, k.default_ns); };
    if (!known || rank(tuned) < rank(*known)) all.set(kernel, target, std::move(tuned));
  }
  return all;
}

TuningDatabase TuningDatabase::read(const std::string& path) {
  const FileBytes file = open_bytes(path);
  return parse({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, path);
}

TuningDatabase TuningDatabase::add(const std::string& path, const std::string& kernel, const std::string& target,
                                   TunedKernel tuned) {
  const FileLock alone(path);
  TuningDatabase all = read(path);
  all.set(kernel, target, std::move(tuned));
  all.write(path);
  return all;
}

void TuningDatabase::write(const std::string& path) const {
  const auto unwritable = [&] {
    throw CompileError(Diagnostic{.code = ErrorCode::E502,
                                  .where = path,
                                  .message = "cannot be written: " + std::string(std::strerror(errno)),
                                  .note = ""});
  };
  OutputFile output(path);
  std::FILE* file = std::fopen(output.writing().c_str(), "wb");
  if (!file) unwritable();
  const std::string all = text();
  const bool written = std::fwrite(all.data(), 1, all.size(), file) == all.size();
  if (std::fclose(file) != 0 || !written) unwritable();
  output.commit();
}

const TunedKernel* TuningDatabase::find(const std::string& kernel, const std::string& target) const {
  const auto at = kernels_.find({kernel, target});
  return at == kernels_.end() ? nullptr : &at->second;
}

void TuningDatabase::set(const std::string& kernel, const std::string& target, TunedKernel tuned) {
  kernels_[{kernel, target}] = std::move(tuned);
}

std::string TuningDatabase::text() const {
  std::string text;
  for (const auto& [key, tuned] : kernels_)
    text += std::string(kForm) + " " + key.first + " " + key.second + " ns " + std::to_string(tuned.ns) + " was " +
            std::to_string(tuned.default_ns) + " opts" + (tuned.opts.empty() ? "" : " " + tuned.opts) + "\n";
  return text;
}

} // namespace tgc
