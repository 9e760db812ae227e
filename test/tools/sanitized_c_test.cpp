// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C text of kernels under sanitizers, which no bundle can be: every kernel of the quickstart model is compiled into
// a program of its own, with -fsanitize=address,undefined and with -fsanitize=thread, that runs the plan on the batch
// of sixteen pictures with one thread and with two. Nothing may be reported, and the outputs must be those of cpu:llvm,
// bit for bit. Every buffer is an allocation of its exact size, so that one element too many is seen.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "render/compile_c.h"
#include "tgc-onnx-suite/case.h"
#include "tgc/pipeline.h"
#include "tgc/weights.h"
#include "uop/eval.h"

using namespace tgc;

namespace {

const std::string kFolder = std::string(TGC_SOURCE_DIR) + "/models/fashion_cnn";
constexpr int64_t kBatch = 16; // of the model's test data

constexpr const char* kProgram = R"(
static void* part(void* at) {
  const struct job* job = at;
  job->step->run(&job->args, job->begin, job->end);
  return 0;
}
static void run(const struct step* step, int threads) {
  struct job jobs[2];
  pthread_t other;
  void* bufs[8];
  for (int i = 0; i < 8; ++i) bufs[i] = tensors[step->args[i]];
  const int64_t middle = threads == 2 ? step->chunks / 2 : step->chunks;
  for (int t = 0; t < threads; ++t) {
    void* scratch = aligned_alloc(64, step->scratch + 64);
    jobs[t] = (struct job){step, {bufs, vars, scratch}, t ? middle : 0, t ? step->chunks : middle};
  }
  if (threads == 2) pthread_create(&other, 0, part, &jobs[1]);
  part(&jobs[0]);
  if (threads == 2) pthread_join(other, 0);
  for (int t = 0; t < threads; ++t) free(jobs[t].args.scratch);
}
int main(int argc, char** argv) {
  FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
  for (int i = 0; i < TENSORS; ++i) {
    tensors[i] = malloc(bytes[i]);
    memset(tensors[i], 0xff, bytes[i]);
    if (given[i] && fread(tensors[i], 1, bytes[i], in) != bytes[i]) return 4;
  }
  for (int i = 0; i < STEPS; ++i) run(&steps[i], atoi(argv[1]));
  fwrite(tensors[OUTPUT], 1, bytes[OUTPUT], out);
  for (int i = 0; i < TENSORS; ++i) free(tensors[i]);
  return fclose(in) | fclose(out);
}
)";

/// Writes the plan as C tables with the program around them, and what the tensors hold at the start.
class Harness {
public:
  explicit Harness(const std::string& folder) : folder_(folder) {
    std::filesystem::create_directories(folder);
    CompileOptions options;
    options.target = "cpu:c";
    Compilation c = start_compilation(kFolder + "/model.onnx", options);
    run_pipeline(c, options);
    fold_constants(c);
    render(c);
    const BundleContents plan = assemble(c, options);
    std::string program =
        "#include <pthread.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <string.h>\nstruct tgrt_kernel_args {\n  void* const* bufs;\n  const int64_t* vars;\n"
        "  void* scratch;\n};\n"
        "typedef void kernel(const struct tgrt_kernel_args*, int64_t, int64_t);\n"
        "struct step { kernel* run; int64_t chunks, scratch; int args[8]; };\n"
        "struct job { const struct step* step; struct tgrt_kernel_args args; int64_t begin, end; };\n"
        "static const int64_t vars[] = {" +
        std::to_string(kBatch) + "};\n";
    for (const KernelSource& source : c.sources) {
      files_ += " " + write(source.name + ".c", source.text);
      program += "kernel " + source.name + ";\n";
    }
    program += tables(plan);
    files_ += " " + write("main.c", program + kProgram);
    write("in.bin", held_);
  }

  const std::string& files() const { return files_; }

private:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  int64_t value(Ref x) const { return x ? eval_index(x, {{"batch", kBatch}}) : 0; }

  void hold(const std::byte* data, size_t bytes) { held_.append(reinterpret_cast<const char*>(data), bytes); }

  /// Tensors are numbered: inputs, outputs, weights, buffers.
  std::string tables(const BundleContents& plan) {
    std::string bytes, given;
    const auto tensor = [&](int64_t size, bool is_given) {
      bytes += std::to_string(size) + ", ";
      given += is_given ? "1, " : "0, ";
    };
    const HostTensor pictures = suite::read_tensor_proto(kFolder + "/test_data_set_0/input_0.pb");
    tensor(static_cast<int64_t>(pictures.data.size()), true);
    hold(pictures.data.data(), pictures.data.size());
    tensor(kBatch * 10 * 4, false);
    for (const BundleContents::Weight& weight : plan.weights) {
      EXPECT_NE(weight.data.kind, WeightData::Kind::Splat);
      tensor(static_cast<int64_t>(weight.bytes), true);
      hold(weight.data.data, weight.bytes);
    }
    for (const BundleContents::Buffer& buffer : plan.buffers) tensor(value(buffer.bytes), false);
    const int first[] = {0, 1, 2, 2 + static_cast<int>(plan.weights.size())};
    std::string steps;
    for (const BundleContents::Step& step : plan.steps) {
      const BundleContents::Kernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
      steps += "  {" + kernel.name + ", " + std::to_string(value(kernel.chunks)) + ", " +
               std::to_string(value(kernel.scratch_bytes)) + ", {";
      for (const BundleContents::Arg& arg : step.args)
        steps += std::to_string(first[static_cast<int>(arg.kind)] + arg.index) + ", ";
      steps += "}},\n";
    }
    return "enum { OUTPUT = 1, TENSORS = " + std::to_string(2 + plan.weights.size() + plan.buffers.size()) +
           ", STEPS = " + std::to_string(plan.steps.size()) + " };\nstatic void* tensors[TENSORS];\n" +
           "static const size_t bytes[] = {" + bytes + "};\nstatic const int given[] = {" + given + "};\n" +
           "static const struct step steps[] = {\n" + steps + "};\n";
  }

  std::string folder_, files_, held_;
};

/// Exit code of a shell command; what it says goes to the test's output.
int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

} // namespace

TEST(SanitizedC, QuickstartKernelsAreCleanAndGiveTheBitsOfLlvm) {
  if (!has_c_compiler()) GTEST_SKIP() << "no program `cc` in PATH";
  const std::string folder = testing::TempDir() + "tgc_sanitized_" + std::to_string(getpid());
  const Harness harness(folder);
  const suite::Case data{"", "", "", {kFolder + "/test_data_set_0/input_0.pb"}, {}};
  const std::vector<HostTensor> llvm =
      suite::find_backend("compiled", "cpu")(kFolder + "/model.onnx", suite::Feed(data));
  const std::string want(reinterpret_cast<const char*>(llvm[0].data.data()), llvm[0].data.size());
  for (const char* sanitizer : {"address,undefined", "thread"}) {
    SCOPED_TRACE(sanitizer);
    const std::string program = folder + "/program", out = folder + "/out.bin";
    // Not -fwrapv: the text must not rely on it. -O0: sanitizers make the compiler slow, ten times so with -O1.
    const std::string compile = "cc -std=gnu11 -O0 -w -march=native -ffp-contract=off -fno-sanitize-recover=all "
                                "-pthread -fsanitize=" +
                                std::string(sanitizer) + harness.files() + " -lm -o " + program;
    ASSERT_EQ(shell(compile), 0) << compile;
    for (const char* threads : {"1", "2"}) {
      std::filesystem::remove(out);
      EXPECT_EQ(shell(program + " " + threads + " " + folder + "/in.bin " + out), 0) << threads << " threads";
      EXPECT_TRUE(bytes_of_file(out) == want) << threads << " threads";
    }
  }
  std::filesystem::remove_all(folder);
}
