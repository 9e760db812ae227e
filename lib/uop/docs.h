// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tgc {

/// A table of the documentation that is made from the code's own tables, as Markdown.
struct DocTable {
  std::string name; ///< of its markers: `<!-- table: NAME -->` before it, `<!-- end -->` after it
  std::string text;
};
/// Tables of docs/ir.md: ops, attributes, dtypes.
std::vector<DocTable> ir_doc();
/// Tables of docs/errors.md: errors.
std::vector<DocTable> errors_doc();

/// `page` with the text between each table's markers replaced. requires: the markers are there (else unchanged).
std::string fill_tables(std::string_view page, const std::vector<DocTable>& tables);

} // namespace tgc
