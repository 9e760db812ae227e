// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Most kernels of a model that is compiled again are those of the last time, and LLVM takes most of the time of a
// compile. So objects are kept by content: a file per kernel, whose name is a digest of all that determines it. An
// entry is written under another name and renamed; it carries a checksum over its key and its bytes, so what a crash, a
// full disk or a stray hand left behind is found out and built again. Age is the file's time of modification, which
// each use renews. The folder may be any that the user names: only files that are named like entries are ever removed.
// Not handled: forgery. Who can write to the folder can choose the code that is linked.
#include "render/object_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <tuple>
#include <utility>

#include "uop/bytes_hash.h"

namespace tgc {
namespace {

constexpr char kMagic[8] = {'t', 'g', 'c', 'o', 'b', 'j', '1', '\n'};
constexpr uint64_t kMaxEntry = 64 << 20; // bytes
constexpr time_t kStale = 3600;          // seconds after which a file still being written has no writer

struct EntryHeader {
  char magic[sizeof kMagic];
  uint64_t bytes, check;
};

/// Binds the bytes to the key, so that a renamed entry is a damaged one.
uint64_t checksum(const std::string& key, std::span<const char> bytes) {
  const uint64_t parts[] = {hash_bytes(std::as_bytes(std::span(key))), hash_bytes(std::as_bytes(bytes))};
  return hash_bytes(std::as_bytes(std::span(parts)));
}

constexpr std::string_view kSuffix = ".tgco";   // other programs name files by digests too
constexpr std::string_view kUnique = ".XXXXXX"; // of a file still being written; mkostemp chooses the characters

bool is_entry(std::string_view name) {
  return name.size() == ObjectCache::kKeyChars + kSuffix.size() && name.ends_with(kSuffix) &&
         name.substr(0, ObjectCache::kKeyChars).find_first_not_of("0123456789abcdef") == name.npos;
}
bool is_being_written(std::string_view name) {
  return name.size() > kUnique.size() && name[name.size() - kUnique.size()] == '.' &&
         is_entry(name.substr(0, name.size() - kUnique.size()));
}

class Fd {
public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

private:
  int fd_;
};

bool read_all(int fd, void* to, size_t bytes) {
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t n = ::read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* from, size_t bytes) {
  for (const char* at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

std::optional<std::vector<char>> read_entry(int fd, const std::string& key) {
  EntryHeader header;
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !read_all(fd, &header, sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.bytes > kMaxEntry ||
      header.bytes + sizeof header != static_cast<uint64_t>(status.st_size))
    return std::nullopt;
  std::vector<char> bytes(header.bytes);
  if (!read_all(fd, bytes.data(), bytes.size()) || checksum(key, bytes) != header.check) return std::nullopt;
  return bytes;
}

/// 0, or why there is no such folder.
int make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    struct stat status{};
    if (::mkdir(folder.c_str(), 0700) != 0) {
      const int error = errno; // whatever it is, one that exists is as good
      if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return error;
    }
    if (end == path.npos) return 0;
  }
}

/// The build id among an object's notes, as bytes; "" when there is none.
std::string build_id(const dl_phdr_info& object) {
  for (const ElfW(Phdr) & segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const size_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [&](size_t n) { return (n + align - 1) / align * align; };
    const char* at = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
    for (const char* end = at + segment.p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* id = at + padded(sizeof note + note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        return {id, note.n_descsz};
      at = id + padded(note.n_descsz);
    }
  }
  return "";
}

} // namespace

std::string build_identity() {
  struct Ids {
    std::string text;
    bool complete = true;
  } ids;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* to) {
        if (std::string_view(object->dlpi_name).starts_with("linux-vdso")) return 0; // the kernel's, computes nothing
        auto& all = *static_cast<Ids*>(to);
        const std::string id = build_id(*object);
        all.complete = all.complete && !id.empty();
        all.text += std::to_string(id.size()) + ":" + id;
        return 0;
      },
      &ids);
  return ids.complete ? ids.text : "";
}

ObjectCache::ObjectCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {
  if (build_identity().empty()) problem_ = "the compiler or a library of it has no build id";
}

ObjectCache::~ObjectCache() {
  if (grew_) trim();
}

std::string ObjectCache::path_of(const std::string& key) const { return folder_ + "/" + key + std::string(kSuffix); }

std::optional<std::vector<char>> ObjectCache::find(const std::string& key) {
  const std::string path = path_of(key);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::optional<std::vector<char>> bytes;
  if (fd.get() >= 0) {
    bytes = read_entry(fd.get(), key);
    if (bytes)
      ::futimens(fd.get(), nullptr);
    else
      ::unlink(path.c_str());
  }
  ++(bytes ? hits_ : misses_);
  return bytes;
}

void ObjectCache::keep(const std::string& key, std::span<const char> bytes) {
  if (bytes.size() > kMaxEntry) return;
  const std::string path = path_of(key);
  std::string writing = path + std::string(kUnique);
  int made = ::mkostemp(writing.data(), O_CLOEXEC);
  if (made < 0 && errno == ENOENT) {
    if (const int error = make_folders(folder_); error != 0) return set_problem("cannot make the folder", error);
    writing = path + std::string(kUnique);
    made = ::mkostemp(writing.data(), O_CLOEXEC);
  }
  Fd fd(made);
  if (fd.get() < 0) return set_problem("cannot make a file", errno);
  EntryHeader header{{}, bytes.size(), checksum(key, bytes)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  const bool written = write_all(fd.get(), &header, sizeof header) && write_all(fd.get(), bytes.data(), bytes.size()) &&
                       fd.close() && std::rename(writing.c_str(), path.c_str()) == 0;
  if (written) {
    grew_ = true;
    return;
  }
  set_problem("cannot write a file", errno);
  ::unlink(writing.c_str());
}

std::string ObjectCache::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void ObjectCache::set_problem(std::string_view action, int error) {
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = std::string(action) + ": " + std::strerror(error);
}

void ObjectCache::trim() {
  struct Entry {
    std::pair<time_t, long> used; // seconds, nanoseconds
    uint64_t bytes;
    std::string name;
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(folder_.c_str()), ::closedir);
  if (!folder) return;
  const int at = ::dirfd(folder.get());
  const time_t now = ::time(nullptr);
  std::vector<Entry> entries;
  uint64_t total = 0;
  while (const dirent* file = ::readdir(folder.get())) {
    struct stat status{};
    const bool writing = is_being_written(file->d_name);
    if (!writing && !is_entry(file->d_name)) continue;
    if (::fstatat(at, file->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    if (writing && now - status.st_mtime > kStale) ::unlinkat(at, file->d_name, 0);
    if (writing) continue;
    const uint64_t bytes = static_cast<uint64_t>(status.st_blocks) * 512;
    entries.push_back({{status.st_mtim.tv_sec, status.st_mtim.tv_nsec}, bytes, file->d_name});
    total += bytes;
  }
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.used, a.name) < std::tie(b.used, b.name); });
  for (const Entry& entry : entries) {
    if (total <= limit_ / 4 * 3) return;
    ::unlinkat(at, entry.name.c_str(), 0); // another compiler may have been faster
    total -= entry.bytes;
  }
}

} // namespace tgc
