// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loader maps a code image and calls into it; it links nothing. So an image that needs a dynamic linker must not
// get into a bundle: this file reads the ELF that the linker wrote and refuses relocations, imports, TLS and writable
// data. The one writable segment that linkers always make, `.dynamic` under RELRO, is allowed and never mapped. Not
// handled: 32-bit and big-endian images. Source: System V ABI, chapters 4 and 5; x86-64 and AArch64 supplements.
#include <algorithm>
#include <cstring>

#include "runtime/tgrt_elf.h"
#include "tgc/bundle_parts.h"
#include "uop/diag.h"

namespace tgc {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& note = {}) {
  throw CompileError(Diagnostic{ErrorCode::E403, "linked code", what, note});
}

/// Bounds-checked reads of plain structs from the image.
class Reader {
public:
  explicit Reader(std::string_view image) : image_(image) {}
  template <typename T> T at(uint64_t offset) const {
    if (offset > image_.size() || image_.size() - offset < sizeof(T)) fail("the image is truncated");
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof(T));
    return value;
  }
  std::string text(uint64_t offset) const {
    if (offset >= image_.size()) fail("the image's string table is out of range");
    const std::string_view rest = image_.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

private:
  std::string_view image_;
};

using Segments = std::vector<tgrt_elf_segment>;

/// Whether [begin, end) lies within segments of one of the two types that the loader need not map.
bool is_linker_data(const Segments& segments, uint64_t begin, uint64_t end) {
  return std::any_of(segments.begin(), segments.end(), [&](const tgrt_elf_segment& s) {
    return (s.type == TGRT_PT_DYNAMIC || s.type == TGRT_PT_GNU_RELRO) && s.vaddr <= begin && end <= s.vaddr + s.memsz;
  });
}

void check_dynamic(const Reader& reader, const tgrt_elf_segment& segment) {
  // DT_NEEDED 1, DT_PLTRELSZ 2, DT_RELASZ 8, DT_INIT 12, DT_RELSZ 18, DT_INIT_ARRAYSZ 27, DT_RELRSZ 35
  for (uint64_t at = 0; at + sizeof(tgrt_elf_dynamic) <= segment.filesz; at += sizeof(tgrt_elf_dynamic)) {
    const auto entry = reader.at<tgrt_elf_dynamic>(segment.offset + at);
    if (entry.tag == 0) return;
    if (entry.tag == 1) fail("it needs another shared library");
    const bool relocations = entry.tag == 2 || entry.tag == 8 || entry.tag == 18 || entry.tag == 35;
    if (relocations && entry.value != 0) fail("it has relocations", "a kernel stores an address in its data");
    if (entry.tag == 12 || (entry.tag == 27 && entry.value != 0)) fail("it has initialisers");
  }
}

/// Imports are checked by name: the first symbol is the null one.
void read_symbols(const Reader& reader, const tgrt_elf_header& header, CodeImage& code) {
  for (uint64_t i = 0; i < header.shnum; ++i) {
    const auto table = reader.at<tgrt_elf_section>(header.shoff + i * sizeof(tgrt_elf_section));
    if (table.type != TGRT_SHT_DYNSYM) continue;
    const auto names = reader.at<tgrt_elf_section>(header.shoff + table.link * sizeof(tgrt_elf_section));
    for (uint64_t at = sizeof(tgrt_elf_symbol); at < table.size; at += sizeof(tgrt_elf_symbol)) {
      const auto symbol = reader.at<tgrt_elf_symbol>(table.offset + at);
      const std::string name = reader.text(names.offset + symbol.name);
      if (symbol.shndx == 0) fail("it imports \"" + name + "\"", "the renderer must not emit calls");
      if ((symbol.info & 15) == TGRT_STT_FUNC) code.symbols[name] = {symbol.value, symbol.size};
    }
  }
}

} // namespace

CodeImage read_code(std::string_view image) {
  const Reader reader(image);
  const auto header = reader.at<tgrt_elf_header>(0);
  if (std::memcmp(header.ident,
                  "\x7f"
                  "ELF\x02\x01",
                  6) != 0 ||
      header.type != TGRT_ELF_DYN)
    fail("it is not a 64-bit little-endian ELF shared object");
  CodeImage code;
  code.machine = header.machine;
  Segments segments;
  for (uint64_t i = 0; i < header.phnum; ++i)
    segments.push_back(reader.at<tgrt_elf_segment>(header.phoff + i * sizeof(tgrt_elf_segment)));
  read_symbols(reader, header, code);
  for (const tgrt_elf_segment& segment : segments)
    if (segment.type == TGRT_PT_TLS) fail("it has thread-local data");
  for (const tgrt_elf_segment& segment : segments) {
    if (segment.type == TGRT_PT_DYNAMIC) check_dynamic(reader, segment);
    const bool writable = segment.type == TGRT_PT_LOAD && (segment.flags & TGRT_PF_W) != 0;
    if (writable && !is_linker_data(segments, segment.vaddr, segment.vaddr + segment.memsz))
      fail("it has writable data", "a kernel keeps state between calls");
  }
  return code;
}

} // namespace tgc
