// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Strided arrays for the interpreter. Movement ops are stride arithmetic wherever strides can say it (all but pad and
// some reshapes); elementwise ops walk rows of all operands at once after merging dims that every operand steps through
// in the same way; reductions walk tiles of (kept, reduced) rows in the order that touches memory best, which never
// changes the order in which one element's terms are added: always row-major over the reduced dims.
// Not handled: threads, blocking for caches. This is an oracle, fast enough to check models of a few GFLOP.

#include "uop/dense.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "uop/diag.h"
#include "uop/element.h"

namespace tgc {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 33; // an oracle's working set; more is a wrong size, not a model

[[noreturn]] void fail(const std::string& message) {
  throw CompileError(Diagnostic{.code = ErrorCode::E105, .where = "", .message = message, .note = ""});
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t dim : shape) {
    if (dim < 0) fail("a dim evaluates to " + std::to_string(dim));
    if (__builtin_mul_overflow(n, dim, &n)) fail("a shape has 2^63 or more elements");
  }
  return n;
}

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return stride;
}

// One loop of a nest over K operands.
template <size_t K> struct LoopDim {
  int64_t size;
  std::array<int64_t, K> stride;
};

// The loops of `shape` restricted to dims with keep[dim] == want, outermost first, size-1 dims dropped and neighbours
// merged where all operands allow.
template <size_t K>
std::vector<LoopDim<K>> merged_loops(const std::vector<int64_t>& shape, const std::array<const int64_t*, K>& strides,
                                     const std::vector<bool>& keep, bool want) {
  std::vector<LoopDim<K>> out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1 || keep[i] != want) continue;
    LoopDim<K> dim{shape[i], {}};
    bool merges = !out.empty();
    for (size_t k = 0; k < K; ++k) {
      dim.stride[k] = strides[k][i];
      merges = merges && out.back().stride[k] == dim.stride[k] * dim.size;
    }
    if (merges)
      dim.size *= out.back().size, out.back() = dim;
    else
      out.push_back(dim);
  }
  if (out.empty()) out.push_back({1, {}});
  return out;
}

// f(offsets) at the start of every innermost row: loops.back() is left to the caller. requires: no loop of size 0.
template <size_t K, class F> void for_each_row(const std::vector<LoopDim<K>>& loops, std::array<int64_t, K> at, F f) {
  const size_t outer = loops.size() - 1;
  std::vector<int64_t> counter(outer, 0);
  while (true) {
    f(at);
    size_t i = outer;
    while (i > 0) {
      --i;
      for (size_t k = 0; k < K; ++k) at[k] += loops[i].stride[k];
      if (++counter[i] < loops[i].size) break;
      for (size_t k = 0; k < K; ++k) at[k] -= loops[i].stride[k] * loops[i].size;
      counter[i] = 0;
      if (i == 0) return;
    }
    if (outer == 0) return;
  }
}

void copy_row(int bytes, int64_t n, Strided in, std::byte* out, int64_t out_stride) {
  const auto run = [&]<class T>(T) {
    const T* src = reinterpret_cast<const T*>(in.data);
    T* dst = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) dst[i * out_stride] = src[i * in.stride];
  };
  if (in.stride == 1 && out_stride == 1)
    std::memcpy(out, in.data, static_cast<size_t>(n * bytes));
  else if (bytes == 1)
    run(uint8_t{});
  else if (bytes == 2)
    run(uint16_t{});
  else if (bytes == 4)
    run(uint32_t{});
  else
    run(uint64_t{});
}

// Copies x into a region of `out` that has its own strides and offset (elements).
void copy_into(const Dense& x, std::byte* out, const std::vector<int64_t>& out_stride, int64_t out_offset) {
  if (x.numel() == 0) return;
  const int bytes = byte_size(x.dtype);
  const auto loops =
      merged_loops<2>(x.shape, {x.stride.data(), out_stride.data()}, std::vector<bool>(x.shape.size()), false);
  for_each_row<2>(loops, {x.offset, out_offset}, [&](const std::array<int64_t, 2>& at) {
    copy_row(bytes, loops.back().size, {x.data + at[0] * bytes, loops.back().stride[0]}, out + at[1] * bytes,
             loops.back().stride[1]);
  });
}

} // namespace

int64_t Dense::numel() const { return product(shape); }
bool Dense::contiguous() const {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && stride[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

Dense dense_over(DType dtype, std::vector<int64_t> shape, const std::byte* data) {
  Dense x;
  x.dtype = dtype;
  x.stride = row_major(shape);
  x.shape = std::move(shape);
  x.data = data;
  return x;
}

Dense dense_new(DType dtype, std::vector<int64_t> shape, std::byte** out) {
  const int64_t n = product(shape), bytes = byte_size(dtype);
  if (n > kMaxBytes / std::max<int64_t>(bytes, 1))
    fail("a value of " + std::to_string(n) + " elements is too large to evaluate");
  std::shared_ptr<std::byte[]> owner(new std::byte[static_cast<size_t>(std::max<int64_t>(n * bytes, 8))]);
  Dense x = dense_over(dtype, std::move(shape), owner.get());
  *out = owner.get();
  x.owner = std::move(owner);
  return x;
}

Dense dense_scalar(DType dtype, Bits bits) {
  std::byte* out = nullptr;
  Dense x = dense_new(dtype, {}, &out);
  store_bits(dtype, out, bits);
  return x;
}

Dense dense_iota(int64_t n, int dim, int rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(dim)] = n;
  std::byte* out = nullptr;
  Dense x = dense_new(DType::Index, shape, &out);
  for (int64_t i = 0; i < n; ++i) store_bits(DType::Index, out + i * 8, static_cast<Bits>(i));
  return x;
}

// ---- movement -------------------------------------------------------------------------------------------------------
Dense dense_broadcast(const Dense& x, const std::vector<int64_t>& shape) {
  if (x.shape == shape) return x;
  Dense out = x;
  out.shape = shape;
  out.stride.assign(shape.size(), 0);
  if (x.shape.size() > shape.size()) fail("a value of higher rank meets a smaller shape");
  const size_t shift = shape.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i] == shape[i + shift])
      out.stride[i + shift] = x.stride[i];
    else if (x.shape[i] != 1)
      fail("size " + std::to_string(x.shape[i]) + " meets size " + std::to_string(shape[i + shift]));
  }
  return out;
}

Dense dense_contiguous(const Dense& x) {
  if (x.contiguous()) return x;
  std::byte* out = nullptr;
  Dense copy = dense_new(x.dtype, x.shape, &out);
  copy_into(x, out, copy.stride, 0);
  return copy;
}

namespace {

// Strides for `shape` over x's elements, or false when some new dim would need two strides.
bool view_strides(const Dense& x, const std::vector<int64_t>& shape, std::vector<int64_t>& stride) {
  const auto merged = merged_loops<1>(x.shape, {x.stride.data()}, std::vector<bool>(x.shape.size()), false);
  stride.assign(shape.size(), 0);
  size_t loop = merged.size();
  int64_t left = 1, step = 0;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (left == 1) {
      if (loop == 0) return false;
      left = merged[--loop].size, step = merged[loop].stride[0];
    }
    if (left % shape[i] != 0) return false;
    stride[i] = step;
    step *= shape[i];
    left /= shape[i];
  }
  return left == 1;
}

} // namespace

Dense dense_reshape(const Dense& x, const std::vector<int64_t>& shape) {
  if (product(shape) != x.numel()) fail("reshape changes the element count");
  Dense out = x;
  if (x.numel() == 0 || !view_strides(x, shape, out.stride)) {
    out = dense_contiguous(x);
    out.stride = row_major(shape);
  }
  out.shape = shape;
  return out;
}

Dense dense_permute(const Dense& x, const std::vector<int64_t>& axes) {
  Dense out = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    out.shape[i] = x.shape[static_cast<size_t>(axes[i])];
    out.stride[i] = x.stride[static_cast<size_t>(axes[i])];
  }
  return out;
}

Dense dense_flip(const Dense& x, const std::vector<int64_t>& axes) {
  Dense out = x;
  for (int64_t axis : axes) {
    const size_t i = static_cast<size_t>(axis);
    out.offset += out.stride[i] * std::max<int64_t>(out.shape[i] - 1, 0);
    out.stride[i] = -out.stride[i];
  }
  return out;
}

Dense dense_shrink(const Dense& x, const std::vector<int64_t>& offset, const std::vector<int64_t>& size) {
  Dense out = x;
  for (size_t i = 0; i < size.size(); ++i) {
    if (offset[i] < 0 || size[i] < 0 || size[i] > x.shape[i] - offset[i])
      fail("shrink to [" + std::to_string(offset[i]) + ", +" + std::to_string(size[i]) + ") of size " +
           std::to_string(x.shape[i]));
    out.offset += offset[i] * x.stride[i];
    out.shape[i] = size[i];
  }
  return out;
}

Dense dense_pad(const Dense& x, const std::vector<int64_t>& lo, const std::vector<int64_t>& hi) {
  std::vector<int64_t> shape = x.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (lo[i] < 0 || hi[i] < 0) fail("pad by a negative amount");
    shape[i] += lo[i] + hi[i];
  }
  std::byte* bytes = nullptr;
  Dense out = dense_new(x.dtype, shape, &bytes);
  std::memset(bytes, 0, static_cast<size_t>(out.numel() * byte_size(x.dtype)));
  int64_t start = 0;
  for (size_t i = 0; i < shape.size(); ++i) start += lo[i] * out.stride[i];
  copy_into(x, bytes, out.stride, start);
  return out;
}

Dense dense_gather(const Dense& data, const Dense& positions, size_t dim) {
  std::byte* bytes = nullptr;
  Dense out = dense_new(data.dtype, positions.shape, &bytes);
  const Dense from = dense_contiguous(data), index = dense_contiguous(positions);
  const int64_t extent = data.shape[dim], count = positions.shape[dim];
  int64_t inner = 1;
  for (size_t i = dim + 1; i < data.shape.size(); ++i) inner *= data.shape[i];
  const int size = byte_size(data.dtype), index_size = byte_size(positions.dtype);
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    const int64_t at = to_int(positions.dtype, load_bits(positions.dtype, index.first() + i * index_size));
    if (at < 0 || at >= extent)
      std::memset(bytes + i * size, 0, static_cast<size_t>(size));
    else
      std::memcpy(bytes + i * size, from.first() + ((i / (count * inner) * extent + at) * inner + i % inner) * size,
                  static_cast<size_t>(size));
  }
  return out;
}

// ---- elementwise ----------------------------------------------------------------------------------------------------
Dense dense_apply(Ops op, const std::vector<int64_t>& shape, std::span<const Dense> in) {
  const DType dtype = in[op == Ops::Where ? 1 : 0].dtype;
  const DType result = info(op).cls == OpClass::Compare ? DType::Bool : dtype;
  if (scalar_fn(op, dtype) == nullptr) fail(std::string(name(op)) + " is not defined for " + name(dtype));
  std::byte* bytes = nullptr;
  Dense out = dense_new(result, shape, &bytes);
  std::array<Dense, 3> wide;
  for (size_t k = 0; k < 3; ++k) wide[k] = dense_broadcast(in[std::min(k, in.size() - 1)], shape);
  if (out.numel() == 0) return out;
  const auto loops =
      merged_loops<4>(shape, {out.stride.data(), wide[0].stride.data(), wide[1].stride.data(), wide[2].stride.data()},
                      std::vector<bool>(shape.size()), false);
  const LoopDim<4>& row = loops.back();
  for_each_row<4>(loops, {0, wide[0].offset, wide[1].offset, wide[2].offset}, [&](const std::array<int64_t, 4>& at) {
    Strided operand[3];
    for (size_t k = 0; k < 3; ++k)
      operand[k] = {wide[k].data + at[k + 1] * byte_size(wide[k].dtype), row.stride[k + 1]};
    apply_array(op, dtype, row.size, operand, bytes + at[0] * byte_size(result));
  });
  return out;
}

Dense dense_cast(DType to, const Dense& x) {
  std::byte* bytes = nullptr;
  Dense out = dense_new(to, x.shape, &bytes);
  if (out.numel() == 0) return out;
  const auto loops =
      merged_loops<2>(x.shape, {out.stride.data(), x.stride.data()}, std::vector<bool>(x.shape.size()), false);
  for_each_row<2>(loops, {0, x.offset}, [&](const std::array<int64_t, 2>& at) {
    cast_array(to, x.dtype, loops.back().size, {x.data + at[1] * byte_size(x.dtype), loops.back().stride[1]},
               bytes + at[0] * byte_size(to));
  });
  return out;
}

Dense dense_bitcast(DType to, const Dense& x) {
  Dense out = x; // same element size, so the strides hold
  out.dtype = to;
  return out;
}

// ---- reduction ------------------------------------------------------------------------------------------------------
namespace {

template <class Acc> bool is_nan(Acc x) {
  if constexpr (std::is_floating_point_v<Acc>) return std::isnan(x);
  return false;
}

template <class Acc> Acc combine(Ops kind, Acc a, Acc b) {
  if (kind == Ops::Max) return a < b || is_nan(b) ? b : a;
  if (kind == Ops::Min) return b < a || is_nan(b) ? b : a;
  if constexpr (std::is_integral_v<Acc>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<Acc>(kind == Ops::Add ? x + y : x * y);
  } else {
    return kind == Ops::Add ? a + b : a * b;
  }
}

// A reduction of one source or of the product of two.
template <DType D, size_t K> class Reducer {
public:
  using E = Elem<D>;
  using Store = typename E::Store;
  using Acc = typename E::Acc;

  Reducer(Ops kind, std::span<const Dense> in, const std::vector<bool>& reduced, Dense& out, std::byte* bytes)
      : kind_(kind), out_(reinterpret_cast<Store*>(bytes)) {
    std::array<const int64_t*, K + 1> strides{};
    for (size_t k = 0; k < K; ++k) {
      src_[k] = reinterpret_cast<const Store*>(in[k].data);
      start_[k] = in[k].offset;
      strides[k] = in[k].stride.data();
    }
    strides[K] = out.stride.data();
    start_[K] = 0;
    kept_ = merged_loops<K + 1>(in[0].shape, strides, reduced, false);
    reduced_ = merged_loops<K + 1>(in[0].shape, strides, reduced, true);
    acc_.resize(static_cast<size_t>(kept_.back().size));
  }

  void run() {
    const auto& row = kept_.back();
    for_each_row<K + 1>(kept_, start_, [&](const std::array<int64_t, K + 1>& at) {
      const Bits identity = reduce_identity(kind_, D);
      std::fill(acc_.begin(), acc_.end(), static_cast<Acc>(read<D>(identity)));
      for_each_row<K + 1>(reduced_, at, [&](const std::array<int64_t, K + 1>& tile) { this->tile(tile); });
      for (int64_t j = 0; j < row.size; ++j)
        out_[at[K] + j * row.stride[K]] = E::put(static_cast<typename E::Value>(acc_[static_cast<size_t>(j)]));
    });
  }

private:
  Acc term(const std::array<int64_t, K + 1>& at, int64_t kept, int64_t reduced) const {
    const auto element = [&](size_t k) {
      return E::get(src_[k][at[k] + kept * kept_.back().stride[k] + reduced * reduced_.back().stride[k]]);
    };
    if constexpr (K == 1)
      return static_cast<Acc>(element(0));
    else if constexpr (D == DType::F32 || D == DType::F64)
      return static_cast<Acc>(element(0) * element(1));
    else
      return static_cast<Acc>(E::get(E::put(static_cast<typename E::Value>(product(element(0), element(1))))));
  }
  static auto product(typename E::Value a, typename E::Value b) {
    if constexpr (std::is_integral_v<typename E::Value>)
      return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
    else
      return a * b;
  }

  // All (kept, reduced) pairs of one kept row and one reduced row, innermost along the smaller steps.
  void tile(const std::array<int64_t, K + 1>& at) {
    const int64_t n = kept_.back().size, r = reduced_.back().size;
    int64_t kept_step = 0, reduced_step = 0;
    for (size_t k = 0; k < K; ++k) {
      kept_step = std::max(kept_step, std::abs(kept_.back().stride[k]));
      reduced_step = std::max(reduced_step, std::abs(reduced_.back().stride[k]));
    }
    if (n < 4 || (reduced_step <= kept_step && r >= 4)) {
      for (int64_t j = 0; j < n; ++j) {
        Acc acc = acc_[static_cast<size_t>(j)];
        for (int64_t i = 0; i < r; ++i) acc = combine(kind_, acc, term(at, j, i));
        acc_[static_cast<size_t>(j)] = acc;
      }
      return;
    }
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < n; ++j)
        acc_[static_cast<size_t>(j)] = combine(kind_, acc_[static_cast<size_t>(j)], term(at, j, i));
  }

  Ops kind_;
  std::array<const Store*, K> src_{};
  std::array<int64_t, K + 1> start_{};
  std::vector<LoopDim<K + 1>> kept_, reduced_;
  std::vector<Acc> acc_;
  Store* out_;
};

template <size_t K>
void reduce_with(Ops kind, std::span<const Dense> in, const std::vector<bool>& reduced, Dense& out, std::byte* bytes) {
  visit_dtype(in[0].dtype, [&]<DType D>() { Reducer<D, K>(kind, in, reduced, out, bytes).run(); });
}

} // namespace

Dense dense_reduce(Ops kind, std::span<const Dense> in, const std::vector<bool>& reduced) {
  const DType dtype = in[0].dtype;
  if (scalar_fn(kind, dtype) == nullptr)
    fail(std::string("reduce ") + name(kind) + " is not defined for " + name(dtype));
  std::vector<int64_t> shape = in[0].shape;
  bool empty = in[0].numel() == 0;
  for (size_t i = 0; i < shape.size(); ++i)
    if (reduced[i]) shape[i] = 1;
  std::byte* bytes = nullptr;
  Dense out = dense_new(dtype, shape, &bytes);
  for (size_t i = 0; i < shape.size(); ++i)
    if (reduced[i]) out.stride[i] = 0;
  if (empty) {
    const Bits identity = reduce_identity(kind, dtype);
    for (int64_t i = 0; i < out.numel(); ++i) store_bits(dtype, bytes + i * byte_size(dtype), identity);
  } else if (in.size() == 1) {
    reduce_with<1>(kind, in, reduced, out, bytes);
  } else {
    reduce_with<2>(kind, in, reduced, out, bytes);
  }
  return out;
}

// ---- host tensors ---------------------------------------------------------------------------------------------------
void dense_copy_to(const Dense& x, std::byte* out) { copy_into(x, out, row_major(x.shape), 0); }

HostTensor to_host(const Dense& x) {
  HostTensor out = zeros(x.dtype, x.shape);
  dense_copy_to(x, out.data.data());
  return out;
}

Dense from_host(const HostTensor& x) { return dense_over(x.dtype, x.shape, x.data.data()); }

int64_t HostTensor::numel() const { return product(shape); }
double HostTensor::at(int64_t i) const {
  return to_double(dtype, load_bits(dtype, data.data() + i * byte_size(dtype)));
}
int64_t HostTensor::int_at(int64_t i) const {
  return to_int(dtype, load_bits(dtype, data.data() + i * byte_size(dtype)));
}
void HostTensor::set(int64_t i, double value) {
  store_bits(dtype, data.data() + i * byte_size(dtype), from_double(dtype, value));
}

HostTensor zeros(DType dtype, std::vector<int64_t> shape) {
  HostTensor out{dtype, std::move(shape), {}};
  out.data.resize(static_cast<size_t>(out.numel() * byte_size(dtype)));
  return out;
}

HostTensor tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  HostTensor out = zeros(dtype, std::move(shape));
  TGC_CHECK(static_cast<size_t>(out.numel()) == values.size(), "tensor_of: wrong number of values");
  for (size_t i = 0; i < values.size(); ++i) out.set(static_cast<int64_t>(i), values[i]);
  return out;
}

} // namespace tgc
