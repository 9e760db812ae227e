// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgc {

/// The build ids of this program and of all libraries it has loaded: what its results depend on beyond its input.
/// "" when one of them has none.
std::string build_identity();

/// Compiled kernels, kept in a folder between compiles and shared by concurrent ones. An entry is the file
/// KEY.tgco; a key says everything that determines the entry. A folder that cannot be used costs time, never a compile:
/// there is no error but problem(). Thread-safe.
class ObjectCache {
public:
  static constexpr size_t kKeyChars = 64;              ///< hexadecimal digits, lower case
  static constexpr uint64_t kDefaultLimit = 256 << 20; ///< bytes on disk: some 30,000 kernels

  /// `folder` and those above it are made when there is something to keep, for this user alone.
  explicit ObjectCache(std::string folder, uint64_t limit = kDefaultLimit);
  /// When something was added, entries used least recently go until three quarters of the limit are left.
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  /// The bytes kept under `key`, which count as used now. A damaged entry is removed and not found.
  std::optional<std::vector<char>> find(const std::string& key);
  /// Other compilers see the entry whole or not at all.
  void keep(const std::string& key, std::span<const char> bytes);

  const std::string& folder() const { return folder_; }
  int hits() const { return hits_; }
  int misses() const { return misses_; }
  std::string problem() const; ///< why entries are not kept: the first reason; "" when they are

private:
  std::string path_of(const std::string& key) const;
  void trim();
  void set_problem(std::string_view action, int error);

  const std::string folder_;
  const uint64_t limit_;
  std::atomic<int> hits_ = 0, misses_ = 0;
  std::atomic<bool> grew_ = false;
  mutable std::mutex mutex_;
  std::string problem_;
};

} // namespace tgc
