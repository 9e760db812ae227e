// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tgc {

/// A tensor in memory.
struct HostTensor {
  std::string name;          ///< may be empty
  uint32_t dtype = 0;        ///< enum tgrt_dtype
  std::vector<int64_t> dims; ///< row-major, outermost first
  std::vector<char> data;    ///< numel * element bytes, little-endian
};

const char* dtype_name(uint32_t dtype); ///< "f32"; "?" if unknown
size_t dtype_bytes(uint32_t dtype);
bool dtype_is_float(uint32_t dtype);
std::string dims_text(const std::vector<int64_t>& dims); ///< "[2,3]"
/// Element count. errors: RunError naming `file` if a dim is negative or the bytes pass 2^40.
size_t checked_numel(const std::string& file, const std::vector<int64_t>& dims, uint32_t dtype);
/// Element `i` as a double; 64-bit integers beyond 2^53 round.
double element(const HostTensor& t, size_t i);
/// A float for people: shortest text that reads back as the same f32.
std::string number_text(const HostTensor& t, size_t i);
double from_half(uint16_t bits);
double from_bfloat(uint16_t bits);

/// The bytes of a file. errors: RunError.
std::string read_whole(const std::string& path);
/// Writes beside `path` and renames, so that a failure leaves what was there.
void write_whole(const std::string& path, std::string_view bytes);

/// Reads .npy, .pb or .pgm, told by the name's end. A picture becomes f32 [height, width], values as stored.
/// errors: RunError naming the file, what was found and what to do; never trusts a length.
HostTensor read_tensor(const std::string& path);
HostTensor parse_npy(const std::string& path, std::string_view bytes);
HostTensor parse_tensor_proto(const std::string& path, std::string_view bytes);
HostTensor parse_pgm(const std::string& path, std::string_view bytes);
/// NumPy has no bf16: it is written as f32.
std::string to_npy(const HostTensor& t);

} // namespace tgc
