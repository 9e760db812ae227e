// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tuning database as a file that anybody may have written, as an input of a compile, and as what --beam leaves.
#include "tgc/tuning.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "testing.h"
#include "tgc/beam.h"
#include "tgc/file_lock.h"
#include "tgc/passes.h"
#include "tgc/pipeline.h"
#include "tgc/run_bundle.h"
#include "uop/text.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

namespace fs = std::filesystem;

const std::string kKey = "0123456789abcdef", kTarget = "cpu:llvm:znver3:00c0ffee";
const std::string kLine = "tuned1 " + kKey + " " + kTarget + " ns 100 was 120 opts split 1 16; lane 2\n";

std::string failure(const std::string& text,
                    const std::string& note = "remove the line; --beam times again what is missing") {
  try {
    TuningDatabase::parse(text, "t");
  } catch (const CompileError& e) {
    EXPECT_EQ(e.all()[0].note, note);
    const std::string what = e.what();
    return what.substr(0, what.find('\n'));
  }
  return "";
}

/// relu(x @ w) @ w, where w [96, 96] is a weight.
std::string two_layers() {
  std::string values;
  for (int i = 0; i < 96 * 96; ++i) values += (i ? "," : "") + std::to_string(i % 7 - 3);
  return R"({"tgc": 1, "inputs": [{"name": "x", "type": "f32", "shape": [40, 96]}],
    "constants": [{"name": "w", "type": "f32", "shape": [96, 96], "data": [)" +
         values + R"(]}],
    "nodes": [{"op": "matmul", "name": "a", "in": ["x", "w"]}, {"op": "max", "name": "r", "in": ["a", 0]},
      {"op": "matmul", "name": "y", "in": ["r", "w"]}], "outputs": ["y"]})";
}

class Tuned : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "tgc_tuned_" + std::to_string(getpid());
  std::string model = folder + "/m.json", base = folder + "/tuned.txt";
  void SetUp() override {
    if (!find_renderer(parse_target("cpu:llvm")).probe().ok) GTEST_SKIP() << "kernels are timed as LLVM compiles them";
    fs::create_directories(folder);
    write_file(model, two_layers());
  }
  void TearDown() override { fs::remove_all(folder); }

  /// The bundle's bytes; the plan's text goes to `plan`.
  std::string compile(int beam, CompileOptions options = {}) {
    const Tuner tuner(base, beam, options);
    Compilation c = start_compilation(model, options);
    run_pipeline(c, options);
    plan = print(c.module);
    found = tuner.found(), timed = tuner.timed(), unknown = tuner.unknown();
    fold_constants(c);
    render(c);
    write_bundle(assemble(c, options), folder + "/x.bundle");
    return read_file(folder + "/x.bundle");
  }
  std::string plain() {
    compile_file(model, folder + "/plain.bundle", {});
    return read_file(folder + "/plain.bundle");
  }
  std::string plan;
  int found = 0, timed = 0, unknown = 0;
};

} // namespace

TEST(TuningDatabase, ReadsWhatItWrites) {
  TuningDatabase all = TuningDatabase::parse("# a comment\n\n" + kLine, "t");
  ASSERT_NE(all.find(kKey, kTarget), nullptr);
  EXPECT_EQ(all.find(kKey, kTarget)->opts, "split 1 16; lane 2");
  EXPECT_EQ(all.find(kKey, kTarget)->ns, 100);
  EXPECT_EQ(all.find(kKey, kTarget)->default_ns, 120);
  EXPECT_EQ(all.find(kKey, kTarget)->line, 3);
  EXPECT_EQ(all.find(kKey, "cpu:llvm:znver4:00c0ffee"), nullptr);
  EXPECT_EQ(all.text(), kLine);
  all.set("ffffffffffffffff", kTarget, {"", 7, 7, 0});
  all.set("0000000000000000", kTarget, {"winograd 16 1 | lane 2 |  | thread 0", 7, 9, 0});
  EXPECT_EQ(all.text(), "tuned1 0000000000000000 " + kTarget +
                            " ns 7 was 9 opts winograd 16 1 | lane 2 |  | thread 0\n" + kLine +
                            "tuned1 ffffffffffffffff " + kTarget + " ns 7 was 7 opts\n");
  EXPECT_EQ(TuningDatabase::parse(all.text(), "t").text(), all.text());
}

TEST(TuningDatabase, TwoFilesAreMergedByTheFasterLine) {
  const std::string slower = "tuned1 " + kKey + " " + kTarget + " ns 101 was 300 opts lane 1\n";
  EXPECT_EQ(TuningDatabase::parse(kLine + slower, "t").text(), kLine);
  EXPECT_EQ(TuningDatabase::parse(slower + kLine, "t").text(), kLine);
  const std::string equal = "tuned1 " + kKey + " " + kTarget + " ns 100 was 120 opts lane 1\n"; // the lesser text
  EXPECT_EQ(TuningDatabase::parse(kLine + equal, "t").text(), equal);
  EXPECT_EQ(TuningDatabase::parse(equal + kLine, "t").text(), equal);
}

TEST(TuningDatabase, EveryFaultIsNamedWithItsLine) {
  const std::string start = "tuned1 " + kKey + " " + kTarget + " ";
  const auto expect = [](const std::string& text, const std::string& message) {
    EXPECT_EQ(failure(text), "t:" + message);
  };
  expect(kLine + kLine.substr(0, kLine.size() - 1), "2: error TGC-E504: the last line has no end: the file is cut off");
  EXPECT_EQ(failure("{\"some\": \"json\"}", "name a file that --beam wrote (docs/tuning.md)"),
            "t:1: error TGC-E504: the file does not end as a tuning database does");
  for (const char* other : {"\x7f"
                            "ELF\n",
                            "\x7f"
                            "ELF",
                            "tuned1 \x1b[2J\n"})
    EXPECT_EQ(failure(other, "name a file that --beam wrote (docs/tuning.md)"),
              "t:1: error TGC-E504: a character is no printable ASCII: the file is damaged, or no tuning database");
  expect("tuned2 x\n", "1: error TGC-E504: expected tuned1, found \"tuned2\"");
  expect("\n#\ntuned1 12 a\n", "3: error TGC-E504: \"12\" is no kernel's key: 16 hexadecimal digits");
  expect("tuned1 0123456789ABCDEF a\n",
         "1: error TGC-E504: \"0123456789ABCDEF\" is no kernel's key: 16 hexadecimal digits");
  expect("tuned1 " + kKey + "\n", "1: error TGC-E504: expected a target's key, found the end");
  expect("tuned1  " + kKey + "\n", "1: error TGC-E504: expected a kernel's key, found a blank");
  expect("tuned1 " + kKey + " " + std::string(101, 'x') + " ns\n",
         "1: error TGC-E504: the target's key is longer than 100 characters");
  expect(start + "ms 3\n", "1: error TGC-E504: expected ns, found \"ms\"");
  expect(start + "ns 0 was 1 opts\n", "1: error TGC-E504: \"0\" is no number of nanoseconds");
  expect(start + "ns -4 was 1 opts\n", "1: error TGC-E504: \"-4\" is no number of nanoseconds");
  expect(start + "ns 99999999999999999999 was 1 opts\n",
         "1: error TGC-E504: \"99999999999999999999\" is no number of nanoseconds");
  expect(start + "ns 1 was 1x opts\n", "1: error TGC-E504: \"1x\" is no number of nanoseconds");
  expect(start + "ns 1 was 1\n", "1: error TGC-E504: expected opts, found the end");
  expect(start + "ns 1 was 1 opts split 1\n", "1: error TGC-E504: opt \"split 1\": takes 2 numbers");
  expect(start + "ns 1 was 1 opts lane 0 | ; lane 1\n", "1: error TGC-E504: opt \" \": is empty");
  expect(start + "ns 1 was 1 opts split 0 9223372036854775807\n",
         "1: error TGC-E504: opt \"split 0 9223372036854775807\": a number is out of range");
  expect(start + "ns 1 was 1 opts lane -1\n", "1: error TGC-E504: opt \"lane -1\": a number is out of range");
  expect(start + "ns 1 was 1 opts " + std::string(5000, ' ') + "\n",
         "1: error TGC-E504: the line is longer than 4096 characters");
}

TEST(TuningDatabase, LineEndsAndMarksOfOtherSystemsAreRead) {
  const std::string crlf = kLine.substr(0, kLine.size() - 1) + "\r\n";
  EXPECT_EQ(TuningDatabase::parse("\xEF\xBB\xBF# a comment\r\n\r\n" + crlf, "t").text(), kLine);
  EXPECT_EQ(TuningDatabase::parse("\xEF\xBB\xBF" + kLine, "t").text(), kLine);
  EXPECT_EQ(failure(kLine + crlf.substr(0, crlf.size() - 1), "name a file that --beam wrote (docs/tuning.md)"),
            "t:2: error TGC-E504: a character is no printable ASCII: the file is damaged, or no tuning database");
}

TEST(TuningDatabase, WritersAtTheSameTimeLoseNoLine) {
  const std::string path = ::testing::TempDir() + "tgc_tuned_at_once_" + std::to_string(getpid());
  const auto key = [](int writer, int line) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%08x%08x", static_cast<unsigned>(writer), static_cast<unsigned>(line));
    return std::string(digits);
  };
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int line = 0; line < 25; ++line) TuningDatabase::add(path, key(writer, line), kTarget, {"lane 0", 7, 9, 0});
    });
  for (std::thread& writer : writers) writer.join();
  const TuningDatabase all = TuningDatabase::read(path);
  EXPECT_EQ(all.size(), 100u);
  for (int writer = 0; writer < 4; ++writer) EXPECT_NE(all.find(key(writer, 24), kTarget), nullptr);
  fs::remove(path);
}

TEST(TuningDatabase, AddingKeepsModeAndLink) {
  const std::string path = ::testing::TempDir() + "tgc_tuned_mode_" + std::to_string(getpid()), link = path + "_link";
  fs::create_symlink(path, link); // of a file that is still to be made
  TuningDatabase::add(link, kKey, kTarget, {"lane 0", 7, 9, 0});
  fs::permissions(path, static_cast<fs::perms>(0640));
  const TuningDatabase all = TuningDatabase::add(link, "ffffffffffffffff", kTarget, {"", 7, 9, 0});
  EXPECT_EQ(fs::status(path).permissions(), static_cast<fs::perms>(0640));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(path), all.text());
  EXPECT_EQ(all.size(), 2u);
  fs::remove(link);
  fs::remove(path);
}

TEST(FileLock, AnotherHolderIsWaitedForAndNamed) {
  const std::string path = ::testing::TempDir() + "tgc_locked_" + std::to_string(getpid());
  const auto complaint = [](const std::string& of) {
    try {
      const FileLock lock(of, 0.02);
    } catch (const CompileError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  {
    const FileLock held(path);
    EXPECT_EQ(complaint(path), path +
                                   ": error TGC-E502: cannot be written: another process has kept it locked for 0 s\n"
                                   "  note: find it with lsof or fuser; when it ends the lock is gone");
    fs::rename(path, path + "_old"); // whoever comes now locks what has the name
    write_file(path, "");
    EXPECT_EQ(complaint(path), "");
  }
  EXPECT_EQ(complaint(path + "_old"), "");
  ASSERT_EQ(mkfifo((path + "_pipe").c_str(), 0600), 0);
  EXPECT_EQ(complaint(path + "_pipe"), path + "_pipe: error TGC-E502: cannot be written: it is no regular file");
  for (const char* suffix : {"", "_old", "_pipe"}) fs::remove(path + suffix);
}

TEST(TuningDatabase, DamagedTextIsReadOrRefused) {
  const std::string good = kLine + "tuned1 00000000000000aa " + kTarget + " ns 5 was 9 opts nest 1 8 | lane 0 | \n";
  uint64_t random = 5;
  const auto next = [&](size_t n) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<size_t>(random >> 33) % n;
  };
  int read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (size_t edits = 1 + next(3); edits-- > 0;) {
      const size_t at = next(text.size());
      if (next(4) == 0)
        text.erase(at, 1 + next(20));
      else if (next(3) == 0)
        text.insert(at, text.substr(next(text.size()), next(9)));
      else
        text[at] = static_cast<char>(next(256));
      if (text.empty()) text = "\n";
    }
    try {
      const std::string once = TuningDatabase::parse(text, "t").text();
      EXPECT_EQ(TuningDatabase::parse(once, "t").text(), once);
      ++read;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.all()[0].code, ErrorCode::E504) << text;
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 10000);
}

TEST(TuningDatabase, KernelsAreNamedByWhatTheyCompute) {
  const auto kernel = [](const char* name, const char* op) {
    return parse(std::string("; tgc uop 1\nfunc @") + name +
                 " {\n  %0 = param f32[8] 8 {slot=1}\n  %1 = range index 8 {axis=\"loop\" id=0}\n"
                 "  %2 = load f32 %0 %1\n  %3 = " +
                 op +
                 " f32 %2\n  %4 = param f32[8] 8 {slot=0}\n"
                 "  %5 = store %4 %1 %3\n  sink %5\n}\n");
  };
  const Module a = kernel("a", "neg"), b = kernel("b", "neg"), c = kernel("a", "abs");
  const std::string key = kernel_key(a.root, {false, true}, Numerics::Standard);
  EXPECT_EQ(key, kernel_key(b.root, {false, true}, Numerics::Standard));
  EXPECT_NE(key, kernel_key(c.root, {false, true}, Numerics::Standard));
  EXPECT_NE(key, kernel_key(a.root, {false, false}, Numerics::Standard));
  EXPECT_NE(key, kernel_key(a.root, {false, true}, Numerics::Strict));
  TargetInfo target = find_renderer(parse_target("cpu:c")).target(parse_target("cpu:c:x86-64-v3"));
  const std::string before = target_key(target);
  EXPECT_EQ(before.substr(0, 16), "cpu:c:x86-64-v3:");
  target.l2_bytes *= 2;
  EXPECT_NE(target_key(target), before);
}

TEST_F(Tuned, BeamFillsADatabaseThatLaterCompilesRead) {
  const std::string searched = compile(4);
  EXPECT_EQ(found, 0);
  EXPECT_GE(timed, 2);
  const std::string text = read_file(base);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), timed);
  const int kernels = timed;
  const std::string read = compile(0);
  EXPECT_TRUE(read == searched);
  EXPECT_EQ(found, kernels);
  EXPECT_EQ(timed, 0);
  EXPECT_TRUE(compile(4) == searched); // nothing is timed twice
  EXPECT_EQ(timed, 0);
  EXPECT_EQ(read_file(base), text);
  HostTensor x = zeros(DType::F32, {40, 96});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i % 31) / 16 - 1);
  plain();
  const auto run = [&](const char* name) { return run_bundle(load_bundle(folder + name).get(), {x}, {.threads = 2}); };
  EXPECT_TRUE(run("/x.bundle")[0].data == run("/plain.bundle")[0].data); // only the order of work differs
}

TEST_F(Tuned, ALineIsHonouredAndNothingElseChanges) {
  compile(1);
  std::string text = read_file(base), first = text.substr(0, text.find('\n'));
  const std::string opts = "split 1 16; lane 2";
  write_file(base, first.substr(0, first.find(" ns ")) + " ns 1 was 2 opts " + opts + "\n");
  const std::string one = compile(0);
  EXPECT_EQ(found, 1);
  EXPECT_GE(unknown, 1);
  EXPECT_NE(plan.find("opts=\"" + opts + "\""), std::string::npos) << plan;
  EXPECT_FALSE(one == plain());
  EXPECT_TRUE(compile(0) == one);
  write_file(base, "");
  EXPECT_TRUE(compile(0) == plain());
}

TEST_F(Tuned, ALineThatDoesNotApplyIsAnErrorOrTimedAgain) {
  compile(1);
  const std::string good = read_file(base), first = good.substr(0, good.find('\n'));
  const std::string bad = "# note\n" + first.substr(0, first.find(" ns ")) + " ns 1 was 2 opts lane 9\n";
  write_file(base, bad);
  try {
    compile(0);
    FAIL() << "compiled";
  } catch (const CompileError& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, base.size() + 29), base + ":2: error TGC-E504: kernel r_");
    EXPECT_EQ(e.all()[0].note, "remove the line, or let --beam time the kernel again");
  }
  compile(1);
  EXPECT_EQ(found, 0);
  EXPECT_EQ(read_file(base).find("lane 9"), std::string::npos);
}

TEST_F(Tuned, ADatabaseThatIsNotThereIsAnErrorUnlessItIsMade) {
  try {
    compile(0);
    FAIL() << "compiled";
  } catch (const CompileError& e) {
    EXPECT_EQ(std::string(e.what()),
              base + ": error TGC-E501: No such file or directory\n  note: check the path and its permissions");
  }
  base = folder + "/none/tuned.txt";
  try {
    compile(1);
    FAIL() << "compiled";
  } catch (const CompileError& e) {
    EXPECT_EQ(std::string(e.what()), base + ": error TGC-E502: cannot be written: No such file or directory");
  }
}

TEST_F(Tuned, SymbolicAndHalfKernelsAreTimed) {
  write_file(
      model,
      R"({"tgc": 1, "inputs": [{"name": "x", "type": "f16", "shape": ["n", 2048]}, {"name": "i", "type": "i64", "shape": ["n"]}],
    "nodes": [{"op": "exp", "name": "e", "in": ["x"]}, {"op": "reduce", "name": "s", "in": ["e"], "kind": "add", "axes": [0]},
      {"op": "add", "name": "j", "in": ["i", "i"]}], "outputs": ["s", "j"]})");
  EXPECT_FALSE(compile(4).empty());
  EXPECT_GE(timed, 2);
}

TEST_F(Tuned, ConvolutionsMaySumOtherwiseButAlmostTheSame) {
  std::string values;
  for (int i = 0; i < 32 * 32 * 9; ++i) values += (i ? "," : "") + std::to_string(i % 11 - 5);
  write_file(model, R"({"tgc": 1, "inputs": [{"name": "x", "type": "f32", "shape": [1, 32, 28, 28]}],
    "constants": [{"name": "w", "type": "f32", "shape": [32, 32, 3, 3], "data": [)" +
                        values + R"(]}],
    "nodes": [{"op": "neg", "name": "n", "in": ["x"]},
      {"op": "conv", "name": "c", "in": ["n", "w"], "stride": [1, 1], "dilation": [1, 1], "pad": [1, 1, 1, 1], "groups": 1},
      {"op": "abs", "name": "y", "in": ["c"]}], "outputs": ["y"]})");
  compile(3);
  EXPECT_GE(timed, 1);
  HostTensor x = zeros(DType::F32, {1, 32, 28, 28});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i % 61) / 32 - 1);
  plain();
  const auto run = [&](const char* name) {
    return run_bundle(load_bundle(folder + name).get(), {x}, {.threads = 2})[0];
  };
  const HostTensor a = run("/x.bundle"), b = run("/plain.bundle");
  for (int64_t i = 0; i < a.numel(); ++i) ASSERT_NEAR(a.at(i), b.at(i), 1e-5 * (64 + std::fabs(b.at(i)))) << i;
  CompileOptions strict;
  strict.numerics = Numerics::Strict;
  const int before = timed;
  compile(1, strict); // is timed for itself
  EXPECT_EQ(timed, before);
}

TEST_F(Tuned, ATargetThatCannotRunHereIsRefused) {
  CompileOptions options;
  options.target = "cpu:llvm:x86-64-v4";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this machine runs all that tgc compiles for";
#endif
  EXPECT_THROW(compile(1, options), CompileError);
}
