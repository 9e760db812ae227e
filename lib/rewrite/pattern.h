// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "rewrite/context.h"
#include "uop/uop.h"

namespace tgc {

using OpMask = std::bitset<kNumOps>;
using DTypeMask = std::bitset<kNumDTypes>;

/// A capture: names the node that a part of a pattern matched. The same capture twice demands the same node.
struct Cap {
  uint8_t index;
};
inline constexpr int kMaxCaptures = 8;

/// A pattern: a runtime value built with operators, e.g. `Pat(X) + 0`, `where(C, X, X)`, `(X / cst(C1)) / cst(C2)`.
/// Commutative ops match in both orders unless `ordered()`. A number matches a scalar Const of exactly that value
/// (0 does not match -0.0). Patterns can be printed.
class Pat {
public:
  Pat(Cap capture);    ///< anything, captured
  Pat(double literal); ///< a Const of this value, of any dtype
  /// A node whose op is in `ops` with exactly these sources (any number of any sources when `any_sources`).
  Pat(OpMask ops, std::vector<Pat> sources, bool any_sources = false);

  Pat as(Cap capture) const;                    ///< also captures the node itself
  Pat ordered() const;                          ///< sources only in the order written
  Pat where_dtype(DTypeMask allowed) const;     ///< only these dtypes
  Pat with(Attr attr, std::string value) const; ///< only nodes whose string attribute has this value

  struct Node {
    OpMask ops;
    DTypeMask dtypes;
    int capture = -1;
    std::vector<int> src; ///< indices into the pattern's nodes
    bool any_sources = true, commutative = false, literal = false;
    double value = 0;
    int attr = -1;
    std::string attr_value;
  };
  const std::vector<Node>& nodes() const { return nodes_; } ///< sources first; the root is last

private:
  const Node& root() const { return nodes_.back(); }
  std::vector<Node> nodes_;
};
std::string to_string(const Pat& pattern);

Pat any();      ///< any node
Pat cst(Cap c); ///< any Const, captured
Pat op(Ops o, std::vector<Pat> sources);
Pat op(std::initializer_list<Ops> any_of, std::vector<Pat> sources);
Pat op_any_sources(std::initializer_list<Ops> any_of);

DTypeMask dtype_mask(bool (*predicate)(DType));
Pat floats(const Pat& p);
Pat ints(const Pat& p); ///< signed, unsigned and index
Pat index(const Pat& p);
Pat bools(const Pat& p);
Pat of_dtype(DType t, const Pat& p);

Pat operator+(const Pat& a, const Pat& b);
Pat operator-(const Pat& a, const Pat& b);
Pat operator*(const Pat& a, const Pat& b);
Pat operator/(const Pat& a, const Pat& b);
Pat operator%(const Pat& a, const Pat& b);
Pat operator&(const Pat& a, const Pat& b);
Pat operator|(const Pat& a, const Pat& b);
Pat operator^(const Pat& a, const Pat& b);
Pat operator<(const Pat& a, const Pat& b);
Pat operator<=(const Pat& a, const Pat& b);
Pat operator-(const Pat& a);
Pat operator~(const Pat& a);
Pat eq(const Pat& a, const Pat& b);
Pat ne(const Pat& a, const Pat& b);
Pat max(const Pat& a, const Pat& b);
Pat min(const Pat& a, const Pat& b);
Pat floordiv(const Pat& a, const Pat& b);
Pat floormod(const Pat& a, const Pat& b);
Pat where(const Pat& c, const Pat& a, const Pat& b);
Pat cast(const Pat& a);

struct Rule;
/// The nodes bound by a successful match, handed to the rule's action.
class Match {
public:
  Ref operator[](Cap c) const { return captures_[c.index]; }
  Ref root() const { return root_; }
  /// The value of the integer, bool or index Const bound to `c`.
  int64_t i(Cap c) const { return *const_int(captures_[c.index]); }
  PassContext& ctx() const { return *context_; }
  Context& graph() const { return *root_->ctx; }
  template <typename T> T& state() const { return context_->state<T>(); }

private:
  friend class PatternMatcher;
  std::array<Ref, kMaxCaptures> captures_{};
  Ref root_;
  PassContext* context_ = nullptr;
};

/// The replacement of m.root(), or null (or m.root() itself) for "does not apply". Pure but for its pass's state.
using Action = Ref (*)(Match& m);

enum RuleTag : unsigned {
  kFast = 1,        ///< only under Numerics::Fast
  kStandard = 2,    ///< not under Numerics::Strict
  kSameValue = 4,   ///< the replacement must keep dtype and shape; one that does not is "does not apply"
  kApproximate = 8, ///< the replacement is close, not equal; its accuracy has a test of its own
};
struct Rule {
  std::string name;
  Pat pattern;
  Action action;
  unsigned tags = 0;
  std::string table = {}; ///< set by the PatternMatcher that it is first put into
  std::string full_name() const { return table + "/" + name; }
};

/// An ordered list of rules, tried in order; the first that yields another node wins. Indexed by root op; a node whose
/// sources lack an op that a pattern needs is rejected by one mask test; no allocation per attempt.
class PatternMatcher {
public:
  /// `tags` are added to every rule's. errors: internal error on two rules of one name or too many captures.
  PatternMatcher(std::string name, std::vector<Rule> rules, unsigned tags = 0);
  /// The rules of `a`, then those of `b`; they keep the name of their own table.
  friend PatternMatcher operator+(const PatternMatcher& a, const PatternMatcher& b);

  const std::string& name() const { return name_; }
  const std::vector<Rule>& rules() const { return rules_; }

  /// What one caller keeps over many `apply`s; made by `session`.
  struct Session {
    PassContext* context;
    std::vector<bool> off; ///< by rule: disabled, or against the numeric policy
    RuleCount* counts = nullptr;
    int fired = -1; ///< the rule that made the last replacement
  };
  Session session(PassContext& context) const;
  /// The replacement of `node` by the first rule that applies, or null.
  Ref apply(Ref node, Session& session) const;
  /// Some rule matches `node` and its action does not return null: the matcher as a predicate (specs).
  bool accepts(Ref node, Session& session) const;
  /// `apply` once, for tests and tools.
  Ref rewrite(Ref node, PassContext& context) const;

private:
  struct Step;
  struct Program {
    OpMask needs;                              ///< ops that the sources of a matching node surely hold
    std::vector<std::pair<int, int>> variants; ///< [begin, end) in steps_, one per order of commutative sources
  };
  struct Step {
    OpMask ops;
    DTypeMask dtypes;
    int8_t parent = -1, source = 0; ///< the node is source `source` of step `parent`'s
    int8_t capture = -1, num_src = -1, attr = -1;
    bool bound = false, literal = false; ///< the capture was bound by an earlier step
    double value = 0;
    std::string attr_value;
  };
  void compile(const Rule& rule);
  void add_variant(const Pat& pattern, unsigned swaps);
  template <typename Accept> Ref first(Ref node, Session& session, Accept accept) const;
  bool matches(std::pair<int, int> variant, Ref node, Match& m) const;
  static bool matches(const Step& step, Ref node);

  std::string name_;
  std::vector<Rule> rules_;
  std::vector<Program> programs_; ///< by rule
  std::vector<Step> steps_;
  std::array<std::vector<uint16_t>, kNumOps> by_op_;
};

} // namespace tgc
