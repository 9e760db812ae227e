// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel code must map read-only anywhere, by a loader that knows no symbol but the kernels' own. Whatever linked it
// (lld in process, or a C compiler's linker), the image is checked here before it leaves the room. Reads only what the
// program headers and the dynamic table say, as the loader does. Source: the System V ABI, chapters 4 and 5.
// Not handled: 32-bit and big-endian images.
#include "render/elf_image.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <optional>
#include <string_view>

namespace tgc {
namespace {

class Image {
public:
  explicit Image(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T> bool read(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    return {begin, strnlen(begin, bytes_.size() - offset)};
  }

  /// Reads the header, the segments and the dynamic table; false when it is no such file.
  bool parse() {
    Elf64_Ehdr header;
    if (!read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) return false;
    for (int i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!read(header.e_phoff + uint64_t(i) * sizeof segment, &segment)) return false;
      segments.push_back(segment);
    }
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type != PT_DYNAMIC) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (!read(segment.p_offset + at, &entry)) return false;
        if (entry.d_tag == DT_NULL) break;
        dynamic.emplace(entry.d_tag, entry.d_un.d_val);
      }
    }
    return dynamic.contains(DT_SYMTAB) && dynamic.contains(DT_STRTAB);
  }

  /// Offset in the file of an address; nothing when no segment holds it.
  std::optional<uint64_t> file_offset(uint64_t address) const {
    for (const Elf64_Phdr& s : segments)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    return std::nullopt;
  }

  /// The dynamic symbols. Their number is not stored; the string table follows them in every linker's layout, so they
  /// end there at the latest.
  std::vector<Elf64_Sym> symbols() const {
    std::vector<Elf64_Sym> all;
    const auto table = file_offset(dynamic.at(DT_SYMTAB)), strings = file_offset(dynamic.at(DT_STRTAB));
    if (!table || !strings) return all;
    const uint64_t count = symbol_count();
    for (uint64_t i = 0; i < count; ++i) {
      Elf64_Sym symbol;
      if (!read(*table + i * sizeof symbol, &symbol)) break;
      all.push_back(symbol);
    }
    return all;
  }
  std::string_view symbol_name(const Elf64_Sym& symbol) const {
    const auto strings = file_offset(dynamic.at(DT_STRTAB));
    return strings ? text(*strings + symbol.st_name) : std::string_view{};
  }

  std::vector<Elf64_Phdr> segments;
  std::map<int64_t, uint64_t> dynamic;

private:
  /// DT_HASH states the number of symbols (nchain).
  uint64_t symbol_count() const {
    const auto hash = dynamic.find(DT_HASH);
    if (hash == dynamic.end()) return 0;
    const auto at = file_offset(hash->second);
    uint32_t chains = 0;
    return at && read(*at + sizeof(uint32_t), &chains) ? chains : 0;
  }

  std::span<const std::byte> bytes_;
};

} // namespace

std::string check_image(std::span<const std::byte> bytes) {
  Image image(bytes);
  if (!image.parse()) return "not a 64-bit ELF shared object with a dynamic table";
  for (const Elf64_Phdr& segment : image.segments) {
    if (segment.p_type == PT_TLS) return "has thread-local storage";
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W)) return "has a writable segment";
    if (segment.p_type == PT_INTERP) return "asks for an interpreter";
  }
  for (int64_t tag : {DT_REL, DT_RELA, DT_JMPREL, DT_RELR}) {
    static_assert(DT_RELR == 36);
    if (image.dynamic.contains(tag)) return "has relocations";
  }
  if (image.dynamic.contains(DT_NEEDED)) return "needs a library";
  if (!image.dynamic.contains(DT_HASH)) return "has no DT_HASH";
  for (const Elf64_Sym& symbol : image.symbols())
    if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0)
      return "imports `" + std::string(image.symbol_name(symbol)) + "`";
  return "";
}

std::vector<uint64_t> find_symbols(std::span<const std::byte> bytes, std::span<const std::string> names) {
  std::vector<uint64_t> found(names.size(), UINT64_MAX);
  Image image(bytes);
  if (!image.parse()) return found;
  std::map<std::string_view, uint64_t> addresses;
  for (const Elf64_Sym& symbol : image.symbols())
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      addresses.emplace(image.symbol_name(symbol), symbol.st_value);
  for (size_t i = 0; i < names.size(); ++i)
    if (auto it = addresses.find(names[i]); it != addresses.end()) found[i] = it->second;
  return found;
}

} // namespace tgc
