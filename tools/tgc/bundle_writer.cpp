// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes a bundle: sections at multiples of 64 KiB after a fixed header, which is written last because it holds their
// hashes. The file appears whole or not at all (OutputFile): a full disk, an error or an interrupt leaves what was
// there. Weights pass through one buffer of a megabyte, whatever the model's size. Not handled: syncing to disk (a
// power cut may lose the new file, as with any compiler).
#include "tgc/bundle_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "render/temporary.h"
#include "runtime/tgrt_bundle.h"
#include "tgc/boundary.h"
#include "tgc/bundle_parts.h"
#include "uop/bytes_hash.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr size_t kBufferBytes = 1 << 20; // a multiple of the hasher's 32 bytes

/// A file written at offsets that appears under its name when committed. What has no offsets, a pipe, gets the bytes of
/// a nameless temporary file then.
class PartialFile {
public:
  explicit PartialFile(const std::string& path) : path_(path), output_(path) {
    fd_ = ::open(output_.writing().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) cannot_write(std::strerror(errno));
    if (::lseek(fd_, 0, SEEK_CUR) >= 0) return;
    TemporaryFolder folder; // the file loses its name with it
    held_.reset(std::fopen(folder.file("bundle").c_str(), "w+be"));
    if (!held_) cannot_write(std::string("no temporary file: ") + std::strerror(errno));
  }
  ~PartialFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write_at(uint64_t offset, const void* data, size_t bytes) {
    const int fd = held_ ? ::fileno(held_.get()) : fd_;
    write_all(data, bytes, [&](const char* from, size_t left) {
      const ssize_t n = ::pwrite(fd, from, left, static_cast<off_t>(offset));
      offset += n > 0 ? static_cast<uint64_t>(n) : 0;
      return n;
    });
  }
  void commit() {
    if (held_) pour();
    if (::close(std::exchange(fd_, -1)) != 0) cannot_write(std::strerror(errno));
    output_.commit();
  }

private:
  template <typename Write> void write_all(const void* data, size_t bytes, Write&& write) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = write(from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) cannot_write(n < 0 ? std::strerror(errno) : "no space left");
      from += n;
      bytes -= static_cast<size_t>(n);
    }
  }
  void pour() {
    std::vector<char> block(kBufferBytes);
    const char* unread = "its temporary file cannot be read";
    if (std::fseek(held_.get(), 0, SEEK_SET) != 0) cannot_write(unread);
    while (const size_t n = std::fread(block.data(), 1, block.size(), held_.get()))
      write_all(block.data(), n, [&](const char* from, size_t left) { return ::write(fd_, from, left); });
    if (std::ferror(held_.get())) cannot_write(unread);
  }
  [[noreturn]] void cannot_write(const std::string& why) const {
    throw CompileError(Diagnostic{ErrorCode::E502, path_, "cannot be written: " + why, {}});
  }
  std::string path_;
  OutputFile output_;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> held_;
  int fd_ = -1;
};

/// One section being written and hashed. Offsets are within the section.
class SectionWriter {
public:
  SectionWriter(PartialFile& file, uint64_t start) : file_(file), start_(start) {
    tgrt_hash_init(&hasher_);
    buffer_.reserve(kBufferBytes);
  }
  void add(const char* data, uint64_t bytes) {
    while (bytes > 0) {
      if (buffer_.empty() && bytes >= kBufferBytes) {
        write(data, kBufferBytes);
        data += kBufferBytes;
        bytes -= kBufferBytes;
        continue;
      }
      const size_t n = static_cast<size_t>(std::min<uint64_t>(bytes, kBufferBytes - buffer_.size()));
      buffer_.insert(buffer_.end(), data, data + n);
      data += n;
      bytes -= n;
      if (buffer_.size() == kBufferBytes) flush();
    }
  }
  void pad_to(uint64_t offset) {
    static constexpr char kZeros[TGRT_DATA_ALIGN] = {};
    add(kZeros, offset - size());
  }
  uint64_t size() const { return written_ + buffer_.size(); }
  uint64_t finish() {
    flush();
    return tgrt_hash_final(&hasher_);
  }

private:
  void flush() {
    write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  void write(const char* data, size_t bytes) {
    tgrt_hash_update(&hasher_, data, bytes);
    file_.write_at(start_ + written_, data, bytes);
    written_ += bytes;
  }
  PartialFile& file_;
  uint64_t start_, written_ = 0;
  std::vector<char> buffer_;
  tgrt_hasher hasher_;
};

void add_mapped(SectionWriter& out, const BundleContents::Weight& weight) {
  const WeightData& data = weight.data;
  const auto cannot_read = [&](const std::string& why) {
    throw CompileError(Diagnostic{ErrorCode::E501, data.file, "cannot read weight \"" + weight.key + "\": " + why, {}});
  };
  const int fd = ::open(data.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) cannot_read(std::strerror(errno));
  const auto close_fd = [](const int* f) { ::close(*f); };
  const std::unique_ptr<const int, decltype(close_fd)> guard(&fd, close_fd);
  std::vector<char> block(static_cast<size_t>(std::min<uint64_t>(weight.bytes, kBufferBytes)));
  for (uint64_t done = 0; done < weight.bytes;) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(block.size(), weight.bytes - done));
    const ssize_t n = ::pread(fd, block.data(), want, static_cast<off_t>(data.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) cannot_read(n < 0 ? std::strerror(errno) : "the file ends before it");
    out.add(block.data(), static_cast<uint64_t>(n));
    done += static_cast<uint64_t>(n);
  }
}

void add_splat(SectionWriter& out, const BundleContents::Weight& weight) {
  const char* element = reinterpret_cast<const char*>(weight.data.data);
  std::string block;
  while (block.size() < std::min<uint64_t>(weight.bytes, 1 << 16)) block.append(element, weight.data.length);
  for (uint64_t done = 0; done < weight.bytes;) {
    const uint64_t n = std::min<uint64_t>(block.size(), weight.bytes - done);
    out.add(block.data(), n);
    done += n;
  }
}

void add_weight(SectionWriter& out, const BundleContents::Weight& weight) {
  const bool is_splat = weight.data.kind == WeightData::Kind::Splat;
  TGC_CHECK(is_splat ? weight.data.length > 0 && weight.bytes % weight.data.length == 0
                     : weight.data.length == weight.bytes,
            "weight \"" + weight.key + "\" has " + std::to_string(weight.data.length) + " bytes, its tensor " +
                std::to_string(weight.bytes));
  switch (weight.data.kind) {
  case WeightData::Kind::Mapped: return add_mapped(out, weight);
  case WeightData::Kind::Splat: return add_splat(out, weight);
  case WeightData::Kind::Inline: return out.add(reinterpret_cast<const char*>(weight.data.data), weight.bytes);
  }
}

/// Sections after the header, in file order.
class BundleFile {
public:
  explicit BundleFile(const std::string& path) : file_(path) {
    std::memset(&header_, 0, sizeof header_);
    std::memcpy(header_.magic, TGRT_MAGIC, sizeof header_.magic);
    header_.major = TGRT_MAJOR;
    header_.minor = TGRT_MINOR;
    header_.abi = TGRT_ABI;
    header_.header_bytes = sizeof header_;
    header_.file_bytes = sizeof header_;
  }
  tgrt_header& header() { return header_; }

  void add(tgrt_section_kind kind, const std::string& bytes) {
    if (bytes.empty()) return;
    SectionWriter out = begin();
    out.add(bytes.data(), bytes.size());
    end(kind, out);
  }
  void add_weights(const BundleContents& contents, const std::vector<uint64_t>& offsets) {
    if (contents.weights.empty()) return;
    SectionWriter out = begin();
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] < out.size()) continue; // written: an equal one came before
      out.pad_to(offsets[i]);
      add_weight(out, contents.weights[i]);
    }
    end(TGRT_SECTION_WEIGHTS, out);
  }
  void commit() {
    header_.hash = tgrt_hash(&header_, sizeof header_);
    file_.write_at(0, &header_, sizeof header_);
    file_.commit();
  }

private:
  SectionWriter begin() {
    start_ = (header_.file_bytes + TGRT_SECTION_ALIGN - 1) / TGRT_SECTION_ALIGN * TGRT_SECTION_ALIGN;
    return SectionWriter(file_, start_);
  }
  void end(tgrt_section_kind kind, SectionWriter& out) {
    const uint64_t hash = out.finish();
    if (out.size() == 0) return; // weights without elements
    header_.sections[header_.section_count++] = {static_cast<uint32_t>(kind), 0, start_, out.size(), hash};
    header_.file_bytes = start_ + out.size();
  }
  PartialFile file_;
  tgrt_header header_;
  uint64_t start_ = 0;
};

void set_features(tgrt_header& header, const std::vector<std::string>& features) {
  struct Known {
    unsigned bit;
    const char* name;
  };
  static constexpr Known kKnown[] = {
#define TGRT_X86(Bit, Name, ...) {Bit, Name},
#include "runtime/features.def"
  };
  static constexpr const char* kUnused[] = {
#define TGRT_X86_UNUSED(...) __VA_ARGS__
#include "runtime/features.def"
  };
  for (const std::string& feature : features) {
    const std::string name = feature.starts_with('+') ? feature.substr(1) : feature;
    const auto is_name = [&](const char* other) { return name == other; };
    if (feature.starts_with('-') || std::any_of(std::begin(kUnused), std::end(kUnused), is_name)) continue;
    const auto found =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& known) { return name == known.name; });
    if (found == std::end(kKnown))
      throw CompileError(Diagnostic{ErrorCode::E401, "", "CPU feature \"" + name + "\" has no run-time check",
                                    "leave it out of --target, or add it to lib/runtime/features.def"});
    header.features[found->bit / 64] |= UINT64_C(1) << (found->bit % 64);
  }
}

uint64_t head_hash(const WeightData& data) {
  return data.data ? hash_bytes({data.data, static_cast<size_t>(std::min<uint64_t>(data.length, 256))}) : 0;
}

/// Whether two weights of one size have the same bytes; false when that would need a file to be read.
bool same_bytes(const BundleContents::Weight& a, const BundleContents::Weight& b) {
  const WeightData &x = a.data, &y = b.data;
  if (x.hash != 0 && y.hash != 0 && x.hash != y.hash) return false;
  if (x.kind == WeightData::Kind::Mapped && y.kind == x.kind && x.file == y.file && x.offset == y.offset) return true;
  return x.data && y.data && (x.data == y.data || std::memcmp(x.data, y.data, x.length) == 0);
}

} // namespace

std::vector<uint64_t> place_weights(const BundleContents& contents) {
  using Likeness = std::tuple<uint64_t, uint64_t, uint64_t>; // whole bytes, bytes given, hash of the first of them
  std::map<Likeness, std::vector<size_t>> placed;
  std::vector<uint64_t> offsets;
  uint64_t next = 0;
  for (size_t i = 0; i < contents.weights.size(); ++i) {
    const auto& weight = contents.weights[i];
    std::vector<size_t>& alike = placed[{weight.bytes, weight.data.length, head_hash(weight.data)}];
    const auto same = std::find_if(alike.begin(), alike.end(),
                                   [&](size_t other) { return same_bytes(contents.weights[other], weight); });
    if (same != alike.end()) {
      offsets.push_back(offsets[*same]);
      continue;
    }
    alike.push_back(i);
    offsets.push_back(next);
    next += (weight.bytes + TGRT_DATA_ALIGN - 1) / TGRT_DATA_ALIGN * TGRT_DATA_ALIGN;
  }
  return offsets;
}

void write_bundle(const BundleContents& contents, const std::string& path) {
  CodeImage code;
  if (!contents.code.empty()) code = read_code(contents.code);
  const std::vector<uint64_t> offsets = place_weights(contents);
  const std::string plan = make_plan(contents, code, offsets);
  BundleFile file(path);
  file.header().machine = code.machine;
  set_features(file.header(), contents.features);
  file.add(TGRT_SECTION_CODE, contents.code);
  file.add(TGRT_SECTION_PLAN, plan);
  file.add(TGRT_SECTION_SOURCE, contents.source_text);
  file.add(TGRT_SECTION_TESTS, contents.tests);
  file.add_weights(contents, offsets);
  file.commit();
}

} // namespace tgc
