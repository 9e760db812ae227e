// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace tgc {

/// While it lives, this is the only FileLock of the file among all processes, also where the file is replaced by
/// renaming. Others are not held off. On a file system without locks it holds nobody off.
class FileLock {
public:
  /// Makes the file, empty, where there is none, and waits at most `seconds` for another holder.
  /// errors: CompileError TGC-E502, also when the other does not let go, or what has the name is no regular file.
  explicit FileLock(const std::string& path, double seconds = 10);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

private:
  bool take(const std::string& path);

  int fd_ = -1;
};

} // namespace tgc
