// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scanner of the text form: one cursor over the text, no token objects. It reads hostile input: every reader is
// bounded by the text, numbers are checked for overflow, and nothing recurses.

#include "uop/text_lex.h"

#include <algorithm>
#include <charconv>

#include "uop/diag.h"

namespace tgc {

std::string Scanner::place(size_t at) const {
  at = std::min(at, text_.size());
  const auto begin = text_.begin();
  const auto line = std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  const size_t newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
  return (source_.empty() ? "text" : source_) + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string Scanner::found(size_t at) const {
  if (at >= text_.size()) return "the end of the text";
  if (text_[at] == '\n') return "the end of the line";
  size_t end = at;
  while (end < text_.size() && end - at < 24 && text_[end] > ' ' && text_[end] < 127) ++end;
  if (end == at) return "byte " + std::to_string(static_cast<unsigned char>(text_[at]));
  return "\"" + std::string(text_.substr(at, end - at)) + "\"";
}

void Scanner::fail_because(size_t at, const std::string& why) const {
  throw CompileError(Diagnostic{.code = ErrorCode::E102, .where = place(at), .message = why, .note = ""});
}
void Scanner::fail(size_t at, const std::string& expected) const {
  fail_because(at, "found " + found(at) + ", expected " + expected);
}

void Scanner::skip_blanks() {
  while (!at_end() && (text_[pos_] == ' ' || text_[pos_] == '\t' || text_[pos_] == '\r')) ++pos_;
  if (peek() == ';') pos_ = std::min(text_.find('\n', pos_), text_.size());
}
void Scanner::skip_lines() {
  skip_blanks();
  while (peek() == '\n') {
    ++pos_;
    skip_blanks();
  }
}

bool Scanner::take(char c) {
  skip_blanks();
  if (at_end() || text_[pos_] != c) return false;
  ++pos_;
  return true;
}
void Scanner::expect(char c, const char* what) {
  if (!take(c)) fail(pos_, what);
}

std::string_view Scanner::word() {
  skip_blanks();
  const size_t start = pos_;
  while (!at_end() && is_name_char(text_[pos_])) ++pos_;
  return text_.substr(start, pos_ - start);
}
bool Scanner::take_word(std::string_view expected) {
  skip_blanks();
  const size_t start = pos_;
  if (word() == expected) return true;
  pos_ = start;
  return false;
}

std::string_view Scanner::until_blank() {
  skip_blanks();
  const size_t end = std::min(text_.find_first_of(" \t\r\n{}[],;", pos_), text_.size());
  const std::string_view out = text_.substr(pos_, end - pos_);
  pos_ = end;
  return out;
}

void Scanner::end_line() {
  skip_blanks();
  if (at_end()) return;
  if (text_[pos_] != '\n') fail(pos_, "the end of the line");
  ++pos_;
}

namespace {
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}
} // namespace

std::string Scanner::quoted() {
  if (!take('"')) fail(pos_, "a quoted string");
  const size_t start = pos_ - 1;
  std::string out;
  while (!at_end() && text_[pos_] != '"' && text_[pos_] != '\n') {
    char c = text_[pos_++];
    if (c == '\\') {
      const char escape = peek();
      const size_t at = pos_++;
      if (escape == 'n')
        c = '\n';
      else if (escape == '"' || escape == '\\')
        c = escape;
      else if (escape == 'x' && at + 2 < text_.size() && hex_digit(text_[at + 1]) >= 0 &&
               hex_digit(text_[at + 2]) >= 0) {
        c = static_cast<char>(hex_digit(text_[at + 1]) * 16 + hex_digit(text_[at + 2]));
        pos_ = at + 3;
      } else
        fail(at, "an escape: \\n, \\\", \\\\ or \\xhh");
    }
    out += c;
  }
  if (at_end() || text_[pos_] != '"') fail_because(start, "the string that starts here does not end on its line");
  ++pos_;
  return out;
}

std::string Scanner::name(const char* what) {
  if (peek() == '"') return quoted();
  const size_t start = pos_;
  while (!at_end() && is_name_char(text_[pos_])) ++pos_;
  if (pos_ == start) fail(start, what);
  return std::string(text_.substr(start, pos_ - start));
}

std::string_view Scanner::bracketed() {
  const size_t start = pos_;
  const size_t end = std::min(text_.find_first_of("]\n", start), text_.size());
  if (end == text_.size() || text_[end] != ']') fail(end, "\"]\"");
  pos_ = end + 1;
  return text_.substr(start, pos_ - start);
}

namespace {
template <class T> bool read_number(std::string_view s, T& value, int base) {
  if (s.empty()) return false;
  const auto end = std::from_chars(s.data(), s.data() + s.size(), value, base);
  return end.ec == std::errc() && end.ptr == s.data() + s.size();
}
} // namespace

int64_t Scanner::integer(const char* what) {
  skip_blanks();
  const size_t start = pos_;
  int64_t value = 0;
  if (!read_number(until_blank(), value, 10)) fail(start, what);
  return value;
}
uint64_t Scanner::unsigned_integer(const char* what) {
  skip_blanks();
  const size_t start = pos_;
  uint64_t value = 0;
  if (!read_number(until_blank(), value, 10)) fail(start, what);
  return value;
}
uint64_t Scanner::hex(const char* what) {
  skip_blanks();
  const size_t start = pos_;
  const std::string_view s = until_blank();
  uint64_t value = 0;
  if (!s.starts_with("0x") || !read_number(s.substr(2), value, 16)) fail(start, what);
  return value;
}

} // namespace tgc
