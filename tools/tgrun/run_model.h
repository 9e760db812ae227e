// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/tgrt.h"
#include "tgrun/options.h"
#include "tgrun/tensor.h"

namespace tgc {

struct ModelDeleter {
  void operator()(tgrt_model* m) const { tgrt_free_model(m); }
};
struct ContextDeleter {
  void operator()(tgrt_context* c) const { tgrt_free_context(c); }
};
using ModelPtr = std::unique_ptr<tgrt_model, ModelDeleter>;
using ContextPtr = std::unique_ptr<tgrt_context, ContextDeleter>;

/// Throws what the runtime says as a RunError, its advice as the note.
[[noreturn]] void fail(const std::string& where, const tgrt_error& error);

/// errors: RunError with the runtime's text.
ModelPtr load_model(const RunOptions& options, bool inspect);
using ProfileFn = void (*)(void* user, const tgrt_step_event* event);
ContextPtr make_context(const tgrt_model* model, const RunOptions& options, ProfileFn profile, void* user);

/// "x" f32 [batch,1,28,28]
std::string tensor_text(const tgrt_model* model, int kind, uint32_t index);

/// Gives `tensor` to input `index` of the context, which keeps a copy of its own.
void set_input(tgrt_context* context, const tgrt_model* model, uint32_t index, const HostTensor& tensor);
/// Sets every input: those of `given` (by index; dtype 0 is none), the others seeded random; dims by --dim or at their
/// minimum.
void set_inputs(tgrt_context* context, const tgrt_model* model, const RunOptions& options,
                const std::vector<HostTensor>& given);
/// The files of --input, by the model's input index.
std::vector<HostTensor> read_inputs(const tgrt_model* model, const RunOptions& options);
void run_once(tgrt_context* context, const std::string& bundle);
HostTensor get_output(tgrt_context* context, const tgrt_model* model, uint32_t index);

// What tgrun does, one function per action.
RunExit print_outputs(const RunOptions& options);
RunExit run_tests(const RunOptions& options);
RunExit bench(const RunOptions& options);
RunExit profile(const RunOptions& options);
RunExit describe(const RunOptions& options);
RunExit extract(const RunOptions& options);
RunExit check_bundle(const RunOptions& options);
RunExit list_devices();

/// The bundle as JSON.
std::string bundle_json(const tgrt_model* model);
std::string json_string(const std::string& text);

} // namespace tgc
