// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: which graphs does the compiler get wrong? Idea: a pool of values grows by random operators on random
// operands, in every element type and in shapes with ones, primes, zeros and a symbolic dim. What makes a comparison
// sharp is to know when bits must agree: input floats are small multiples of 1/4, and each value carries a bound and a
// grain (v = k * 2^-grain, |v| <= most), so that sums and products are known not to round. Values of any size ("wild":
// infinities, denormals, 2^63) pass only through operators that round once at most. The rest is approximate, is kept
// out of discontinuous operators and is compared within a tolerance. Not made here: strings of operators beyond a
// dozen.
#include "tools/random_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "frontend/constant.h"
#include "frontend/gather.h"
#include "frontend/nn.h"

namespace tgc {
namespace {

using namespace tensor;

constexpr double kWild = INFINITY;
constexpr int64_t kMostElements = 2500, kMostWork = 40000;
constexpr DType kFloats[] = {DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16};
constexpr DType kInts[] = {DType::I8,  DType::U8,  DType::I16, DType::U16,
                           DType::I32, DType::U32, DType::I64, DType::U64};

struct Value {
  Ref x;
  double most = 0;   ///< floats: |v| <= most where finite; kWild: any value, each exact
  int grain = 0;     ///< floats: a multiple of 2^-grain
  int rounds = 0;    ///< rounded operations on the way; 0: exact
  bool ends = false; ///< only an output: comparing what follows from it would not be fair
  bool sums = false; ///< a reduction whose zero may have either sign, or made of one

  bool exact() const { return rounds == 0; }
  bool wild() const { return is_float(x->dtype) && most == kWild; }
};

class Maker {
public:
  explicit Maker(uint64_t seed) : random_(seed) {}
  std::vector<Value> make_values();
  GraphCase finish(const std::vector<Value>& outputs);
  size_t below(size_t n) { return static_cast<size_t>(random_() % std::max<size_t>(1, n)); }

private:
  std::mt19937_64 random_;
  GraphCase case_;
  std::vector<Value> pool_;
  std::vector<Ref> params_;
  Ref var_;

  Context& ctx() { return *case_.module.ctx; }
  bool chance(size_t percent) { return below(100) < percent; }
  int64_t between(int64_t lo, int64_t hi) { return lo + static_cast<int64_t>(below(static_cast<size_t>(hi - lo + 1))); }
  template <typename T, size_t n> T any(const T (&list)[n]) { return list[below(n)]; }
  template <typename T> const T& any(const std::vector<T>& list) { return list[below(list.size())]; }

  int64_t size(Ref dim) { return eval_index(dim, case_.vars); }
  int64_t elements(Refs dims);
  std::vector<int64_t> sizes(Refs dims);
  DType any_type();
  Ref any_dim();
  Dims any_dims(int lowest_rank, int highest_rank);
  double number(DType type, bool wild);
  Value input(DType type, const Dims& dims, bool wild = false, int constant_percent = 20);
  template <typename Accept> Value pick(Accept accept, DType type, int lowest_rank = 0);
  Value partner(const Value& a);
  void add(Value v, const Value& from);
  /// A reduction over floats, whose order is the kernel's.
  void add_sum(Value v, const Value& from) {
    v.sums = true;
    add(v, from);
  }
  void add_rounded(Ref x, const Value& from, double most = 4);
  void keep(Value v);

  void unary();
  void binary();
  void compare_or_select();
  void integer_binary();
  void convert();
  void move();
  void resize();
  void join();
  void reduce_some();
  void product();
  void convolve();
  void pool_windows();
  void indexed();
  void activation();
};

int64_t Maker::elements(Refs dims) {
  int64_t n = 1;
  for (Ref d : dims) n *= size(d);
  return n;
}

std::vector<int64_t> Maker::sizes(Refs dims) {
  std::vector<int64_t> out;
  for (Ref d : dims) out.push_back(size(d));
  return out;
}

DType Maker::any_type() {
  const size_t which = below(20);
  return which < 12 ? any(kFloats) : which < 18 ? any(kInts) : DType::Bool;
}

Ref Maker::any_dim() {
  static constexpr int64_t kSizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 32, 33};
  if (var_ && chance(30)) return var_;
  if (chance(2)) return ctx().index(0);
  return ctx().index(any(kSizes));
}

Dims Maker::any_dims(int lowest_rank, int highest_rank) {
  for (;;) {
    Dims dims;
    for (int64_t rank = between(lowest_rank, highest_rank); rank > 0; --rank) dims.push_back(any_dim());
    if (elements(dims) <= kMostElements) return dims;
  }
}

double Maker::number(DType type, bool wild) {
  static constexpr double kReals[] = {
      0.0,          -0.0,        1.0,    -1.0,    0.5,          NAN,       INFINITY,    -INFINITY,
      1e30,         -1e30,       65504., 65520.,  3e-41,        1e-310,    2147483647., 2147483648.,
      -2147483649., 4294967296., 9.3e18, -9.3e18, 1.8446744e19, 127.5,     -128.5,      255.5,
      1e-5,         -2.5,        2.5,    33.25,   -0.75,        16777217., 1.5e300};
  if (type == DType::Bool) return static_cast<double>(below(2));
  if (is_float(type)) {
    if (wild) return any(kReals);
    if (chance(8)) return chance(50) ? -0.0 : 0.0;
    const int64_t most = type == DType::BF16 ? 6 : 8;
    return 0.25 * static_cast<double>(between(-most, most));
  }
  const IntRange range = int_range(type);
  if (wild && chance(40))
    return static_cast<double>(any({range.lo, range.hi, range.lo + 1, range.hi - 1, int64_t{0}, int64_t{8}, int64_t{63},
                                    int64_t{64}, int64_t{31}, int64_t{32}}));
  return static_cast<double>(between(is_signed(type) ? -5 : 0, 6));
}

Value Maker::input(DType type, const Dims& dims, bool wild, int constant_percent) {
  HostTensor t = zeros(type, sizes(dims));
  const size_t bytes = static_cast<size_t>(byte_size(type));
  const bool special = is_float(type) && !wild && chance(12);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.set(i, special && chance(6) ? any({NAN, INFINITY, -INFINITY}) : number(type, wild));
    if (wild && is_int(type) && chance(15)) { // exact extremes, which a double may not hold
      const uint64_t bits = any({~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) - 1, random_()});
      std::copy_n(reinterpret_cast<const std::byte*>(&bits), bytes, t.data.begin() + static_cast<int64_t>(bytes) * i);
    }
  }
  Value v{{}, wild ? kWild : type == DType::BF16 ? 1.5 : 2.0, 2};
  if (static_shape(dims) && chance(constant_percent)) {
    auto owner = std::make_shared<std::vector<std::byte>>(t.data);
    ConstantData data{type, t.shape, {}};
    data.data.bytes = *owner;
    data.data.owner = owner;
    v.x = add_constant(case_.module, "w" + std::to_string(case_.module.weights.size()), data);
    return v;
  }
  const int64_t slot = static_cast<int64_t>(case_.inputs.size());
  v.x = ctx().make(Ops::Param, type, dims, {{Attr::Slot, slot}, {Attr::Name, "x" + std::to_string(slot)}});
  params_.push_back(v.x);
  case_.inputs.push_back(std::move(t));
  return v;
}

/// A value of the pool that `accept` takes, or a new input of `type`.
template <typename Accept> Value Maker::pick(Accept accept, DType type, int lowest_rank) {
  std::vector<Value> fit;
  for (const Value& v : pool_)
    if (v.x->rank() >= lowest_rank && !v.ends && accept(v)) fit.push_back(v);
  if (!fit.empty() && !chance(12))
    return fit[chance(60) ? fit.size() - 1 - below(std::min<size_t>(3, fit.size())) : below(fit.size())];
  Value made = input(type, any_dims(lowest_rank, std::max(lowest_rank, 4)), false);
  return made;
}

/// An operand that broadcasts with `a`.
Value Maker::partner(const Value& a) {
  std::vector<Value> fit;
  for (const Value& v : pool_)
    if (v.x->dtype == a.x->dtype && !v.ends && v.wild() == a.wild() && shapes_equal(v.x->shape, a.x->shape))
      fit.push_back(v);
  if (!fit.empty() && chance(55)) return any(fit);
  Dims dims(a.x->shape.begin() + static_cast<int64_t>(chance(25) ? below(a.x->shape.size() + 1) : 0), a.x->shape.end());
  for (Ref& d : dims)
    if (chance(25)) d = ctx().index(1);
  if (chance(15)) dims.clear();
  const bool wild = a.wild() || (is_int(a.x->dtype) && chance(40));
  return input(a.x->dtype, dims, wild);
}

void Maker::keep(Value v) {
  if (elements(v.x->shape) <= kMostElements && v.x->rank() <= 6) pool_.push_back(v);
}

/// `v` made from `from` by an operator that is exact as long as its bound and grain fit the type.
void Maker::add(Value v, const Value& from) {
  v.rounds = from.rounds;
  v.ends = from.ends;
  v.sums |= from.sums;
  const int digits = info(v.x->dtype).mantissa_bits + 1;
  if (is_float(v.x->dtype) && v.most != kWild && std::ldexp(v.most, v.grain) > std::ldexp(1.0, digits)) ++v.rounds;
  v.ends |= v.rounds > 3 || (v.rounds > 0 && v.most == kWild);
  keep(v);
}

/// A value that rounds however it is made.
void Maker::add_rounded(Ref x, const Value& from, double most) {
  keep({x, most, 0, from.rounds + 1, from.rounds > 1 || from.wild(), from.sums});
}

void Maker::unary() {
  const Value a = pick([](const Value&) { return true; }, any_type());
  const DType type = a.x->dtype;
  if (type == DType::Bool) return add({elementwise(Ops::Not, {a.x})}, a);
  const Ops op = any({Ops::Neg, Ops::Abs});
  if (is_int(type)) return add({elementwise(chance(30) ? Ops::Not : op, {a.x})}, a);
  if (!a.exact() || chance(50)) return add({elementwise(op, {a.x}), a.most, a.grain}, a);
  if (chance(70))
    return add({elementwise(any({Ops::Floor, Ops::Ceil, Ops::Trunc, Ops::Round}), {a.x}), a.most + 1, 0}, a);
  const Ops rounded = any({Ops::Sqrt, Ops::Exp, Ops::Log, Ops::Tanh, Ops::Erf, Ops::Sin, Ops::Cos});
  if (a.wild() && (rounded == Ops::Sin || rounded == Ops::Cos)) return; // accurate up to 1e8 only
  add_rounded(elementwise(rounded, {a.x}), a, rounded == Ops::Exp ? kWild : 16);
}

void Maker::binary() {
  const Value a = pick([](const Value&) { return true; }, any_type());
  const DType type = a.x->dtype;
  const Value b = partner(a);
  Value from = a;
  from.rounds = std::max(a.rounds, b.rounds);
  from.ends = a.ends || b.ends;
  from.sums = a.sums || b.sums;
  const bool swapped = chance(50);
  const auto with = [&](Ops op) { return swapped ? elementwise(op, {b.x, a.x}) : elementwise(op, {a.x, b.x}); };
  if (type == DType::Bool) return add({with(any({Ops::And, Ops::Or, Ops::Xor, Ops::Max, Ops::Min}))}, from);
  const int grain = std::max(a.grain, b.grain);
  if (is_int(type)) return add({with(any({Ops::Add, Ops::Sub, Ops::Mul, Ops::Max, Ops::Min}))}, from);
  if (a.wild() || b.wild()) {
    if (chance(50)) return add({with(any({Ops::Max, Ops::Min})), kWild}, from);
    if (from.exact() && (type == DType::F32 || type == DType::F64)) // one rounding, at most
      keep({with(any({Ops::Add, Ops::Sub, Ops::Mul, Ops::Div, Ops::Mod})), kWild, 0, 0, true});
    return;
  }
  switch (below(8)) {
  case 0:
  case 1: return add({with(any({Ops::Add, Ops::Sub})), a.most + b.most, grain}, from);
  case 2:
  case 3: return add({with(Ops::Mul), a.most * b.most, a.grain + b.grain}, from);
  case 4:
  case 5: return add({with(any({Ops::Max, Ops::Min})), std::max(a.most, b.most), grain}, from);
  case 6:
    if (!from.exact()) return;
    return add({with(Ops::Mod), std::max(a.most, b.most), grain}, from);
  default:
    if (!from.exact() || from.sums) return; // x / 0 has the sign of 0
    add_rounded(with(chance(70) ? Ops::Div : Ops::Pow), from, kWild);
  }
}

void Maker::integer_binary() {
  const Value a = pick([](const Value& v) { return is_int(v.x->dtype); }, any(kInts));
  const Value b = partner(a);
  static constexpr Ops kOps[] = {Ops::Div, Ops::Mod, Ops::FloorDiv, Ops::FloorMod, Ops::And,
                                 Ops::Or,  Ops::Xor, Ops::Shl,      Ops::Shr};
  add({chance(80) ? elementwise(any(kOps), {a.x, b.x}) : elementwise(any(kOps), {b.x, a.x})}, Value());
}

void Maker::compare_or_select() {
  const Value a = pick([](const Value& v) { return v.exact(); }, any_type());
  const Value b = partner(a);
  if (!b.exact()) return;
  const Ref mask = a.x->dtype == DType::Bool && chance(50)
                       ? a.x
                       : elementwise(any({Ops::Lt, Ops::Le, Ops::Eq, Ops::Ne}), {a.x, b.x});
  if (chance(40)) return add({mask}, a);
  const Value yes = pick([&](const Value& v) { return shapes_equal(v.x->shape, mask->shape); }, a.x->dtype);
  if (!shapes_equal(yes.x->shape, mask->shape)) return;
  const Value no = partner(yes);
  Value from = yes;
  from.rounds = std::max(yes.rounds, no.rounds);
  from.sums = yes.sums || no.sums;
  add({select(mask, yes.x, no.x), std::max(yes.most, no.most), std::max(yes.grain, no.grain)}, from);
}

void Maker::convert() {
  const Value a = pick([](const Value& v) { return v.exact(); }, any_type());
  const DType from = a.x->dtype, type = any_type();
  const bool is_half = type == DType::F16 || type == DType::BF16;
  if (!is_float(from) && byte_size(from) == byte_size(type) && from != DType::Bool && type != DType::Bool && chance(25))
    return is_half ? keep({bitcast(a.x, type), kWild, 0, 0, true}) : add({bitcast(a.x, type), kWild}, a);
  const Ref x = to(a.x, type);
  if (!is_float(type)) return add({x}, a);
  if (!is_float(from) && byte_size(from) > 1 && from != DType::Bool)
    return keep({x, kWild, 0, is_half, is_half}); // may round
  if (!is_float(from)) return add({x, 255, 0}, a);
  if (a.wild() && info(type).mantissa_bits < info(from).mantissa_bits) return keep({x, kWild, 0, is_half, is_half});
  add({x, a.most, a.grain}, a);
}

/// Movement that keeps every element or repeats it.
void Maker::move() {
  Value a = pick([](const Value&) { return true; }, any_type(), 1);
  const int64_t rank = a.x->rank(), axis = between(0, rank - 1);
  Dims dims = dims_of(a.x);
  switch (below(7)) {
  case 0: {
    std::vector<int64_t> order = all_axes(a.x);
    std::shuffle(order.begin(), order.end(), random_);
    a.x = permute(a.x, order);
    break;
  }
  case 1: a.x = flip(a.x, {axis}); break;
  case 2: a.x = unsqueeze(a.x, {between(0, rank)}); break;
  case 3:
    if (rank > 1) a.x = merge_axes(a.x, axis, std::min<int64_t>(rank, axis + 2));
    break;
  case 4: {
    const std::optional<int64_t> n = dim_int(dims[static_cast<size_t>(axis)]);
    for (int64_t part : {2, 3, 4, 5, 8})
      if (n && *n > part && *n % part == 0 && chance(60)) {
        a.x = split_axis(a.x, axis,
                         chance(50) ? Dims{ctx().index(part), ctx().index(*n / part)}
                                    : Dims{ctx().index(*n / part), ctx().index(part)});
        break;
      }
    break;
  }
  default:
    for (Ref& d : dims)
      if (dim_int(d) == 1 && chance(70)) d = any_dim();
    if (elements(dims) <= kMostElements) a.x = expand(a.x, dims);
  }
  keep(a);
}

/// Movement that drops elements or adds some.
void Maker::resize() {
  Value a = pick([](const Value&) { return true; }, any_type(), 1);
  const int64_t axis = between(0, a.x->rank() - 1);
  const Ref extent = dim(a.x, axis);
  const std::optional<int64_t> n = dim_int(extent);
  if (chance(45)) {
    Dims lo, hi;
    for (int i = 0; i < a.x->rank(); ++i) {
      lo.push_back(ctx().index(chance(40) ? between(0, 3) : 0));
      hi.push_back(chance(8) && var_ ? var_ : ctx().index(chance(40) ? between(0, 3) : 0));
    }
    const double around = is_float(a.x->dtype) ? any({0.0, 0.0, 1.0, -double{INFINITY}, 0.5}) : any({0.0, 1.0});
    a.x = chance(60) ? pad(a.x, lo, hi) : pad_with(a.x, lo, hi, const_like(a.x, around));
    if (elements(a.x->shape) > kMostElements) return;
  } else if (n && *n > 1 && chance(40)) {
    const int64_t step = between(2, 3), offset = between(0, *n - 1);
    a.x = stride_axis(a.x, {axis, ctx().index(offset), ctx().index((*n - offset + step - 1) / step), step});
    if (chance(30)) a.x = flip(a.x, {axis});
  } else if (n) {
    const int64_t offset = between(0, *n), count = between(0, *n - offset);
    if (count == 0 && !chance(10)) return;
    a.x = shrink_axis(a.x, axis, ctx().index(offset), ctx().index(count));
  } else if (extent->lo > 1) {
    const int64_t cut = between(1, extent->lo - 1);
    a.x = shrink_axis(a.x, axis, ctx().index(chance(50) ? cut : 0), dim_sub(extent, ctx().index(cut)));
  }
  keep(a);
}

void Maker::join() {
  const Value a = pick([](const Value&) { return true; }, any_type(), 1);
  const int64_t axis = between(0, a.x->rank() - 1);
  Value all = a;
  std::vector<Ref> parts{a.x};
  for (int64_t more = between(1, 2); more > 0; --more) {
    std::vector<Value> fit;
    for (const Value& v : pool_)
      if (v.x->dtype == a.x->dtype && v.x->rank() == a.x->rank() && !v.ends && v.wild() == a.wild()) {
        Dims dims = dims_of(v.x);
        dims[static_cast<size_t>(axis)] = dim(a.x, axis);
        if (shapes_equal(dims, a.x->shape)) fit.push_back(v);
      }
    Dims dims = dims_of(a.x);
    dims[static_cast<size_t>(axis)] = any_dim();
    if (elements(dims) > kMostElements) return;
    const Value part = fit.empty() || chance(40) ? input(a.x->dtype, dims, a.wild()) : any(fit);
    parts.push_back(part.x);
    all.most = std::max(all.most, part.most);
    all.grain = std::max(all.grain, part.grain);
    all.rounds = std::max(all.rounds, part.rounds);
    all.sums |= part.sums;
  }
  std::shuffle(parts.begin(), parts.end(), random_);
  all.x = concat(parts, axis);
  keep(all);
}

void Maker::reduce_some() {
  const Value a = pick([](const Value&) { return true; }, any_type(), 1);
  std::vector<int64_t> axes = all_axes(a.x);
  std::shuffle(axes.begin(), axes.end(), random_);
  axes.resize(1 + below(chance(50) ? axes.size() : 1));
  axes = normalize_axes(axes, a.x->rank());
  int64_t n = 1;
  for (int64_t axis : axes) n *= size(dim(a.x, axis));
  const bool keeps = chance(40);
  const DType type = a.x->dtype;
  if (type == DType::Bool) return add({tgc::tensor::reduce(any({"max", "min"}), a.x, axes, keeps)}, a);
  if (a.exact() && chance(20)) {
    if (n > 0) add({argmax(a.x, axes[0], keeps, chance(50))}, a);
    return;
  }
  const double count = static_cast<double>(n);
  switch (below(a.wild() ? 2 : 6)) {
  case 0: return add_sum({max(a.x, axes, keeps), a.most, a.grain}, a); // 0 and -0 are equal: the first of them wins,
  case 1: return add_sum({min(a.x, axes, keeps), a.most, a.grain}, a); // in whatever order a kernel takes them
  case 2:
    if (is_float(type) && n > 12) return;
    return add({prod(a.x, axes, keeps), std::pow(a.most, count), a.grain * static_cast<int>(n)}, a);
  case 3:
    if (is_float(type)) return add_rounded(mean(a.x, axes, keeps), a);
    [[fallthrough]];
  default: return add_sum({sum(a.x, axes, keeps), a.most * std::max(1.0, count), a.grain}, a);
  }
}

void Maker::product() {
  const Value a = pick([](const Value& v) { return !v.wild() && is_float(v.x->dtype); }, any(kFloats), 1);
  const Ref inner = dim(a.x, -1);
  Dims dims{inner};
  if (chance(80)) dims.push_back(any_dim());
  if (dims.size() == 2 && a.x->rank() > 2 && chance(40))
    dims.insert(dims.begin(), chance(50) ? dim(a.x, -3) : ctx().index(1));
  if (elements(dims) > kMostElements) return;
  const Value b = input(a.x->dtype, dims);
  const int64_t columns = dims.size() > 1 ? size(dims.back()) : 1, k = size(inner);
  if (elements(a.x->shape) * columns > kMostWork) return;
  Value v{matmul(a.x, b.x), a.most * b.most * static_cast<double>(std::max<int64_t>(1, k)), a.grain + b.grain};
  if (chance(40) && dim_int(dims.back()) && dims.size() > 1 && v.x->rank() > 0) {
    const Value bias = input(a.x->dtype, {dims.back()});
    v.x = tensor::add(v.x, bias.x);
    v.most += bias.most;
  }
  if (!chance(25) || v.x->rank() < 2) return add_sum(v, a);
  const Value values = input(a.x->dtype, {dim(v.x, -1), any_dim()}); // attention
  add_rounded(matmul(softmax(v.x, v.x->rank() - 1), values.x), a, values.most);
}

void Maker::convolve() {
  const auto is_picture = [this](const Value& v) {
    const Refs dims = v.x->shape;
    return !v.wild() && is_float(v.x->dtype) && (dims.size() == 3 || dims.size() == 4) && elements(dims) > 0 &&
           static_shape(Dims(dims.begin() + 1, dims.end()));
  };
  const auto old = std::find_if(pool_.rbegin(), pool_.rend(), is_picture);
  const bool again = old != pool_.rend() && chance(50); // a convolution of another value, and of constant weights
  Dims x{any_dim(), ctx().index(between(1, 6))};
  for (int64_t i = between(1, 2); i > 0; --i) x.push_back(ctx().index(between(1, 12)));
  if (again) x = Dims(old->x->shape.begin(), old->x->shape.end());
  const int64_t channels = size(x[1]), groups = chance(25) ? channels : channels % 2 == 0 && chance(25) ? 2 : 1;
  const int64_t made = groups * (groups < 4 && chance(40) ? between(16, 19) : between(1, 5));
  const bool transposed = chance(20);
  Dims w{ctx().index(transposed ? channels : made), ctx().index((transposed ? made : channels) / groups)};
  std::vector<Window> windows;
  for (size_t axis = 2; axis < x.size(); ++axis) {
    const int64_t n = size(x[axis]), kernel = between(1, std::min<int64_t>(4, n));
    Window window{kernel, between(1, 3), 2 * kernel - 1 <= n ? between(1, 2) : 1, 0, 0, 0};
    window.pad_lo = std::min(between(0, 2), window.span() - 1);
    window.pad_hi = std::min(between(0, 2), window.span() - 1);
    w.push_back(ctx().index(window.kernel));
    windows.push_back(window);
  }
  if (elements(x) > kMostElements || elements(x) * made / groups > kMostWork) return;
  const Value a = again ? *old : input(any(kFloats), x), b = input(a.x->dtype, w, false, 60);
  const Ref y = transposed ? conv_transpose(a.x, b.x, windows, groups) : conv(a.x, b.x, windows, groups);
  Value v{y, a.most * b.most * static_cast<double>(elements(w)), a.grain + b.grain}; // more terms than any sum has
  if (chance(40)) {
    const Value bias = input(a.x->dtype, {ctx().index(made)});
    v.x = add_channel(v.x, bias.x);
    v.most += bias.most;
  }
  add_sum(v, a);
}

void Maker::pool_windows() {
  const Value a =
      pick([](const Value& v) { return v.x->rank() <= 4 && !v.wild() && is_float(v.x->dtype); }, DType::F32, 3);
  std::vector<Window> windows;
  for (int64_t axis = std::max(1, a.x->rank() - 2); axis < a.x->rank(); ++axis) {
    const std::optional<int64_t> n = dim_int(dim(a.x, axis));
    if (!n || *n < 1 || a.x->rank() > 4) return;
    Window window{between(1, std::min<int64_t>(4, *n)), between(1, 3), 1, 0, 0, 0};
    if (window.kernel < 3 && *n >= 2 * window.kernel) window.dilation = between(1, 2);
    window.pad_lo = between(0, window.kernel - 1);
    window.pad_hi = between(0, window.kernel - 1);
    windows.push_back(window);
  }
  if (chance(60)) return add_sum({max_pool(a.x, windows), a.most, a.grain}, a);
  add_rounded(average_pool(a.x, windows, chance(50), std::vector<int64_t>(windows.size(), 0)), a);
}

void Maker::indexed() {
  Value a = pick([](const Value& v) { return v.x->rank() == 3; }, any_type(), 3);
  if (a.x->rank() != 3) return;
  const Ref rows = dim(a.x, 1), count = any_dim();
  const int64_t work = size(dim(a.x, 0)) * size(rows) * size(count) * size(dim(a.x, 2));
  if (work > kMostWork) return;
  const Value index =
      input(any({DType::I64, DType::I32, DType::U8}), {chance(50) ? dim(a.x, 0) : ctx().index(1), count}, chance(20));
  if (chance(60)) {
    a.x = take(a.x, chance(50) ? positions(index.x, rows) : index.x);
    return add_sum(a, a);
  }
  if (!shapes_equal(Dims{dim(index.x, 0)}, Dims{dim(a.x, 0)})) return;
  const Value updates = input(a.x->dtype, {dim(a.x, 0), count, dim(a.x, 2)}, a.wild());
  const bool ordered = a.x->dtype != DType::Bool && !a.wild();
  const auto how = ordered ? any({Scatter::Replace, Scatter::Add, Scatter::Max, Scatter::Min}) : Scatter::Replace;
  const double most =
      how == Scatter::Add ? a.most + updates.most * static_cast<double>(size(count)) : std::max(a.most, updates.most);
  add_sum({put(a.x, positions(index.x, rows), updates.x, how), most, std::max(a.grain, updates.grain)}, a);
}

void Maker::activation() {
  const Value a = pick([](const Value& v) { return !v.wild() && is_float(v.x->dtype); }, any(kFloats), 1);
  const int64_t axis = between(0, a.x->rank() - 1);
  if (!a.exact() && !chance(30)) return;
  switch (below(7)) {
  case 0: return add({relu(a.x), a.most, a.grain}, a);
  case 1: return add_rounded(sigmoid(a.x), a);
  case 2: return add_rounded(softmax(a.x, axis), a);
  case 3: return add_rounded(log_softmax(a.x, axis), a, 64);
  case 4: return add_rounded(gelu(a.x, chance(50)), a, a.most);
  case 5: return add_rounded(softplus(a.x), a, a.most + 1);
  default: return add_rounded(standardize(a.x, {axis}, 1e-5), a, 64);
  }
}

std::vector<Value> Maker::make_values() {
  if (chance(35)) {
    const int64_t lo = between(1, 3), hi = lo + between(0, 9);
    var_ = ctx().var("N", lo, hi);
    case_.vars["N"] = between(lo, hi);
  }
  for (size_t n = 1 + below(2); n > 0; --n) {
    const DType type = any_type();
    pool_.push_back(input(type, any_dims(0, 4), chance(25)));
  }
  using Step = void (Maker::*)();
  // clang-format off
  static constexpr Step kSteps[] = { // the common ones stand twice
      &Maker::unary,   &Maker::unary,       &Maker::binary,            &Maker::binary,            &Maker::binary,
      &Maker::convert, &Maker::convert,     &Maker::compare_or_select, &Maker::compare_or_select, &Maker::move,
      &Maker::move,    &Maker::move,        &Maker::resize,            &Maker::resize,            &Maker::join,
      &Maker::product, &Maker::reduce_some, &Maker::reduce_some,       &Maker::convolve,          &Maker::pool_windows,
      &Maker::indexed, &Maker::activation,  &Maker::integer_binary};
  // clang-format on
  for (size_t n = 2 + below(9); n > 0; --n) {
    const size_t before = pool_.size();
    for (int tries = 0; tries < 4 && pool_.size() == before; ++tries) (this->*any(kSteps))();
  }
  return pool_;
}

/// The case whose outputs are these.
GraphCase Maker::finish(const std::vector<Value>& outputs) {
  int64_t slot = static_cast<int64_t>(case_.inputs.size());
  std::vector<Ref> stores;
  for (const Value& v : outputs) {
    const Attrs attrs = {{Attr::Slot, slot}, {Attr::Name, "y" + std::to_string(stores.size())}};
    const Ref out = ctx().make(Ops::Param, v.x->dtype, v.x->shape, attrs);
    stores.push_back(ctx().make(Ops::Store, DType::Void, {out, v.x}));
    case_.agree.push_back(!v.exact() || v.ends ? Agree::Closely : v.sums ? Agree::ButZeroSigns : Agree::InBits);
    ++slot;
  }
  case_.module.root = make_func("main", ctx().make(Ops::Sink, DType::Void, stores), params_);
  return std::move(case_);
}

} // namespace

GraphCase random_graph(uint64_t seed, int only, int* count) {
  Maker maker(seed);
  const std::vector<Value> values = maker.make_values();
  if (count) *count = static_cast<int>(values.size());
  if (only >= 0) return maker.finish({values[static_cast<size_t>(only)]});
  std::vector<Value> outputs;
  for (size_t n = std::min<size_t>(values.size(), 1 + maker.below(3)); n > 0; --n)
    outputs.push_back(values[values.size() - n]);
  return maker.finish(outputs);
}

} // namespace tgc
