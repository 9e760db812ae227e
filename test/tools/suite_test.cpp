// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The judge is judged: files, tolerances, worker processes, reports and the scoreboard of tgc-onnx-suite.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "tgc-onnx-suite/case.h"
#include "tgc-onnx-suite/options.h"
#include "tgc-onnx-suite/report.h"
#include "tgc/options.h"
#include "uop/diag.h"

using namespace tgc;
using namespace tgc::suite;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

HostTensor floats(std::vector<double> values) {
  return tensor_of(DType::F32, {static_cast<int64_t>(values.size())}, values);
}

/// A folder that is removed with the test, and files in it.
class SuiteFolder : public testing::Test {
protected:
  void SetUp() override {
    root_ = testing::TempDir() + "tgc_suite_XXXXXX";
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -r '" + root_ + "'").c_str()), 0); }

  std::string file(const std::string& name, const std::string& bytes) {
    const std::string path = root_ + "/" + name;
    for (size_t at = root_.size() + 1; (at = path.find('/', at)) != std::string::npos; ++at) {
      mkdir(path.substr(0, at).c_str(), 0755);
    }
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::string complaint(const std::string& bytes) {
    try {
      read_tensor_proto(file("bad.pb", bytes));
    } catch (const std::runtime_error& error) {
      return std::string(error.what()).substr(root_.size() + 1);
    }
    return "";
  }

  std::string root_;
};

Case fake(const char* name) { return {"node", name, name, {}, {}}; }

/// Behaves as the test's name says.
std::vector<HostTensor> act(const std::string& model, const Feed&) {
  if (model == "abort") std::abort();
  if (model == "exit") _exit(7);
  if (model == "hang") {
    while (true) pause();
  }
  if (model == "throw") throw std::logic_error("two\nlines");
  if (model == "unsupported") {
    throw CompileError(Diagnostic{ErrorCode::E202, "m.onnx: node \"n\" (Foo, opset 9)", "operator Foo", ""});
  }
  if (model == "eval") throw CompileError(Diagnostic{ErrorCode::E105, "", "index 9 of 4", ""});
  return {};
}

std::string outcome(std::vector<const char*> names, int jobs, int batch) {
  std::vector<Case> cases;
  for (const char* name : names) cases.push_back(fake(name));
  RunOptions options;
  options.jobs = jobs;
  options.batch = batch;
  options.timeout_s = 1;
  std::string text;
  for (const Verdict& v : run_cases(cases, act, options)) text += std::string(name(v.status)) + ":" + v.detail + "\n";
  return text;
}

std::string usage_complaint(std::vector<const char*> args) {
  try {
    suite::parse_options(args);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST(SuiteDifference, TakesTheToleranceOfOnnx) {
  EXPECT_EQ(difference(floats({1.0009, 5e-8, kNaN, kInf}), floats({1, 0, kNaN, kInf}), 1e-3, 1e-7), "");
  EXPECT_EQ(difference(floats({1, 2.1, 4}), floats({1, 2, 3}), 1e-3, 1e-7),
            "2 of 3 elements differ; [1] is 2.0999999, expected 2");
  EXPECT_EQ(difference(floats({1}), floats({kNaN}), 1e-3, 1e-7), "1 of 1 elements differ; [0] is 1, expected nan");
  EXPECT_EQ(difference(floats({1e30}), floats({kInf}), 1e-3, 1e-7),
            "1 of 1 elements differ; [0] is 1.00000002e+30, expected inf");
  EXPECT_EQ(difference(floats({-kInf}), floats({kInf}), 1e-3, 1e-7),
            "1 of 1 elements differ; [0] is -inf, expected inf");
}

TEST(SuiteDifference, IntegersMustBeEqual) {
  const HostTensor large = tensor_of(DType::I64, {1}, {1000001});
  EXPECT_EQ(difference(large, tensor_of(DType::I64, {1}, {1000000}), 1e-3, 1e-7),
            "1 of 1 elements differ; [0] is 1000001, expected 1000000");
  EXPECT_EQ(difference(large, large, 1e-3, 1e-7), "");
}

TEST(SuiteDifference, OfTwoTargetsIsOfBits) {
  EXPECT_EQ(bit_difference(floats({1, 0.0, kNaN}), floats({1, 0.0, -kNaN})), "");
  EXPECT_EQ(bit_difference(floats({1, -0.0}), floats({1, 0.0})), "[1] is -0, expected 0");
  EXPECT_EQ(bit_difference(floats({1.0000001}), floats({1})), "1 of 1 elements differ; [0] is 1.00000012, expected 1");
  const auto gives = [](double x) { return [x](const std::string&, const Feed&) { return std::vector{floats({x})}; }; };
  const Case test = fake("any");
  EXPECT_EQ(both(gives(2), gives(2), "cpu:c")("any", Feed(test))[0].at(0), 2);
  EXPECT_EQ(run_case(test, both(gives(2), gives(3), "cpu:c")).status, Status::Wrong);
  EXPECT_EQ(run_case(test, both(gives(2), gives(3), "cpu:c")).detail,
            "output 0 against cpu:c: 1 of 1 elements differ; [0] is 2, expected 3");
}

TEST(SuiteDifference, TypesAndShapesMustBeEqual) {
  EXPECT_EQ(difference(tensor_of(DType::F64, {1}, {1}), floats({1}), 1e-3, 1e-7), "type f64, expected f32");
  EXPECT_EQ(difference(tensor_of(DType::F32, {1, 1}, {1}), floats({1}), 1e-3, 1e-7), "shape [1,1], expected [1]");
}

TEST_F(SuiteFolder, ReadsRawAndTypedTensorProtos) {
  using std::string_literals::operator""s;
  // dims = [2] (packed), data_type = FLOAT, name = "x", raw_data = 1.0f, -2.0f
  const HostTensor raw =
      read_tensor_proto(file("raw.pb", "\x0a\x01\x02\x10\x01\x42\x01x\x4a\x08\0\0\x80\x3f\0\0\0\xc0"s));
  EXPECT_EQ(difference(raw, floats({1, -2}), 0, 0), "");
  // dims = 1, dims = 2 (unpacked), data_type = INT64, int64_data = [-1, 300]
  const HostTensor typed = read_tensor_proto(
      file("typed.pb", "\x08\x01\x08\x02\x10\x07\x3a\x0c\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02"s));
  EXPECT_EQ(difference(typed, tensor_of(DType::I64, {1, 2}, {-1, 300}), 0, 0), "");
  // a scalar bool in int32_data
  const HostTensor scalar = read_tensor_proto(file("scalar.pb", "\x10\x09\x2a\x01\x01"s));
  EXPECT_EQ(difference(scalar, tensor_of(DType::Bool, {}, {1}), 0, 0), "");
}

TEST_F(SuiteFolder, RefusesWhatIsNoTensor) {
  using std::string_literals::operator""s;
  EXPECT_EQ(complaint("\x0a\x05\x02"s), "bad.pb: is not a TensorProto");
  EXPECT_EQ(complaint("\x08\x02\x10\x01\x4a\x04\0\0\x80\x3f"s), "bad.pb: is not a TensorProto");
  EXPECT_EQ(complaint("\x10\x08\x32\x01x"s), "bad.pb: tensor of data_type 8 is not supported");
  EXPECT_THROW(read_tensor_proto(root_ + "/absent.pb"), std::runtime_error);
}

TEST_F(SuiteFolder, InputsOfAModelLeaveInitializersOut) {
  using std::string_literals::operator""s;
  // graph { initializer { name: "w" } input { name: "w" } input { name: "x" } }
  const std::string graph = "\x2a\x03\x42\x01w\x5a\x03\x0a\x01w\x5a\x03\x0a\x01x"s;
  EXPECT_EQ(input_names(file("m.onnx", "\x08\x07\x3a\x0f" + graph)), std::vector<std::string>{"x"});
  EXPECT_THROW(input_names(file("bad.onnx", "\x3a\x7f")), std::runtime_error);
}

TEST_F(SuiteFolder, FindsCasesByLayoutAndGlob) {
  file("node/test_b/model.onnx", "");
  file("node/test_a/model.onnx", "");
  file("node/test_a/test_data_set_0/input_0.pb", "");
  file("node/test_a/test_data_set_0/input_1.pb", "");
  file("node/test_a/test_data_set_0/output_0.pb", "");
  file("light/net.onnx", "");
  file("light/net_output_0.pb", "");
  file("light/README.md", "");
  file("node/no_model/readme", "");
  const std::vector<Case> all = find_cases(root_, "");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "test_a");
  EXPECT_EQ(all[0].inputs.size(), 2u);
  EXPECT_EQ(all[0].outputs, std::vector<std::string>{root_ + "/node/test_a/test_data_set_0/output_0.pb"});
  EXPECT_EQ(all[2].suite, "light");
  EXPECT_EQ(all[2].name, "net");
  EXPECT_EQ(all[2].outputs, std::vector<std::string>{root_ + "/light/net_output_0.pb"});
  EXPECT_EQ(find_cases(root_, "test_?").size(), 2u);
  EXPECT_EQ(find_cases(root_, "light/*").size(), 1u);
  EXPECT_THROW(find_cases(root_ + "/node/test_a", ""), std::runtime_error);
}

TEST_F(SuiteFolder, CaseWithoutInputFilesIsFedARamp) {
  Case test{"light", "net", "net", {}, {}};
  std::vector<HostTensor> fed;
  const Backend backend = [&](const std::string&, const Feed& feed) {
    EXPECT_FALSE(feed.has_files());
    fed.push_back(feed.ramp({DType::F32, {2, 2}}));
    return std::vector<HostTensor>{};
  };
  EXPECT_EQ(run_case(test, backend).status, Status::Pass);
  ASSERT_EQ(fed.size(), 1u);
  EXPECT_EQ(difference(fed[0], tensor_of(DType::F32, {2, 2}, {0, 0.25, 0.5, 0.75}), 0, 0), "");
}

TEST(SuiteWorkers, EveryFailureIsChargedToItsCase) {
  const std::string expected = "pass:\n"
                               "crash:killed by Aborted\n"
                               "unsupported:TGC-E202: operator Foo (node \"n\" (Foo, opset 9))\n"
                               "crash:the process ended with exit code 7\n"
                               "crash:no result after 1 s\n"
                               "crash:two lines\n"
                               "crash:TGC-E105: index 9 of 4\n"
                               "pass:\n";
  const std::vector<const char*> names = {"fine", "abort", "unsupported", "exit", "hang", "throw", "eval", "fine"};
  EXPECT_EQ(outcome(names, 1, 64), expected);
  EXPECT_EQ(outcome(names, 3, 2), expected);
}

TEST(SuiteReport, CsvQuotesAndTableCounts) {
  const std::vector<Case> cases = {fake("a"), fake("b"), {"light", "c", "", {}, {}}};
  const std::vector<Verdict> verdicts = {{Status::Pass, ""}, {Status::Wrong, "x, \"y\""}, {Status::Crash, "z"}};
  EXPECT_EQ(csv_text(cases, verdicts),
            "suite,test,status,detail\nnode,a,pass,\nnode,b,wrong,\"x, \"\"y\"\"\"\nlight,c,crash,z\n");
  EXPECT_EQ(summary_text(cases, verdicts), "suite:                     pass  wrong  unsupported  crash  total\n"
                                           "suite: node                   1      1            0      0      2\n"
                                           "suite: light                  0      0            0      1      1\n"
                                           "suite: total                  1      1            0      1      3\n");
}

TEST(SuiteScoreboard, MayOnlyGrow) {
  const Scoreboard board = parse_scoreboard("suite,test\n!node,faulty\nnode,a\nnode,gone\nnode,b\n");
  const std::vector<Case> cases = {fake("a"), fake("b"), fake("c"), fake("d"), fake("e"), fake("faulty")};
  const std::vector<Verdict> verdicts = {{Status::Pass, ""},
                                         {Status::Unsupported, "TGC-E202"},
                                         {Status::Unsupported, "TGC-E202"},
                                         {Status::Wrong, "1 of 1"},
                                         {Status::Pass, ""},
                                         {Status::Wrong, "1 of 1"}};
  const Comparison comparison = compare(board, cases, verdicts);
  EXPECT_EQ(comparison.faults,
            (std::vector<std::string>{"node,b: unsupported (passed before): TGC-E202", "node,d: wrong: 1 of 1"}));
  EXPECT_EQ(comparison.news, std::vector<std::string>{"node,e"});
  EXPECT_EQ(parse_scoreboard(scoreboard_text(board)), board);
}

TEST(SuiteOptions, SetTheirFieldsAndComplain) {
  const char* const args[] = {"data", "--csv=x.csv", "--filter", "test_a*", "--jobs", "3", "--backend=eval"};
  const suite::Options options = suite::parse_options(args);
  EXPECT_EQ(options.folder, "data");
  EXPECT_EQ(options.csv, "x.csv");
  EXPECT_EQ(options.filter, "test_a*");
  EXPECT_EQ(options.run.jobs, 3);
  EXPECT_EQ(options.backend, "eval");
  EXPECT_EQ(usage_complaint({}), "no DIR given");
  EXPECT_EQ(usage_complaint({"a", "b"}), "unexpected argument \"b\"; one DIR is taken");
  EXPECT_EQ(usage_complaint({"a", "--jobs=x"}), "--jobs \"x\": expected a number from 1");
  EXPECT_EQ(usage_complaint({"a", "--csv"}), "--csv: a value is missing");
  EXPECT_EQ(usage_complaint({"a", "--fliter=x"}), "unknown option \"--fliter\"; did you mean \"--filter\"?");
  EXPECT_EQ(usage_complaint({"a", "--update"}), "--update needs --scoreboard FILE");
}
