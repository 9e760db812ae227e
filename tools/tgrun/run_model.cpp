// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the command line to a context that is ready to run: loads the bundle, reads input files, fills the other inputs
// with seeded random values. A picture takes the form that the input's shape suggests: [N,1,H,W], [N,H,W,1], [N,H,W],
// [H,W] or [N,H*W]. Several files are joined along the first axis.
#include "tgrun/run_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "printable.h"
#include "runtime/tgrt_bundle.h"

namespace tgc {

namespace {

tgrt_tensor_info info_of(const tgrt_model* model, int kind, uint32_t index) {
  tgrt_tensor_info info;
  tgrt_get_tensor(model, kind, index, &info);
  return info;
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
  }
};

/// A random element of [-1, 1), or 0 or 1 for integers (which may be indices).
void put_random(char* to, uint32_t dtype, Random& random) {
  const uint64_t bits = random.next();
  const double real = static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
  const auto single = static_cast<float>(real);
  const uint64_t integer = bits >> 63;
  uint32_t word;
  std::memcpy(&word, &single, sizeof word);
  // f16 in [-1, 1): sign, exponent 15 - 1 - k, ten bits; enough to run with, evenly spread in each binade.
  const auto half = static_cast<uint16_t>((bits & 0x8000) | (11 + (bits >> 16 & 3)) << 10 | (bits & 1023));
  switch (dtype) {
  case TGRT_F16: std::memcpy(to, &half, 2); break;
  case TGRT_BF16: std::memcpy(to, reinterpret_cast<const char*>(&word) + 2, 2); break;
  case TGRT_F32: std::memcpy(to, &single, 4); break;
  case TGRT_F64: std::memcpy(to, &real, 8); break;
  default: std::memcpy(to, &integer, dtype_bytes(dtype));
  }
}

/// Gives a picture [H,W] the form of input `index`.
void shape_picture(const tgrt_model* model, uint32_t index, HostTensor& picture) {
  const uint32_t rank = info_of(model, TGRT_INPUT, index).rank;
  const int64_t height = picture.dims[0], width = picture.dims[1];
  const auto dim = [&](uint32_t axis) { return tgrt_model_dim(model, TGRT_INPUT, index, axis, nullptr); };
  if (rank == 4 && dim(3) == 1 && dim(1) != 1)
    picture.dims = {1, height, width, 1};
  else if (rank == 4)
    picture.dims = {1, 1, height, width};
  else if (rank == 3)
    picture.dims = {1, height, width};
  else if (rank == 2 && dim(1) == height * width)
    picture.dims = {1, height * width};
  else if (rank == 1)
    picture.dims = {height * width};
}

/// Appends `more` along the first axis.
void join(const std::string& file, HostTensor& all, const HostTensor& more) {
  const bool fits = all.dtype == more.dtype && all.dims.size() == more.dims.size() && !all.dims.empty() &&
                    std::vector<int64_t>(all.dims.begin() + 1, all.dims.end()) ==
                        std::vector<int64_t>(more.dims.begin() + 1, more.dims.end());
  if (!fits)
    throw RunError(file + ": " + dtype_name(more.dtype) + dims_text(more.dims) + " cannot be joined to " +
                       dtype_name(all.dtype) + dims_text(all.dims),
                   "files of one input are joined along the first axis; all else must be equal");
  all.dims[0] += more.dims[0];
  all.data.insert(all.data.end(), more.data.begin(), more.data.end());
}

uint32_t input_called(const tgrt_model* model, const std::string& name) {
  const uint32_t count = tgrt_tensor_count(model, TGRT_INPUT);
  if (name.empty() && count == 1) return 0;
  const int index = tgrt_find_tensor(model, TGRT_INPUT, name.c_str());
  if (index >= 0) return static_cast<uint32_t>(index);
  std::string all;
  for (uint32_t i = 0; i < count; ++i) all += (i ? ", " : "") + tensor_text(model, TGRT_INPUT, i);
  throw RunError(name.empty() ? "--input without a name" : "the model has no input \"" + name + "\"",
                 count ? "its inputs are " + all : "it has no inputs");
}

void check_dims(const tgrt_model* model, const RunOptions& options) {
  std::string all;
  std::vector<std::string> known;
  for (uint32_t v = 0; v < tgrt_var_count(model); ++v) {
    const char* name = nullptr;
    int64_t min = 0, max = 0;
    tgrt_get_var(model, v, &name, &min, &max);
    known.emplace_back(name);
    all += (v ? ", " : "") + known.back() + " (" + std::to_string(min) + ".." + std::to_string(max) + ")";
  }
  for (const auto& [name, value] : options.dims)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw RunError("the model has no dim \"" + name + "\"",
                     known.empty() ? "it has no symbolic dims" : "its dims are " + all);
}

void set_vars(tgrt_context* context, const tgrt_model* model, const RunOptions& options) {
  check_dims(model, options);
  tgrt_error error{};
  for (const auto& [name, value] : options.dims)
    if (tgrt_set_var(context, name.c_str(), value, &error) != 0) fail("--dim " + name, error);
}

} // namespace

void fail(const std::string& where, const tgrt_error& error) {
  std::string text = error.text;
  const std::string remedy = tgrt_error_remedy(error.code);
  if (text.size() > remedy.size() && text.ends_with(remedy)) text.resize(text.size() - remedy.size() - 2);
  const std::string again = ": " + where + ": "; // some texts begin as `where` does
  if (const size_t at = text.find(again); at != std::string::npos) text.erase(at, again.size() - 2);
  throw RunError(where + ": error " + text, remedy);
}

std::string tensor_text(const tgrt_model* model, int kind, uint32_t index) {
  const tgrt_tensor_info info = info_of(model, kind, index);
  std::string text = "\"" + std::string(info.name) + "\" " + dtype_name(info.dtype) + "[";
  for (uint32_t axis = 0; axis < info.rank; ++axis) {
    const char* name = nullptr;
    const int64_t dim = tgrt_model_dim(model, kind, index, axis, &name);
    text += (axis ? "," : "") + (name ? std::string(name) : dim < 0 ? "?" : std::to_string(dim));
  }
  return text + "]";
}

ModelPtr load_model(const RunOptions& options, bool inspect) {
  tgrt_load_options load{};
  load.struct_size = sizeof load;
  const char* perf_map = std::getenv("TGRT_PERF_MAP");
  if (perf_map && std::strcmp(perf_map, "1") == 0) load.flags |= TGRT_LOAD_PERF_MAP;
  if (inspect) load.flags |= TGRT_LOAD_INSPECT;
  tgrt_model* model = nullptr;
  tgrt_error error{};
  if (tgrt_load_file(options.bundle.c_str(), &load, &model, &error) != 0) fail(options.bundle, error);
  return ModelPtr(model);
}

ContextPtr make_context(const tgrt_model* model, const RunOptions& options, ProfileFn profile, void* user) {
  tgrt_context_options create{};
  create.struct_size = sizeof create;
  create.flags = TGRT_CONTEXT_MINIMA | (options.guard ? TGRT_CONTEXT_GUARD : 0);
  create.threads = options.threads;
  create.profile = profile;
  create.profile_user = user;
  tgrt_context* context = nullptr;
  tgrt_error error{};
  if (tgrt_create_context(model, &create, &context, &error) != 0) fail(options.bundle, error);
  return ContextPtr(context);
}

std::vector<HostTensor> read_inputs(const tgrt_model* model, const RunOptions& options) {
  std::vector<HostTensor> inputs(tgrt_tensor_count(model, TGRT_INPUT));
  for (const InputFiles& option : options.inputs) {
    const uint32_t index = input_called(model, option.name);
    HostTensor& all = inputs[index];
    for (const std::string& file : option.files) {
      HostTensor one = read_tensor(file);
      if (file.ends_with(".pgm")) shape_picture(model, index, one);
      if (all.dtype == 0)
        all = std::move(one);
      else
        join(file, all, one);
    }
  }
  return inputs;
}

void set_input(tgrt_context* context, const tgrt_model* model, uint32_t index, const HostTensor& tensor) {
  const tgrt_tensor_info info = info_of(model, TGRT_INPUT, index);
  const std::string where = "input " + tensor_text(model, TGRT_INPUT, index);
  if (info.dtype != tensor.dtype)
    throw RunError(where + ": the file has elements of type " + dtype_name(tensor.dtype),
                   std::string("convert them to ") + dtype_name(info.dtype));
  tgrt_error error{};
  if (tgrt_set_shape(context, index, tensor.dims.data(), static_cast<uint32_t>(tensor.dims.size()), &error) != 0)
    fail(where, error);
}

namespace {

/// Says what dims are that neither an input nor --dim gives: their minima, or what others make them.
void note_free_dims(tgrt_context* context, const tgrt_model* model, const RunOptions& options,
                    const std::vector<HostTensor>& given) {
  std::map<std::string, int64_t> free;
  std::set<std::string> known;
  for (uint32_t i = 0; i < tgrt_tensor_count(model, TGRT_INPUT); ++i) {
    const tgrt_tensor_info info = info_of(model, TGRT_INPUT, i);
    std::vector<int64_t> dims(info.rank);
    if (tgrt_shape(context, TGRT_INPUT, i, dims.data(), nullptr) != 0) return;
    for (uint32_t axis = 0; axis < info.rank; ++axis) {
      const char* name = nullptr;
      tgrt_model_dim(model, TGRT_INPUT, i, axis, &name);
      if (name) free[name] = dims[axis];
      if (name && given[i].dtype != 0) known.insert(name);
    }
  }
  for (const auto& [name, value] : options.dims) known.insert(name);
  for (const std::string& name : known) free.erase(name);
  std::string text;
  for (const auto& [name, value] : free) text += " " + printable(name) + "=" + std::to_string(value);
  if (!text.empty()) std::fprintf(stderr, "tgrun: note: neither an input nor --dim gives:%s\n", text.c_str());
}

} // namespace

void set_inputs(tgrt_context* context, const tgrt_model* model, const RunOptions& options,
                const std::vector<HostTensor>& given) {
  tgrt_error error{};
  for (uint32_t i = 0; i < given.size(); ++i)
    if (given[i].dtype != 0) set_input(context, model, i, given[i]);
  set_vars(context, model, options);
  if (tgrt_prepare(context, &error) != 0) fail(options.bundle, error);
  Random random{options.seed};
  const bool some = std::any_of(given.begin(), given.end(), [](const HostTensor& t) { return t.dtype != 0; });
  note_free_dims(context, model, options, given);
  for (uint32_t i = 0; i < given.size(); ++i) {
    char* to = static_cast<char*>(tgrt_data(context, TGRT_INPUT, i, &error));
    const size_t bytes = tgrt_bytes(context, TGRT_INPUT, i, &error);
    const tgrt_tensor_info info = info_of(model, TGRT_INPUT, i);
    if (some && given[i].dtype == 0)
      std::fprintf(stderr, "tgrun: note: input \"%s\" is not given and takes random values (--seed %llu)\n",
                   printable(info.name).c_str(), static_cast<unsigned long long>(options.seed));
    if (given[i].dtype != 0)
      std::memcpy(to, given[i].data.data(), bytes);
    else
      for (size_t at = 0; at < bytes; at += info.element_bytes) put_random(to + at, info.dtype, random);
  }
}

void run_once(tgrt_context* context, const std::string& bundle) {
  tgrt_error error{};
  if (tgrt_run(context, &error) != 0) fail(bundle, error);
}

HostTensor get_output(tgrt_context* context, const tgrt_model* model, uint32_t index) {
  const tgrt_tensor_info info = info_of(model, TGRT_OUTPUT, index);
  HostTensor t;
  t.name = info.name;
  t.dtype = info.dtype;
  t.dims.resize(info.rank);
  tgrt_shape(context, TGRT_OUTPUT, index, t.dims.data(), nullptr);
  const char* data = static_cast<const char*>(tgrt_data(context, TGRT_OUTPUT, index, nullptr));
  t.data.assign(data, data + tgrt_bytes(context, TGRT_OUTPUT, index, nullptr));
  return t;
}

} // namespace tgc
