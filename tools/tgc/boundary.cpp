// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a tool meets the shell: exceptions become messages and exit codes, and no half-written file stays behind.
// A signal handler may only call unlink and _exit and read plain memory, so the names of files being written stand in a
// fixed table of buffers; this is the one mutable global of the tools, and it belongs to the process by nature.
// SIGKILL and power loss are not handled: they leave a file whose name ends in ".tmp" and the process number.
#include "tgc/boundary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "printable.h"
#include "uop/diag.h"

namespace tgc {

namespace {

struct OpenFile {
  std::atomic<bool> taken{false}, live{false};
  char path[PATH_MAX];
};
std::array<OpenFile, 16> open_files;

extern "C" void remove_open_files(int signal) {
  for (OpenFile& file : open_files) {
    if (file.live.load()) unlink(file.path);
  }
  _exit(128 + signal);
}

int take_slot(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (size_t i = 0; i < open_files.size(); ++i) {
    if (open_files[i].taken.exchange(true)) continue;
    std::memcpy(open_files[i].path, path.c_str(), path.size() + 1);
    open_files[i].live.store(true);
    return static_cast<int>(i);
  }
  return -1;
}

void free_slot(int slot) {
  if (slot < 0) return;
  open_files[static_cast<size_t>(slot)].live.store(false);
  open_files[static_cast<size_t>(slot)].taken.store(false);
}

std::string behind_links(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

int say(std::string_view tool, const std::string& text, Exit code) {
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(tool.size()), tool.data(), printable(text, "\n").c_str());
  return static_cast<int>(code);
}

} // namespace

int run_guarded(std::string_view tool, const std::function<Exit()>& body) {
  try {
    const Exit code = body();
    // An earlier write may have failed and left nothing to flush.
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      return say(tool, "standard output cannot be written", Exit::User);
    return static_cast<int>(code);
  } catch (const UsageError& error) {
    return say(tool, std::string(error.what()) + " (see " + std::string(tool) + " --help)", Exit::Usage);
  } catch (const CompileError& error) {
    for (const Diagnostic& d : error.all()) {
      const char* lines = d.code == ErrorCode::E403 ? "\n\t" : ""; // a compiler's words
      const Diagnostic shown{d.code, printable(d.where), printable(d.message, lines), printable(d.note), d.warning};
      std::fprintf(stderr, "%s\n", to_string(shown).c_str());
    }
    return static_cast<int>(Exit::User);
  } catch (const std::bad_alloc&) {
    return say(tool, "out of memory", Exit::User);
  } catch (const std::exception& error) {
    return say(tool, "internal error: " + std::string(error.what()), Exit::Internal);
  }
}

OutputFile::OutputFile(const std::string& path) : path_(behind_links(path)) {
  struct stat status{};
  replaces_ = stat(path_.c_str(), &status) == 0;
  if (replaces_ && !S_ISREG(status.st_mode)) return;
  temporary_ = path_ + ".tmp" + std::to_string(getpid());
  slot_ = take_slot(temporary_);
  if (!replaces_) return;
  // What may be private is so from its first byte on. That it cannot be made is said when it is written.
  unlink(temporary_.c_str());
  if (const int fd = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); fd >= 0) close(fd);
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  free_slot(slot_);
}

void OutputFile::commit() {
  if (temporary_.empty()) return;
  struct stat old{};
  if (replaces_ && stat(path_.c_str(), &old) == 0) {
    // Where the owner cannot be kept, the file is the writer's.
    if (chown(temporary_.c_str(), old.st_uid, old.st_gid) != 0) errno = 0;
    chmod(temporary_.c_str(), old.st_mode & 0777);
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw CompileError(Diagnostic{ErrorCode::E502, path_, "cannot be written: " + std::string(strerror(errno)), ""});
  }
  temporary_.clear();
}

void interrupt_cleanly() {
  struct sigaction action{};
  action.sa_handler = remove_open_files;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

} // namespace tgc
