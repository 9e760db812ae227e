// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a tuning database: what is read prints as text that reads to the same, all else is TGC-E504, whose text
// holds no control character that the file brought.
#include <algorithm>
#include <cstdlib>

#include "tgc/tuning.h"
#include "uop/diag.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text = tgc::TuningDatabase::parse({reinterpret_cast<const char*>(data), size}, "fuzz").text();
    if (tgc::TuningDatabase::parse(text, "again").text() != text) std::abort();
  } catch (const tgc::CompileError& error) {
    const tgc::Diagnostic& first = error.all()[0];
    const auto is_odd = [](char c) { return c < ' ' || c > '~'; };
    if (first.code != tgc::ErrorCode::E504 || std::any_of(first.message.begin(), first.message.end(), is_odd))
      std::abort();
  }
  return 0;
}
