// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem: neighbouring rows of a tile of a convolution read the same elements, but by other arithmetic: row 1 under
// tap 0 stands where row 0 stands under tap 1. Compilers see that late, when addresses are folded, and no more once a
// store stands between the loads. Idea: number values so that equal ones have one number (Alpern, Wegman and Zadeck,
// 1988), with a sum of scalar positions numbered by its terms and its constant. Loads of equal numbers are one. Only
// loads are shared: the compiler finds the rest. Not handled: buffers that are also stored to, loads across loops,
// where a value kept would cost a register all along.
#include "render/row_share.h"

#include <map>
#include <tuple>

namespace tgc {
namespace {

using Number = int32_t;
/// A sum of numbered terms, each times a factor, and a constant; all modulo 2^64, as the code computes it.
struct Sum {
  std::map<Number, uint64_t> terms;
  uint64_t constant = 0;
  void add(const Sum& other, uint64_t times) {
    constant += other.constant * times;
    for (const auto& [term, factor] : other.terms)
      if ((terms[term] += factor * times) == 0) terms.erase(term);
  }
  friend bool operator<(const Sum& a, const Sum& b) {
    return std::tie(a.constant, a.terms) < std::tie(b.constant, b.terms);
  }
};
using Key = std::tuple<RowKind, Ops, DType, int, int64_t, int, uint64_t, std::vector<Number>>;

class Sharing {
public:
  explicit Sharing(RowCode& code) : code_(code), number_(code.insts.size()), by_(code.insts.size()) {}

  void run() {
    bool found = false;
    for (size_t i = 0; i < code_.insts.size(); ++i) {
      RowInst& inst = code_.insts[i];
      for (RowId& arg : inst.args)
        if (arg >= 0) arg = by_[static_cast<size_t>(arg)];
      by_[i] = static_cast<RowId>(i);
      number_[i] = number(inst);
      if (inst.kind == RowKind::Loop || inst.kind == RowKind::EndLoop) loaded_.clear();
      if (inst.kind != RowKind::Load || code_.buffers[static_cast<size_t>(inst.imm)].stored) continue;
      const auto [it, is_new] = loaded_.try_emplace(number_[i], static_cast<RowId>(i));
      by_[i] = it->second;
      found |= !is_new;
    }
    if (found) drop();
  }

private:
  Number fresh() { return next_++; }
  Number number_of(RowId id) const { return id < 0 ? id : number_[static_cast<size_t>(id)]; }
  const Sum& sum_of(RowId id) { return sums_.try_emplace(number_of(id), Sum{{{number_of(id), 1}}, 0}).first->second; }

  Number number(const RowInst& inst) {
    switch (inst.kind) {
    case RowKind::Loop:
    case RowKind::EndLoop:
    case RowKind::RegGet:
    case RowKind::RegSet:
    case RowKind::Store:
    case RowKind::Base: return fresh();
    case RowKind::Load:
      if (code_.buffers[static_cast<size_t>(inst.imm)].stored) return fresh();
      break;
    default: break;
    }
    if (inst.dtype == DType::Index && inst.lanes == 1) {
      Sum sum;
      if (is_sum(inst, sum)) return numbered(sum);
    }
    std::vector<Number> args;
    for (const RowId arg : inst.args) args.push_back(number_of(arg));
    const auto [it, is_new] = numbers_.try_emplace(
        Key{inst.kind, inst.op, inst.dtype, inst.lanes, inst.imm, inst.step, inst.bits, std::move(args)}, next_);
    if (is_new) fresh();
    return it->second;
  }
  /// Is it a sum, a difference or a multiple of scalars?
  bool is_sum(const RowInst& inst, Sum& sum) {
    if (inst.kind == RowKind::Const) {
      sum.constant = inst.bits;
      return true;
    }
    if (inst.kind != RowKind::Alu) return false;
    if (inst.op == Ops::Add || inst.op == Ops::Sub) {
      sum = sum_of(inst.args[0]);
      sum.add(sum_of(inst.args[1]), inst.op == Ops::Add ? 1 : ~uint64_t{0});
      return true;
    }
    if (inst.op != Ops::Mul) return false;
    const Sum a = sum_of(inst.args[0]), &b = sum_of(inst.args[1]);
    if (!a.terms.empty() && !b.terms.empty()) return false;
    sum.add(a.terms.empty() ? b : a, a.terms.empty() ? a.constant : b.constant);
    return true;
  }
  Number numbered(const Sum& sum) {
    if (sum.constant == 0 && sum.terms.size() == 1 && sum.terms.begin()->second == 1) return sum.terms.begin()->first;
    const auto [it, is_new] = by_sum_.try_emplace(sum, next_);
    if (is_new) sums_.emplace(fresh(), sum);
    return it->second;
  }

  /// Leaves out the loads that another one stands for, and what nobody needs any more.
  void drop() {
    std::vector<bool> needed(code_.insts.size(), false);
    for (size_t i = code_.insts.size(); i-- > 0;) {
      const RowInst& inst = code_.insts[i];
      const bool acts = inst.kind == RowKind::Store || inst.kind == RowKind::RegSet || inst.kind == RowKind::Loop ||
                        inst.kind == RowKind::EndLoop || inst.kind == RowKind::Base ||
                        (inst.kind == RowKind::Prefetch && needed[i - 1]); // it stands behind its load
      if (acts) needed[i] = true;
      for (const RowId arg : inst.args)
        if (needed[i] && arg >= 0) needed[static_cast<size_t>(arg)] = true;
    }
    std::vector<RowId> moved(code_.insts.size(), -1);
    std::vector<RowInst> insts;
    for (size_t i = 0; i < code_.insts.size(); ++i) {
      if (!needed[i]) continue;
      moved[i] = static_cast<RowId>(insts.size());
      RowInst& inst = insts.emplace_back(std::move(code_.insts[i]));
      for (RowId& arg : inst.args)
        if (arg >= 0) arg = moved[static_cast<size_t>(arg)];
    }
    code_.insts = std::move(insts);
  }

  RowCode& code_;
  Number next_ = 0;
  std::vector<Number> number_; ///< by instruction
  std::vector<RowId> by_;      ///< by instruction: the one that stands for it
  std::map<Key, Number> numbers_;
  std::map<Number, Sum> sums_; ///< what is not here is a term of its own
  std::map<Sum, Number> by_sum_;
  std::map<Number, RowId> loaded_; ///< since the last loop began or ended
};

} // namespace

void share_loads(RowCode& code) { Sharing(code).run(); }

} // namespace tgc
