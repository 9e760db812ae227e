// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a JSON graph: a module, or a CompileError.
#include "frontend/frontend.h"
#include "uop/diag.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tgc::FileBytes file;
  file.bytes = {reinterpret_cast<const std::byte*>(data), size};
  try {
    tgc::import_json(file, "fuzz", {});
  } catch (const tgc::CompileError&) {
  }
  return 0;
}
