// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "render/held_interrupts.h"

namespace tgc {

/// A folder of its own in $TMPDIR, /tmp, /dev/shm or ".", the first that can be written. It goes away with its files at
/// the end, also when an interrupt comes, which waits until then.
/// errors: CompileError TGC-E502.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of a file, not made yet, that is removed with the folder.
  std::string file(const std::string& name);
  /// The same with `text` in it.
  std::string file(const std::string& name, const std::string& text);

private:
  HeldInterrupts held_; // ends last
  std::string path_;
  std::vector<std::string> files_;
};

} // namespace tgc
