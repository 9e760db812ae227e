// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: weights of gigabytes must neither be copied nor read twice, yet the room must build where there is no mmap.
// Idea: one function hands out bytes with an owner; it maps regular files where <sys/mman.h> exists and reads all else.
// Not handled: a file that another process truncates while it is mapped.
#include "frontend/bytes.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "uop/diag.h"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <sys/stat.h>
#define TGC_HAS_MMAP 1
#else
#define TGC_HAS_MMAP 0
#endif

namespace tgc {
namespace {

constexpr size_t kMaxStream = size_t{1} << 31; // and not all of memory

[[noreturn]] void cannot_read(const std::string& path, const char* reason) {
  throw CompileError(Diagnostic{
      .code = ErrorCode::E501, .where = path, .message = reason, .note = "check the path and its permissions"});
}

FileBytes read_stream(std::FILE* file, const std::string& path) {
  std::string content;
  char block[1 << 16];
  while (size_t n = std::fread(block, 1, sizeof block, file)) {
    content.append(block, n);
    if (content.size() > kMaxStream)
      throw CompileError(Diagnostic{.code = ErrorCode::E501,
                                    .where = path == "-" ? "standard input" : path,
                                    .message = "has more than 2 GiB and is no file",
                                    .note = "only files may be longer: give the path of one"});
  }
  if (std::ferror(file)) cannot_read(path, std::strerror(errno));
  return bytes_of(std::move(content));
}

#if TGC_HAS_MMAP
/// Nothing for an empty or special file, which are then read.
FileBytes map_file(std::FILE* file, const std::string& path) {
  const int fd = ::fileno(file);
  struct stat status{};
  bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  size_t size = regular ? static_cast<size_t>(status.st_size) : 0;
  void* at = regular ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (at == MAP_FAILED) return {};
  std::shared_ptr<const void> owner(at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return {{static_cast<const std::byte*>(at), size}, std::move(owner), path, 0};
}
#else
FileBytes map_file(std::FILE*, const std::string&) { return {}; }
#endif

} // namespace

FileBytes bytes_of(std::string content) {
  auto held = std::make_shared<const std::string>(std::move(content));
  return {std::as_bytes(std::span(held->data(), held->size())), held, "", 0};
}

FileBytes open_bytes(const std::string& path) {
  if (path == "-") return read_stream(stdin, path);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) cannot_read(path, std::strerror(errno));
  const std::shared_ptr<std::FILE> close_later(file, std::fclose);
  FileBytes mapped = map_file(file, path);
  return mapped.owner ? mapped : read_stream(file, path);
}

uint64_t load_unsigned(const std::byte* at, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return value;
}

int64_t load_signed(const std::byte* at, int size) {
  int unused = 64 - 8 * size;
  return static_cast<int64_t>(load_unsigned(at, size) << unused) >> unused;
}

} // namespace tgc
