// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The store of compiled kernels: what is found, what is not, what is removed; and that an image does not tell whether
// its kernels were compiled or found.
#include "render/object_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "render/linear_kernel.h"
#include "testing.h"

using namespace tgc;
using namespace tgc::testing;

namespace {

namespace fs = std::filesystem;

std::string key_of(int n) {
  std::string digits = std::to_string(n);
  return std::string(ObjectCache::kKeyChars - digits.size(), 'a') + digits;
}

class ObjectCacheTest : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "tgc_objects_" + std::to_string(getpid());
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(int n) const { return folder + "/" + key_of(n) + ".tgco"; }
  std::string find(int n) const {
    ObjectCache cache(folder);
    const auto bytes = cache.find(key_of(n));
    EXPECT_EQ(cache.hits(), bytes ? 1 : 0);
    EXPECT_EQ(cache.misses(), bytes ? 0 : 1);
    return bytes ? std::string(bytes->begin(), bytes->end()) : "none";
  }
  void keep(int n, const std::string& bytes) const {
    ObjectCache cache(folder);
    cache.keep(key_of(n), bytes);
    EXPECT_EQ(cache.problem(), "");
  }
  void set_age(const std::string& file, int seconds) const {
    const timespec time{::time(nullptr) - seconds, 0}, times[] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }
};

} // namespace

TEST_F(ObjectCacheTest, FindsWhatWasKept) {
  EXPECT_EQ(find(1), "none");
  EXPECT_FALSE(fs::exists(folder)); // looking makes nothing
  folder += "/a/b";
  const std::string bytes("object\0code", 11);
  keep(1, bytes);
  keep(2, "");
  EXPECT_EQ(find(1), bytes);
  EXPECT_EQ(find(2), "");
  EXPECT_EQ(find(3), "none");
  keep(1, "another");
  EXPECT_EQ(find(1), "another");
  struct stat status{};
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2); // nothing is left half written
}

TEST_F(ObjectCacheTest, RemovesADamagedEntry) {
  keep(1, "object code");
  const std::string whole = read_file(path(1));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    for (const std::string& damaged : {flipped, whole.substr(0, at), whole + whole.substr(at)}) {
      write_file(path(1), damaged);
      EXPECT_EQ(find(1), "none") << at;
      EXPECT_FALSE(fs::exists(path(1))) << at;
    }
  }
  write_file(path(2), whole); // of another key
  EXPECT_EQ(find(2), "none");
  keep(2, "again");
  EXPECT_EQ(find(2), "again");
}

TEST_F(ObjectCacheTest, EvictsWhatWasUsedLeastRecently) {
  constexpr uint64_t kLimit = 16 * 4096;
  const std::string page(3000, 'x'); // 4 KB on disk
  for (int n = 0; n < 16; ++n) {
    keep(n, page);
    set_age(path(n), 1000 - n);
  }
  struct stat status{};
  ASSERT_EQ(stat(path(0).c_str(), &status), 0);
  if (status.st_blocks != 8) GTEST_SKIP() << "this file system has no blocks of 4 KB";
  EXPECT_EQ(find(0), page); // used now
  {
    const ObjectCache nothing_new(folder, 1);
  }
  EXPECT_TRUE(fs::exists(path(1)));
  {
    ObjectCache cache(folder, kLimit);
    cache.keep(key_of(99), page);
  }
  for (int n = 0; n < 16; ++n) EXPECT_EQ(fs::exists(path(n)), n == 0 || n > 5) << n;
  EXPECT_TRUE(fs::exists(path(99)));
}

TEST_F(ObjectCacheTest, RemovesNoFilesOfOthers) {
  keep(1, "object code");
  const std::string old = path(2) + ".Ab3dE6", young = path(3) + ".Ab3dE6", foreign = folder + "/" + key_of(9);
  for (const std::string& file : {old, young, foreign}) write_file(file, std::string(9000, 'x'));
  fs::create_directory(path(4));
  set_age(old, 4000);
  set_age(foreign, 4000);
  {
    ObjectCache cache(folder, 1);
    cache.keep(key_of(5), "more");
  }
  EXPECT_FALSE(fs::exists(old)); // its writer is gone
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_TRUE(fs::exists(path(4)));
  EXPECT_FALSE(fs::exists(path(1)));
}

TEST_F(ObjectCacheTest, AFolderThatCannotBeUsedIsSaid) {
  write_file(folder, "a file");
  ObjectCache cache(folder);
  cache.keep(key_of(1), "object code");
  cache.keep(key_of(2), "object code");
  EXPECT_EQ(cache.problem(), "cannot make a file: Not a directory");
  EXPECT_FALSE(cache.find(key_of(1)));
  EXPECT_EQ(read_file(folder), "a file");
}

TEST_F(ObjectCacheTest, AFolderThatCannotBeMadeIsSaidWithTheReason) {
  const auto problem = [](const std::string& at) {
    ObjectCache cache(at);
    cache.keep(key_of(1), "object code");
    return cache.problem();
  };
  EXPECT_EQ(problem(folder + "/" + std::string(300, 'x')), "cannot make the folder: File name too long");
  fs::create_directory_symlink(folder + "/none/none", folder + "/link");
  EXPECT_EQ(problem(folder + "/link/objects"), "cannot make the folder: File exists"); // the link has the name
  if (getuid() == 0) return;                                                           // root may write anywhere
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(problem(folder + "/a/b"), "cannot make the folder: Permission denied");
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_F(ObjectCacheTest, ServesConcurrentCompilers) {
  constexpr int kKeys = 8;
  const auto bytes_of_key = [](int n) { return std::string(static_cast<size_t>(20000 * (n + 1)), char('a' + n)); };
  std::atomic<int> wrong = 0, found = 0;
  const auto compiler = [&] {
    ObjectCache cache(folder, 200000); // as good as always too large
    for (int round = 0; round < 5; ++round)
      for (int n = 0; n < kKeys; ++n) {
        const auto bytes = cache.find(key_of(n));
        found += bytes ? 1 : 0;
        if (bytes && std::string(bytes->begin(), bytes->end()) != bytes_of_key(n)) ++wrong;
        if (!bytes || round % 2) cache.keep(key_of(n), bytes_of_key(n));
      }
    if (!cache.problem().empty()) ++wrong;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> compilers;
    for (int i = 0; i < 3; ++i) compilers.emplace_back(compiler);
    for (std::thread& thread : compilers) thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
}

TEST_F(ObjectCacheTest, AnImageIsTheSameFoundOrCompiled) {
  Context ctx;
  const TargetSpec spec = spec_of("llvm", "x86-64-v3"), other_spec = spec_of("llvm", "x86-64-v2");
  const Renderer& r = find_renderer(spec);
  if (!r.probe().ok) GTEST_SKIP() << r.probe().reason;
  const auto kernel = [&](const std::string& name, double value, const TargetInfo& target) {
    LinearKernel k{ctx, name};
    const Ref y = k.param(0, DType::F32, 4);
    k.store({y, ctx.index(0), ctx.constant(DType::F32, value)});
    return KernelSource{name, r.render(k.func(), target, {})};
  };
  const auto compile = [&](const TargetSpec& for_spec, double value, std::pair<int, int> hits_and_misses, int jobs) {
    const TargetInfo target = r.target(for_spec);
    const std::vector<KernelSource> sources = {kernel("a", 1, target), kernel("b", value, target),
                                               kernel("c", 3, target)};
    ObjectCache cache(folder);
    const CompiledCode code = r.compile(sources, target, jobs, &cache), plain = r.compile(sources, target, 1, nullptr);
    EXPECT_TRUE(code.image == plain.image);
    EXPECT_EQ(code.entries, plain.entries);
    EXPECT_EQ(std::pair(cache.hits(), cache.misses()), hits_and_misses);
  };
  compile(spec, 2, {0, 3}, 2);
  compile(spec, 2, {3, 0}, 1);
  compile(spec, 4, {2, 1}, 2); // one kernel changed
  compile(spec, 2, {3, 0}, 2);
  compile(other_spec, 2, {0, 3}, 1);
}

TEST(BuildIdentity, NamesThisBuild) {
  EXPECT_GE(build_identity().size(), 20U);
  EXPECT_EQ(build_identity(), build_identity());
}
