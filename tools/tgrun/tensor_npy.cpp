// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy's .npy and the grey picture format PGM. A .npy is a magic, a version, the length of a Python dictionary, the
// dictionary as text, and the elements; only its three known keys are looked for. Not handled: big-endian, Fortran
// order, structured types; each is refused by name. Source: numpy.lib.format; pgm(5).
#include <charconv>
#include <cstring>

#include "runtime/tgrt_bundle.h"
#include "tgrun/options.h"
#include "tgrun/tensor.h"

namespace tgc {

namespace {

struct Descr {
  const char* text;
  uint32_t dtype;
};
constexpr Descr kDescrs[] = {{"|b1", TGRT_BOOL}, {"|i1", TGRT_I8},  {"|u1", TGRT_U8},  {"<i2", TGRT_I16},
                             {"<u2", TGRT_U16},  {"<i4", TGRT_I32}, {"<u4", TGRT_U32}, {"<i8", TGRT_I64},
                             {"<u8", TGRT_U64},  {"<f2", TGRT_F16}, {"<f4", TGRT_F32}, {"<f8", TGRT_F64}};

[[noreturn]] void bad(const std::string& path, const std::string& what, const std::string& note = {}) {
  throw RunError(path + ": " + what, note);
}

/// The text of a header key's value, up to the next comma outside parentheses.
std::string_view value_of(const std::string& path, std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) bad(path, "the .npy header has no " + std::string(key));
  std::string_view rest = header.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  const bool is_tuple = rest.starts_with('(');
  return rest.substr(0, rest.find(is_tuple ? ')' : ','));
}

std::vector<int64_t> parse_shape(const std::string& path, std::string_view tuple) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < tuple.size();) {
    if (tuple[i] == '(' || tuple[i] == ' ' || tuple[i] == ',') {
      ++i;
      continue;
    }
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(tuple.data() + i, tuple.data() + tuple.size(), dim);
    if (error != std::errc() || dims.size() >= 64) bad(path, "the .npy shape is not a tuple of integers");
    dims.push_back(dim);
    i = static_cast<size_t>(end - tuple.data());
  }
  return dims;
}

/// From first index fastest (Fortran order) to last index fastest.
void to_row_major(HostTensor& t) {
  const size_t width = dtype_bytes(t.dtype), n = t.data.size() / width;
  std::vector<char> row_major(t.data.size());
  std::vector<size_t> at(t.dims.size());
  for (size_t to = 0; to < n; ++to) {
    size_t from = 0;
    for (size_t axis = at.size(); axis-- > 0;) from = from * static_cast<size_t>(t.dims[axis]) + at[axis];
    std::memcpy(row_major.data() + to * width, t.data.data() + from * width, width);
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == static_cast<size_t>(t.dims[axis]);) at[axis] = 0;
  }
  t.data = std::move(row_major);
}

/// The next number of a PGM header; '#' starts a comment.
int next_number(std::string_view bytes, size_t& at) {
  while (at < bytes.size() && (std::strchr(" \t\r\n", bytes[at]) || bytes[at] == '#')) {
    if (bytes[at] == '#')
      at = std::min(bytes.find('\n', at), bytes.size());
    else
      ++at;
  }
  int value = -1;
  const auto [end, error] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), value);
  at = static_cast<size_t>(end - bytes.data());
  return error == std::errc() ? value : -1;
}

} // namespace

HostTensor parse_npy(const std::string& path, std::string_view bytes) {
  if (bytes.size() < 12 || bytes.substr(0, 6) != "\x93NUMPY") bad(path, "not a .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const bool is_v1 = byte(6) == 1;
  const size_t start = is_v1 ? 10 : 12;
  const size_t length = byte(8) | byte(9) << 8 | (is_v1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > bytes.size() - start) bad(path, "the .npy header is truncated");
  const std::string_view header = bytes.substr(start, length);
  const bool is_fortran = value_of(path, header, "'fortran_order'").starts_with("True");
  std::string_view descr = value_of(path, header, "'descr'");
  descr = descr.size() > 2 ? descr.substr(1, descr.size() - 2) : descr;
  HostTensor t;
  for (const Descr& known : kDescrs)
    if (descr == known.text) t.dtype = known.dtype;
  if (t.dtype == 0)
    bad(path, "element type " + std::string(descr) + " is not supported", "convert it, as in x.astype('<f4')");
  t.dims = parse_shape(path, value_of(path, header, "'shape'"));
  const size_t want = checked_numel(path, t.dims, t.dtype) * dtype_bytes(t.dtype);
  const std::string_view data = bytes.substr(start + length);
  if (data.size() != want)
    bad(path, "it has " + std::to_string(data.size()) + " bytes of elements, its shape " + dims_text(t.dims) +
                  " needs " + std::to_string(want));
  t.data.assign(data.begin(), data.end());
  if (is_fortran) to_row_major(t);
  return t;
}

HostTensor parse_pgm(const std::string& path, std::string_view bytes) {
  if (!bytes.starts_with("P5"))
    bad(path, "not a binary grey picture (P5)", "convert it: pamtopnm, convert x.png x.pgm");
  size_t at = 2;
  const int width = next_number(bytes, at), height = next_number(bytes, at), max = next_number(bytes, at);
  if (width < 1 || height < 1 || max < 1 || max > 255) bad(path, "its header is not that of an 8-bit PGM picture");
  ++at; // one white space ends the header
  HostTensor t;
  t.dtype = TGRT_F32;
  t.dims = {height, width};
  const size_t n = checked_numel(path, t.dims, t.dtype);
  if (at > bytes.size() || bytes.size() - at < n)
    bad(path, "the picture is truncated: " + std::to_string(bytes.size()) + " bytes for " + std::to_string(width) +
                  "x" + std::to_string(height) + " pixels");
  t.data.resize(n * sizeof(float));
  for (size_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(static_cast<unsigned char>(bytes[at + i]));
    std::memcpy(t.data.data() + i * sizeof value, &value, sizeof value);
  }
  return t;
}

std::string to_npy(const HostTensor& t) {
  const bool is_bfloat = t.dtype == TGRT_BF16;
  std::string header = "{'descr': '";
  for (const Descr& known : kDescrs)
    if (known.dtype == (is_bfloat ? static_cast<uint32_t>(TGRT_F32) : t.dtype)) header += known.text;
  header += "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : t.dims) header += std::to_string(dim) + ",";
  header += "), }";
  header.append((64 - (11 + header.size()) % 64) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY\x01";
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  if (!is_bfloat) return file.append(t.data.data(), t.data.size());
  for (size_t i = 0; i < t.data.size() / 2; ++i) {
    const auto value = static_cast<float>(element(t, i));
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return file;
}

} // namespace tgc
