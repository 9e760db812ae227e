// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The actions that run a model once: print its outputs, save them, or compare them with ONNX test data (a folder with
// input_<i>.pb and output_<i>.pb, or one with several test_data_set_<k>). Numbers agree when |a - b| <= atol +
// rtol*|b|, NaN agrees with NaN, and anything but floats must be equal, as in the ONNX backend tests.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "printable.h"
#include "tgrun/run_model.h"

namespace tgc {

namespace {

constexpr size_t kShown = 10; // elements printed of each output

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    throw RunError(path + ": cannot be made: " + std::strerror(errno), "check the path and its permissions");
}

bool exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

/// `folder` itself if it holds output_0.pb, else its test_data_set_* in order.
std::vector<std::string> data_sets(const std::string& folder) {
  if (exists(folder + "/output_0.pb")) return {folder};
  std::vector<std::string> sets;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) throw RunError(folder + ": cannot be read: " + std::strerror(errno), "check the path");
  while (const dirent* entry = ::readdir(dir))
    if (std::strncmp(entry->d_name, "test_data_set_", 14) == 0) sets.push_back(folder + "/" + entry->d_name);
  ::closedir(dir);
  std::sort(sets.begin(), sets.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  if (sets.empty())
    throw RunError(folder + ": neither output_0.pb nor test_data_set_0 is there", "name a folder of ONNX test data");
  return sets;
}

/// Index `i` of a flat array as "[2,0,5]".
std::string position_text(const std::vector<int64_t>& dims, size_t i) {
  std::vector<int64_t> at(dims.size());
  for (size_t axis = dims.size(); axis-- > 0;) {
    at[axis] = static_cast<int64_t>(i) % dims[axis];
    i /= static_cast<size_t>(dims[axis]);
  }
  return dims_text(at);
}

/// How far element `i` is beyond the tolerance: 0 when it agrees.
double excess(const HostTensor& got, const HostTensor& want, size_t i, const RunOptions& options) {
  if (!dtype_is_float(got.dtype)) {
    const size_t width = dtype_bytes(got.dtype);
    return std::memcmp(got.data.data() + i * width, want.data.data() + i * width, width) == 0 ? 0 : 1;
  }
  const double a = element(got, i), b = element(want, i);
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  return std::max(0.0, std::fabs(a - b) - (options.atol + options.rtol * std::fabs(b)));
}

/// One line about an output that differs; "" if it agrees.
std::string difference(const HostTensor& got, const HostTensor& want, const RunOptions& options) {
  if (got.dtype != want.dtype || got.dims != want.dims)
    return std::string("got ") + dtype_name(got.dtype) + dims_text(got.dims) + ", expected " + dtype_name(want.dtype) +
           dims_text(want.dims);
  size_t count = 0, worst = 0;
  double worst_excess = 0;
  const size_t n = got.data.size() / dtype_bytes(got.dtype);
  for (size_t i = 0; i < n; ++i) {
    const double beyond = excess(got, want, i, options);
    if (!(beyond > 0)) continue;
    ++count;
    if (beyond > worst_excess) worst_excess = beyond, worst = i;
  }
  if (count == 0) return {};
  return std::to_string(count) + " of " + std::to_string(n) + " elements differ; worst at " +
         position_text(got.dims, worst) + ": got " + number_text(got, worst) + ", expected " + number_text(want, worst);
}

/// Whether the data set agrees; prints a line per output that does not.
bool run_set(const tgrt_model* model, const RunOptions& options, const std::string& folder) {
  std::vector<HostTensor> given(tgrt_tensor_count(model, TGRT_INPUT));
  for (uint32_t i = 0; exists(folder + "/input_" + std::to_string(i) + ".pb"); ++i) {
    const std::string file = folder + "/input_" + std::to_string(i) + ".pb";
    HostTensor tensor = read_tensor(file);
    const int named = tgrt_find_tensor(model, TGRT_INPUT, tensor.name.c_str());
    const size_t index = named >= 0 ? static_cast<size_t>(named) : i;
    if (index >= given.size())
      throw RunError(file + ": the model has only " + std::to_string(given.size()) + " inputs");
    given[index] = std::move(tensor);
  }
  for (uint32_t i = 0; i < given.size(); ++i)
    if (given[i].dtype == 0) throw RunError(folder + ": no file for input " + tensor_text(model, TGRT_INPUT, i));
  const ContextPtr context = make_context(model, options, nullptr, nullptr);
  set_inputs(context.get(), model, options, given);
  run_once(context.get(), options.bundle);
  bool agrees = true;
  for (uint32_t i = 0; i < tgrt_tensor_count(model, TGRT_OUTPUT); ++i) {
    const HostTensor want = read_tensor(folder + "/output_" + std::to_string(i) + ".pb");
    const std::string text = difference(get_output(context.get(), model, i), want, options);
    if (text.empty()) continue;
    agrees = false;
    std::printf("%s: output %s: %s\n", folder.c_str(), printable(tensor_text(model, TGRT_OUTPUT, i)).c_str(),
                text.c_str());
  }
  return agrees;
}

void print_tensor(const HostTensor& t) {
  std::printf("%s %s%s:", printable(t.name).c_str(), dtype_name(t.dtype), dims_text(t.dims).c_str());
  const size_t n = t.data.size() / dtype_bytes(t.dtype);
  for (size_t i = 0; i < n && i < kShown; ++i) std::printf(" %s", number_text(t, i).c_str());
  std::printf("%s\n", n > kShown ? " …" : "");
}

} // namespace

RunExit print_outputs(const RunOptions& options) {
  const ModelPtr model = load_model(options, false);
  const ContextPtr context = make_context(model.get(), options, nullptr, nullptr);
  set_inputs(context.get(), model.get(), options, read_inputs(model.get(), options));
  run_once(context.get(), options.bundle);
  if (!options.save.empty()) make_folder(options.save);
  for (uint32_t i = 0; i < tgrt_tensor_count(model.get(), TGRT_OUTPUT); ++i) {
    const HostTensor t = get_output(context.get(), model.get(), i);
    print_tensor(t);
    if (!options.save.empty()) write_whole(options.save + "/output_" + std::to_string(i) + ".npy", to_npy(t));
  }
  return RunExit::Ok;
}

RunExit run_tests(const RunOptions& options) {
  const ModelPtr model = load_model(options, false);
  const std::vector<std::string> sets = data_sets(options.test);
  size_t passed = 0;
  for (const std::string& set : sets) passed += run_set(model.get(), options, set);
  std::printf("%zu of %zu data sets agree (rtol %g, atol %g)\n", passed, sets.size(), options.rtol, options.atol);
  return passed == sets.size() ? RunExit::Ok : RunExit::Differ;
}

RunExit extract(const RunOptions& options) {
  static constexpr const char* kFiles[] = {nullptr, "code.so", "plan.bin", "weights.bin", "source.txt", "tests.bin"};
  const ModelPtr model = load_model(options, true);
  make_folder(options.extract);
  for (uint32_t kind = 1; kind < std::size(kFiles); ++kind) {
    size_t bytes = 0;
    const char* data = static_cast<const char*>(tgrt_section_data(model.get(), kind, &bytes));
    if (data) write_whole(options.extract + "/" + kFiles[kind], {data, bytes});
  }
  write_whole(options.extract + "/plan.json", bundle_json(model.get()));
  return RunExit::Ok;
}

RunExit check_bundle(const RunOptions& options) {
  const ModelPtr model = load_model(options, false);
  tgrt_error error{};
  if (tgrt_verify(model.get(), &error) != 0) fail(options.bundle, error);
  std::printf("%s: ok\n", options.bundle.c_str());
  return RunExit::Ok;
}

RunExit list_devices() {
  char text[1024];
  for (uint32_t i = 0; const char* name = tgrt_device_name(i); ++i) {
    const bool usable = tgrt_describe_device(i, text, sizeof text) != 0;
    std::printf("%-6s %s  %s\n", name, usable ? "PASS" : "FAIL", text);
  }
  return RunExit::Ok;
}

} // namespace tgc
