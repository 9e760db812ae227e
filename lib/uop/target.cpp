// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads `--target` text into its parts, as written: device[:renderer][:arch[,+feature,-feature]]. Positions decide, so
// `cpu::znver3` leaves the renderer to the default. Which devices, renderers and archs exist is not known here: that is
// the business of the renderers' tables.

#include "uop/target.h"

#include <algorithm>

#include "uop/diag.h"

namespace tgc {
namespace {

bool is_name(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

[[noreturn]] void bad_target(std::string_view text, const std::string& why) {
  throw CompileError(Diagnostic{.code = ErrorCode::E401,
                                .where = "",
                                .message = "\"" + std::string(text.substr(0, 100)) + "\": " + why,
                                .note = "write device[:renderer][:arch[,+feature,-feature]], such as cpu, cpu:c or "
                                        "cpu:llvm:x86-64-v3,+fma"});
}

/// The text before the first `separator`, which is removed with it from `rest`.
std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

} // namespace

TargetSpec parse_target(std::string_view text) {
  TargetSpec spec;
  if (std::count(text.begin(), text.end(), ':') > 2) bad_target(text, "has more than three parts");
  std::string_view features = text;
  std::string_view parts = next_part(features, ',');
  const std::string_view device = next_part(parts, ':'), renderer = next_part(parts, ':'), arch = parts;
  if (device.empty()) bad_target(text, "names no device");
  for (std::string_view part : {device, renderer, arch})
    if (!is_name(part)) bad_target(text, "\"" + std::string(part) + "\" is not a name");
  if (text.find(',') != std::string_view::npos && arch.empty()) bad_target(text, "has features without an arch");
  spec.device = device;
  spec.renderer = renderer;
  spec.arch = arch;
  if (text.ends_with(',')) bad_target(text, "a feature is empty");
  while (!features.empty()) {
    const std::string_view feature = next_part(features, ',');
    const bool is_signed_name =
        feature.size() > 1 && (feature[0] == '+' || feature[0] == '-') && is_name(feature.substr(1));
    if (!is_signed_name) bad_target(text, "feature \"" + std::string(feature) + "\" does not begin with + or -");
    spec.features.emplace_back(feature);
  }
  return spec;
}

} // namespace tgc
