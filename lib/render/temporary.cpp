// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files that compilers, linkers and the loader need by name for a moment. Not handled: SIGKILL, which leaves them.
#include "render/temporary.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "uop/diag.h"

namespace tgc {

TemporaryFolder::TemporaryFolder() {
  std::error_code unusable;
  const std::string usual = std::filesystem::temp_directory_path(unusable); // empty if TMPDIR names none
  for (const std::string& parent : {usual, std::string("/tmp"), std::string("/dev/shm"), std::string(".")}) {
    if (parent.empty()) continue;
    path_ = parent + "/tgc-XXXXXX";
    if (mkdtemp(path_.data())) return;
  }
  throw CompileError(Diagnostic{.code = ErrorCode::E502,
                                .where = "",
                                .message = "no temporary folder can be made in TMPDIR, /tmp, /dev/shm or .",
                                .note = "set TMPDIR to a folder that can be written and has space"});
}

TemporaryFolder::~TemporaryFolder() {
  for (const std::string& file : files_) unlink(file.c_str());
  rmdir(path_.c_str());
}

std::string TemporaryFolder::file(const std::string& name) {
  files_.push_back(path_ + "/" + name);
  return files_.back();
}

std::string TemporaryFolder::file(const std::string& name, const std::string& text) {
  std::string path = file(name);
  FILE* out = std::fopen(path.c_str(), "wb");
  const bool ok = out && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (!out || std::fclose(out) != 0 || !ok)
    throw CompileError(Diagnostic{
        .code = ErrorCode::E502, .where = path, .message = "cannot be written", .note = info(ErrorCode::E502).remedy});
  return path;
}

} // namespace tgc
