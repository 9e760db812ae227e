// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Damaged models and text through the whole compiler, in one process: each gives a bundle, or a CompileError and an
// output file that keeps its bytes; never a crash, a broken invariant of ours, or minutes of work. Seeds are fixed; a
// failure names its number, and TGC_MUTATIONS=FIRST:COUNT repeats it. TGC_FULL=1 runs all of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <tuple>

#include "frontend/onnx_writer.h"
#include "testing.h"
#include "tgc/driver.h"
#include "tgc/passes.h"
#include "uop/diag.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

constexpr double kSlowest = 5; // CPU seconds for a small model, sanitizers included
constexpr int kFew = 40, kAll = 1000;
constexpr int kOfEach = 2; // more than so many compile, and so many are refused

struct Seed {
  std::string name, bytes;
  std::string start_before; ///< a pass, for text of a later stage
  size_t reach;             ///< mutations lie before this byte: weights that follow are only numbers
};

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return static_cast<size_t>(random_() % std::max<size_t>(1, n)); }

  /// Bit flips, cuts, splices, doubled and lost bytes.
  void bytes(std::string& s, size_t reach) {
    const size_t at = below(std::min(s.size(), reach));
    switch (below(7)) {
    case 0: s[at] = static_cast<char>(s[at] ^ (1 << below(8))); break;
    case 1: s[at] = static_cast<char>(random_()); break;
    case 2: s.erase(at, 1 + below(8)); break;
    case 3: s.insert(at, s.substr(below(std::min(s.size(), reach)), 1 + below(40))); break;
    case 4: s.replace(at, 4, s.substr(below(std::min(s.size(), reach)), 4)); break;
    case 5: s[at] = static_cast<char>(s[at] + (below(2) ? 1 : -1)); break; // lengths, dims, enumerators
    default:
      if (below(6) == 0) s.resize(at);
    }
  }

  /// A word or number replaced by another of the text, or by an extreme one; a line doubled, lost or moved.
  void tokens(std::string& s) {
    static constexpr const char* kExtreme[] = {"0",
                                               "-1",
                                               "1099511627776",
                                               "9223372036854775807",
                                               "17",
                                               "1e999",
                                               "\"",
                                               "null",
                                               "f64",
                                               "bool",
                                               "[]",
                                               "{}",
                                               "i8",
                                               "nan",
                                               "3",
                                               "2",
                                               "1,1",
                                               "64"};
    auto [at, length] = token(s);
    if (below(2)) { // another number, often one that exists: a dim, an axis, a constant, a node
      for (int tries = 0; tries < 100 && !std::isdigit(s[at] & 127); ++tries) std::tie(at, length) = token(s);
      s.replace(at, length, std::to_string(below(3) ? below(12) : below(200)));
    } else if (below(5) == 0) {
      const size_t line = s.rfind('\n', at) + 1, end = std::min(s.find('\n', at), s.size());
      const std::string text = s.substr(line, end - line) + "\n";
      if (below(2)) s.erase(line, std::min(text.size(), s.size() - line));
      if (below(3)) s.insert(s.rfind('\n', below(s.size())) + 1, text);
    } else if (below(2)) {
      const auto [from, size] = token(s);
      s.replace(at, length, s.substr(from, size));
    } else {
      s.replace(at, length, kExtreme[below(std::size(kExtreme))]);
    }
  }

private:
  std::pair<size_t, size_t> token(const std::string& s) {
    const auto in_word = [&](size_t i) { return i < s.size() && (std::isalnum(s[i] & 127) || s[i] == '_'); };
    size_t start = below(s.size());
    while (start + 1 < s.size() && !in_word(start)) ++start;
    while (start > 0 && in_word(start - 1)) --start;
    size_t end = start + 1;
    while (in_word(end)) ++end;
    return {start, std::min(end, s.size()) - start};
  }
  std::mt19937_64 random_;
};

std::string scratch(const std::string& name) {
  static const std::string folder = [] {
    std::string path = ::testing::TempDir() + "tgc_mutation_" + std::to_string(getpid());
    std::filesystem::create_directories(path);
    return path;
  }();
  return folder + "/" + name;
}

struct Tally {
  int compiled = 0, refused = 0;
};

/// Compiles one damaged file over an existing output. What is wrong with how it went, or "".
std::string compile(const Seed& seed, const std::string& bytes, Tally& tally) {
  const std::string old = "an older bundle";
  Options options;
  options.cache = "off";
  options.model = scratch("model");
  options.output = scratch("model.bundle");
  options.target = "cpu:llvm:x86-64-v3";
  options.start_before = seed.start_before;
  options.jobs = 1;
  write_file(options.model, bytes);
  write_file(options.output, old);
  const std::clock_t start = std::clock();
  std::string wrong;
  try {
    if (run_tgc(options) != Exit::Ok) wrong = "no success, and no error";
    if (read_file(options.output).substr(0, 4) != "\x89TGC") wrong = "success without a bundle";
    ++tally.compiled;
  } catch (const CompileError& error) {
    ++tally.refused;
    if (error.all().empty() || error.all()[0].message.empty()) wrong = "an error without text";
    if (read_file(options.output) != old) wrong = "the output was overwritten by a failure";
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (wrong.empty() && seconds > kSlowest) wrong = std::to_string(seconds) + " s";
  return wrong;
}

std::pair<uint64_t, uint64_t> numbers(uint64_t few) {
  const char* chosen = std::getenv("TGC_MUTATIONS");
  unsigned long first = 0, count = 0;
  if (chosen && std::sscanf(chosen, "%lu:%lu", &first, &count) == 2) return {first, count};
  const char* full = std::getenv("TGC_FULL");
  return {0, full && std::string(full) == "1" ? kAll : few};
}

bool is_chosen() { return std::getenv("TGC_MUTATIONS") != nullptr; }

/// Mutation number i is of seed i modulo their count. There are more of them, up to kAll, until some of each outcome
/// have been seen.
Tally attack(const std::vector<Seed>& seeds, bool is_text) {
  Tally tally;
  for (const Seed& seed : seeds) EXPECT_EQ(compile(seed, seed.bytes, tally), "") << seed.name;
  EXPECT_EQ(tally.compiled, static_cast<int>(seeds.size()));
  const auto [first, count] = numbers(kFew);
  tally = {};
  const auto wanted = [&](uint64_t i) {
    return i < first + count || (!is_chosen() && i < kAll && std::min(tally.compiled, tally.refused) <= kOfEach);
  };
  for (uint64_t i = first; wanted(i); ++i) {
    const Seed& seed = seeds[i % seeds.size()];
    Mutator mutator(i);
    std::string bytes = seed.bytes;
    for (size_t edits = 1 + mutator.below(4) / 3; edits > 0 && !bytes.empty(); --edits)
      is_text&& mutator.below(8) != 0 ? mutator.tokens(bytes) : mutator.bytes(bytes, seed.reach);
    const std::string wrong = compile(seed, bytes, tally);
    if (wrong.empty()) continue;
    const std::string kept = ::testing::TempDir() + "tgc_mutation_" + std::to_string(i);
    write_file(kept, bytes);
    ADD_FAILURE() << "mutation " << i << " of " << seed.name << ", kept as " << kept
                  << (seed.start_before.empty() ? "" : " (--start-before=" + seed.start_before + ")") << ": " << wrong;
  }
  ::testing::Test::RecordProperty("compiled", tally.compiled);
  ::testing::Test::RecordProperty("refused", tally.refused);
  return tally;
}

Seed onnx(const std::string& name, std::vector<Wire> nodes, std::vector<Wire> initializers = {},
          const std::vector<DimSpec>& x = {2, 3, 8, 8}, const std::vector<DimSpec>& y = {}) {
  ModelSpec s;
  s.nodes = std::move(nodes);
  s.initializers = std::move(initializers);
  s.inputs = {value_info("x", 1, x)};
  s.outputs = {y.empty() ? Wire().text(1, "y") : value_info("y", 1, y)};
  s.opset = 17;
  const std::string bytes = model(s);
  return {name, bytes, "", bytes.size()};
}

using Ints = std::vector<int64_t>;

std::vector<Seed> onnx_seeds() {
  const std::string quickstart = read_file(source_path("models/fashion_cnn/model.onnx"));
  const std::vector<float> w(54, 0.5f);
  return {
      {"fashion_cnn", quickstart, "", 3000},
      onnx("conv",
           {node({"Conv", {"x", "w"}, {"c"}, {attr("pads", Ints{1, 1, 1, 1}), attr("strides", Ints{2, 2})}}),
            node({"Relu", {"c"}, {"r"}}), node({"GlobalAveragePool", {"r"}, {"y"}})},
           {tensor_floats("w", {2, 3, 3, 3}, w)}),
      onnx("pool", {node({"MaxPool", {"x"}, {"p"}, {attr("kernel_shape", Ints{3, 3}), attr("ceil_mode", int64_t{1})}}),
                    node({"Flatten", {"p"}, {"f"}, {attr("axis", int64_t{1})}}),
                    node({"Softmax", {"f"}, {"y"}, {attr("axis", int64_t{-1})}})}),
      onnx("gather",
           {node({"Gather", {"x", "i"}, {"g"}, {attr("axis", int64_t{1})}}),
            node({"Transpose", {"g"}, {"y"}, {attr("perm", Ints{3, 0, 1, 2})}})},
           {tensor_ints("i", {2}, {2, 0})}, {"N", 3, 4, 4}),
      onnx("slice",
           {node({"Slice", {"x", "b", "e", "a"}, {"s"}}), node({"Pad", {"s", "p"}, {"q"}}),
            node({"ReduceMean", {"q"}, {"y"}, {attr("axes", Ints{1, 2}), attr("keepdims", int64_t{0})}})},
           {tensor_ints("b", {1}, {1}), tensor_ints("e", {1}, {7}), tensor_ints("a", {1}, {2}),
            tensor_ints("p", {8}, {0, 1, 0, 0, 0, 0, 2, 0})}),
      onnx("reshape",
           {node({"Reshape", {"x", "s"}, {"r"}}), node({"MatMul", {"r", "w"}, {"m"}}),
            node({"Concat", {"m", "m"}, {"y"}, {attr("axis", int64_t{1})}})},
           {tensor_ints("s", {2}, {0, -1}), tensor_floats("w", {27, 2}, w)}, {"N", 3, 3, 3}),
      onnx("resize",
           {node({"Resize", {"x", "", "s"}, {"z"}, {attr("mode", std::string("linear"))}}),
            node({"LayerNormalization", {"z", "g"}, {"y"}})},
           {tensor_floats("s", {4}, {1, 1, 2, 1.5f}), tensor_floats("g", {6}, {1, 1, 1, 1, 1, 1})}, {1, 1, 4, 4}),
  };
}

std::vector<Seed> json_seeds() {
  std::vector<Seed> seeds;
  for (const char* name : {"dense", "conv"})
    seeds.push_back({name, read_file(source_path("test/golden_graphs/" + std::string(name) + ".json")), "", 0});
  const std::string page = read_file(source_path("docs/json-graph.md")), open = "```json\n{";
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const size_t start = at + open.size() - 1;
    seeds.push_back({"json-graph.md", page.substr(start, page.find("```", start) - start), "", 0});
  }
  for (Seed& seed : seeds) seed.reach = seed.bytes.size();
  return seeds;
}

/// The input of every golden file, which its pass takes.
std::vector<Seed> text_seeds() {
  std::vector<Seed> seeds;
  for (const char* graph : {"dense", "conv"})
    for (const std::string& pass : pass_names()) {
      const Golden golden = read_golden("test/golden/" + std::string(graph) + "." + pass + ".uop");
      seeds.push_back({std::string(graph) + "." + pass, golden.input, pass, golden.input.size()});
    }
  return seeds;
}

} // namespace

TEST(Mutation, DamagedOnnxModels) {
  const Tally tally = attack(onnx_seeds(), false);
  EXPECT_GT(tally.compiled, kOfEach);
  EXPECT_GT(tally.refused, kOfEach);
}

TEST(Mutation, DamagedJsonGraphs) {
  const Tally tally = attack(json_seeds(), true);
  EXPECT_GT(tally.compiled, kOfEach);
  EXPECT_GT(tally.refused, kOfEach);
}

TEST(Mutation, DamagedTextOfEveryStage) {
  const Tally tally = attack(text_seeds(), true);
  EXPECT_GT(tally.compiled, kOfEach);
  EXPECT_GT(tally.refused, kOfEach);
}

TEST(Mutation, NoTemporaryFileIsLeft) {
  Tally tally;
  for (const Seed& seed : json_seeds()) {
    compile(seed, seed.bytes, tally);
    compile(seed, seed.bytes.substr(0, seed.bytes.size() / 2), tally);
  }
  EXPECT_GT(tally.refused, 0);
  for (const auto& entry : std::filesystem::directory_iterator(scratch("")))
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << entry.path();
}
