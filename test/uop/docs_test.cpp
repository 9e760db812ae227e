// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pages of docs/ agree with the code: their tables, and their examples.
#include "uop/docs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "testing.h"
#include "uop/eval.h"
#include "uop/text.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

void check_page(const std::string& relative, const std::vector<DocTable>& tables) {
  const std::string page = read_file(source_path(relative)), filled = fill_tables(page, tables);
  for (const DocTable& table : tables)
    EXPECT_NE(page.find("<!-- table: " + table.name + " -->"), std::string::npos)
        << relative << " has no place for " << table.name;
  if (page == filled) return;
  if (blessing()) {
    write_file(source_path(relative), filled);
    return;
  }
  EXPECT_EQ(page, filled) << relative << " is out of date; TGC_BLESS=1 rewrites its tables";
}

// The indented blocks of a page that are whole texts.
std::vector<std::string> examples(const std::string& page) {
  std::vector<std::string> out;
  const std::string mark = "\n    ; tgc uop 1\n";
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    std::string text;
    for (size_t line = at + 1; page.compare(line, 4, "    ") == 0;) {
      const size_t end = page.find('\n', line);
      text += page.substr(line + 4, end - line - 3);
      line = end + 1;
    }
    out.push_back(text);
  }
  return out;
}

TEST(Docs, TablesAreThoseOfTheCode) {
  check_page("docs/ir.md", ir_doc());
  check_page("docs/errors.md", errors_doc());
}

/// The text of all files of these kinds below a folder of the sources.
std::string sources(const std::string& folder, std::initializer_list<const char*> kinds) {
  std::string all;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source_path(folder)))
    if (std::find(kinds.begin(), kinds.end(), file.path().extension()) != kinds.end()) all += read_file(file.path());
  return all;
}

TEST(Docs, EveryErrorIsRaisedAndEveryNumberIsAnError) {
  const std::string code = sources("lib", {".cpp", ".h"}) + sources("tools", {".cpp", ".h"}),
                    runtime = sources("lib/runtime", {".c"}),
                    pages = sources("docs", {".md"}) + read_file(source_path("README.md")) +
                            read_file(source_path("ARCHITECTURE.md"));
  std::set<std::string> known;
#define TGC_ERROR(Number, ...)                                                                                         \
  known.insert("TGC-E" #Number);                                                                                       \
  EXPECT_NE(code.find("ErrorCode::E" #Number), std::string::npos) << #Number << " is never raised";
#include "uop/errors.def"
#define TGRT_ERROR(Number, Name, ...)                                                                                  \
  known.insert("TGR-E" #Number);                                                                                       \
  EXPECT_NE(runtime.find("TGRT_E_" #Name), std::string::npos) << #Name << " is never raised";
#include "runtime/tgrt_errors.def"
  for (const std::string kind : {"TGC-E", "TGR-E"})
    for (size_t at = pages.find(kind); at != std::string::npos; at = pages.find(kind, at + 1)) {
      const std::string number = pages.substr(at, kind.size() + 3);
      const bool is_number = std::isdigit(static_cast<unsigned char>(number.back())) != 0; // else E###, E2xx
      EXPECT_TRUE(!is_number || known.contains(number)) << number;
    }
  EXPECT_GT(known.size(), 40u);
}

TEST(Docs, ExamplesAreCanonicalText) {
  const std::vector<std::string> all = examples(read_file(source_path("docs/ir.md")));
  ASSERT_EQ(all.size(), 2u);
  for (const std::string& text : all) EXPECT_EQ(print(parse(text)), text);
  HostTensor y = zeros(DType::F32, {3}), x = tensor_of(DType::F32, {12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const BufferArg args[] = {buffer_arg(y), buffer_arg(x)};
  const Module rowsum = parse(all[1]);
  eval_kernel(rowsum.root, args);
  EXPECT_EQ(y.at(0), 10);
  EXPECT_EQ(y.at(2), 42);
}

} // namespace
