// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs one case and judges its outputs as onnx's own test runner does (onnx/backend/test/runner: rtol 1e-3, atol 1e-7,
// equal types and shapes, NaN equals NaN), except that integers must be equal. The full-size networks of suite "light"
// carry no inputs: they are fed arange(n)/n, and DenseNet-121 has twice the tolerance, both as onnx does.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tgc-onnx-suite/case.h"
#include "uop/diag.h"

namespace tgc::suite {

namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7; // onnx/backend/test/case/test_case.py
constexpr double kDensenetRelative = 2e-3;           // onnx/backend/test/loader: light/densenet121

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t dim : shape) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

bool close(double actual, double expected, double rtol, double atol) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  return std::isfinite(expected) && std::fabs(actual - expected) <= atol + rtol * std::fabs(expected);
}

std::string element_text(const HostTensor& tensor, int64_t i) {
  if (!is_float(tensor.dtype)) return std::to_string(tensor.int_at(i));
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", tensor.at(i));
  return text;
}

Verdict judge(const Case& test, const std::vector<HostTensor>& outputs) {
  if (outputs.size() != test.outputs.size()) {
    return {Status::Wrong,
            std::to_string(outputs.size()) + " outputs, expected " + std::to_string(test.outputs.size())};
  }
  const double rtol = test.name.find("densenet121") != std::string::npos ? kDensenetRelative : kRelative;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string why = difference(outputs[i], read_tensor_proto(test.outputs[i]), rtol, kAbsolute);
    if (!why.empty()) return {Status::Wrong, "output " + std::to_string(i) + ": " + why};
  }
  return {Status::Pass, ""};
}

/// A missing feature (import, scheduling, rendering) is "unsupported"; an error while evaluating is ours.
Verdict verdict_of(const CompileError& error) {
  const Diagnostic& first = error.all().front();
  const int code = static_cast<int>(first.code);
  const Status status = code >= 200 && code < 500 ? Status::Unsupported : Status::Crash;
  std::string text = "TGC-E" + std::to_string(code) + ": " + first.message;
  const size_t node = first.where.find("node ");
  if (node != std::string::npos) text += " (" + first.where.substr(node) + ")";
  return {status, text};
}

} // namespace

std::string difference(const HostTensor& actual, const HostTensor& expected, double rtol, double atol) {
  if (actual.dtype != expected.dtype) {
    return std::string("type ") + info(actual.dtype).name + ", expected " + info(expected.dtype).name;
  }
  if (actual.shape != expected.shape) {
    return "shape " + shape_text(actual.shape) + ", expected " + shape_text(expected.shape);
  }
  const int64_t count = expected.numel();
  const bool floats = is_float(expected.dtype);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < count; ++i) {
    const bool same = floats ? close(actual.at(i), expected.at(i), rtol, atol) : actual.int_at(i) == expected.int_at(i);
    if (same) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return std::to_string(wrong) + " of " + std::to_string(count) + " elements differ; [" + std::to_string(first) +
         "] is " + element_text(actual, first) + ", expected " + element_text(expected, first);
}

HostTensor Feed::file(size_t position) const {
  if (position >= files()) throw std::runtime_error("input " + std::to_string(position) + " has no file");
  return read_tensor_proto(test_->inputs[position]);
}

HostTensor Feed::ramp(const Port& declared) const {
  for (int64_t dim : declared.shape) {
    if (dim < 0) throw std::runtime_error("input without a file has an open shape " + shape_text(declared.shape));
  }
  HostTensor tensor = zeros(declared.dtype, declared.shape);
  const int64_t count = tensor.numel();
  for (int64_t i = 0; i < count; ++i) {
    tensor.set(i, static_cast<double>(static_cast<float>(i) / static_cast<float>(count)));
  }
  return tensor;
}

std::string bit_difference(const HostTensor& actual, const HostTensor& expected) {
  if (const std::string why = difference(actual, expected, 0, 0); !why.empty()) return why;
  const auto width = static_cast<size_t>(byte_size(expected.dtype));
  for (int64_t i = 0; i < expected.numel(); ++i) { // equal as numbers: zeros may still differ in sign
    const size_t at = static_cast<size_t>(i) * width;
    if (std::memcmp(actual.data.data() + at, expected.data.data() + at, width) == 0) continue;
    if (is_float(expected.dtype) && std::isnan(expected.at(i))) continue;
    return "[" + std::to_string(i) + "] is " + element_text(actual, i) + ", expected " + element_text(expected, i);
  }
  return "";
}

Backend both(Backend first, Backend second, const std::string& name) {
  return [=](const std::string& model, const Feed& feed) {
    std::vector<HostTensor> outputs = first(model, feed);
    const std::vector<HostTensor> others = second(model, feed);
    if (outputs.size() != others.size()) throw BackendsDiffer("another number of outputs than " + name);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string why = bit_difference(outputs[i], others[i]);
      if (!why.empty()) throw BackendsDiffer("output " + std::to_string(i) + " against " + name + ": " + why);
    }
    return outputs;
  };
}

Verdict run_case(const Case& test, const Backend& backend) {
  try {
    return judge(test, backend(test.model, Feed(test)));
  } catch (const BackendsDiffer& error) {
    return {Status::Wrong, error.what()};
  } catch (const CompileError& error) {
    return verdict_of(error);
  } catch (const std::exception& error) {
    return {Status::Crash, error.what()};
  }
}

} // namespace tgc::suite
