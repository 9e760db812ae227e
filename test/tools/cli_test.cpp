// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program tgc as a clumsy user meets it: exact texts, exit codes, and files that are left alone.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "frontend/onnx_writer.h"
#include "testing.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code;
  std::string text; ///< standard output and error
};

class Cli : public ::testing::Test {
protected:
  fs::path folder = fs::path(::testing::TempDir()) / ("tgc_cli_" + std::to_string(getpid()));
  void SetUp() override {
    fs::create_directories(folder);
    setenv("XDG_CACHE_HOME", (folder.string() + "_cache").c_str(), 1); // the user's own is none of a test's
    fs::copy_file(source_path("models/fashion_cnn/model.onnx"), folder / "m.onnx");
    write_file(folder / "exp.json", json("[\"N\", 3]", R"({"op": "exp", "name": "y", "in": ["x"]})"));
  }
  void TearDown() override {
    fs::remove_all(folder);
    fs::remove_all(folder.string() + "_cache");
  }

  static std::string json(const std::string& shape, const std::string& nodes) {
    return R"({"tgc": 1, "inputs": [{"name": "x", "type": "f32", "shape": )" + shape + R"(}], "nodes": [)" + nodes +
           R"(], "outputs": ["y"]})";
  }
  /// Runs a shell command in the folder; `tgc` and `tgrun` are the programs.
  Outcome run(const std::string& command) const {
    const std::string script =
        "cd " + folder.string() + "; tgc() { " TGC_PROGRAM " \"$@\"; }; tgrun() { " TGRUN_PROGRAM " \"$@\"; }; ";
    FILE* pipe = ::popen((script + "( " + command + " ) 2>&1").c_str(), "r");
    Outcome outcome{-1, {}};
    char block[4096];
    for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) outcome.text.append(block, n);
    const int status = ::pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }
  void expect(const std::string& command, int code, const std::string& text) const {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << command;
    EXPECT_EQ(outcome.text, text.empty() ? "" : text + "\n") << command;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
  std::string content(const std::string& name) const { return read_file((folder / name).string()); }
};

} // namespace

TEST_F(Cli, ModelsThatCannotBeRead) {
  write_file(folder / "empty.onnx", "");
  write_file(folder / "cut.onnx", content("m.onnx").substr(0, 1000));
  write_file(folder / "cut.json", "{\"tgc\": 1");
  write_file(folder / "words.txt", "hello world\n");
  write_file(folder / "x.bundle", std::string("\x89TGC\r\n\x1a\n", 8));
  write_file(folder / "x.npy", "\x93NUMPY\x01");
  write_file(folder / "x.pt", "PK\x03\x04");
  expect(
      "tgc x.bundle -o y", 1,
      "x.bundle: error TGC-E201: this is no model but a bundle, which is what tgc makes\n  note: run it: tgrun FILE");
  expect("tgc x.npy", 1,
         "x.npy: error TGC-E201: this is no model but a NumPy array\n  note: it may be an input of a run: tgrun BUNDLE "
         "--input NAME=FILE");
  expect("tgc x.pt", 1,
         "x.pt: error TGC-E201: this is no model but a zip archive (PyTorch checkpoints and .npz files are)\n  note: "
         "export the model to ONNX: torch.onnx.export");
  fs::remove(folder / "x.bundle");
  const std::string incomplete = "\n  note: the file is not a complete ONNX model; export or download it again";
  expect("tgc none.onnx", 1,
         "none.onnx: error TGC-E501: No such file or directory\n  note: check the path and its permissions");
  expect("tgc .", 1, ".: error TGC-E501: Is a directory\n  note: check the path and its permissions");
  expect("tgc empty.onnx", 1, "empty.onnx: error TGC-E201: the file is empty" + incomplete);
  expect("tgc cut.onnx", 1,
         "cut.onnx: error TGC-E201: byte 20: a field of 325752 bytes runs past the end (977 bytes are left)" +
             incomplete);
  expect("tgc cut.json", 1, "cut.json: error TGC-E208: byte 10: not JSON\n  note: a JSON checker names the mistake");
  expect("tgc words.txt", 1, "words.txt:1:1: error TGC-E102: found \"hello\", expected the header \"; tgc uop 1\"");
  write_file(folder / "comment.uop", "; tgc uop 1\n; and no more");
  expect("tgc comment.uop", 1,
         "comment.uop:2:14: error TGC-E102: found the end of the text, expected a func or a line");
  expect("tgc - -o x.bundle < /dev/null", 1, "standard input: error TGC-E201: the file is empty" + incomplete);
  if (getuid() != 0) { // root reads everything
    fs::permissions(folder / "m.onnx", fs::perms::none);
    expect("tgc m.onnx", 1, "m.onnx: error TGC-E501: Permission denied\n  note: check the path and its permissions");
  }
  for (const std::string& name : files()) EXPECT_EQ(name.find("bundle"), std::string::npos) << name;
}

TEST_F(Cli, OutputsThatCannotBeWritten) {
  const std::string model = content("m.onnx");
  write_file(folder / "old.bundle", "old");
  fs::create_directory(folder / "read_only");
  expect("tgc exp.json -o none/x.bundle", 1,
         "none/x.bundle: error TGC-E502: cannot be written: No such file or directory");
  expect("tgc exp.json -o .", 1, ".: error TGC-E502: cannot be written: Is a directory");
  expect("tgc exp.json -o /dev/full", 1, "/dev/full: error TGC-E502: cannot be written: No space left on device");
  expect("tgc exp.json --emit=uops -o /dev/full", 1,
         "/dev/full: error TGC-E502: cannot be written: No space left on device");
  expect("tgc m.onnx --emit=uops > /dev/full", 1, "tgc: standard output cannot be written");
  expect("tgc --help > /dev/full", 1, "tgc: standard output cannot be written");
  expect("tgc m.onnx -o m.onnx", 2, "tgc: -o \"m.onnx\" is the model itself (see tgc --help)");
  expect("tgc m.onnx --emit=uops -o ./m.onnx", 2, "tgc: -o \"./m.onnx\" is the model itself (see tgc --help)");
  EXPECT_TRUE(content("m.onnx") == model);
  expect("tgc m.onnx --emit=uops -o w.uop && tgc w.uop -o m.onnx", 2,
         "tgc: -o \"m.onnx\" is a file of weights itself (see tgc --help)");
  EXPECT_TRUE(content("m.onnx") == model);
  fs::remove(folder / "w.uop");
  if (getuid() != 0) {
    fs::permissions(folder / "read_only", fs::perms::owner_read | fs::perms::owner_exec);
    expect("tgc exp.json -o read_only/x.bundle", 1,
           "read_only/x.bundle: error TGC-E502: cannot be written: Permission denied");
  }
  // A disk that fills up while the bundle is written: what was there stays.
  const Outcome full = run("ulimit -f 8; trap '' XFSZ; tgc exp.json -o old.bundle");
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.text, "old.bundle: error TGC-E502: cannot be written: File too large\n");
  EXPECT_EQ(content("old.bundle"), "old");
  EXPECT_EQ(files(), (std::set<std::string>{"exp.json", "m.onnx", "old.bundle", "read_only"}));
}

TEST_F(Cli, AModelComesThroughANamedPipe) {
  expect("mkfifo in; timeout 60 sh -c 'cat m.onnx > in' & tgc in --target=cpu -o a.bundle && wait $!", 0, "");
}

TEST_F(Cli, ABundleGoesThroughAPipe) {
  ASSERT_EQ(run("tgc m.onnx --target=cpu -o m.bundle").code, 0);
  expect("tgc m.onnx --target=cpu -o /dev/stdout 2>/dev/null | cmp - m.bundle", 0, "");
  expect("mkfifo pipe; timeout 60 cmp pipe m.bundle & tgc m.onnx --target=cpu -o pipe 2>/dev/null && wait $!", 0, "");
}

TEST_F(Cli, VerifyNeedsAFileItCanRun) {
  expect("tgc m.onnx --target=cpu --verify -o /dev/stdout | wc -c", 0,
         "tgc: --verify runs the bundle; -o \"/dev/stdout\" is no file that can be read again (see tgc --help)\n0");
}

TEST_F(Cli, ACacheThatWasAskedForAndCannotBeWrittenIsTold) {
  write_file(folder / "file", "");
  expect("tgc m.onnx --target=cpu --cache file -o m.bundle", 0,
         "tgc: warning: --cache file: kernels are not kept: cannot make a file: Not a directory");
  expect("XDG_CACHE_HOME=$PWD/file tgc m.onnx --target=cpu -o m.bundle", 0, "");
}

TEST_F(Cli, ARunSaysWhichDimsNothingGives) {
  ASSERT_EQ(run("tgc exp.json --target=cpu --dim N=2..9 -o e.bundle").code, 0);
  EXPECT_EQ(run("tgrun e.bundle 2>&1 >/dev/null").text, "tgrun: note: neither an input nor --dim gives: N=2\n");
  EXPECT_EQ(run("tgrun e.bundle --dim N=2 2>&1 >/dev/null").text, "");
  const std::string two = R"({"tgc": 1, "inputs": [{"name": "a", "type": "f32", "shape": ["N", 3]},
    {"name": "b", "type": "f32", "shape": ["M"]}], "nodes": [{"op": "exp", "name": "y", "in": ["a"]},
    {"op": "exp", "name": "z", "in": ["b"]}], "outputs": ["y", "z"]})";
  write_file(folder / "two.json", two);
  ASSERT_EQ(run("tgc two.json --target=cpu -o two.bundle && tgrun e.bundle --dim N=3 --save out 2>/dev/null").code, 0);
  EXPECT_EQ(run("tgrun two.bundle --input a=out/output_0.npy 2>&1 >/dev/null").text,
            "tgrun: note: neither an input nor --dim gives: M=1\n"
            "tgrun: note: input \"b\" is not given and takes random values (--seed 0)\n");
}

TEST_F(Cli, TemporaryFilesNeedNoCertainFolder) {
  EXPECT_EQ(run("TMPDIR=/nowhere tgc m.onnx --target=cpu -o m.bundle && tgrun --check m.bundle").code, 0);
}

TEST_F(Cli, CommandLinesThatMakeNoSense) {
  expect("tgc", 2, "tgc: no MODEL given (see tgc --help)");
  expect("tgc - < m.onnx", 2, "tgc: a model from standard input needs -o FILE (see tgc --help)");
  expect("tgc m.onnx --taget=cpu", 2, "tgc: unknown option \"--taget\"; did you mean \"--target\"? (see tgc --help)");
  expect("tgc m.onnx --stop-after=rangify", 2,
         "tgc: --stop-after \"rangify\": no such pass; did you mean \"rangeify\"? (see tgc --help)");
  expect("tgc m.onnx --disable-rule=nothing-of-the-kind", 2,
         "tgc: --disable-rule \"nothing-of-the-kind\": no such rule (see tgc --help)");
  expect("tgc m.onnx --disable-pass=rangeify", 1,
         "error TGC-E503: pass \"rangeify\" cannot be disabled\n  note: tgc --list-passes lists them");
}

TEST_F(Cli, TargetsThatDoNotExist) {
  expect("tgc m.onnx --target=gpu", 1, "error TGC-E401: unknown device `gpu`; did you mean `cpu`?\n  note: known: cpu");
  expect("tgc m.onnx --target=cpu:rust", 1,
         "error TGC-E401: device `cpu` has no renderer `rust`\n  note: known: c, llvm");
  EXPECT_EQ(run("tgc m.onnx --target=cpu:llvm:znver9").text.substr(0, 74),
            "error TGC-E401: unknown architecture `znver9`; did you mean `znver1`?\n  no");
  EXPECT_EQ(run("tgc m.onnx --target=cpu:llvm:x86-64,+avx99").text.substr(0, 70),
            "error TGC-E401: unknown CPU feature `avx99`; did you mean `avx`?\n  not");
  expect("PATH=/nonexistent; tgc exp.json --target=cpu:c", 1,
         "error TGC-E404: cpu:c needs the program `cc`, which is not in PATH\n"
         "  note: Install one (apt-get install gcc), or use --target=cpu, which needs none.");
}

TEST_F(Cli, DimsThatDoNotFit) {
  const std::string known = "\n  note: the model's symbolic dims are: ";
  expect("tgc m.onnx --dim bach=3", 1, "m.onnx: error TGC-E209: there is no dim \"bach\" to set" + known + "batch");
  expect("tgc exp.json --dim M=3", 1, "exp.json: error TGC-E209: there is no dim \"M\" to set" + known + "N");
  expect("tgc m.onnx --dim batch=0", 2, "tgc: --dim \"batch=0\": expected 1 <= LO <= HI (see tgc --help)");
  expect("tgc m.onnx --dim batch=99999999999999999999", 2,
         "tgc: --dim \"batch=99999999999999999999\": expected NAME=VALUE or NAME=LO..HI (see tgc --help)");
  const std::string large = " has 2^55 bytes or more\n  note: check the dims and the operands that decide it";
  expect("tgc m.onnx --dim batch=9223372036854775807", 1,
         "m.onnx: error TGC-E207: input \"image\" of shape [9223372036854775807,1,28,28]" + large);
  expect("tgc m.onnx --dim batch=1099511627776", 1,
         "m.onnx: node \"/c1/Conv\" (Conv, opset 13): error TGC-E207: the result of shape [1099511627776,16,28,28]" +
             large);
  expect("tgc exp.json --emit=kernels -o k.uop && tgc k.uop --start-before=plan-memory --dim N=3", 1,
         "k.uop: error TGC-E209: the dims of .uop text are fixed\n"
         "  note: change the bounds of its vars, or give --dim with the model it came from");
  write_file(folder / "rank.json", json("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", ""));
  EXPECT_EQ(run("tgc rank.json").text.substr(0, 77),
            "rank.json: /inputs/0/shape: error TGC-E208: has rank 17, the limit is 16\nrank");
}

TEST_F(Cli, HugeAndEmptyTensorsCompile) {
  write_file(folder / "huge.json", json("[1099511627776]", R"({"op": "exp", "name": "y", "in": ["x"]})"));
  expect("tgc huge.json", 0, "");
#ifndef __SANITIZE_ADDRESS__ // which ends the program instead of returning null
  expect("tgrun huge.bundle", 1,
         "tgrun: huge.bundle: error TGR-E102: 8796093022272 bytes of buffers cannot be allocated\n"
         "  note: Choose smaller dims or fewer contexts.");
#endif
  // Sums of weights that take hours are left for run time.
  write_file(folder / "long.json", R"({"tgc": 1, "inputs": [{"name": "x", "type": "f32", "shape": [4]}],
    "constants": [{"name": "c", "type": "f32", "shape": [4, 1], "data": [1, 2, 3, 4]}],
    "nodes": [{"op": "expand", "name": "e", "in": ["c"], "shape": [4, 1073741824]}, {"op": "exp", "name": "f", "in": ["e"]},
      {"op": "reduce", "name": "r", "in": ["f"], "kind": "add", "axes": [1]},
      {"op": "reduce", "name": "s", "in": ["r"], "kind": "add", "axes": [0], "keep": 1},
      {"op": "div", "name": "q", "in": ["r", "s"]}, {"op": "mul", "name": "y", "in": ["x", "q"]}], "outputs": ["y"]})");
  expect("timeout 20 " TGC_PROGRAM " long.json", 0, "");
  write_file(folder / "empty.json", json("[0, 3]", R"({"op": "exp", "name": "e", "in": ["x"]},
    {"op": "reduce", "name": "y", "in": ["e"], "kind": "add", "axes": [0]})"));
  expect("tgc empty.json && tgrun empty.bundle", 0, "y f32[3]: 0 0 0");
}

TEST_F(Cli, TextOfALaterStageNeedsItsPlace) {
  const std::string linear = source_path("test/golden/dense.linearize.uop");
  expect("tgc " + linear + " -o x.bundle", 1,
         linear + ": error TGC-E503: the text is of a later stage than import\n"
                  "  note: say where to go on: --start-before=PASS");
  expect(
      "tgc " + linear + " --start-before=rangeify -o x.bundle", 1,
      linear +
          ": error TGC-E103: spec \"tensor\" does not allow buffer:f32(4, 10){slot=0,space=global} of type f32[4,10]\n"
          "  note: the spec is: tensor graph: movement, elementwise over equal shapes, reductions over axes; each "
          "output stored once, unread");
  expect("tgc m.onnx --start-before=expand -o x.bundle", 1,
         "m.onnx: error TGC-E503: pass \"expand\" takes a plan, the input is a tensor graph\n"
         "  note: --stop-after prints the text that a later pass takes");
  expect("tgc " + linear + " --start-before=linearize -o x.bundle && tgrun x.bundle --check", 0, "x.bundle: ok");
}

TEST_F(Cli, TextOfALaterStageIsVerified) {
  const auto verifies = [&](const std::string& text, const std::string& how) {
    const Outcome outcome = run("tgc " + text + " -o x.bundle --start-before=" + how);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("verify: output 0: max error "), std::string::npos) << outcome.text;
  };
  expect(
      "tgc exp.json --emit=uops -o u.uop && tgc exp.json --emit=kernels -o k.uop && tgc exp.json --emit=plan -o p.uop",
      0, "");
  verifies("u.uop", "rangeify --verify");
  verifies("k.uop", "plan-memory --verify");
  verifies("k.uop", "plan-memory --verify=stages");
  verifies("p.uop", "form-words --verify");
  expect("tgc k.uop -o x.bundle --start-before=plan-memory --verify=sample", 1,
         "k.uop: error TGC-E503: elements are sampled from a tensor graph, the text is a plan\n"
         "  note: --verify=outputs compares all elements");
  const Outcome twice = run("tgc p.uop -o x.bundle --start-before=optimize --verify");
  EXPECT_EQ(twice.code, 1);
  EXPECT_EQ(twice.text.substr(0, 17), "p.uop: kernel e_N") << twice.text;
  EXPECT_NE(
      twice.text.find(
          "  note: the kernel's opts are applied already, as in what --emit=plan prints: --start-before=form-words"),
      std::string::npos)
      << twice.text;
  write_file(folder / "bare.uop",
             "; tgc uop 1\nfunc @main {\n  %0 = param f32[4] 4 {slot=0 name=\"x\"}\n  sink %0\n}\n");
  const Outcome bare = run("tgc bare.uop -o x.bundle --verify");
  EXPECT_EQ(bare.code, 1) << bare.text;
  EXPECT_EQ(bare.text.substr(0, 26), "bare.uop: error TGC-E103: ") << bare.text;
}

TEST_F(Cli, TextThatTheSchedulerCannotTake) {
  write_file(folder / "after.uop", R"(; tgc uop 1
func @main {
  %0 = param f32[4] 4 {slot=1 name="y"}
  %1 = param f32[4] 4 {slot=0 name="x"}
  %2 = store %1 %1
  %3 = after f32[4] %1 %2
  %4 = exp f32[4] %3
  %5 = store %0 %4
  sink %5
}
)");
  expect("tgc after.uop", 1,
         "after.uop: error TGC-E301: after cannot be scheduled in a tensor graph\n"
         "  note: a tensor graph is movement, elementwise ops and reductions under stores");
  const std::string path = source_path("test/golden/dense.linearize.uop"), linear = read_file(path);
  const std::string kernel =
      linear.substr(linear.find("pack_r_"), linear.find(" {", linear.find("pack_r_")) - linear.find("pack_r_"));
  expect("tgc " + path + " --start-before=optimize -o x.bundle", 1,
         path + ": kernel " + kernel + ": error TGC-E302: opt \"lane 2\": there is no such axis");
}

TEST_F(Cli, StandardInputIsAModel) {
  expect("cat m.onnx | tgc - -o a.bundle && tgc m.onnx -o b.bundle", 0, "");
  EXPECT_TRUE(content("a.bundle") == content("b.bundle"));
}

TEST_F(Cli, UnsupportedNodesAreAllNamed) {
  ModelSpec s;
  s.nodes = {node({"Frob", {"x"}, {"a"}, {}, "first"}), node({"Relu", {"a"}, {"b"}}),
             node({"Frob", {"b"}, {"c"}, {}, "second"}), node({"Mish", {"c"}, {"y"}, {}, "third"})};
  s.inputs = {value_info("x", 1, {2})};
  s.outputs = {value_info("y", 1, {2})};
  write_file(folder / "odd.onnx", model(s));
  expect("tgc odd.onnx --check", 1,
         "odd.onnx: node \"first\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
         "odd.onnx: node \"second\" (Frob, opset 13): error TGC-E202: operator Frob is not supported\n"
         "odd.onnx: node \"third\" (Mish, opset 13): error TGC-E202: operator Mish is not supported\n"
         "  note: supported in opsets 18..28\n"
         "odd.onnx: error TGC-E202: 3 nodes need unsupported operators: Frob 2, Mish 1");
}

/// Waits until the process is tgc, no longer a copy of this one, and has its handler of SIGINT.
void wait_for_handler(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/status", field = "SigCgt:";
  for (int i = 0; i < 2000; ++i) {
    const std::string status = read_file(path);
    const size_t at = status.find(field);
    if (status.starts_with("Name:\ttgc\n") && at != std::string::npos &&
        (std::strtoull(status.c_str() + at + field.size(), nullptr, 16) & 2) != 0)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "no handler of SIGINT in 2 s";
}

TEST_F(Cli, AnInterruptLeavesNothingBehind) {
  write_file(folder / "old.bundle", "old");
  const auto temporaries = [] {
    std::set<std::string> names;
    for (const char* place : {"/tmp", "/dev/shm"})
      for (const auto& entry : fs::directory_iterator(place, fs::directory_options::skip_permission_denied)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("tgc-fold-") || (name.starts_with("tgc-") && name.size() == 10))
          names.insert(entry.path().string());
      }
    return names;
  };
  for (const char* target : {"--target=cpu:llvm", "--target=cpu:c"})
    for (const int after_ms : {0, 20, 50, 100, 200}) {
      const std::set<std::string> before = temporaries();
      const pid_t child = fork();
      if (child == 0) {
        if (chdir(folder.c_str()) == 0)
          execl(TGC_PROGRAM, "tgc", "m.onnx", target, "-o", "old.bundle", "--jobs=1", "--cache=off", nullptr);
        _exit(127);
      }
      wait_for_handler(child);
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms)); // anywhere in the compile
      kill(child, SIGINT);
      int status = 0;
      waitpid(child, &status, 0);
      const bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0; // it was faster
      EXPECT_TRUE(done || (WIFEXITED(status) && WEXITSTATUS(status) == 130))
          << target << " after " << after_ms << " ms: " << status;
      if (done) write_file(folder / "old.bundle", "old");
      EXPECT_EQ(content("old.bundle"), "old");
      EXPECT_EQ(files(), (std::set<std::string>{"exp.json", "m.onnx", "old.bundle"}));
      // Other compiles may run on this machine; theirs go away.
      std::set<std::string> left = temporaries();
      for (const std::string& name : before) left.erase(name);
      for (int i = 0; i < 500 && !left.empty(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::erase_if(left, [](const std::string& name) { return !fs::exists(name); });
      }
      EXPECT_EQ(left, std::set<std::string>());
    }
}

TEST_F(Cli, VerifiesModelsWithTraps) {
  ModelSpec m; // seeded indices reach outside of two rows
  m.inputs = {value_info("x", 1, {2, 3}), value_info("i", 7, {9})};
  m.nodes = {node({"Gather", {"x", "i"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  write_file(folder / "gather.onnx", model(m));
  for (const char* how : {"", "=sample", "=stages"}) {
    const Outcome outcome = run("tgc gather.onnx --verify" + std::string(how));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_TRUE(outcome.text.ends_with("(largest value 0.591): agrees\n")) << outcome.text;
  }
}

TEST_F(Cli, VerifiesModelsWhoseDimsDependOnEachOther) {
  ModelSpec m; // s = a + b
  m.inputs = {value_info("x", 1, {"a"}), value_info("z", 1, {"b"}), value_info("q", 1, {"s"})};
  m.nodes = {node({"Concat", {"x", "z"}, {"c"}, {attr("axis", int64_t{0})}}), node({"Add", {"c", "q"}, {"y"}})};
  m.outputs = {Wire().text(1, "y")};
  write_file(folder / "sum.onnx", model(m));
  const std::string agrees = "verify: output 0: max error 0 ";
  Outcome outcome = run("tgc sum.onnx --verify");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("verify: a = 2\nverify: b = 2\nverify: s = 4\n" + agrees), 0U) << outcome.text;
  outcome = run("tgc sum.onnx --verify --dim s=2..3");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(agrees), std::string::npos) << outcome.text;
}

TEST_F(Cli, RefusesTextWithOutputsThatNoRuntimeTakes) {
  const auto refused = [&](const std::string& lines) {
    write_file(folder / "odd.uop",
               "; tgc uop 1\nfunc @main {\n  %0 = param f32[3] 3 {slot=0 name=\"x\"}\n" + lines + "}\n");
    const Outcome outcome = run("tgc odd.uop");
    EXPECT_EQ(outcome.code, 1) << lines;
    EXPECT_NE(outcome.text.find("odd.uop: error TGC-E103: spec \"tensor\" does not allow "), std::string::npos)
        << outcome.text;
  };
  const std::string output = "  %1 = param f32[3] 3 {slot=1 name=\"y\"}\n", store = "  %2 = store %1 %0\n";
  refused("  %1 = param f32[3] 3 {slot=1 name=\"y\" space=\"trap\"}\n" + store + "  sink %2\n");
  refused(output + store + "  %3 = neg %0\n  %4 = store %1 %3\n  sink %2 %4\n");
  refused(output + "  %2 = add %0 %1\n  %3 = store %1 %2\n  sink %3\n");
}

TEST_F(Cli, EveryOptionalPassCanBeLeftOut) {
  const std::string agrees = ": agrees\n";
  for (const char* options :
       {"--verify=stages", "--only=simplify --verify", "--verify=sample", "--disable-pass=mark-constants --verify",
        "--disable-pass=plan-memory --verify", "--disable-pass=optimize --verify", "--disable-pass=simplify --verify",
        "--disable-pass=order-sums --verify", "--disable-pass=narrow-masks --verify",
        "--disable-pass=widen-half --verify", "--disable-pass=byte-products --verify"}) {
    const Outcome outcome = run("tgc m.onnx " + std::string(options));
    EXPECT_EQ(outcome.code, 0) << options;
    EXPECT_TRUE(outcome.text.ends_with(agrees)) << options << "\n" << outcome.text;
    EXPECT_EQ(outcome.text.find("DIFFERS"), std::string::npos);
  }
  const std::string optional = run("tgc --list-passes | grep -c '(optional)'").text;
  EXPECT_EQ(optional, "8\n") << "name the new one above";
  const Outcome printed = run("tgc exp.json --print-after=rangeify,linearize --check");
  EXPECT_EQ(printed.code, 0);
  EXPECT_EQ(printed.text.find("; after rangeify\n; tgc uop 1\n"), 0U);
  EXPECT_NE(printed.text.find("; after linearize\n; tgc uop 1\n"), std::string::npos);
}
