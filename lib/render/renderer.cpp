// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The list of renderers, made by CMake from the files renderer_*.cpp (see renderers.inc), and the search in it. A new
// renderer is a new file; nothing here changes.
#include "render/renderer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "render/cpu_target.h"
#include "uop/diag.h"

namespace tgc {

#define TGC_RENDERER(name) extern const Renderer renderer_##name;
#include "render/renderers.inc"
#undef TGC_RENDERER

std::span<const Renderer* const> renderers() {
  static const auto all = [] {
    std::array list{
#define TGC_RENDERER(name) &renderer_##name,
#include "render/renderers.inc"
#undef TGC_RENDERER
    };
    std::sort(list.begin(), list.end(), [](const Renderer* a, const Renderer* b) {
      const int device = std::strcmp(a->device, b->device);
      return device != 0 ? device < 0 : std::strcmp(a->name, b->name) < 0;
    });
    return list;
  }();
  return all;
}

const Renderer& find_renderer(const TargetSpec& spec) {
  std::vector<std::string> devices, names;
  for (const Renderer* r : renderers()) {
    if (devices.empty() || devices.back() != r->device) devices.emplace_back(r->device);
    if (spec.device != r->device) continue;
    if (spec.renderer == r->name || (spec.renderer.empty() && r->is_default)) return *r;
    names.emplace_back(r->name);
  }
  if (names.empty())
    throw CompileError({ErrorCode::E401, "",
                        "unknown device `" + spec.device + "`" + did_you_mean(spec.device, devices),
                        "known: " + join(devices, ", ")});
  throw CompileError(
      {ErrorCode::E401, "",
       "device `" + spec.device + "` has no renderer `" + spec.renderer + "`" + did_you_mean(spec.renderer, names),
       "known: " + join(names, ", ")});
}

std::vector<TargetRow> list_targets() {
  std::vector<TargetRow> rows;
  for (const Renderer* r : renderers())
    rows.push_back({r->device, r->name, r->doc, r->is_default, r->probe(), cpu_archs()});
  return rows;
}

} // namespace tgc
