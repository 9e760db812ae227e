// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tgc {

/// Every numbered compiler error, from errors.def: enumerators E101 … with text and remedy; docs/errors.md is made from
/// it.
enum class ErrorCode : int {
#define TGC_ERROR(Number, ...) E##Number = Number,
#include "uop/errors.def"
};
struct ErrorInfo {
  ErrorCode code;
  const char* title;
  const char* remedy; ///< general advice; a diagnostic's own note is more specific
};
const ErrorInfo& info(ErrorCode code);

/// One user-facing message. Printed as
///   model.onnx: node "conv1" (Conv, opset 13): error TGC-E203: group=3 does not divide channels=64
///     note: <remedy>
struct Diagnostic {
  ErrorCode code;
  std::string where;   ///< model, node, op, opset: "model.onnx: node \"conv1\" (Conv, opset 13)"; may be empty
  std::string message; ///< what was found, with the values
  std::string note;    ///< what to do; empty uses nothing
  bool warning = false;
};
std::string to_string(const Diagnostic& d);

/// Thrown inside the library; turned into a Result at its one boundary. Carries every diagnostic collected so far.
class CompileError : public std::runtime_error {
public:
  explicit CompileError(Diagnostic d);
  explicit CompileError(std::vector<Diagnostic> all);
  const std::vector<Diagnostic>& all() const { return all_; }

private:
  std::vector<Diagnostic> all_;
};

/// Collects errors so that a user sees all of them at once; `checkpoint()` throws them if there are any.
class Diagnostics {
public:
  void error(Diagnostic d) { items_.push_back(std::move(d)); }
  bool empty() const { return items_.empty(); }
  const std::vector<Diagnostic>& items() const { return items_; }
  void checkpoint();

private:
  std::vector<Diagnostic> items_;
};

/// A broken invariant of our own: never for user input. Exit code 3.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] void internal_error(const char* file, int line, const std::string& what);
#define TGC_CHECK(cond, text) ((cond) ? void() : ::tgc::internal_error(__FILE__, __LINE__, (text)))

/// A value or the diagnostics that prevented it.
template <typename T> class Result {
public:
  Result(T value) : state_(std::move(value)) {}
  Result(std::vector<Diagnostic> errors) : state_(std::move(errors)) {}
  bool ok() const { return state_.index() == 0; }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  const std::vector<Diagnostic>& errors() const { return std::get<1>(state_); }

private:
  std::variant<T, std::vector<Diagnostic>> state_;
};

} // namespace tgc
