// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One golden file per pass and graph in test/golden: the text before the pass, and the text after it. `; run:` gives
// the pass and the target. TGC_BLESS=1 rewrites what follows the separator; a pass without a golden file fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "testing.h"
#include "tgc/passes.h"
#include "tgc/pipeline.h"
#include "uop/text.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("test/golden")))
    files.push_back("test/golden/" + entry.path().filename().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// "rangeify cpu:llvm:x86-64-v3" → {pass, target}
std::pair<std::string, std::string> words(const std::string& run) {
  std::istringstream in(run);
  std::string pass, target;
  in >> pass >> target;
  return {pass, target};
}

} // namespace

TEST(Golden, EachPassDoesWhatItsFilesSay) {
  std::set<std::string> covered;
  for (const std::string& file : golden_files()) {
    SCOPED_TRACE(file);
    const Golden golden = read_golden(file);
    const auto [pass, target] = words(golden.run);
    covered.insert(pass);
    CompileOptions options;
    options.target = target;
    options.passes.start_before = options.passes.stop_after = pass;
    Compilation c = start_compilation(parse(golden.input, file), options);
    run_pipeline(c, options);
    check_golden(file, print(c.module));
  }
  for (std::span<const Pass> table : {graph_passes(), kernel_passes()})
    for (const Pass& pass : table) EXPECT_TRUE(covered.contains(pass.name)) << "no golden file for pass " << pass.name;
}
