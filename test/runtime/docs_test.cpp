// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// docs/runtime-errors.md is the table of the code.
#include "runtime/fixture.h"
#include "uop/docs.h"

using namespace tgc::testing;

namespace {

struct Row {
  int number;
  const char *name, *title, *remedy;
};
constexpr Row kRows[] = {
#define TGRT_ERROR(Number, Name, Title, Remedy) {Number, #Name, Title, Remedy},
#include "runtime/tgrt_errors.def"
};

} // namespace

TEST(RuntimeDocs, ErrorTableIsThatOfTheCode) {
  std::string table = "| error | name | title | what to do |\n|---|---|---|---|\n";
  for (const Row& row : kRows) {
    table += "| TGR-E" + std::to_string(row.number) + " | `TGRT_E_" + row.name + "` | " + row.title + " | " +
             row.remedy + " |\n";
    EXPECT_STREQ(tgrt_error_title(row.number), row.title);
    EXPECT_STREQ(tgrt_error_remedy(row.number), row.remedy);
  }
  EXPECT_STREQ(tgrt_error_title(999), "");
  const std::string path = source_path("docs/runtime-errors.md"), page = read_file(path);
  const std::string filled = tgc::fill_tables(page, {{"errors", table}});
  if (blessing())
    write_file(path, filled);
  else
    EXPECT_EQ(page, filled) << "TGC_BLESS=1 rewrites it";
}
