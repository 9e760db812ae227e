// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Damaged files: every mutation either imports or is a CompileError with a code; nothing else may escape, and nothing
// may crash (run it under the sanitizers too).
#include <random>

#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr int kMutations = 1000;

std::string content(const std::string& path) {
  FileBytes f = open_bytes(path);
  return {reinterpret_cast<const char*>(f.bytes.data()), f.bytes.size()};
}

/// One to four edits: a byte changed, removed, doubled, a range copied over another, or the end cut off.
std::string mutate(std::string s, std::mt19937& random, size_t reach) {
  auto pick = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(1, n)); };
  for (size_t edits = 1 + pick(4); edits > 0 && !s.empty(); --edits) {
    size_t at = pick(std::min(s.size(), reach));
    switch (pick(6)) {
    case 0: s[at] = static_cast<char>(random()); break;
    case 1: s[at] = static_cast<char>(s[at] ^ (1 << pick(8))); break;
    case 2: s.erase(at, 1 + pick(4)); break;
    case 3: s.insert(at, 1, s[at]); break;
    case 4: s.replace(at, 4, s.substr(pick(std::min(s.size(), reach)), 4)); break;
    default: s.resize(pick(8) == 0 ? at : s.size()); break;
    }
  }
  return s;
}

struct Tally {
  int imported = 0, refused = 0;
};
Tally import_mutations(const std::string& original, size_t reach, const std::string& folder) {
  std::mt19937 random(20);
  Tally tally;
  ImportOptions options;
  options.folder = folder;
  for (int i = 0; i < kMutations; ++i) {
    std::string bytes = mutate(original, random, reach);
    try {
      Module m = import_bytes(bytes_of(bytes), "mutated", options);
      EXPECT_TRUE(m.root);
      ++tally.imported;
    } catch (const CompileError& e) {
      EXPECT_FALSE(e.all().empty());
      ++tally.refused;
    }
  }
  return tally;
}

TEST(Mutation, OnnxModels) {
  std::string folder = std::string(TGC_SOURCE_DIR) + "/models/fashion_cnn";
  std::string whole = content(folder + "/model.onnx");
  Tally t = import_mutations(whole, 3000, folder); // nodes come first, then weights
  EXPECT_GT(t.imported, 20);
  EXPECT_GT(t.refused, 500);
}

TEST(Mutation, JsonGraphs) {
  std::string text = R"({"tgc":1,"dims":{"N":[1,64]},"inputs":[{"name":"x","type":"f32","shape":["N",1,6,6]}],
 "constants":[{"name":"w","type":"f32","shape":[2,1,3,3],"data":[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,-9]},{"name":"b","type":"f32","shape":[2],"data":0.5}],
 "nodes":[{"op":"conv","name":"c","in":["x","w","b"],"stride":[2,2],"dilation":[1,1],"pad":[1,1,1,1],"groups":1},
 {"op":"max","name":"r","in":["c",0]},{"op":"reshape","name":"f","in":["r"],"shape":["N",18]},
 {"op":"softmax","name":"s","in":["f"],"axis":-1},{"op":"reduce","name":"m","in":["s"],"kind":"max","axes":[1],"keep":1},
 {"op":"pad","name":"p","in":["m"],"lo":[0,1],"hi":[0,2],"value":7},{"op":"flip","name":"q","in":["p"],"axes":[1]},
 {"op":"permute","name":"t","in":["q"],"axes":[1,0]},{"op":"cast","name":"y","in":["t"],"to":"i32"}],"outputs":["y","s"]})";
  Tally t = import_mutations(text, text.size(), ".");
  EXPECT_GT(t.imported, 20);
  EXPECT_GT(t.refused, 500);
}

} // namespace
} // namespace tgc
