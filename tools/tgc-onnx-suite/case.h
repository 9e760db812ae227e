// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "uop/tensor_value.h"

namespace tgc::suite {

/// One test of an ONNX backend suite: DIR/<suite>/<name>/{model.onnx, test_data_set_0/{input,output}_N.pb}, or
/// DIR/light/{<name>.onnx, <name>_output_N.pb}.
struct Case {
  std::string suite, name;
  std::string model;                        ///< path of model.onnx
  std::vector<std::string> inputs, outputs; ///< paths, by N
};

/// Every case under `root` whose "suite/name" (or name, when `filter` has no slash) matches the glob `filter`; sorted.
/// An empty filter takes all. errors: std::runtime_error when `root` has none of the suites' folders.
std::vector<Case> find_cases(const std::string& root, const std::string& filter);

enum class Status : uint8_t { Pass, Wrong, Unsupported, Crash };
const char* name(Status status);

struct Verdict {
  Status status = Status::Crash;
  std::string detail; ///< one line; empty for Pass
};

/// What a model declares of one input or output; a dim of -1 is not fixed.
struct Port {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

/// The tensors that a test feeds: its files by position, or, for a test that has none, arange(n)/n in the shape that
/// the model declares. Files are read when asked for. errors of both: std::runtime_error.
class Feed {
public:
  explicit Feed(const Case& test) : test_(&test) {}
  bool has_files() const { return !test_->inputs.empty(); }
  size_t files() const { return test_->inputs.size(); }
  HostTensor file(size_t position) const;
  HostTensor ramp(const Port& declared) const;

private:
  const Case* test_;
};

/// Compiles or interprets the model file and runs it once. errors: CompileError when it is not supported.
using Backend = std::function<std::vector<HostTensor>(const std::string& model, const Feed& feed)>;

/// The backend called `name`: "compiled" is the compiler and libtgrt, "eval" the reference interpreter. `target` and
/// `guard` (TGRT_CONTEXT_GUARD) are for backends that compile.
/// errors: UsageError for another name.
Backend find_backend(std::string_view name, const std::string& target, bool guard = false);

/// A serialised TensorProto. errors: std::runtime_error naming the path: it is none, or its type is not one of DType's.
HostTensor read_tensor_proto(const std::string& path);

/// The names of an ONNX model's graph inputs that are no initialisers, in order. errors: std::runtime_error.
std::vector<std::string> input_names(const std::string& model);

/// Why `actual` is not `expected`: "" when it is, else one line. Types and shapes must be equal; floats may differ by
/// `atol + rtol * |expected|`, NaN equals NaN; integers and bool must be equal.
std::string difference(const HostTensor& actual, const HostTensor& expected, double rtol, double atol);

/// Why `actual` is not `expected` bit for bit, where any NaN equals any other: "" when it is, else one line.
std::string bit_difference(const HostTensor& actual, const HostTensor& expected);

/// Two backends that should agree gave different bits.
struct BackendsDiffer : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Gives what `first` gives, after comparing it bit for bit with what `second` gives; `name` is the second's in errors.
/// errors: BackendsDiffer, and what both throw.
Backend both(Backend first, Backend second, const std::string& name);

/// Runs one case in this process; every failure is a verdict.
Verdict run_case(const Case& test, const Backend& backend);

struct RunOptions {
  int jobs = 1;          ///< worker processes at a time
  int batch = 64;        ///< cases per worker process
  int timeout_s = 120;   ///< per case
  bool progress = false; ///< a counter on standard error
};
/// Runs every case in worker processes. A worker that dies is a crash of the case it was in; the rest of its batch goes
/// on in a new one. Verdicts are in the order of `cases`.
std::vector<Verdict> run_cases(std::span<const Case> cases, const Backend& backend, const RunOptions& options);

} // namespace tgc::suite
