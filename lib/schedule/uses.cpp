// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schedule/uses.h"

#include <algorithm>

#include "rewrite/lower/expand.h"

namespace tgc {

bool is_contraction(Ref node) {
  return node->is(Ops::Reduce) && node->s(Attr::Kind) == "add" && node->src[0]->is(Ops::Mul) &&
         !(node->src[0]->src[0] == node->src[0]->src[1]);
}

Refs data_sources(Ref node) { return node->cls() == OpClass::Movement ? node->src.first(1) : node->src; }

std::vector<Ref> home_loops(const Use& use) {
  size_t count = 0;
  for (size_t i = 0; i < use.ambient.size(); ++i) {
    bool needed = use.at.gate && depends(use.at.gate, use.ambient[i]);
    for (Ref index : use.at.index) needed |= depends(index, use.ambient[i]);
    if (needed) count = i + 1;
  }
  return {use.ambient.begin(), use.ambient.begin() + static_cast<std::ptrdiff_t>(count)};
}

double trips(const std::vector<Ref>& loops) {
  double n = 1;
  for (Ref loop : loops) n *= static_cast<double>(std::max<int64_t>(loop->src[0]->hi, 0));
  return n;
}

std::vector<Ref> common_ambient(const std::vector<Use>& uses, const std::vector<Ref>& inner) {
  std::vector<Ref> prefix = uses[0].ambient;
  for (const Use& use : uses) {
    size_t n = 0;
    while (n < prefix.size() && n < use.ambient.size() && prefix[n] == use.ambient[n]) ++n;
    prefix.resize(n);
  }
  if (inner.empty()) return prefix;
  std::erase_if(prefix, [&](Ref loop) {
    bool needed = false;
    for (const Use& use : uses)
      for (Ref index : use.at.index) needed |= depends(index, loop);
    return !needed || std::find(inner.begin(), inner.end(), loop) != inner.end();
  });
  return prefix;
}

std::vector<size_t> private_axes(const std::vector<Use>& uses, const std::vector<Ref>& outer) {
  std::vector<size_t> out;
  for (size_t axis = 0; axis < uses[0].at.index.size(); ++axis) {
    Ref first = uses[0].at.index[axis];
    bool shared = is_const(first) || std::find(outer.begin(), outer.end(), first) != outer.end();
    for (const Use& use : uses) shared &= use.at.index[axis] == first;
    if (!shared) out.push_back(axis);
  }
  return out;
}

} // namespace tgc
