// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

namespace tgc {

/// `text` for a terminal: names in models and bundles are anybody's, and control characters among them would not be
/// shown but obeyed. They become \xHH, those of UTF-8's second block too; line ends stay.
inline std::string printable(std::string_view text) {
  std::string out;
  const auto escape = [&](unsigned char c) {
    const char* digits = "0123456789abcdef";
    out.append({'\\', 'x', digits[c >> 4], digits[c & 15]});
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
      escape(c);
      escape(next);
      ++i;
    } else if ((c < ' ' && c != '\n') || c == 0x7f) {
      escape(c);
    } else {
      out += text[i];
    }
  }
  return out;
}

} // namespace tgc
