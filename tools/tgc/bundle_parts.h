// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tgrt_bundle.h"
#include "tgc/bundle_writer.h"

namespace tgc {

/// The symbols of a checked code image.
struct CodeImage {
  struct Symbol {
    uint64_t address, bytes;
  };
  uint16_t machine = 0;                  ///< ELF e_machine
  std::map<std::string, Symbol> symbols; ///< defined functions by name
};

/// Reads the shared object `image` and asserts that it needs nothing at run time but to be mapped.
/// errors: CompileError TGC-E403 naming what is in the way: relocations, imports, writable data, TLS.
CodeImage read_code(std::string_view image);

/// The code pool of a plan: Index expressions as stack code, each stored once.
class ExprPool {
public:
  /// `vars`: names in plan order.
  explicit ExprPool(const std::vector<BundleContents::Var>& vars);
  /// Offset of the code of `expr`; null is 0.
  /// errors: InternalError for an op that has no code or a variable that is not listed.
  tgrt_expr add(Ref expr);
  const std::vector<int64_t>& words() const { return words_; }

private:
  std::map<std::string, int64_t, std::less<>> vars_;
  std::map<std::vector<int64_t>, tgrt_expr> known_;
  std::vector<int64_t> words_;
};

/// The bytes of the plan section. `weight_offsets`: of contents.weights, in the weights section.
std::string make_plan(const BundleContents& contents, const CodeImage& code,
                      const std::vector<uint64_t>& weight_offsets);

} // namespace tgc
