// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tgc/options.h"

namespace tgc {

/// Runs a tool's body and turns what it throws into a message on standard error and an exit code: the one boundary that
/// exceptions do not pass. `tool` is the program's name, for messages.
int run_guarded(std::string_view tool, const std::function<Exit()>& body);

/// A file that appears whole or not at all: written under a temporary name in its own folder, renamed by commit(),
/// removed when the object ends first or a signal that interrupt_cleanly() handles ends the process. One that replaces
/// a file has its mode and, where this user may give it, its owner; a symbolic link stays and its target is replaced.
/// A destination that exists and is no regular file (/dev/stdout, a pipe) is written in place.
class OutputFile {
public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Where to write.
  const std::string& writing() const { return temporary_.empty() ? path_ : temporary_; }
  /// Gives the file its name. errors: CompileError TGC-E502.
  void commit();

private:
  std::string path_, temporary_;
  bool replaces_ = false;
  int slot_ = -1;
};

/// From here on SIGINT and SIGTERM remove every open OutputFile and end the process with 130 or 143.
void interrupt_cleanly();

} // namespace tgc
