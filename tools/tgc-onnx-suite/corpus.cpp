// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the tests of ONNX's backend suite in their folder layout: the one that the onnx package installs and its
// repository keeps; the networks of suite light lie flat: NAME.onnx, NAME_output_0.pb. Only test_data_set_0 is looked
// at: every test of the suite has exactly one.
#include <dirent.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "tgc-onnx-suite/case.h"

namespace tgc::suite {

namespace {

constexpr const char* kSuites[] = {"node", "simple", "pytorch-converted", "pytorch-operator", "light"};

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> numbered(const std::string& prefix) {
  std::vector<std::string> paths;
  for (size_t i = 0;; ++i) {
    std::string path = prefix + std::to_string(i) + ".pb";
    if (access(path.c_str(), R_OK) != 0) return paths;
    paths.push_back(std::move(path));
  }
}

bool matches(const Case& test, const std::string& filter) {
  if (filter.empty()) return true;
  const bool whole = filter.find('/') != std::string::npos;
  const std::string text = whole ? test.suite + "/" + test.name : test.name;
  return fnmatch(filter.c_str(), text.c_str(), 0) == 0;
}

/// The case that `entry` of a suite's folder is: a folder of its own or, in suite light, a model beside its outputs.
std::optional<Case> case_of(const std::string& suite, const std::string& folder, const std::string& entry) {
  const std::string path = folder + "/" + entry;
  if (entry.ends_with(".onnx")) {
    const std::string stem = path.substr(0, path.size() - 5);
    return Case{suite, stem.substr(folder.size() + 1), path, {}, numbered(stem + "_output_")};
  }
  const std::string model = path + "/model.onnx", data = path + "/test_data_set_0";
  if (access(model.c_str(), R_OK) != 0) return std::nullopt;
  return Case{suite, entry, model, numbered(data + "/input_"), numbered(data + "/output_")};
}

} // namespace

std::vector<Case> find_cases(const std::string& root, const std::string& filter) {
  std::vector<Case> cases;
  bool any_suite = false;
  for (const char* suite : kSuites) {
    const std::string folder = root + "/" + suite;
    for (const std::string& entry : entries(folder)) {
      any_suite = true;
      std::optional<Case> test = case_of(suite, folder, entry);
      if (test && matches(*test, filter)) cases.push_back(std::move(*test));
    }
  }
  if (!any_suite) throw std::runtime_error(root + ": has none of the folders node, simple, pytorch-…, light");
  return cases;
}

const char* name(Status status) {
  switch (status) {
  case Status::Pass: return "pass";
  case Status::Wrong: return "wrong";
  case Status::Unsupported: return "unsupported";
  case Status::Crash: return "crash";
  }
  return "";
}

} // namespace tgc::suite
