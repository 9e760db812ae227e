// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Test data sets in the ONNX layout (input_0.pb, output_0.pb) as host tensors, and the comparison ONNX's own runner
// makes.
#pragma once

#include <cmath>
#include <cstring>
#include <string>

#include "frontend/bytes.h"
#include "frontend/onnx/op.h"
#include "frontend/onnx_reader.h"
#include "uop/tensor_value.h"

namespace tgc {

/// The tensor in a .pb file.
inline HostTensor read_pb(const std::string& path) {
  FileBytes file = open_bytes(path);
  onnx::Tensor t = onnx::read_tensor(file.bytes);
  HostTensor out = zeros(onnx::dtype_of(t.type), t.dims);
  const void* from = t.typed.bytes.data();
  size_t size = t.typed.bytes.size();
  if (t.source == onnx::Tensor::Source::Raw) {
    from = file.bytes.data() + t.offset;
    size = static_cast<size_t>(t.length);
  }
  if (size != out.data.size()) throw std::runtime_error(path + ": size differs from shape");
  if (size) std::memcpy(out.data.data(), from, size);
  return out;
}

/// "" when `actual` equals `expected` in type and shape, and in values as numpy's allclose with equal_nan has it.
inline std::string difference(const HostTensor& actual, const HostTensor& expected, double rtol, double atol) {
  if (actual.dtype != expected.dtype)
    return std::string("type ") + name(actual.dtype) + ", expected " + name(expected.dtype);
  if (actual.shape != expected.shape) return "shapes differ";
  for (int64_t i = 0; i < expected.numel(); ++i) {
    double a = actual.at(i), e = expected.at(i);
    bool close = a == e || (std::isnan(a) && std::isnan(e)) || std::fabs(a - e) <= atol + rtol * std::fabs(e);
    if (is_float(expected.dtype) ? !close : actual.int_at(i) != expected.int_at(i))
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(e);
  }
  return "";
}

} // namespace tgc
