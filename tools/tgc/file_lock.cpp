// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: who reads a file, adds to it and renames the result into place must be alone, or what another added in
// between is lost; and a second file that says "locked" stays behind when its process is killed.
// Idea: flock of the file itself, which the system releases. Who waited may then hold a file that has been replaced, so
// the name is looked up again, and if it means another file, that one is locked. Source: flock(2).
// Not handled: file systems without locks; there writers must take turns by themselves.
#include "tgc/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "uop/diag.h"

namespace tgc {
namespace {

constexpr std::chrono::milliseconds kPause(5); // between attempts: a holder has some kilobytes to write

[[noreturn]] void unwritable(const std::string& path, const std::string& why, const char* note = "") {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E502, .where = path, .message = "cannot be written: " + why, .note = note});
}

} // namespace

FileLock::FileLock(const std::string& path, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!take(path)) {
    if (std::chrono::steady_clock::now() > end)
      unwritable(path, "another process has kept it locked for " + std::to_string(static_cast<int>(seconds)) + " s",
                 "find it with lsof or fuser; when it ends the lock is gone");
    std::this_thread::sleep_for(kPause);
  }
}

FileLock::~FileLock() { ::close(fd_); }

/// False if another holds the file, or held and replaced it.
bool FileLock::take(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) unwritable(path, std::strerror(errno));
  struct stat held{}, named{};
  const bool is_file = ::fstat(fd, &held) == 0 && S_ISREG(held.st_mode);
  const bool is_locked = is_file && (::flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR));
  if (is_locked && ::stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
    fd_ = fd;
    return true;
  }
  ::close(fd);
  if (!is_file) unwritable(path, "it is no regular file");
  return false;
}

} // namespace tgc
