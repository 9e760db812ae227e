// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C text → machine code by whatever `cc` is installed: one process per kernel, `jobs` at a time, and one to link. The
// linker script puts everything into two segments that nobody can write, .dynamic included, which linkers otherwise
// make writable. The flags forbid what kernels must not have (library calls made of loops, unwind tables, contraction).
// The compiler is run without a shell, by its name in PATH; its words go into the diagnostic. An interrupt waits until
// the temporary files are gone.
// Not handled: compilers that do not take gcc's options.
#include "render/compile_c.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "render/elf_image.h"
#include "render/temporary.h"
#include "uop/diag.h"

namespace tgc {
namespace {

constexpr const char* kFlags[] = {
    "-std=c11",
    "-O2",
    "-fvect-cost-model=dynamic",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffreestanding",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-tree-loop-distribute-patterns",
    "-w",
};
constexpr const char* kLinkerScript = R"(PHDRS {
  data PT_LOAD FILEHDR PHDRS FLAGS(4);
  code PT_LOAD FLAGS(5);
  dynamic PT_DYNAMIC FLAGS(4);
  stack PT_GNU_STACK FLAGS(6);
}
SECTIONS {
  . = SIZEOF_HEADERS;
  .hash : { *(.hash) } :data
  .gnu.hash : { *(.gnu.hash) } :data
  .dynsym : { *(.dynsym) } :data
  .dynstr : { *(.dynstr) } :data
  .rodata : { *(.rodata .rodata.*) } :data
  .dynamic : { *(.dynamic) } :data :dynamic
  . = ALIGN(CONSTANT(MAXPAGESIZE)) + (. & (CONSTANT(MAXPAGESIZE) - 1));
  .text : { *(.text .text.*) } :code
  /DISCARD/ : { *(.comment .note .note.* .eh_frame .eh_frame.*) }
}
)";

std::string read_text(const std::string& path) {
  std::string text;
  if (FILE* file = std::fopen(path.c_str(), "rb")) {
    char buffer[1 << 14];
    size_t n;
    do text.append(buffer, n = std::fread(buffer, 1, sizeof buffer, file));
    while (n == sizeof buffer);
    std::fclose(file);
  }
  return text;
}

/// Runs a program with its output in the file `log`; whether it exited with 0.
bool run_program(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes; // the program can be interrupted even where we hold signals
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  int status = 1;
  return error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void need_compiler() {
  if (!has_c_compiler())
    throw CompileError(
        {ErrorCode::E404, "", "cpu:c needs the program `cc`, which is not in PATH", info(ErrorCode::E404).remedy});
}

std::vector<std::string> command_for(const std::vector<std::string>& flags) {
  std::vector<std::string> command{"cc"};
  command.insert(command.end(), std::begin(kFlags), std::end(kFlags));
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

Diagnostic failure(const std::string& kernel, std::string words) {
  if (words.size() > 2000) words.resize(2000);
  return {ErrorCode::E403, kernel.empty() ? "" : "kernel \"" + kernel + "\"", "cc rejects its C text: " + words,
          "report this with the kernel's text (--emit=source), or use --target=cpu:llvm"};
}

} // namespace

bool has_c_compiler() { return run_program({"cc", "--version"}, "/dev/null"); }

CompiledCode compile_c(std::span<const KernelSource> kernels, const std::vector<std::string>& flags, int jobs) {
  need_compiler();
  TemporaryFolder folder;
  std::vector<std::string> sources, objects, logs, problems(kernels.size()), names;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string stem = "k" + std::to_string(i);
    sources.push_back(folder.file(stem + ".c", kernels[i].text));
    objects.push_back(folder.file(stem + ".o"));
    logs.push_back(folder.file(stem + ".log"));
    names.push_back(kernels[i].name);
  }
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < kernels.size() && !HeldInterrupts::pending(); i = next++) {
      std::vector<std::string> command = command_for(flags);
      command.insert(command.end(), {"-c", "-o", objects[i], sources[i]});
      if (!run_program(command, logs[i])) problems[i] = read_text(logs[i]) + " ";
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs && i < static_cast<int>(kernels.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  Diagnostics diagnostics;
  for (size_t i = 0; i < kernels.size(); ++i)
    if (!problems[i].empty()) diagnostics.error(failure(names[i], problems[i]));
  diagnostics.checkpoint();

  const std::string script = folder.file("kernels.ld", kLinkerScript), image = folder.file("kernels.so");
  const std::string log = folder.file("link.log");
  std::vector<std::string> command{"cc",
                                   "-shared",
                                   "-nostdlib",
                                   "-Wl,--no-undefined,-Bsymbolic,-z,norelro,--strip-all",
                                   "-Wl,--hash-style=both,--build-id=none,-T," + script,
                                   "-o",
                                   image};
  command.insert(command.end(), objects.begin(), objects.end());
  if (!run_program(command, log)) throw CompileError(failure("", read_text(log)));
  const std::string bytes = read_text(image);
  CompiledCode code;
  code.image.assign(reinterpret_cast<const std::byte*>(bytes.data()),
                    reinterpret_cast<const std::byte*>(bytes.data()) + bytes.size());
  if (const std::string fault = check_image(code.image); !fault.empty())
    throw CompileError(failure("", "the image that cc linked " + fault));
  code.entries = find_symbols(code.image, names);
  for (size_t i = 0; i < names.size(); ++i)
    if (code.entries[i] == UINT64_MAX) diagnostics.error(failure(names[i], "no function of that name"));
  diagnostics.checkpoint();
  return code;
}

std::string assemble_c(const KernelSource& kernel, const std::vector<std::string>& flags) {
  need_compiler();
  TemporaryFolder folder;
  std::vector<std::string> command = command_for(flags);
  const std::string out = folder.file("kernel.s"), log = folder.file("kernel.log");
  command.insert(command.end(), {"-S", "-o", out, folder.file("kernel.c", kernel.text)});
  if (!run_program(command, log)) throw CompileError(failure(kernel.name, read_text(log)));
  return read_text(out);
}

} // namespace tgc
