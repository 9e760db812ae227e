// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Imports every ONNX backend test under the folders given, evaluates it with `eval`, and compares with the expected
// outputs: wrong operators are found without generating code.
//   onnx_corpus FOLDER...     prints one line a test and a summary; exit code 4 when a number is wrong
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "frontend/frontend.h"
#include "frontend/onnx_data.h"
#include "uop/diag.h"
#include "uop/eval.h"

namespace fs = std::filesystem;
using namespace tgc;

namespace {

struct Case {
  std::vector<std::string> names; ///< graph inputs that are no initializers
  std::vector<HostTensor> inputs, outputs;
};

std::vector<HostTensor> load_all(const fs::path& folder, const std::string& stem) {
  std::vector<HostTensor> out;
  for (int i = 0;; ++i) {
    fs::path file = folder / (stem + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return out;
    out.push_back(read_pb(file.string()));
  }
}

Case load_case(const fs::path& folder, const onnx::Model& model) {
  Case c;
  for (const onnx::ValueInfo& v : model.inputs) {
    bool constant = std::any_of(model.initializers.begin(), model.initializers.end(),
                                [&](const onnx::Tensor& t) { return t.name == v.name; });
    if (!constant) c.names.push_back(v.name);
  }
  c.inputs = load_all(folder / "test_data_set_0", "input");
  c.outputs = load_all(folder / "test_data_set_0", "output");
  if (c.names.size() > c.inputs.size()) throw std::runtime_error("inputs are missing");
  return c;
}

bool needs_binding(const CompileError& e) {
  return std::any_of(e.all().begin(), e.all().end(), [](const Diagnostic& d) {
    return d.message.find("known at compile time") != std::string::npos || d.code == ErrorCode::E209;
  });
}

/// "" when every output matches.
std::string run(const fs::path& folder, size_t first_bound) {
  std::string path = (folder / "model.onnx").string();
  FileBytes file = open_bytes(path);
  onnx::Model model = onnx::read_model(file.bytes);
  Case c = load_case(folder, model);
  ImportOptions options;
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < c.names.size(); ++i) {
    const HostTensor& t = c.inputs[i];
    std::string bytes(reinterpret_cast<const char*>(t.data.data()), t.data.size());
    if (i >= first_bound)
      options.bindings[c.names[i]] = {t.dtype, t.shape, bytes_of(bytes)};
    else
      inputs.push_back(t);
  }
  std::map<std::string, int64_t> dims;
  for (const onnx::ValueInfo& v : model.inputs) {
    auto at = std::find(c.names.begin(), c.names.end(), v.name);
    if (at == c.names.end() || !v.shape || static_cast<size_t>(at - c.names.begin()) >= first_bound) continue;
    const HostTensor& t = c.inputs[static_cast<size_t>(at - c.names.begin())];
    for (size_t d = 0; d < v.shape->size() && d < t.shape.size(); ++d) {
      const onnx::Dim& dim = (*v.shape)[d];
      if (!dim.value)
        options.dims[dim.param.empty() ? v.name + "_dim" + std::to_string(d) : dim.param] = {t.shape[d], t.shape[d]};
    }
  }
  Module module = import_model(path, options);
  std::vector<HostTensor> outputs = eval(module, inputs);
  if (outputs.size() != c.outputs.size()) return "has " + std::to_string(outputs.size()) + " outputs";
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string d = difference(outputs[i], c.outputs[i], 1e-3, is_float(outputs[i].dtype) ? 1e-7 : 0);
    if (!d.empty()) return "output " + std::to_string(i) + ": " + d;
  }
  return "";
}

struct Verdict {
  std::string status, why;
};
Verdict judge(const fs::path& folder) {
  for (size_t bound : {size_t{1000}, size_t{1}, size_t{0}}) {
    try {
      std::string why = run(folder, bound);
      return {why.empty() ? (bound == 1000 ? "PASS" : "PASS-BOUND") : "WRONG", why};
    } catch (const CompileError& e) {
      const Diagnostic& d = e.all()[0];
      if (bound > 0 && needs_binding(e)) continue;
      bool unsupported = d.code == ErrorCode::E202 || d.code == ErrorCode::E205;
      return {unsupported ? "UNSUPPORTED" : "ERROR", to_string(d)};
    } catch (const std::exception& e) {
      return {"FAULT", e.what()};
    }
  }
  return {};
}

} // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> counts;
  for (int i = 1; i < argc; ++i) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
      if (entry.path().filename() == "model.onnx") folders.push_back(entry.path().parent_path());
    std::sort(folders.begin(), folders.end());
    for (const fs::path& folder : folders) {
      Verdict v = judge(folder);
      ++counts[v.status];
      std::replace(v.why.begin(), v.why.end(), '\n', ' ');
      std::printf("%s %s %s\n", v.status.c_str(), folder.filename().c_str(), v.why.c_str());
      std::fflush(stdout);
    }
  }
  for (const auto& [status, count] : counts) std::printf("%s: %d\n", status.c_str(), count);
  return counts.count("WRONG") ? 4 : 0;
}
