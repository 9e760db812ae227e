// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tgc {

/// The bytes of a file or of standard input, kept alive by `owner`.
struct FileBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::string path; ///< as opened; empty when the bytes are not a file's, so that they cannot be referred to by range
  uint64_t offset = 0; ///< of `bytes` within that file

  /// requires: offset + length <= bytes.size().
  FileBytes range(uint64_t from, uint64_t length) const {
    return {bytes.subspan(from, length), owner, path, offset + from};
  }
};

/// Maps `path` (read-only, shared pages) where the system can, else reads it; "-" is standard input.
/// errors: CompileError TGC-E501 with the system's reason.
FileBytes open_bytes(const std::string& path);
/// Bytes held by a string of their own.
FileBytes bytes_of(std::string content);

/// `value`, little-endian, of `size` bytes at `at`; sign-extended where asked.
uint64_t load_unsigned(const std::byte* at, int size);
int64_t load_signed(const std::byte* at, int size);

} // namespace tgc
