// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program tgrun from outside: what it prints, its exit codes, the files it reads and writes; and its readers of
// tensor files on damaged input.
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "runtime/fixture.h"
#include "tgrun/options.h"
#include "tgrun/tensor.h"

using namespace tgc;
using namespace tgc::test;

namespace {

struct Outcome {
  int code;
  std::string text; ///< standard output and error
};

Outcome tgrun(const std::string& arguments, const std::string& before = "") {
  FILE* pipe = ::popen(("( " + before + TGRUN_PROGRAM " " + arguments + " ) 2>&1").c_str(), "r");
  Outcome outcome{-1, {}};
  if (!pipe) return outcome;
  char block[4096];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) outcome.text.append(block, n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

HostTensor floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  HostTensor t;
  t.dtype = TGRT_F32;
  t.dims = dims;
  t.data.assign(reinterpret_cast<const char*>(values.data()),
                reinterpret_cast<const char*>(values.data() + values.size()));
  return t;
}

std::string npy_file(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  const std::string path = temp_folder() + "/" + name;
  write_file(path, to_npy(floats(dims, values)));
  return path;
}

void varint(std::string& to, uint64_t value) {
  for (; value > 127; value >>= 7) to += static_cast<char>(value | 128);
  to += static_cast<char>(value);
}

/// A TensorProto with raw_data.
std::string proto(const std::string& name, const std::vector<int64_t>& dims, int type, const std::string& raw) {
  std::string bytes;
  for (const int64_t dim : dims) bytes += '\x08', varint(bytes, static_cast<uint64_t>(dim));
  bytes += '\x10', varint(bytes, static_cast<uint64_t>(type));
  bytes += '\x42', varint(bytes, name.size()), bytes += name;
  bytes += '\x4a', varint(bytes, raw.size()), bytes += raw;
  return bytes;
}

std::string raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// A folder of test data for the affine model whose expected output is `y`.
std::string data_set(const std::string& name, const std::vector<float>& x, const std::vector<float>& y) {
  const std::string folder = temp_folder() + "/" + name;
  (void)!std::system(("mkdir -p " + folder).c_str());
  const int64_t rows = static_cast<int64_t>(x.size()) / 4;
  write_file(folder + "/input_0.pb", proto("x", {rows, 4}, 1, raw(x)));
  write_file(folder + "/output_0.pb", proto("y", {static_cast<int64_t>(y.size()) / 4, 4}, 1, raw(y)));
  return folder;
}

std::string run_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const RunError& error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST(Tgrun, PrintsAndSavesOutputs) {
  TGRT_NEED_CC(affine_bundle());
  const std::string a = npy_file("a.npy", {1, 4}, {1, 2, 3, 4}),
                    b = npy_file("b.npy", {2, 4}, {0, 0, 0, 0, 5, 5, 5, 5});
  const std::string out = temp_folder() + "/out";
  const Outcome run = tgrun(affine_bundle() + " --input x=" + a + "," + b + " --save " + out);
  EXPECT_EQ(run.text, "y f32[3,4]: 1 3 0 2.25 0 0 3 0.25 5 9 …\n");
  EXPECT_EQ(run.code, 0);
  const HostTensor y = read_tensor(out + "/output_0.npy");
  EXPECT_EQ(dims_text(y.dims), "[3,4]");
  EXPECT_EQ(element(y, 11), 2.75);
  EXPECT_EQ(tgrun(affine_bundle() + " --guard --threads 2 --input " + a).text, "y f32[1,4]: 1 3 0 2.25\n");
}

TEST(Tgrun, AFailedSaveLeavesWhatWasThere) {
  TGRT_NEED_CC(affine_bundle());
  const std::string out = temp_folder() + "/kept";
  std::filesystem::create_directory(out);
  write_file(out + "/output_0.npy", "old");
  const Outcome run = tgrun(affine_bundle() + " --save " + out, "ulimit -f 0; trap '' XFSZ; ");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.text.find("output_0.npy: cannot be written: File too large"), std::string::npos) << run.text;
  EXPECT_EQ(read_file(out + "/output_0.npy"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}), 1);
}

TEST(Tgrun, SeededInputsRepeat) {
  TGRT_NEED_CC(affine_bundle());
  const Outcome first = tgrun(affine_bundle() + " --dim N=2"),
                second = tgrun(affine_bundle() + " --dim N=2 --threads 1");
  EXPECT_EQ(first.text, second.text);
  EXPECT_EQ(first.text.substr(0, 11), "y f32[2,4]:");
  EXPECT_NE(tgrun(affine_bundle() + " --dim N=2 --seed 1").text, first.text);
  const std::string note = "tgrun: note: neither an input nor --dim gives: N=1\n";
  EXPECT_EQ(tgrun(affine_bundle()).text.substr(0, note.size() + 11), note + "y f32[1,4]:");
}

TEST(Tgrun, ComparesWithTestData) {
  TGRT_NEED_CC(affine_bundle());
  const std::vector<float> x = sample(2), y = expected_affine(x);
  std::vector<float> close = y, far = y;
  close[2] *= 1.0005f;
  far[6] += 1;
  const std::string good = data_set("set/test_data_set_0", x, close);
  EXPECT_EQ(tgrun(affine_bundle() + " --test " + good).text, "1 of 1 data sets agree (rtol 0.001, atol 1e-07)\n");
  const std::string bad = data_set("set/test_data_set_1", x, far);
  const Outcome run = tgrun(affine_bundle() + " --test " + temp_folder() + "/set");
  EXPECT_EQ(run.code, 4);
  EXPECT_EQ(run.text, bad + ": output \"y\" f32[N,4]: 1 of 8 elements differ; worst at [1,2]: got 0, expected 1\n"
                            "1 of 2 data sets agree (rtol 0.001, atol 1e-07)\n");
  EXPECT_EQ(tgrun(affine_bundle() + " --atol 1 --test " + bad).code, 0);
  EXPECT_EQ(tgrun(affine_bundle() + " --rtol 1e-5 --test " + good).code, 4);
  const std::string shape = data_set("shape", x, {1, 2, 3, 4});
  EXPECT_EQ(tgrun(affine_bundle() + " --test " + shape).text,
            shape + ": output \"y\" f32[N,4]: got f32[2,4], expected f32[1,4]\n"
                    "0 of 1 data sets agree (rtol 0.001, atol 1e-07)\n");
}

TEST(Tgrun, BenchAndProfile) {
  TGRT_NEED_CC(affine_bundle());
  const Outcome bench = tgrun(affine_bundle() + " --dim N=1 --bench --json");
  EXPECT_EQ(bench.code, 0);
  double median = 0, min = 0, p90 = 0;
  size_t runs = 0, arena = 0;
  ASSERT_EQ(std::sscanf(bench.text.c_str(),
                        "{\"median_ms\": %lf, \"min_ms\": %lf, \"p90_ms\": %lf, \"runs\": %zu, \"arena_bytes\": %zu}",
                        &median, &min, &p90, &runs, &arena),
            5)
      << bench.text;
  EXPECT_GT(min, 0);
  EXPECT_LE(min, median);
  EXPECT_LE(median, p90);
  EXPECT_GE(runs, 100u);
  EXPECT_GT(arena, 16u);
  const Outcome profile = tgrun(affine_bundle() + " --profile");
  EXPECT_EQ(profile.code, 0);
  EXPECT_NE(profile.text.find("GFLOP/s"), std::string::npos);
  EXPECT_NE(profile.text.find("k_bias (add1, relu1)"), std::string::npos);
  EXPECT_NE(profile.text.find("total of 2 kernels"), std::string::npos);
}

TEST(Tgrun, DescribesAndExtracts) {
  TGRT_NEED_CC(affine_bundle());
  const std::string json = tgrun(affine_bundle() + " --describe").text;
  EXPECT_NE(json.find("\"inputs\": [\n    {\"name\": \"x\", \"dtype\": \"f32\", \"dims\": [\"N\", 4]}\n  ]"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("{\"bytes\": \"N * 16\", \"slot\": 0, \"at\": 0}"), std::string::npos) << json;
  EXPECT_NE(json.find("{\"kernel\": \"k_bias\", \"args\": [\"buffer 0\", \"weight 1\", \"output 0\"], \"waits\": [0], "
                      "\"nodes\": \"add1, "
                      "relu1\"}"),
            std::string::npos)
      << json;
  if (std::system("command -v python3 > /dev/null") == 0) {
    const std::string command = TGRUN_PROGRAM " " + affine_bundle() + " --describe | python3 -m json.tool > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  // A bundle for another CPU is described, too.
  Aligned foreign(read_file(affine_bundle()));
  foreign.header().machine = foreign.header().machine == 62 ? 183 : 62;
  foreign.rehash();
  const std::string path = temp_folder() + "/foreign.bundle", out = temp_folder() + "/parts";
  write_file(path, std::string(reinterpret_cast<char*>(foreign.data()), foreign.size()));
  std::string foreign_json = json;
  const bool is_x86 = json.find("\"machine\": \"x86-64\"") != std::string::npos;
  const std::string here = is_x86 ? "x86-64" : "aarch64", there = is_x86 ? "aarch64" : "x86-64";
  foreign_json.replace(foreign_json.find("\"" + here + "\""), here.size() + 2, "\"" + there + "\"");
  EXPECT_EQ(tgrun(path + " --describe").text, foreign_json);
  EXPECT_EQ(tgrun(path).code, 1);
  EXPECT_EQ(tgrun(path + " --extract " + out).code, 0);
  EXPECT_EQ(read_file(out + "/code.so"), compile_c(kAffineSource));
  EXPECT_EQ(read_file(out + "/plan.json"), foreign_json);
  EXPECT_EQ(read_file(out + "/weights.bin").size(), 80u);
}

TEST(Tgrun, ChecksEveryByte) {
  TGRT_NEED_CC(affine_bundle());
  EXPECT_EQ(tgrun(affine_bundle() + " --check").text, affine_bundle() + ": ok\n");
  std::string bytes = read_file(affine_bundle());
  bytes.back() ^= 1;
  const std::string path = temp_folder() + "/weight.bundle";
  write_file(path, bytes);
  const Outcome run = tgrun(path + " --check");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.text, "tgrun: " + path +
                          ": error TGR-E213: section \"weights\" (80 bytes at 196608) does not have the hash that the "
                          "header states\n  note: Copy or compile the bundle again.\n");
}

TEST(Tgrun, PerfMapNamesKernels) {
  TGRT_NEED_CC(affine_bundle());
  FILE* pipe = ::popen(("echo $$; TGRT_PERF_MAP=1 exec " TGRUN_PROGRAM " " + affine_bundle()).c_str(), "r");
  ASSERT_TRUE(pipe);
  long pid = 0;
  ASSERT_EQ(std::fscanf(pipe, "%ld", &pid), 1);
  ::pclose(pipe);
  const std::string path = "/tmp/perf-" + std::to_string(pid) + ".map", map = read_file(path);
  std::remove(path.c_str());
  EXPECT_NE(map.find(" k_scale\n"), std::string::npos) << map;
  EXPECT_NE(map.find(" k_bias\n"), std::string::npos) << map;
}

TEST(Tgrun, ListsDevices) {
  const Outcome run = tgrun("--list-devices");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.text.substr(0, 13), "cpu    PASS  ");
}

TEST(Tgrun, ErrorTexts) {
  TGRT_NEED_CC(affine_bundle());
  const auto expect = [](const std::string& arguments, int code, const std::string& text) {
    const Outcome run = tgrun(arguments);
    EXPECT_EQ(run.code, code) << arguments;
    EXPECT_EQ(run.text, "tgrun: " + text + "\n");
  };
  const std::string b = affine_bundle();
  expect("", 2, "no BUNDLE given (see tgrun --help)");
  expect(b + " --bench --check", 2,
         "give one of --test, --bench, --profile, --describe, --extract and --check, not several (see tgrun --help)");
  expect(b + " --test ''", 2, "--test \"\": expected DIR (see tgrun --help)");
  expect(b + " --dim N", 2, "--dim \"N\": expected NAME=VALUE (see tgrun --help)");
  expect(b + " --input x=", 2, "--input \"x=\": expected NAME=FILE[,FILE…] (see tgrun --help)");
  expect("/nowhere.bundle", 1,
         "/nowhere.bundle: error TGR-E201: No such file or directory\n  note: Check the path and its "
         "permissions.");
  expect(b + " --input z=a.npy", 1, "the model has no input \"z\"\n  note: its inputs are \"x\" f32[N,4]");
  expect(b + " --input x=/nowhere.npy", 1,
         "/nowhere.npy: cannot be read: No such file or directory\n  note: check the path and its permissions");
  expect(b + " --input x=" + b, 1,
         b + ": unknown kind of file\n  note: inputs are .npy, .pb (ONNX TensorProto) or .pgm");
  expect(b + " --input x=" + npy_file("s.npy", {1, 5}, {1, 2, 3, 4, 5}), 1,
         b + ": error TGR-E301: input \"x\" has the shape [1,5], the model needs [N=1,4]\n  note: Pass the shape that "
             "the message gives.");
  expect(b + " --dim M=3", 1, "the model has no dim \"M\"\n  note: its dims are N (1..1024)");
  expect(b + " --dim N=1025", 1,
         b + ": error TGR-E302: dim N = 1025 is outside 1..1024\n  note: Stay within the bounds, or compile with "
             "others: tgc --dim NAME=LO..HI");
  expect(b + " --chek", 2, "unknown option \"--chek\"; did you mean \"--check\"? (see tgrun --help)");
  expect(b + " x", 2, "unexpected argument \"x\"; one BUNDLE is taken (see tgrun --help)");
  for (const char* threads : {"1025", "0", "-1", "2x"})
    expect(b + " --threads " + threads, 2,
           std::string("--threads \"") + threads + "\": expected a number from 1 to 1024 (see tgrun --help)");
  for (const char* seed : {"-1", "99999999999999999999"})
    expect(b + " --seed " + seed, 2,
           std::string("--seed \"") + seed + "\": expected a number from 0 to 18446744073709551615 (see tgrun --help)");
  expect(b + " --input x=a.npy --input x=b.npy", 2, "--input \"x=b.npy\": the input is given twice (see tgrun --help)");
  expect(b + " --test . --rtol nan", 2, "--rtol: expected a number that is not negative (see tgrun --help)");
  expect(b + " --test . --atol -1", 2, "--atol: expected a number that is not negative (see tgrun --help)");
  expect(b + " --input \"$(printf 'q\\033[2J')=a.npy\"", 1,
         "the model has no input \"q\\x1b[2J\"\n  note: its inputs are \"x\" f32[N,4]");
  expect(b + " --rtol 1", 2, "--rtol goes with --test (see tgrun --help)");
  expect(b + " --json", 2, "--json goes with --bench or --profile (see tgrun --help)");
  expect(b + " --bench --save out", 2, "--save has no effect with --bench (see tgrun --help)");
  expect(b + " --describe --guard", 2, "--guard has no effect with --describe (see tgrun --help)");
  expect(b + " --dim N=2 --dim N=3", 2, "--dim \"N=3\": the name is given twice (see tgrun --help)");
  expect(b + " --list-devices", 2,
         "--list-devices takes no BUNDLE; it would not look at \"" + b + "\" (see tgrun --help)");
  expect(b + " --dim N=1 > /dev/full", 1, "standard output cannot be written");
}

TEST(TensorFile, ReadsNumPy) {
  const std::string head = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
  const auto file = [](const std::string& header, const std::string& data) {
    std::string bytes = "\x93NUMPY\x01";
    bytes += '\0';
    bytes += static_cast<char>(header.size());
    return bytes + '\0' + header + data;
  };
  const HostTensor t =
      parse_npy("t.npy", file(head, std::string("\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16)));
  EXPECT_EQ(dims_text(t.dims), "[2]");
  EXPECT_EQ(number_text(t, 1), "-1");
  EXPECT_EQ(run_error([&] { parse_npy("t.npy", file(head, "short")); }),
            "t.npy: it has 5 bytes of elements, its shape [2] needs 16");
  EXPECT_EQ(run_error([&] { parse_npy("t.npy", file("{'descr': '>f4', 'fortran_order': False, 'shape': (), }", "")); }),
            "t.npy: element type >f4 is not supported");
  const HostTensor fortran =
      parse_npy("t.npy", file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "adbecf"));
  EXPECT_EQ(std::string(fortran.data.begin(), fortran.data.end()), "abcdef");
}

TEST(TensorFile, ReadsTypedFieldsOfTensorProto) {
  // float_data packed, int32_data for f16 bits, int64_data one by one
  std::string packed = "\x08\x02\x10\x01\x22\x08";
  packed += raw({1.5f, -2});
  const HostTensor f = parse_tensor_proto("f.pb", packed);
  EXPECT_EQ(element(f, 0), 1.5);
  EXPECT_EQ(element(f, 1), -2);
  const HostTensor h = parse_tensor_proto("h.pb", "\x10\x0a\x2a\x02\x80\x78"); // 0x3c00 = 1
  EXPECT_EQ(h.data.size(), 2u);
  EXPECT_EQ(element(h, 0), 1);
  const HostTensor i = parse_tensor_proto("i.pb", "\x08\x02\x10\x07\x38\x05\x38\x06");
  EXPECT_EQ(element(i, 1), 6);
}

TEST(TensorFile, DamagedFilesAreErrors) {
  std::mt19937_64 random(4);
  std::string pgm = "P5\n# comment\n4 2\n255\n";
  pgm += "abcdefgh";
  EXPECT_EQ(element(parse_pgm("p.pgm", pgm), 7), 'h');
  const std::string files[] = {proto("x", {2, 3}, 1, std::string(24, 'x')), to_npy(floats({2, 3}, {1, 2, 3, 4, 5, 6})),
                               pgm};
  using Parser = HostTensor (*)(const std::string&, std::string_view);
  const Parser parsers[] = {parse_tensor_proto, parse_npy, parse_pgm};
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t kind = static_cast<size_t>(round) % 3;
    std::string bytes = files[kind];
    for (uint64_t n = random() % 4; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
    try {
      const HostTensor t = parsers[kind]("damaged", bytes);
      ASSERT_EQ(t.data.size(), checked_numel("", t.dims, t.dtype) * dtype_bytes(t.dtype));
    } catch (const RunError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 2900);
}

TEST(TensorFile, HalfPrecision) {
  EXPECT_EQ(from_half(0x3c01), 1.0009765625);
  EXPECT_EQ(from_half(0x8001), -0x1p-24);
  EXPECT_EQ(from_half(0x7bff), 65504);
  EXPECT_EQ(from_half(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(from_half(0x7e00)));
  EXPECT_EQ(from_bfloat(0xc040), -3);
}
