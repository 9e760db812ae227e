// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tgc {

/// Holds a linked kernel image to its contract: ELF64 shared object, no imports, no relocations, no writable segment,
/// no thread-local storage, no needed library. Returns what is wrong, or "" when all is well.
std::string check_image(std::span<const std::byte> image);

/// Address of each exported function, relative to the image's base; UINT64_MAX where there is none.
std::vector<uint64_t> find_symbols(std::span<const std::byte> image, std::span<const std::string> names);

} // namespace tgc
