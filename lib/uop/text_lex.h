// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to the text form: what its two halves agree on, and the scanner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "uop/uop.h"

namespace tgc {

inline constexpr std::string_view kTextHeader = "; tgc uop 1";

/// Characters of names written without quotes.
constexpr bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == ':' || c == '-' || c == '+';
}
/// Leaves but for ranges: a linear body's short form does not count them as instructions.
bool is_linear_leaf(Ops op);

/// A position in the text with the primitive readers. Blanks are space, tab and carriage return; `;` starts a comment
/// to the end of its line; a newline ends a statement.
class Scanner {
public:
  Scanner(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  [[noreturn]] void fail(size_t at, const std::string& expected) const; ///< E102: "found X, expected Y"
  [[noreturn]] void fail_because(size_t at, const std::string& why) const;
  std::string place(size_t at) const; ///< "source:line:column", 1-based, columns in bytes

  size_t pos() const { return pos_; }
  void rewind(size_t pos) { pos_ = pos; } ///< requires: an earlier pos()
  void skip_blanks();
  void skip_lines(); ///< blanks, comments and newlines
  bool at_end() const { return pos_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[pos_]; }
  bool take(char c); ///< after blanks
  void expect(char c, const char* what);
  bool take_word(std::string_view word); ///< the word as a whole, after blanks
  std::string_view word();               ///< name characters, possibly none, after blanks
  std::string_view until_blank();        ///< up to a blank, newline, brace, bracket or comma
  void end_line();
  std::string quoted();               ///< a quoted string; E102 otherwise
  std::string name(const char* what); ///< bare or quoted
  std::string_view bracketed();       ///< from '[' to its ']' inclusive
  int64_t integer(const char* what);
  uint64_t unsigned_integer(const char* what);
  uint64_t hex(const char* what);

private:
  std::string found(size_t at) const;
  std::string_view text_;
  std::string source_;
  size_t pos_ = 0;
};

} // namespace tgc
