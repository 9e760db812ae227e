// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tgc {

/// Content hash of bytes: 64 bits, the same on every machine. Against accidents, not against forgery: any change within
/// one 8-byte word changes it, but changes of two words 64 bytes apart can be made to cancel out. So results must not
/// depend on equal hashes: compare the bytes, or let the worst be a slow kernel.
uint64_t hash_bytes(std::span<const std::byte> bytes);

} // namespace tgc
