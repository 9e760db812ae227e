// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "uop/uop.h"

namespace tgc {

/// Which iterations of some loops take one way through choices: an interval of each.
class Region {
public:
  /// All iterations of `loops`, Ranges or constants.
  explicit Region(std::vector<Ref> loops);

  /// Only those where `condition` is true, or where it is not. False if that is not known to be an interval of one
  /// loop.
  bool narrow(Ref condition, bool holds);
  /// From lo(i) to before hi(i) of loop i.
  Ref lo(size_t i) const { return lo_[i]; }
  Ref hi(size_t i) const { return hi_[i]; }

private:
  bool compare(Ref difference, bool holds);

  std::vector<Ref> loops_, lo_, hi_;
};

/// Whether `a` and `b` are the same number whatever the symbolic dims are.
bool equals(Ref a, Ref b);

} // namespace tgc
