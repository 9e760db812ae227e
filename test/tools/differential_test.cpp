// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random graphs through the whole compiler: what runs must be what the graph means. Three steps are judged apart. The
// scheduled and lowered plan, in the reference interpreter, against the imported graph: equal bits where nothing
// rounds, else within a tolerance. Then the machine code of LLVM and of C against that plan: equal bits, always
// (ARCHITECTURE.md, invariant 7). A case that fails is shrunk and printed as `.uop` text; kept under
// test/tools/differential/ it is tested for ever. TGC_FULL=1 runs 5000 cases; TGC_CASES=FIRST:COUNT chooses;
// TGC_TARGET=… is compiled for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "testing.h"
#include "tgc/pipeline.h"
#include "tgc/run_bundle.h"
#include "tools/random_graph.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

constexpr uint64_t kFew = 100, kAll = 5000;
constexpr uint64_t kEveryC = 10; // one case in so many is compiled by the C compiler too, which takes ten times as long

/// Of the output's largest element plus the element itself: a few roundings of the type, 64 sums.
double tolerance(DType t) { return t == DType::F64 ? 1e-11 : t == DType::F32 ? 2e-5 : t == DType::F16 ? 8e-3 : 6e-2; }

std::string bits_text(const HostTensor& t, int64_t i) {
  char text[64];
  if (is_float(t.dtype))
    std::snprintf(text, sizeof text, "%.17g", t.at(i));
  else
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(t.int_at(i)));
  return text;
}

bool equal_bits(const HostTensor& a, const HostTensor& b, int64_t i) {
  const size_t bytes = static_cast<size_t>(byte_size(a.dtype)), at = static_cast<size_t>(i) * bytes;
  if (std::memcmp(a.data.data() + at, b.data.data() + at, bytes) == 0) return true;
  return is_float(a.dtype) && std::isnan(a.at(i)) && std::isnan(b.at(i)); // whatever its payload
}

bool is_zero(const HostTensor& a, const HostTensor& b, int64_t i) {
  return is_float(a.dtype) && a.at(i) == 0 && b.at(i) == 0;
}

bool close(const HostTensor& want, const HostTensor& got, int64_t i, double scale) {
  const double a = want.at(i), b = got.at(i);
  if (equal_bits(want, got, i) || a == b) return true;
  const bool is_half = want.dtype == DType::F16 || want.dtype == DType::BF16;
  // What is kept in f32 inside of a kernel overflows later.
  if (is_half && !(std::fabs(a) < 30000 && std::fabs(b) < 30000)) return true;
  return std::fabs(a - b) <= tolerance(want.dtype) * (std::fabs(a) + scale);
}

/// The first difference, or "".
std::string compare(const HostTensor& want, const HostTensor& got, Agree agree) {
  if (want.dtype != got.dtype || want.shape != got.shape) return "type or shape";
  double scale = 1; // operands are of this size, and what remains of a cancellation is not
  for (int64_t i = 0; i < want.numel() && is_float(want.dtype); ++i)
    if (std::isfinite(want.at(i))) scale = std::max(scale, std::fabs(want.at(i)));
  for (int64_t i = 0; i < want.numel(); ++i)
    if (agree == Agree::Closely ? !close(want, got, i, scale)
                                : !equal_bits(want, got, i) && !(agree == Agree::ButZeroSigns && is_zero(want, got, i)))
      return "element " + std::to_string(i) + ": want " + bits_text(want, i) + ", got " + bits_text(got, i);
  return "";
}

std::string compare(const std::vector<HostTensor>& want, const std::vector<HostTensor>& got,
                    const std::vector<Agree>& agree) {
  if (want.size() != got.size()) return "number of outputs";
  for (size_t i = 0; i < want.size(); ++i)
    if (const std::string wrong = compare(want[i], got[i], agree[i]); !wrong.empty())
      return "output " + std::to_string(i) + ", " + wrong;
  return "";
}

/// What goes wrong with `c` compiled for `target`, or "". The text before the first colon says at which step.
std::string judge(const GraphCase& c, const std::string& target) {
  static const std::string path = ::testing::TempDir() + "tgc_differential_" + std::to_string(getpid());
  std::string step = "eval: ";
  try {
    const std::vector<HostTensor> meant = eval(c.module, c.inputs, c.vars);
    step = "compile: ";
    CompileOptions options;
    options.target = target;
    Compilation compilation = start_compilation(parse_case(print_case(c)).module, options);
    run_pipeline(compilation, options);
    step = "plan: ";
    const std::vector<HostTensor> lowered = eval(compilation.module, c.inputs, c.vars);
    if (const std::string wrong = compare(meant, lowered, c.agree); !wrong.empty()) return step + wrong;
    step = "render: ";
    fold_constants(compilation);
    render(compilation);
    write_bundle(assemble(compilation, options), path);
    step = "run: ";
    const std::vector<HostTensor> got =
        run_bundle(load_bundle(path).get(), c.inputs, {.threads = 2, .guard = true, .vars = c.vars});
    std::filesystem::remove(path);
    if (const std::string wrong = compare(lowered, got, std::vector<Agree>(got.size(), Agree::InBits)); !wrong.empty())
      return step + wrong;
  } catch (const std::exception& error) {
    return step + error.what();
  }
  return "";
}

std::string step_of(const std::string& wrong) { return wrong.substr(0, wrong.find(':')); }

/// The smallest single value that is wrong, shrunk.
GraphCase shrunk(uint64_t seed, const std::string& target, const std::string& wrong) {
  GraphCase failing = random_graph(seed);
  int count = 0;
  random_graph(seed, 0, &count);
  for (int value = 0; value < count; ++value)
    if (GraphCase one = random_graph(seed, value); step_of(judge(one, target)) == step_of(wrong)) {
      failing = std::move(one);
      break;
    }
  return shrink_case(std::move(failing),
                     [&](const GraphCase& c) { return step_of(judge(c, target)) == step_of(wrong); });
}

std::pair<uint64_t, uint64_t> numbers() {
  const char *chosen = std::getenv("TGC_CASES"), *full = std::getenv("TGC_FULL");
  unsigned long first = 0, count = 0;
  if (chosen && std::sscanf(chosen, "%lu:%lu", &first, &count) == 2) return {first, count};
  return {0, full && std::string(full) == "1" ? kAll : kFew};
}

std::vector<std::string> targets(uint64_t seed) {
  if (const char* chosen = std::getenv("TGC_TARGET")) return {chosen};
  static const char* const kArchs[] = {"x86-64-v3", "native", "x86-64"};
  const std::string arch = kArchs[seed % 3];
  if (seed % kEveryC != 0) return {"cpu:llvm:" + arch};
  return {"cpu:llvm:" + arch, "cpu:c:" + arch};
}

} // namespace

TEST(Differential, RandomGraphsRunAsTheyMean) {
  const auto [first, count] = numbers();
  const bool verbose = std::getenv("TGC_CASES") != nullptr; // the last number printed is that of a crash
  for (uint64_t seed = first; seed < first + count; ++seed)
    for (const std::string& target : targets(seed)) {
      if (verbose) std::fprintf(stderr, "case %llu %s\n", static_cast<unsigned long long>(seed), target.c_str());
      const std::string wrong = judge(random_graph(seed), target);
      if (wrong.empty()) continue;
      const GraphCase small = shrunk(seed, target, wrong);
      ADD_FAILURE() << "case " << seed << ", " << target << ": " << wrong << "\nshrunk: " << judge(small, target)
                    << "\n"
                    << print_case(small);
    }
}

TEST(Differential, CasesThatOnceFailed) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("test/tools/differential"))) {
    const GraphCase c = parse_case(read_file(entry.path()));
    ++count;
    for (const char* target : {"cpu:llvm:native", "cpu:llvm:x86-64", "cpu:c"})
      EXPECT_EQ(judge(c, target), "") << entry.path() << " " << target;
  }
  EXPECT_GT(count, 0);
}

TEST(Differential, ShrinkingFindsTheNodeThatMatters) {
  const auto has_sqrt = [](const GraphCase& c) {
    for (Ref node : toposort(c.module.root))
      if (node->is(Ops::Sqrt)) return true;
    return false;
  };
  uint64_t seed = 0;
  while (!has_sqrt(random_graph(seed))) ++seed;
  const GraphCase small = shrink_case(random_graph(seed), has_sqrt);
  EXPECT_EQ(toposort(small.module.root).size(), 7u) << print_case(small); // 1, param, sqrt, output, store, sink, func
}
