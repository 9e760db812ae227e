// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exit codes, messages and the fate of files being written.
#include "tgc/boundary.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <stdexcept>

#include "printable.h"
#include "uop/diag.h"

using namespace tgc;

namespace {

struct Outcome {
  int code;
  std::string text;
};

Outcome run(const std::function<Exit()>& body) {
  testing::internal::CaptureStderr();
  const int code = run_guarded("tool", body);
  return {code, testing::internal::GetCapturedStderr()};
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string scratch(const char* name) { return testing::TempDir() + "tgc_boundary_" + std::to_string(getpid()) + name; }

void write_text(const std::string& path, const char* text) { std::ofstream(path) << text; }

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST(Boundary, EveryKindOfFailureHasItsExitCodeAndMessage) {
  const Outcome fine = run([] { return Exit::Differ; });
  EXPECT_EQ(fine.code, 4);
  EXPECT_EQ(fine.text, "");

  const Outcome usage = run([]() -> Exit { throw UsageError("no MODEL given"); });
  EXPECT_EQ(usage.code, 2);
  EXPECT_EQ(usage.text, "tool: no MODEL given (see tool --help)\n");

  const Outcome memory = run([]() -> Exit { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code, 1);
  EXPECT_EQ(memory.text, "tool: out of memory\n");

  const Outcome ours = run([]() -> Exit { throw InternalError("x.cpp:1: size is 3"); });
  EXPECT_EQ(ours.code, 3);
  EXPECT_EQ(ours.text, "tool: internal error: x.cpp:1: size is 3\n");
}

TEST(Boundary, EveryDiagnosticOfACompileErrorIsPrinted) {
  const Diagnostic first{ErrorCode::E203, "m.onnx: node \"a\"", "group=3 does not divide channels=64", ""};
  const Diagnostic second{ErrorCode::E203, "m.onnx: node \"b\"", "axis=9 is outside -4..3", ""};
  const Outcome user = run([&]() -> Exit { throw CompileError(std::vector<Diagnostic>{first, second}); });
  EXPECT_EQ(user.code, 1);
  EXPECT_EQ(user.text, to_string(first) + "\n" + to_string(second) + "\n");
}

TEST(Boundary, ControlCharactersOfAModelDoNotReachTheTerminal) {
  const Diagnostic odd{ErrorCode::E203, "m.onnx: node \"a\x1b[2J\"",
                       "\xc2\x9b"
                       "31m is \x7f no op; \xc3\xa9 is a letter",
                       "why"};
  EXPECT_EQ(
      run([&]() -> Exit { throw CompileError(odd); }).text,
      "m.onnx: node \"a\\x1b[2J\": error TGC-E203: \\xc2\\x9b31m is \\x7f no op; \xc3\xa9 is a letter\n  note: why\n");
}

TEST(Boundary, NamesOfAModelMakeNoLinesOfTheirOwn) {
  const Diagnostic forged{ErrorCode::E203, "m.onnx: node \"a\nm.onnx: all is well\"", "axis=\"\r\n\"",
                          "its dims are \"N\nM\""};
  EXPECT_EQ(run([&]() -> Exit { throw CompileError(forged); }).text,
            "m.onnx: node \"a\\x0am.onnx: all is well\": error TGC-E203: axis=\"\\x0d\\x0a\"\n"
            "  note: its dims are \"N\\x0aM\"\n");
  const Diagnostic words{ErrorCode::E403, "kernel \"k\"", "cc rejects its C text: k.c:3:\n\tfoo x;\n\x1b[0m", ""};
  EXPECT_EQ(run([&]() -> Exit { throw CompileError(words); }).text,
            "kernel \"k\": error TGC-E403: cc rejects its C text: k.c:3:\n\tfoo x;\n\\x1b[0m\n");
}

TEST(Printable, BytesThatAreNoTextAreShownAsNumbers) {
  EXPECT_EQ(printable("a\tb\n"), "a\\x09b\\x0a");
  EXPECT_EQ(printable("a\tb\n", "\n"), "a\\x09b\n");
  EXPECT_EQ(printable("\x9b"), "\\x9b");                 // a control character to a Latin-1 terminal
  EXPECT_EQ(printable("\xc2\xa0\xc2"), "\xc2\xa0\\xc2"); // cut off
  EXPECT_EQ(printable("\xe2\x82\xac \xe2\x82z"), "\xe2\x82\xac \\xe2\\x82z");
  EXPECT_EQ(printable("\xf0\x9f\x98\x80\xff"), "\xf0\x9f\x98\x80\\xff");
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a"); // a line end in two bytes, three and four
  EXPECT_EQ(printable("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");
  EXPECT_EQ(printable("\xf0\x80\x80\x8a"), "\\xf0\\x80\\x80\\x8a");
  EXPECT_EQ(printable("\xed\xa0\x80 \xf4\x90\x80\x80"), "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80"); // no characters
  EXPECT_EQ(printable("\xe2\x80\xa8 \xe2\x80\xae \xe2\x80\xaf"),
            "\\xe2\\x80\\xa8 \\xe2\\x80\\xae \xe2\x80\xaf"); // U+2028, U+202E
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(OutputFile, AppearsOnlyWhenCommitted) {
  const std::string path = scratch("whole");
  {
    OutputFile file(path);
    write_text(file.writing(), "new");
    EXPECT_FALSE(exists(path));
    file.commit();
    EXPECT_FALSE(exists(file.writing() + ".tmp"));
  }
  EXPECT_EQ(read_text(path), "new");
  unlink(path.c_str());
}

TEST(OutputFile, LeavesTheOldFileWhenAbandoned) {
  const std::string path = scratch("old");
  write_text(path, "old");
  std::string temporary;
  {
    OutputFile file(path);
    temporary = file.writing();
    write_text(temporary, "half");
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_FALSE(exists(temporary));
  unlink(path.c_str());
}

TEST(OutputFile, KeepsTheModeOfWhatItReplaces) {
  const std::string path = scratch("mode"), link = scratch("link");
  const auto mode = [](const std::string& file) {
    struct stat status{};
    EXPECT_EQ(lstat(file.c_str(), &status), 0);
    return status.st_mode & (S_IFMT | 0777);
  };
  write_text(path, "old");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  {
    OutputFile file(link);
    write_text(file.writing(), "new");
    EXPECT_EQ(mode(file.writing()), S_IFREG | 0600u); // while it is written, nobody else reads it
    file.commit();
  }
  EXPECT_EQ(mode(path), S_IFREG | 0640u);
  EXPECT_TRUE(S_ISLNK(mode(link)));
  EXPECT_EQ(read_text(link), "new");
  unlink(link.c_str());
  unlink(path.c_str());
}

TEST(OutputFile, WritesADeviceInPlace) {
  OutputFile file("/dev/null");
  EXPECT_EQ(file.writing(), "/dev/null");
  file.commit();
  struct stat status{};
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST(OutputFile, CommitToALostFolderIsAnErrorThatNamesThePath) {
  OutputFile file("/nonexistent-folder/x.bundle");
  try {
    file.commit();
    FAIL() << "no error";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.all()[0].code, ErrorCode::E502);
    EXPECT_EQ(error.all()[0].where, "/nonexistent-folder/x.bundle");
    EXPECT_EQ(error.all()[0].message, "cannot be written: No such file or directory");
  }
}

TEST(OutputFile, AnInterruptRemovesItAndExitsWith130) {
  const std::string path = scratch("interrupted");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    interrupt_cleanly();
    OutputFile file(path);
    write_text(file.writing(), "half");
    const ssize_t told = write(ready[1], "x", 1);
    while (told == 1) pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(exists(path + ".tmp" + std::to_string(child)));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_FALSE(exists(path + ".tmp" + std::to_string(child)));
  EXPECT_FALSE(exists(path));
}
