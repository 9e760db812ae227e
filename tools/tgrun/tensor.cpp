// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors in memory: element types, values as doubles for comparing and printing, files. Numbers are converted by bits,
// so that nothing depends on the machine's half-precision support.
#include "tgrun/tensor.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/tgrt_bundle.h"
#include "tgrun/options.h"

namespace tgc {

namespace {

struct Type {
  const char* name;
  size_t bytes;
};
constexpr Type kTypes[] = {{"?", 0},   {"bool", 1}, {"i8", 1},  {"u8", 1},  {"i16", 2},  {"u16", 2}, {"i32", 4},
                           {"u32", 4}, {"i64", 8},  {"u64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};

const Type& type(uint32_t dtype) { return kTypes[dtype < std::size(kTypes) ? dtype : 0]; }

template <typename T> T at(const HostTensor& t, size_t i) {
  T value;
  std::memcpy(&value, t.data.data() + i * sizeof(T), sizeof(T));
  return value;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && std::string_view(text).substr(text.size() - end.size()) == end;
}

} // namespace

const char* dtype_name(uint32_t dtype) { return type(dtype).name; }
size_t dtype_bytes(uint32_t dtype) { return type(dtype).bytes; }
bool dtype_is_float(uint32_t dtype) { return dtype >= TGRT_F16 && dtype <= TGRT_F64; }

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (const int64_t dim : dims) text += (text.size() > 1 ? "," : "") + std::to_string(dim);
  return text + "]";
}

size_t checked_numel(const std::string& file, const std::vector<int64_t>& dims, uint32_t dtype) {
  constexpr int64_t kLimit = int64_t{1} << 40;
  int64_t n = 1, bytes = 0;
  bool is_bad = false;
  for (const int64_t dim : dims) is_bad = is_bad || dim < 0 || __builtin_mul_overflow(n, dim, &n) || n > kLimit;
  is_bad = is_bad || __builtin_mul_overflow(n, static_cast<int64_t>(dtype_bytes(dtype)), &bytes) || bytes > kLimit;
  if (is_bad) throw RunError(file + ": impossible shape " + dims_text(dims));
  return static_cast<size_t>(n);
}

double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

double from_bfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

double element(const HostTensor& t, size_t i) {
  switch (t.dtype) {
  case TGRT_BOOL: return at<uint8_t>(t, i) != 0;
  case TGRT_I8: return at<int8_t>(t, i);
  case TGRT_U8: return at<uint8_t>(t, i);
  case TGRT_I16: return at<int16_t>(t, i);
  case TGRT_U16: return at<uint16_t>(t, i);
  case TGRT_I32: return at<int32_t>(t, i);
  case TGRT_U32: return at<uint32_t>(t, i);
  case TGRT_I64: return static_cast<double>(at<int64_t>(t, i));
  case TGRT_U64: return static_cast<double>(at<uint64_t>(t, i));
  case TGRT_F16: return from_half(at<uint16_t>(t, i));
  case TGRT_BF16: return from_bfloat(at<uint16_t>(t, i));
  case TGRT_F32: return at<float>(t, i);
  case TGRT_F64: return at<double>(t, i);
  default: return NAN;
  }
}

std::string number_text(const HostTensor& t, size_t i) {
  if (t.dtype == TGRT_I64) return std::to_string(at<int64_t>(t, i));
  if (t.dtype == TGRT_U64) return std::to_string(at<uint64_t>(t, i));
  char text[32];
  const double value = element(t, i);
  const bool wide = t.dtype == TGRT_F64 || !dtype_is_float(t.dtype);
  const auto end = wide ? std::to_chars(text, text + sizeof text, value)
                        : std::to_chars(text, text + sizeof text, static_cast<float>(value));
  return std::string(text, end.ptr);
}

std::string read_whole(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw RunError(path + ": cannot be read: " + std::strerror(errno), "check the path and its permissions");
  std::string bytes;
  char block[1 << 16];
  for (size_t n; (n = std::fread(block, 1, sizeof block, file.get())) > 0;) bytes.append(block, n);
  if (std::ferror(file.get())) throw RunError(path + ": cannot be read: " + std::strerror(errno));
  return bytes;
}

void write_whole(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  File file(std::fopen(temporary.c_str(), "wb"), std::fclose);
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (written && std::fclose(file.release()) == 0 && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  throw RunError(path + ": cannot be written: " + std::strerror(error), "check the folder and its free space");
}

HostTensor read_tensor(const std::string& path) {
  struct Kind {
    const char* suffix;
    HostTensor (*parse)(const std::string& path, std::string_view bytes);
  };
  static constexpr Kind kKinds[] = {{".npy", parse_npy}, {".pb", parse_tensor_proto}, {".pgm", parse_pgm}};
  for (const Kind& kind : kKinds)
    if (ends_with(path, kind.suffix)) return kind.parse(path, read_whole(path));
  throw RunError(path + ": unknown kind of file", "inputs are .npy, .pb (ONNX TensorProto) or .pgm");
}

} // namespace tgc
