// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: one printed form, one table of numbers. Exceptions carry them to the library's one boundary, where the
// driver turns them into a Result; nothing here prints.
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr ErrorInfo kErrors[] = {
#define TGC_ERROR(Number, title, remedy) {ErrorCode::E##Number, title, remedy},
#include "uop/errors.def"
};

std::string join(const std::vector<Diagnostic>& all) {
  std::string text;
  for (const Diagnostic& d : all) text += (text.empty() ? "" : "\n") + to_string(d);
  return text;
}

} // namespace

const ErrorInfo& info(ErrorCode code) {
  for (const ErrorInfo& e : kErrors)
    if (e.code == code) return e;
  internal_error(__FILE__, __LINE__, "error code " + std::to_string(static_cast<int>(code)) + " is not in errors.def");
}

std::string to_string(const Diagnostic& d) {
  std::string text = d.where.empty() ? "" : d.where + ": ";
  text += (d.warning ? "warning" : "error TGC-E" + std::to_string(static_cast<int>(d.code))) + ": " + d.message;
  if (!d.note.empty()) text += "\n  note: " + d.note;
  return text;
}

CompileError::CompileError(Diagnostic d) : CompileError(std::vector<Diagnostic>{std::move(d)}) {}
CompileError::CompileError(std::vector<Diagnostic> all) : std::runtime_error(join(all)), all_(std::move(all)) {}

void Diagnostics::checkpoint() {
  if (items_.empty()) return;
  std::vector<Diagnostic> all;
  all.swap(items_);
  throw CompileError(std::move(all));
}

void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

} // namespace tgc
