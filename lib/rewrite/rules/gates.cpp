// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads and stores whose gate is a constant: the gate goes, or the access does. A store that never happens is removed
// by whoever owns its sink, not here: it has no value to stand for it.
#include "rewrite/rules/tables.h"

namespace tgc {
namespace {
constexpr Cap P{0}, I{1}, V{2}, A{3};

Ref with_attrs_of(Match& m, std::initializer_list<Ref> src) {
  return m.graph().make(m.root()->op, m.root()->dtype, src, *m.root()->attrs);
}
} // namespace

const PatternMatcher& gates() {
  static const PatternMatcher rules(
      "gates",
      {
          {"load-always", op(Ops::Load, {P, I, 1, any()}), [](Match& m) { return with_attrs_of(m, {m[P], m[I]}); }},
          {"load-always-3", op(Ops::Load, {P, I, 1}), [](Match& m) { return with_attrs_of(m, {m[P], m[I]}); }},
          {"load-never", op(Ops::Load, {any(), any(), 0, A}), [](Match& m) { return m[A]; }},
          {"store-always", op(Ops::Store, {P, I, V, 1}), [](Match& m) { return with_attrs_of(m, {m[P], m[I], m[V]}); }},
      },
      kSameValue);
  return rules;
}

} // namespace tgc
