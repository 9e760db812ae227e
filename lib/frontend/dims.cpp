// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: exporters name dims freely. Two names may have to be equal (the batch of two inputs that are added), a dim
// may have to be large enough for a window, or a multiple of 32 for an encoder and its decoder to meet. Which, only the
// graph knows, and shapes are inferred from dims.
// Idea: one equation or inequality at a time. An equation eliminates a dim: the latest in input order that it gives as
// an expression over the others; failing that, a single dim becomes a multiple of a new one, or one dim gets bounds
// under which a clamp (min or max) has no effect. An inequality in one dim narrows its bounds. The importer then starts
// again with fewer or narrower dims, so that everything after it sees plain dims only. Deliberately not handled: a
// system of equations solved at once, inequalities between dims: an error with a remedy. A broadcast of n against m is
// taken as n = m; where one of them is 1 at run time the check says so.
#include "frontend/dims.h"

#include <algorithm>
#include <set>

namespace tgc {
namespace {

using tensor::fail;

constexpr int64_t kLargestMultiple = 256; // of a dim: strides of deep encoders multiply to 64

/// One term of a dim's canonical sum.
struct Term {
  std::vector<Ref> atoms;
  int64_t coefficient = 1;
};

void factors(Ref product, Term& term) {
  if (product->is(Ops::Mul)) {
    factors(product->src[0], term);
    factors(product->src[1], term);
  } else if (std::optional<int64_t> c = dim_int(product)) {
    term.coefficient *= *c;
  } else {
    term.atoms.push_back(product);
  }
}

std::vector<Term> terms(Ref sum) {
  std::vector<Term> out;
  for (; sum->is(Ops::Add); sum = sum->src[0]) factors(sum->src[1], out.emplace_back());
  factors(sum, out.emplace_back());
  return out;
}

bool contains(Ref expr, Ref var) {
  const std::vector<Ref> nodes = toposort(expr);
  return std::find(nodes.begin(), nodes.end(), var) != nodes.end();
}

/// How a value moves when the one dim it depends on grows.
enum class Trend : uint8_t { Constant, Up, Down, Unknown };

Trend opposite(Trend t) { return t == Trend::Up ? Trend::Down : t == Trend::Down ? Trend::Up : t; }

Trend joined(Trend a, Trend b) {
  if (a == b || b == Trend::Constant) return a;
  return a == Trend::Constant ? b : Trend::Unknown;
}

Trend trend(Ref expr) {
  std::map<const UOp*, Trend> of;
  for (Ref x : toposort(expr)) {
    const auto source = [&](size_t i) { return of.at(x->src[i].get()); };
    Trend t = Trend::Unknown;
    if (x->is(Ops::Const))
      t = Trend::Constant;
    else if (x->is(Ops::Var))
      t = Trend::Up;
    else if (x->is(Ops::Add) || x->is(Ops::Min) || x->is(Ops::Max))
      t = joined(source(0), source(1));
    else if (x->is(Ops::Sub))
      t = joined(source(0), opposite(source(1)));
    else if (x->is(Ops::FloorDiv) && x->src[1]->lo > 0 && source(1) == Trend::Constant)
      t = source(0);
    else if (x->is(Ops::Mul) && dim_int(x->src[1]))
      t = *dim_int(x->src[1]) >= 0 ? source(0) : opposite(source(0));
    else if (x->is(Ops::Mul) && x->src[0]->lo >= 0 && x->src[1]->lo >= 0)
      t = joined(source(0), source(1));
    of[x.get()] = t;
  }
  return of.at(expr.get());
}

/// `expr` with what `value_of` gives for each Var; canonical again.
template <typename ValueOf> Ref rebuilt(Ref expr, ValueOf value_of) {
  std::map<const UOp*, Ref> done;
  for (Ref x : toposort(expr)) {
    const auto source = [&](size_t i) { return done.at(x->src[i].get()); };
    Ref& out = done[x.get()];
    switch (x->op) {
    case Ops::Var: out = value_of(x); break;
    case Ops::Add: out = dim_add(source(0), source(1)); break;
    case Ops::Sub: out = dim_sub(source(0), source(1)); break;
    case Ops::Mul: out = dim_mul(source(0), source(1)); break;
    case Ops::FloorDiv: out = dim_floordiv(source(0), source(1)); break;
    case Ops::Min: out = tensor::dim_min(source(0), source(1)); break;
    case Ops::Max: out = tensor::dim_max(source(0), source(1)); break;
    default: {
      std::vector<Ref> src;
      for (size_t i = 0; i < x->src.size(); ++i) src.push_back(source(i));
      out = x->ctx->with_src(x, src);
    }
    }
  }
  return done.at(expr.get());
}

/// Values around which a clamp of `expr` (a min or max with a number) changes sides, for a dim that it clamps plus or
/// minus a number.
std::set<int64_t> clamp_bounds(Ref expr, Ref var) {
  std::set<int64_t> out;
  for (Ref x : toposort(expr))
    if (x->is(Ops::Min) || x->is(Ops::Max)) {
      const Ref difference = dim_sub(x->src[0], x->src[1]);
      if (std::optional<int64_t> c = dim_int(dim_sub(difference, var))) out.insert({-*c, -*c + 1}); // var + c
      if (std::optional<int64_t> c = dim_int(dim_add(difference, var))) out.insert({*c, *c + 1});   // c - var
    }
  return out;
}

} // namespace

// ---- names ----------------------------------------------------------------------------------------------------------

DimTable::DimTable(std::map<std::string, DimBounds> bounds) : given_(std::move(bounds)) {}

void DimTable::declare(const std::string& name, DimBounds bounds) { given_.try_emplace(name, bounds); }

DimTable::Entry& DimTable::entry(const std::string& name) {
  auto [at, added] = entries_.try_emplace(name);
  if (!added) return at->second;
  order_.push_back(name);
  auto given = given_.find(name);
  if (given != given_.end()) at->second.declared = at->second.bounds = given->second;
  return at->second;
}

Ref DimTable::input_dim(Context& ctx, const std::string& name, int64_t slot, int64_t axis) {
  Entry& e = entry(name);
  if (e.declared.lo < 1 || e.declared.hi < e.declared.lo)
    fail(ErrorCode::E209,
         "dim " + name + " cannot be " + std::to_string(e.declared.lo) + ".." + std::to_string(e.declared.hi),
         "bounds are 1 <= LO <= HI");
  bool listed = false;
  for (size_t i = 0; i < e.sites.size(); i += 2) listed |= e.sites[i] == slot && e.sites[i + 1] == axis;
  if (!listed && slot >= 0) e.sites.insert(e.sites.end(), {slot, axis});
  return import(ctx, current(name));
}

std::vector<std::string> DimTable::names() const {
  std::vector<std::string> out;
  for (const auto& [name, e] : entries_)
    if (!e.is_part) out.push_back(name);
  return out;
}

// ---- expressions ----------------------------------------------------------------------------------------------------

Ref DimTable::variable(Context& ctx, const std::string& name, const DimBounds& bounds) const {
  return bounds.lo == bounds.hi ? ctx.index(bounds.lo) : ctx.var(name, bounds.lo, bounds.hi);
}

/// The dim's value under all that is assumed.
Ref DimTable::current(const std::string& name) const {
  const Entry& e = entries_.at(name);
  return e.value ? current(e.value) : variable(ctx_, name, e.bounds);
}

Ref DimTable::current(Ref expr) const {
  return rebuilt(import(ctx_, expr), [this](Ref var) { return current(var->s(Attr::Name)); });
}

Ref DimTable::replaced(Ref expr, const std::string& name, Ref value) const {
  return rebuilt(expr, [&](Ref var) { return var->s(Attr::Name) == name ? value : var; });
}

/// Names of the Vars of `expr`, in input order.
std::vector<std::string> DimTable::free_dims(Ref expr) const {
  std::set<std::string> used;
  for (Ref x : toposort(expr))
    if (x->is(Ops::Var)) used.insert(x->s(Attr::Name));
  std::vector<std::string> out;
  for (const std::string& name : order_)
    if (used.contains(name)) out.push_back(name);
  return out;
}

// ---- assumptions ----------------------------------------------------------------------------------------------------

/// Whether the bounds allow it.
bool DimTable::narrow(const std::string& name, DimBounds bounds, const std::string& why) {
  Entry& e = entries_.at(name);
  const DimBounds both{std::max(e.bounds.lo, bounds.lo), std::min(e.bounds.hi, bounds.hi)};
  if (both.lo > both.hi) return false;
  if (both.lo > e.bounds.lo) limits_.push_back({name, true, both.lo, why});
  if (both.hi < e.bounds.hi) limits_.push_back({name, false, both.hi, why});
  e.bounds = both;
  return true;
}

bool DimTable::define(const std::string& name, Ref value, const std::string& why) {
  const DimBounds bounds = entries_.at(name).bounds;
  if (value->hi < bounds.lo || value->lo > bounds.hi) return false;
  if (value->is(Ops::Var)) { // both have the bounds of both, which the check of their equality implies
    DimBounds& other = entries_.at(value->s(Attr::Name)).bounds;
    other = {std::max(other.lo, bounds.lo), std::min(other.hi, bounds.hi)};
  }
  Entry& e = entries_.at(name);
  e.value = value;
  e.why = why;
  return true;
}

DimTable::Outcome DimTable::assume(const tensor::Undecided& condition, const std::string& why) {
  if (condition.relation == tensor::Undecided::Relation::Equal)
    return equal(dim_sub(current(condition.left), current(condition.right)), why);
  return at_least_zero(dim_sub(current(condition.right), current(condition.left)), why);
}

DimTable::Outcome DimTable::equal(Ref difference, const std::string& why) {
  if (dim_int(difference) == 0) return Outcome::Known;
  if (difference->lo > 0 || difference->hi < 0) return Outcome::Impossible;
  Outcome outcome = eliminate(difference, why);
  const std::vector<std::string> dims = free_dims(difference);
  if (outcome == Outcome::Unsolved && dims.size() == 1) outcome = make_multiple(difference, dims[0], why);
  for (size_t i = 0; i < dims.size() && outcome == Outcome::Unsolved; ++i)
    outcome = drop_clamps(difference, dims[i], why);
  return outcome;
}

/// c*v + rest = 0, v nowhere else: v = rest/-c, where that is exact and at least 1.
DimTable::Outcome DimTable::eliminate(Ref difference, const std::string& why) {
  const std::vector<Term> sum = terms(difference);
  std::vector<std::string> dims = free_dims(difference);
  for (auto name = dims.rbegin(); name != dims.rend(); ++name) {
    const Ref var = current(*name);
    int64_t coefficient = 0, mentions = 0;
    for (const Term& t : sum) {
      if (t.atoms.size() == 1 && t.atoms[0] == var) coefficient = t.coefficient;
      mentions += std::any_of(t.atoms.begin(), t.atoms.end(), [&](Ref a) { return contains(a, var); });
    }
    if (coefficient == 0 || mentions != 1) continue;
    const Ref rest = dim_sub(dim_mul(var, ctx_.index(coefficient)), difference), c = ctx_.index(coefficient);
    const Ref value = dim_floordiv(rest, c);
    if (!dims_equal(dim_mul(value, c), rest)) {
      if (dim_int(rest)) return Outcome::Impossible; // 2*n = 7
      continue;
    }
    if (value->hi < 1 || (dim_int(value) && value->lo < 1)) return Outcome::Impossible;
    if (value->lo < 1) continue; // a dim that could be negative
    return define(*name, value, why) ? Outcome::Assumed : Outcome::Impossible;
  }
  return Outcome::Unsolved;
}

DimTable::Outcome DimTable::make_multiple(Ref difference, const std::string& name, const std::string& why) {
  const DimBounds bounds = entries_.at(name).bounds;
  for (int64_t m = 2; m <= std::min(kLargestMultiple, bounds.hi); ++m) {
    const DimBounds part{(bounds.lo + m - 1) / m, bounds.hi / m};
    if (part.lo > part.hi) continue;
    std::string part_name = name + "/" + std::to_string(m);
    while (entries_.contains(part_name)) part_name += "'";
    const Ref multiple = dim_mul(variable(ctx_, part_name, part), ctx_.index(m));
    if (dim_int(replaced(difference, name, multiple)) != 0) continue;
    Entry& e = entry(part_name);
    e.declared = e.bounds = part;
    e.is_part = true;
    return define(name, multiple, why) ? Outcome::Assumed : Outcome::Impossible;
  }
  return Outcome::Unsolved;
}

DimTable::Outcome DimTable::drop_clamps(Ref difference, const std::string& name, const std::string& why) {
  const DimBounds bounds = entries_.at(name).bounds;
  const size_t limits = limits_.size();
  for (int64_t c : clamp_bounds(difference, current(name)))
    for (DimBounds part : {DimBounds{bounds.lo, c}, DimBounds{c, bounds.hi}}) {
      if (part.lo > part.hi || !narrow(name, part, why)) continue;
      const Ref rest = current(difference);
      if (dim_int(rest) == 0 || eliminate(rest, why) == Outcome::Assumed) return Outcome::Assumed;
      entries_.at(name).bounds = bounds;
      limits_.resize(limits);
    }
  return Outcome::Unsolved;
}

/// A margin of one dim that moves one way is at least 0 from some value on, or up to one.
DimTable::Outcome DimTable::at_least_zero(Ref margin, const std::string& why) {
  if (margin->lo >= 0) return Outcome::Known;
  if (margin->hi < 0) return Outcome::Impossible;
  const std::vector<std::string> dims = free_dims(margin);
  const Trend direction = trend(margin);
  if (dims.size() != 1 || (direction != Trend::Up && direction != Trend::Down)) return Outcome::Unsolved;
  DimBounds bounds = entries_.at(dims[0]).bounds;
  const auto holds = [&](int64_t value) {
    return dim_int(replaced(margin, dims[0], ctx_.index(value))).value_or(-1) >= 0;
  };
  const bool up = direction == Trend::Up;
  if (!holds(up ? bounds.hi : bounds.lo)) return Outcome::Impossible;
  int64_t good = up ? bounds.hi : bounds.lo, bad = up ? bounds.lo - 1 : bounds.hi + 1;
  while (std::max(good, bad) - std::min(good, bad) > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  (up ? bounds.lo : bounds.hi) = good;
  const DimBounds before = entries_.at(dims[0]).bounds;
  if (bounds.lo == before.lo && bounds.hi == before.hi) return Outcome::Unsolved; // true, but its bounds do not show it
  return narrow(dims[0], bounds, why) ? Outcome::Assumed : Outcome::Impossible;
}

// ---- checks ---------------------------------------------------------------------------------------------------------

/// The dim as callers know it, also when its value is that of others.
Ref DimTable::self(const std::string& name) const {
  const Entry& e = entries_.at(name);
  const bool is_free = !e.value && e.bounds.lo < e.bounds.hi;
  return is_free ? current(name) : ctx_.var(name, e.declared.lo, e.declared.hi);
}

std::vector<Ref> DimTable::checks(Context& ctx) const {
  std::vector<Ref> out;
  const auto add = [&](Ops relation, Ref left, Ref right, const std::string& why, std::vector<int64_t> sites) {
    Ref condition = ctx_.make(relation, DType::Bool, {left, right});
    Attrs attrs = {{Attr::Why, why}};
    if (!sites.empty()) attrs.push_back({Attr::Sites, std::move(sites)});
    out.push_back(import(ctx, ctx_.make(Ops::Check, DType::Void, {condition}, std::move(attrs))));
  };
  for (const std::string& name : order_) {
    const Entry& e = entries_.at(name);
    if (e.declared.lo == e.declared.hi) continue; // pinned: a number from the start
    std::string why = e.why;
    for (const Limit& limit : limits_)
      if (why.empty() && limit.name == name) why = limit.why;
    if (!(self(name) == current(name))) add(Ops::Eq, self(name), current(name), why, e.sites);
  }
  for (const Limit& limit : limits_) {
    const Ref bound = ctx_.index(limit.value), dim = self(limit.name);
    add(Ops::Le, limit.at_least ? bound : dim, limit.at_least ? dim : bound, limit.why, {});
  }
  return out;
}

} // namespace tgc
