// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/constant.h"
#include "uop/module.h"

namespace tgc {

/// Inclusive bounds of a symbolic dim; equal ones pin it to a constant.
struct DimBounds {
  int64_t lo = 1, hi = int64_t{1} << 20;
};

/// A graph input whose value is fixed at import: it becomes a constant and is no input of the result.
using BoundInput = ConstantData;

/// What an untrusted model may ask for.
struct ImportLimits {
  int64_t nodes = 1 << 18;
  int rank = 16;
  int64_t graph_size = int64_t{1} << 24; ///< IR nodes made
};

struct ImportOptions {
  std::map<std::string, DimBounds> dims;      ///< by name; others get DimBounds' defaults
  std::map<std::string, BoundInput> bindings; ///< by input name (ONNX)
  std::string folder;                         ///< where external data lies; empty: the model's own folder
  ImportLimits limits;
};

/// Reads an ONNX model, a JSON graph (docs/json-graph.md) or `.uop` text, told apart by content. `path` "-" is standard
/// input. Result: Module as module.h describes "after import". An input
/// that no output depends on is a source of the root func. errors: CompileError with every diagnostic found: E201–E209,
/// E501.
Module import_model(const std::string& path, const ImportOptions& options = {});
/// The same for bytes in memory; `name` stands for the path in messages.
Module import_bytes(const FileBytes& file, const std::string& name, const ImportOptions& options = {});

/// The readers behind it (onnx/importer.cpp, json_reader.cpp).
Module import_onnx(const FileBytes& file, const std::string& name, const ImportOptions& options);
Module import_json(const FileBytes& file, const std::string& name, const ImportOptions& options);

} // namespace tgc
