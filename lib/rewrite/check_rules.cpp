// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rule is checked as it is typed: instances of its left side are made at random from its own pattern, and both sides
// are evaluated for many values of the leaves by the interpreter's scalar functions.
//
// Instances are drawn from a small pool of leaves and small constants, so that rules which need relations between parts
// (equal nodes, divisibility, bounds) fire often enough. What is not covered: rules over nodes without a scalar value
// (stores, control), and properties that hold for scalars but not for shapes; kSameValue keeps the latter away.
#include "rewrite/check_rules.h"

#include <cmath>
#include <limits>

#include "rewrite/array_eval.h"
#include "rewrite/node_text.h"
#include "uop/scalar.h"

namespace tgc {
namespace {
constexpr int64_t kAssignments = 64;
constexpr double kRelative = 1e-5; // of reordered or approximated f32 arithmetic on a few operations

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() { // splitmix64
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T, size_t N> T pick(const T (&items)[N]) { return items[below(N)]; }

private:
  uint64_t state_;
};

/// Random instances of one pattern.
class Instances {
public:
  Instances(const Rule& rule, Random& random) : rule_(rule), random_(random) {}

  /// An instance of the pattern, or null when the random choices did not fit together.
  Ref next() {
    bound_ = {};
    pool_.clear();
    for (int i = 0; i < 3; ++i) pool_.push_back(index_leaf(i));
    const int root = static_cast<int>(rule_.pattern.nodes().size()) - 1;
    try {
      return make(root, dtype_of(root));
    } catch (const CompileError&) {
      return {};
    } // a combination that the IR does not allow
  }

private:
  const Pat::Node& node(int i) const { return rule_.pattern.nodes()[static_cast<size_t>(i)]; }

  DType random_dtype(DTypeMask allowed) {
    allowed.reset(static_cast<size_t>(DType::Void));
    if (allowed.none()) return DType::Void;
    for (;;) {
      const auto t = static_cast<size_t>(random_.below(kNumDTypes));
      if (allowed.test(t)) return static_cast<DType>(t);
    }
  }

  /// Types that a pattern node may have by what it says of itself and of the sources it takes its type from.
  DTypeMask dtypes_of(int i) const {
    const Pat::Node& n = node(i);
    DTypeMask mask = n.dtypes;
    if (n.capture >= 0 && bound_[static_cast<size_t>(n.capture)])
      mask &= DTypeMask().set(static_cast<size_t>(bound_[static_cast<size_t>(n.capture)]->dtype));
    if (n.ops.all() || n.src.empty()) return mask;
    const OpInfo& op = info(first_op(n));
    if (op.dtype == DTypeRule::Bool) return mask & DTypeMask().set(static_cast<size_t>(DType::Bool));
    if (op.dtype == DTypeRule::Given) return mask;
    for (size_t s = op.cls == OpClass::Ternary && op.dtype == DTypeRule::Src1 ? 1 : 0; s < n.src.size(); ++s)
      if (op.cls != OpClass::Memory) mask &= dtypes_of(n.src[s]);
    return mask;
  }
  DType dtype_of(int i) {
    if (rule_.tags & (kFast | kStandard | kApproximate)) {
      const DTypeMask wide = DTypeMask().set(static_cast<size_t>(DType::F32)).set(static_cast<size_t>(DType::F64));
      if ((dtypes_of(i) & wide).any()) return random_dtype(dtypes_of(i) & wide);
    }
    return random_dtype(dtypes_of(i));
  }
  static Ops first_op(const Pat::Node& n) {
    for (size_t o = 0; o < n.ops.size(); ++o)
      if (n.ops.test(o)) return static_cast<Ops>(o);
    return Ops::Const;
  }
  Ops random_op(const Pat::Node& n) {
    for (;;) {
      const auto o = static_cast<size_t>(random_.below(kNumOps));
      if (n.ops.test(o)) return static_cast<Ops>(o);
    }
  }

  Ref make(int i, DType type) {
    const Pat::Node& n = node(i);
    if (type == DType::Void || !n.dtypes.test(static_cast<size_t>(type))) return {};
    Ref* slot = n.capture >= 0 ? &bound_[static_cast<size_t>(n.capture)] : nullptr;
    if (slot && *slot) return (*slot)->dtype == type ? *slot : Ref();
    const Ref made = make_fresh(n, type);
    if (slot) *slot = made;
    return made;
  }

  Ref make_fresh(const Pat::Node& n, DType type) {
    if (n.literal) return literal(type, n.value);
    if (n.ops.all()) return expression(type);
    const Ops o = random_op(n);
    if (o == Ops::Const) return constant(type);
    if (o == Ops::Load) return load(n, type);
    std::vector<Ref> src;
    const int count = n.any_sources ? info(o).min_src : static_cast<int>(n.src.size());
    const DType operand = operand_type(n, o, type);
    for (int s = 0; s < count; ++s) {
      const DType t = o == Ops::Where && s == 0 ? DType::Bool : operand;
      src.push_back(n.any_sources ? expression(t) : make(n.src[static_cast<size_t>(s)], t));
      if (!src.back()) return {};
    }
    if (o != Ops::Cast && o != Ops::Bitcast && !scalar_fn(o, o == Ops::Where ? type : operand)) return {};
    if (n.commutative && random_.chance(50)) std::swap(src[0], src[1]);
    return ctx_.make(o, type, src);
  }

  DType operand_type(const Pat::Node& n, Ops o, DType type) {
    DTypeMask allowed = DTypeMask().set();
    if (!n.any_sources)
      for (int s : n.src) allowed &= dtypes_of(s);
    if (o == Ops::Bitcast)
      for (int t = 0; t < kNumDTypes; ++t)
        if (byte_size(static_cast<DType>(t)) != byte_size(type) || t == static_cast<int>(DType::Bool))
          allowed.reset(static_cast<size_t>(t));
    if (o == Ops::Cast || o == Ops::Bitcast)
      return random_.chance(20) && allowed.test(static_cast<size_t>(type)) ? type : random_dtype(allowed);
    return info(o).dtype == DTypeRule::Bool
               ? (random_.chance(40) && allowed.test(static_cast<size_t>(DType::Index)) ? DType::Index
                                                                                        : random_dtype(allowed))
               : type;
  }

  Ref literal(DType type, double value) {
    if (type == DType::Bool && value != 0 && value != 1) return {};
    if (is_unsigned(type) && value < 0) return {};
    return ctx_.constant(type, value);
  }

  Ref constant(DType type) {
    if (type == DType::Bool) return ctx_.constant_int(type, random_.below(2));
    if (is_float(type)) {
      static constexpr double kInf = std::numeric_limits<double>::infinity();
      const double values[] = {0, -0.0, 1, -1, 2, 0.5, -4, 3, 0.1, 1024, 3e38, kInf, -kInf, std::nan("")};
      const double ordinary[] = {1, -1, 2, 0.5, -4, 3, 0.1};
      return ctx_.constant(type, rule_.tags & (kFast | kStandard | kApproximate) ? random_.pick(ordinary)
                                                                                 : random_.pick(values));
    }
    const int64_t small[] = {0, 1, -1, 2, 3, 4, 5, 6, 8, 12, 16, 7, -2, -3};
    if (type == DType::Index || random_.chance(70)) return ctx_.constant_int(type, random_.pick(small));
    return ctx_.constant_int(type, static_cast<int64_t>(random_.bits()));
  }
  bool is_ordinary() const { return (rule_.tags & (kFast | kStandard)) != 0; }

  Ref index_leaf(int i) {
    const std::string name(1, static_cast<char>('a' + i));
    switch (random_.below(5)) {
    case 0: return ctx_.var(name, -random_.below(20), random_.below(20));
    case 1: return ctx_.var(name, 1, 1 + random_.below(12));
    case 2: return ctx_.range(ctx_.var("n", 1, 1 + random_.below(16)), i);
    default: return ctx_.range(ctx_.index(random_.between(1, 20)), i);
    }
  }

  Ref index_expression(int depth) {
    const int64_t factors[] = {1, 2, 3, 4, 6, 8, 12, -1, -2};
    const Ref x =
        random_.chance(85) || depth > 2 ? pool_[static_cast<size_t>(random_.below(3))] : constant(DType::Index);
    switch (random_.below(depth > 2 ? 2 : 9)) {
    case 0:
    case 1: return x;
    case 2: return x * ctx_.index(random_.pick(factors));
    case 3: return x * ctx_.index(random_.pick(factors)) + index_expression(depth + 1);
    case 4: return index_expression(depth + 1) + ctx_.index(random_.between(-9, 9));
    case 5: return floordiv(index_expression(depth + 1), ctx_.index(random_.between(1, 8)));
    case 6: return floormod(index_expression(depth + 1), ctx_.index(random_.between(1, 8)));
    case 7: {
      const int64_t b = random_.between(1, 4); // the two halves of one value
      return x->lo == x->hi ? x : floordiv(x, ctx_.index(b)) * ctx_.index(b) + floormod(x, ctx_.index(b));
    }
    default: return index_expression(depth + 1) - index_expression(depth + 1);
    }
  }

  Ref param(DType type, int64_t slot) { return ctx_.make(Ops::Param, type, {}, {{Attr::Slot, slot}}); }

  /// A leaf or a small expression of any type.
  Ref expression(DType type) {
    if (type == DType::Index) return index_expression(0);
    const int64_t slot = random_.below(2);
    if (random_.chance(40) || (is_ordinary() && is_float(type))) return param(type, slot);
    if (random_.chance(15)) return constant(type);
    if (type == DType::Bool) {
      if (random_.chance(60))
        return binary(random_.pick({Ops::Lt, Ops::Le, Ops::Eq, Ops::Ne}), index_expression(1), index_expression(1));
      return unary(Ops::Not, param(type, slot));
    }
    if (is_float(type)) {
      if (random_.chance(30))
        return cast(param(random_.pick({DType::I8, DType::U16, DType::I32, DType::Bool}), 2), type);
      return unary(random_.pick({Ops::Neg, Ops::Abs, Ops::Floor, Ops::Trunc, Ops::Round, Ops::Ceil}),
                   param(type, slot));
    }
    return random_.chance(70) ? cast(index_expression(0), type)
                              : unary(random_.pick({Ops::Neg, Ops::Not, Ops::Abs}), param(type, slot));
  }

  /// A load from a flat buffer, plain or gated; the buffer takes part in captures.
  Ref load(const Pat::Node& n, DType type) {
    std::vector<Ref> src = {ctx_.make(Ops::Param, type, {ctx_.index(100)}, {{Attr::Slot, int64_t{9}}})};
    const int buffer = n.any_sources ? -1 : node(n.src[0]).capture;
    if (buffer >= 0) bound_[static_cast<size_t>(buffer)] = src[0];
    const DType types[] = {type, DType::Index, DType::Bool, type};
    const size_t count = n.any_sources ? (random_.chance(50) ? 2 : 4) : n.src.size();
    for (size_t s = 1; s < count; ++s) {
      src.push_back(n.any_sources ? expression(types[s]) : make(n.src[s], types[s]));
      if (!src.back()) return {};
    }
    return ctx_.make(Ops::Load, type, src);
  }

  const Rule& rule_;
  Random& random_;
  Context ctx_;
  std::array<Ref, kMaxCaptures> bound_;
  std::vector<Ref> pool_;
};

/// Values of the leaves of two graphs, and both results.
class Comparison {
public:
  Comparison(Ref before, Ref after, Random& random, unsigned tags)
      : before_(before), after_(after), random_(random), tags_(tags), eval_(kAssignments) {
    const Ref roots[] = {before, after};
    for (Ref x : toposort(roots)) bind(x);
  }

  /// Empty, or the text of the first difference.
  std::string run() {
    for (int64_t i = 0; i < kAssignments; ++i) {
      const Bits a = eval_.at(before_, i), b = eval_.at(after_, i);
      if (!equal(a, b)) return text(i, a, b);
    }
    return {};
  }

private:
  void bind(Ref x) {
    if (x->is(Ops::Const) || !(x->cls() == OpClass::Leaf) || x->rank() != 0) return;
    std::vector<std::byte> values(static_cast<size_t>(kAssignments * byte_size(x->dtype)));
    for (int64_t i = 0; i < kAssignments; ++i)
      store_bits(x->dtype, values.data() + i * byte_size(x->dtype), value_of(x, i));
    eval_.bind(x, values.data());
    leaves_.push_back(x);
  }

  Bits value_of(Ref x, int64_t i) {
    if (x->is(Ops::Var)) return from_int(x->dtype, between(x->lo, x->hi));
    if (x->is(Ops::Range))
      return from_int(x->dtype, between(0, std::max<int64_t>(0, to_int(DType::Index, eval_.at(x->src[0], i)) - 1)));
    if (x->dtype == DType::Bool) return static_cast<Bits>(random_.below(2));
    if (is_float(x->dtype)) return float_value(x->dtype);
    const int64_t ends[] = {0,
                            1,
                            -1,
                            2,
                            127,
                            255,
                            std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max(),
                            1 << 7,
                            int64_t{1} << 31};
    return from_int(x->dtype, random_.chance(40)   ? random_.pick(ends)
                              : random_.chance(50) ? random_.between(-20, 20)
                                                   : static_cast<int64_t>(random_.bits()));
  }
  int64_t between(int64_t lo, int64_t hi) {
    if (random_.chance(15)) return lo;
    return random_.chance(15) ? hi : random_.between(lo, hi);
  }
  /// Approximations state a domain (sin of large values); every function's includes these.
  bool is_out_of_domain(double v) const { return (tags_ & kApproximate) && std::isfinite(v) && std::fabs(v) > 1e6; }
  Bits float_value(DType type) {
    if (tags_ & (kFast | kStandard))
      return from_double(type, random_.chance(50) ? random_.pick({1.0, 2.0, -3.0, 0.5})
                                                  : 0.25 + static_cast<double>(random_.below(1000)) / 64);
    static constexpr double kInf = std::numeric_limits<double>::infinity();
    const double special[] = {0,     -0.0,         1,     -1,   0.5,   -0.5, 1.5,   2.5, 3,      kInf,
                              -kInf, std::nan(""), 65504, 3e38, 1e-45, 6e-8, 1e300, 0.1, 4096.5, -1e10};
    if (random_.chance(60)) {
      const double v = random_.pick(special);
      return from_double(type, is_out_of_domain(v) ? 1.25 : v);
    }
    if (random_.chance(50)) return from_double(type, static_cast<double>(random_.between(-2000, 2000)) / 37);
    if (tags_ & kApproximate)
      return from_double(type, std::ldexp(1 + static_cast<double>(random_.below(1000)) / 1000,
                                          static_cast<int>(random_.between(-40, 20))));
    const Bits any = random_.bits();
    return byte_size(type) == 8 ? any : any & ((Bits{1} << (8 * byte_size(type))) - 1);
  }

  bool equal(Bits a, Bits b) const {
    if (a == b) return true;
    if (!is_float(before_->dtype)) return false;
    const double x = to_double(before_->dtype, a), y = to_double(after_->dtype, b);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (!(tags_ & (kFast | kStandard | kApproximate))) return false;
    return x == y || std::fabs(x - y) <= kRelative * std::max(std::fabs(x), std::fabs(y)) || std::fabs(x - y) < 1e-37;
  }

  std::string number(Ref x, Bits bits) const {
    return is_float(x->dtype) ? std::to_string(to_double(x->dtype, bits)) : std::to_string(to_int(x->dtype, bits));
  }
  std::string text(int64_t i, Bits a, Bits b) {
    std::string s = node_text(before_, 8) + " -> " + node_text(after_, 8) + " with";
    for (Ref leaf : leaves_) s += " " + node_text(leaf, 2) + "=" + number(leaf, eval_.at(leaf, i));
    return s + ": " + number(before_, a) + " -> " + number(after_, b);
  }

  Ref before_, after_;
  Random& random_;
  unsigned tags_;
  ArrayEval eval_;
  std::vector<Ref> leaves_;
};
} // namespace

RuleCheckResult check_rule(const Rule& rule, PassContext& context, const RuleCheckOptions& options) {
  RuleCheckResult result;
  Random random(options.seed);
  Instances instances(rule, random);
  const Numerics numerics = std::exchange(context.numerics, Numerics::Fast);
  const PatternMatcher matcher(rule.table, {rule});
  while (result.fired < options.wanted && result.attempts < options.max_attempts && result.counterexample.empty()) {
    ++result.attempts;
    const Ref left = instances.next();
    const Ref right = left ? matcher.rewrite(left, context) : Ref();
    if (!right) continue;
    ++result.fired;
    if (right->dtype != left->dtype)
      result.counterexample = node_text(left, 8) + " -> " + node_text(right, 8) + ": the dtype changes";
    else
      result.counterexample = Comparison(left, right, random, rule.tags).run();
  }
  context.numerics = numerics;
  return result;
}

} // namespace tgc
