// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as an ONNX model: a module, or a CompileError; no other exception, fault or overflow.
#include "frontend/frontend.h"
#include "uop/diag.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tgc::FileBytes file;
  file.bytes = {reinterpret_cast<const std::byte*>(data), size};
  tgc::ImportOptions options;
  options.folder = "/nonexistent"; // of external data
  try {
    tgc::import_onnx(file, "fuzz", options);
  } catch (const tgc::CompileError&) {
  }
  return 0;
}
