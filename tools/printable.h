// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tgc {

/// How many bytes the UTF-8 sequence at the start of `text` has; 0 if it is none, or one of a character that controls
/// lines or their direction.
inline size_t printable_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const unsigned char c = at(0);
  if (c < 0x80) return c >= ' ' && c != 0x7f;
  const size_t size = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  uint32_t code = c & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3f);
  }
  const bool is_other = code < 0xa0 || (size == 3 && code < 0x800) || (size == 4 && code < 0x10000) ||
                        code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
  const bool is_order = (code >= 0x2028 && code < 0x202f) || (code >= 0x2066 && code < 0x206a);
  return is_other || is_order ? 0 : size;
}

/// `text` for one line of a terminal: names in models and bundles are anybody's, and control characters among them
/// would not be shown but obeyed, line ends taken for ours. They and bytes that are not UTF-8 become \xHH, but for
/// those in `keep`.
inline std::string printable(std::string_view text, std::string_view keep = "") {
  std::string out;
  while (!text.empty()) {
    size_t size = keep.find(text[0]) != std::string_view::npos ? 1 : printable_bytes(text);
    if (size > 0) {
      out += text.substr(0, size);
    } else {
      const char* digits = "0123456789abcdef";
      size = text[0] == '\xc2' && text.size() > 1 && (text[1] & 0xe0) == 0x80 ? 2 : 1; // both bytes of a control
      for (const char c : text.substr(0, size))
        out.append({'\\', 'x', digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]});
    }
    text.remove_prefix(size);
  }
  return out;
}

} // namespace tgc
