// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "frontend/tensor.h"

namespace tgc {

/// An import that has started again this often does not end. A chain of windows takes one round for each.
constexpr int kMaxDimRounds = 128;

/// The symbolic dims of one model, and what its graph has been found to demand of them. Builders throw
/// tensor::Undecided; `assume` turns each such condition into fewer or narrower dims, under which the importer starts
/// again; what was assumed becomes checks that are made at run time. Expressions live in a Context of their own, so
/// that a table outlives the Module of one attempt.
class DimTable {
public:
  /// `bounds`: by name, as the user gave them.
  explicit DimTable(std::map<std::string, DimBounds> bounds);

  /// States the bounds of a dim (by the model); the user's win.
  void declare(const std::string& name, DimBounds bounds);
  /// The extent of dim `axis` of the input in `slot` (or of no input: -1), which the model calls `name`: in `ctx`, a
  /// Var, a number or an expression over other dims. errors: E209 for bounds that are none.
  Ref input_dim(Context& ctx, const std::string& name, int64_t slot, int64_t axis);
  /// Names that were asked for, sorted.
  std::vector<std::string> names() const;

  enum class Outcome : uint8_t {
    Assumed,    ///< the table has changed
    Known,      ///< follows from it
    Impossible, ///< false within the bounds
    Unsolved,   ///< no change of one dim implies it
  };
  /// `why` is the text of the check: which node demands it.
  Outcome assume(const tensor::Undecided& condition, const std::string& why);

  /// One `check` per assumption, in `ctx`.
  std::vector<Ref> checks(Context& ctx) const;

private:
  struct Entry {
    DimBounds declared, bounds; ///< bounds: narrowed by what was assumed
    Ref value;                  ///< null: a free variable
    std::string why;            ///< of value
    std::vector<int64_t> sites; ///< (slot, axis) of the inputs' dims called so
    bool is_part = false;       ///< no name of the model's: what another dim is a multiple of
  };
  struct Limit {
    std::string name;
    bool at_least;
    int64_t value;
    std::string why;
  };

  Entry& entry(const std::string& name);
  Ref variable(Context& ctx, const std::string& name, const DimBounds& bounds) const;
  Ref self(const std::string& name) const;
  Ref current(const std::string& name) const;
  Ref current(Ref expr) const;
  std::vector<std::string> free_dims(Ref expr) const;
  Ref replaced(Ref expr, const std::string& name, Ref value) const;
  bool define(const std::string& name, Ref value, const std::string& why);
  bool narrow(const std::string& name, DimBounds bounds, const std::string& why);
  Outcome equal(Ref difference, const std::string& why);
  Outcome eliminate(Ref difference, const std::string& why);
  Outcome make_multiple(Ref difference, const std::string& name, const std::string& why);
  Outcome drop_clamps(Ref difference, const std::string& name, const std::string& why);
  Outcome at_least_zero(Ref margin, const std::string& why);

  mutable Context ctx_;
  std::map<std::string, DimBounds> given_;
  std::map<std::string, Entry> entries_;
  std::vector<std::string> order_; ///< names by first use, which is the order of inputs
  std::vector<Limit> limits_;
};

} // namespace tgc
