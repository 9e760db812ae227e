// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tgc {

/// An integer times a product of Index nodes; no atoms: a constant.
struct Term {
  std::vector<Ref> atoms; ///< sorted by structural_less; none of them a sum, a difference or a Const
  int64_t coefficient = 1;
  friend bool operator==(const Term&, const Term&) = default;
};

/// An Index expression as a canonical sum of terms: highest degree first, then by structure, the constant last; no two
/// terms of equal atoms, no zero coefficient. The same order as that of dims, so that equal sums are equal nodes.
class Poly {
public:
  Poly() = default;
  explicit Poly(int64_t constant);
  explicit Poly(const Term& term);

  /// The polynomial of an Index node through its sums, differences and products; anything else, and a node whose
  /// bounds leave one value, is an atom or a constant. Nothing when it is too large or a coefficient leaves 64 bits.
  static std::optional<Poly> of(Ref x);
  Ref to_ref(Context& ctx) const;

  const std::vector<Term>& terms() const { return terms_; }
  int64_t constant() const; ///< the constant term, 0 if none
  std::optional<int64_t> as_constant() const;
  bool empty() const { return terms_.empty(); } ///< is zero

  /// In place; false (and an unspecified value) when a coefficient leaves 64 bits.
  bool add(const Term& term);
  bool add(const Poly& other, int64_t factor = 1);

  /// Inclusive bounds by interval arithmetic, saturating.
  IntRange bounds() const;
  /// Provably >= 0 for all values of its atoms: by `bounds` after ranges and remainders with symbolic extents, then
  /// quotients by a constant, have been replaced by whichever of their ends is worse.
  bool is_non_negative() const;

private:
  std::vector<Term> terms_;
};

std::optional<Poly> multiply(const Poly& a, const Poly& b);
std::optional<Poly> subtract(const Poly& a, const Poly& b);
std::optional<Term> multiply(const Term& a, const Term& b);
/// a / b if b divides a as terms (atoms and coefficient).
std::optional<Term> divide(const Term& a, const Term& b);
/// The largest term that divides both; coefficient positive.
Term gcd(const Term& a, const Term& b);

/// Floor division and remainder of integers, b > 0.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

} // namespace tgc
