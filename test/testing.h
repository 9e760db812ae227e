// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tests of every room share: golden files, files, error texts.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "uop/diag.h"
#include "gtest/gtest.h"

namespace tgc::testing {

/// TGC_BLESS=1: golden checks rewrite their file instead of failing; review the diff.
inline bool blessing() {
  const char* value = std::getenv("TGC_BLESS");
  return value != nullptr && std::string(value) == "1";
}

/// A path in the source tree.
inline std::string source_path(const std::string& relative) { return std::string(TGC_SOURCE_DIR) + "/" + relative; }

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}
inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A golden file:
///   ; tgc uop 1
///   ; run: <words that tell the test what to do>
///   <input>
///   ; ----
///   <expected output>
/// `input` is everything above the separator, header included, so it parses as it stands.
struct Golden {
  std::string run, input, expected;
};
inline constexpr const char* kGoldenSeparator = "\n; ----\n";

inline Golden read_golden(const std::string& relative) {
  const std::string text = read_file(source_path(relative));
  const size_t cut = text.find(kGoldenSeparator);
  Golden golden;
  golden.input = cut == std::string::npos ? text : text.substr(0, cut + 1);
  if (cut != std::string::npos) golden.expected = text.substr(cut + std::string(kGoldenSeparator).size());
  const std::string mark = "; run: ";
  if (const size_t run = golden.input.find(mark); run != std::string::npos)
    golden.run = golden.input.substr(run + mark.size(), golden.input.find('\n', run) - run - mark.size());
  return golden;
}

/// Compares `actual` with the expected part of the golden file (or with the whole file if it has no separator).
inline void check_golden(const std::string& relative, const std::string& actual) {
  const std::string path = source_path(relative), text = read_file(path);
  const size_t cut = text.find(kGoldenSeparator);
  const std::string head = cut == std::string::npos ? "" : text.substr(0, cut) + kGoldenSeparator;
  if (text == head + actual && !text.empty()) return;
  if (blessing()) {
    write_file(path, head + actual);
    return;
  }
  EXPECT_EQ(text.substr(head.size()), actual) << relative << " differs; TGC_BLESS=1 rewrites it";
}

/// The text of the CompileError that `f` throws, one line per diagnostic, or "no error".
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const CompileError& e) {
    std::string out;
    for (const Diagnostic& d : e.all()) out += (out.empty() ? "" : "\n") + to_string(d);
    return out;
  }
  return "no error";
}

} // namespace tgc::testing
