// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgc {

/// The member of `names` nearest to `text` in edit distance, or "" when none is near enough to be meant.
inline std::string_view nearest_name(std::string_view text, std::span<const std::string_view> names) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, text.size() / 3) + 1;
  for (std::string_view name : names) {
    std::vector<size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < text.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t k = 0; k < name.size(); ++k) {
        const size_t replaced = diagonal + (text[i] != name[k]);
        diagonal = row[k + 1];
        row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best = name;
      best_distance = row.back();
    }
  }
  return best;
}

/// What a message about the unknown name `text` ends with: "; did you mean \"--target\"?", or "".
inline std::string did_you_mean(std::string_view text, std::span<const std::string_view> names) {
  const std::string_view near = nearest_name(text, names);
  return near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?";
}

} // namespace tgc
