// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bundle as a fuzzer likes it: the header, then the bytes of each section with no gaps. Sections begin at multiples
// of 64 KiB in a bundle, so all but one part in a hundred would be zeros.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/tgrt_bundle.h"

namespace tgc {

inline constexpr size_t kMostBundleBytes = size_t{1} << 20;

/// Calls `use(section, offset of its bytes in the packed form, how many of them there are)`.
template <typename Use> void for_each_packed(tgrt_header& header, size_t packed_bytes, Use use) {
  size_t at = sizeof header;
  for (uint32_t i = 0; i < std::min<uint32_t>(header.section_count, TGRT_MAX_SECTIONS); ++i) {
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>(header.sections[i].bytes, packed_bytes - at));
    use(header.sections[i], at, bytes);
    at += bytes;
  }
}

inline std::vector<unsigned char> pack_bundle(std::span<const unsigned char> file) {
  tgrt_header header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<unsigned char> packed(file.begin(), file.begin() + sizeof header);
  for (uint32_t i = 0; i < header.section_count; ++i) {
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(header.sections[i].offset);
    packed.insert(packed.end(), begin, begin + static_cast<std::ptrdiff_t>(header.sections[i].bytes));
  }
  return packed;
}

/// The file that `packed` describes, with hashes that fit; empty if it is too short or would be too large.
inline std::vector<unsigned char> unpack_bundle(std::span<const unsigned char> packed) {
  tgrt_header header;
  if (packed.size() < sizeof header) return {};
  std::memcpy(&header, packed.data(), sizeof header);
  if (header.file_bytes > kMostBundleBytes || header.file_bytes < sizeof header) return {};
  std::vector<unsigned char> file(static_cast<size_t>(header.file_bytes));
  for_each_packed(header, packed.size(), [&](const tgrt_section& s, size_t at, size_t bytes) {
    if (s.offset > file.size() || bytes > file.size() - s.offset) return;
    std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                file.begin() + static_cast<std::ptrdiff_t>(s.offset));
  });
  for_each_packed(header, packed.size(), [&](tgrt_section& s, size_t, size_t) {
    if (s.offset <= file.size() && s.bytes <= file.size() - s.offset)
      s.hash = tgrt_hash(file.data() + s.offset, s.bytes);
  });
  header.hash = 0;
  header.hash = tgrt_hash(&header, sizeof header);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

} // namespace tgc
