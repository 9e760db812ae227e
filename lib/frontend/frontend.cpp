// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: users name a file; its extension may lie and standard input has none.
// Idea: look at the first bytes. JSON begins with a bracket; `.uop` text is text; all else must be a protobuf.
#include "frontend/frontend.h"

#include <algorithm>
#include <string_view>

#include "uop/diag.h"
#include "uop/text.h"

namespace tgc {
namespace {

enum class Format : uint8_t { Onnx, Json, Text };

Format format_of(std::span<const std::byte> bytes) {
  constexpr size_t kLooked = 256;
  size_t count = std::min(bytes.size(), kLooked);
  std::string head(reinterpret_cast<const char*>(bytes.data()), count);
  size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return Format::Onnx; // which reports it as empty
  if (head[first] == '{' || head[first] == '[') return Format::Json;
  for (char ch : head)
    if (static_cast<unsigned char>(ch) < 32 && ch != '\t' && ch != '\r' && ch != '\n') return Format::Onnx;
  return Format::Text;
}

/// Files that people give to the wrong program, by their first bytes.
struct OtherFile {
  std::string_view magic, what, note;
};
constexpr OtherFile kOtherFiles[] = {
    {"\x89TGC", "a bundle, which is what tgc makes", "run it: tgrun FILE"},
    {"\x93NUMPY", "a NumPy array", "it may be an input of a run: tgrun BUNDLE --input NAME=FILE"},
    {"PK\x03\x04", "a zip archive (PyTorch checkpoints and .npz files are)",
     "export the model to ONNX: torch.onnx.export"},
    {"\x89HDF\r\n", "an HDF5 file (Keras models are)", "export the model to ONNX: tf2onnx"},
    {"\x7f"
     "ELF",
     "a program or library", "name an ONNX model, a JSON graph or .uop text"},
    {"\x1f\x8b", "compressed by gzip", "unpack it: gunzip FILE"},
    {"P5", "a picture", "it may be an input of a run: tgrun BUNDLE --input NAME=FILE"},
};

void refuse_other_files(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const OtherFile& other : kOtherFiles)
    if (text.starts_with(other.magic))
      throw CompileError(Diagnostic{.code = ErrorCode::E201,
                                    .where = name,
                                    .message = "this is no model but " + std::string(other.what),
                                    .note = std::string(other.note)});
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

Module import_bytes(const FileBytes& file, const std::string& name, const ImportOptions& options) {
  refuse_other_files(file.bytes, name);
  switch (format_of(file.bytes)) {
  case Format::Onnx: return import_onnx(file, name, options);
  case Format::Json: return import_json(file, name, options);
  case Format::Text: break;
  }
  if (!options.dims.empty())
    throw CompileError(Diagnostic{.code = ErrorCode::E209,
                                  .where = name,
                                  .message = "the dims of .uop text are fixed",
                                  .note = "change the bounds of its vars, or give --dim with the model it came from"});
  return parse({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, name);
}

Module import_model(const std::string& path, const ImportOptions& options) {
  ImportOptions here = options;
  if (here.folder.empty()) here.folder = folder_of(path);
  return import_bytes(open_bytes(path), path == "-" ? "standard input" : path, here);
}

} // namespace tgc
