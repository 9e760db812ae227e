// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an x86-64 CPU can do, as two tables: features (with what each implies and how the host is asked for it) and
// archs (a name, its features, its sizes). Only features that kernel code can use are listed, because each becomes
// something that a loader must find. LLVM is not asked: cpu:c resolves the same targets without it, and both must
// agree. Not handled: other architectures, 32-bit x86, AMX and native f16 arithmetic. Source: x86-64 psABI (levels v1
// to v4); Intel and AMD optimisation guides (cache sizes, FMA latency and ports).
#include "render/cpu_target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <set>

#include "uop/diag.h"

namespace tgc {
namespace {

using Names = std::vector<std::string>;

struct Feature {
  const char* name;    ///< as LLVM and the runtime spell it
  const char* implies; ///< blank-separated
};
struct Arch {
  const char* name;
  const char* base;     ///< arch whose features it has too, or ""
  const char* features; ///< more of them, blank-separated; what they imply is included
  int64_t l1_kib, l2_kib;
  int fma_latency, fma_ports;
};
// clang-format off
constexpr Feature kFeatures[] = {
    {"sse3",       ""},
    {"ssse3",      "sse3"},
    {"sse4.1",     "ssse3"},
    {"sse4.2",     "sse4.1"},
    {"popcnt",     ""},
    {"avx",        "sse4.2"},
    {"f16c",       "avx"},
    {"fma",        "avx"},
    {"avx2",       "avx"},
    {"bmi",        ""},
    {"bmi2",       ""},
    {"lzcnt",      ""},
    {"movbe",      ""},
    {"avx512f",    "avx2 fma f16c"},
    {"avx512cd",   "avx512f"},
    {"avx512bw",   "avx512f"},
    {"avx512dq",   "avx512f"},
    {"avx512vl",   "avx512f"},
    {"avx512vbmi", "avx512bw"},
    {"avx512vnni", "avx512f"},
};
constexpr Arch kArchs[] = {
    {"x86-64",         "",               "",                                      32,  256, 4, 1},
    {"x86-64-v2",      "x86-64",         "popcnt sse4.2",                         32,  256, 4, 1},
    {"x86-64-v3",      "x86-64-v2",      "avx2 bmi bmi2 f16c fma lzcnt movbe",    32,  512, 4, 2},
    {"x86-64-v4",      "x86-64-v3",      "avx512bw avx512cd avx512dq avx512vl",   32, 1024, 4, 2},
    {"haswell",        "x86-64-v3",      "",                                      32,  256, 5, 2},
    {"skylake",        "x86-64-v3",      "",                                      32,  256, 4, 2},
    {"skylake-avx512", "x86-64-v4",      "",                                      32, 1024, 4, 2},
    {"icelake-server", "x86-64-v4",      "avx512vbmi avx512vnni",                 48, 1280, 4, 2},
    {"sapphirerapids", "icelake-server", "",                                      48, 2048, 4, 2},
    {"znver1",         "x86-64-v3",      "",                                      32,  512, 5, 1},
    {"znver2",         "x86-64-v3",      "",                                      32,  512, 5, 2},
    {"znver3",         "x86-64-v3",      "",                                      32,  512, 4, 2},
    {"znver4",         "icelake-server", "",                                      32, 1024, 4, 1},
};
/// CPUs by family and model, as cpuid leaf 1 gives them; those after an arch's own that it suits as well.
struct Model { unsigned family, first, last; const char* arch; };
constexpr Model kModels[] = {
    {6, 0x3c, 0x3c, "haswell"},        {6, 0x3f, 0x3f, "haswell"},        {6, 0x45, 0x47, "haswell"},
    {6, 0x4f, 0x4f, "haswell"},        {6, 0x56, 0x56, "haswell"},        {6, 0x4e, 0x4e, "skylake"},
    {6, 0x5e, 0x5e, "skylake"},        {6, 0x8e, 0x8e, "skylake"},        {6, 0x9e, 0x9e, "skylake"},
    {6, 0x55, 0x55, "skylake-avx512"}, {6, 0x6a, 0x6a, "icelake-server"}, {6, 0x6c, 0x6c, "icelake-server"},
    {6, 0x8f, 0x8f, "sapphirerapids"}, {6, 0xcf, 0xcf, "sapphirerapids"}, {6, 0xad, 0xae, "sapphirerapids"},
    {23, 0x00, 0x2f, "znver1"},        {23, 0x30, 0xff, "znver2"},        {25, 0x00, 0x0f, "znver3"},
    {25, 0x20, 0x5f, "znver3"},        {25, 0x10, 0x1f, "znver4"},        {25, 0x60, 0xaf, "znver4"},
};
// clang-format on

/// Names of what the host is and has; the compiler's built-ins take literals only.
std::set<std::string> host_facts() {
  std::set<std::string> facts;
#if defined(__x86_64__)
  const std::pair<const char*, int> all[] = {
      {"sse3", __builtin_cpu_supports("sse3")},
      {"ssse3", __builtin_cpu_supports("ssse3")},
      {"sse4.1", __builtin_cpu_supports("sse4.1")},
      {"sse4.2", __builtin_cpu_supports("sse4.2")},
      {"popcnt", __builtin_cpu_supports("popcnt")},
      {"avx", __builtin_cpu_supports("avx")},
      {"f16c", __builtin_cpu_supports("f16c")},
      {"fma", __builtin_cpu_supports("fma")},
      {"avx2", __builtin_cpu_supports("avx2")},
      {"bmi", __builtin_cpu_supports("bmi")},
      {"bmi2", __builtin_cpu_supports("bmi2")},
      {"lzcnt", __builtin_cpu_supports("lzcnt")},
      {"movbe", __builtin_cpu_supports("movbe")},
      {"avx512f", __builtin_cpu_supports("avx512f")},
      {"avx512cd", __builtin_cpu_supports("avx512cd")},
      {"avx512bw", __builtin_cpu_supports("avx512bw")},
      {"avx512dq", __builtin_cpu_supports("avx512dq")},
      {"avx512vl", __builtin_cpu_supports("avx512vl")},
      {"avx512vbmi", __builtin_cpu_supports("avx512vbmi")},
      {"avx512vnni", __builtin_cpu_supports("avx512vnni")},
  };
  for (const auto& [name, holds] : all)
    if (holds) facts.insert(name);
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = (eax >> 8 & 15) + (eax >> 20 & 255), model = (eax >> 4 & 15) | (eax >> 12 & 0xf0);
  for (const Model& m : kModels)
    if (m.family == family && m.first <= model && model <= m.last) facts.insert(m.arch);
#endif
  return facts;
}

Names split(std::string_view text) {
  Names words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

const Feature* find_feature(std::string_view name) {
  for (const Feature& f : kFeatures)
    if (name == f.name) return &f;
  return nullptr;
}

void add_feature(std::set<std::string>& set, const std::string& name) {
  const Feature* feature = find_feature(name);
  TGC_CHECK(feature, "feature " + name + " has no row");
  if (!set.insert(name).second) return;
  for (const std::string& implied : split(feature->implies)) add_feature(set, implied);
}

bool implies(const Feature& feature, const std::string& name) {
  for (const std::string& implied : split(feature.implies))
    if (implied == name || implies(*find_feature(implied), name)) return true;
  return false;
}

void remove_feature(std::set<std::string>& set, const std::string& name) {
  set.erase(name);
  for (const Feature& f : kFeatures)
    if (implies(f, name)) set.erase(f.name);
}

std::set<std::string> features_of(const Arch& arch) {
  std::set<std::string> set;
  for (const Arch* a = &arch; a;) {
    for (const std::string& name : split(a->features)) add_feature(set, name);
    const Arch* base = nullptr;
    for (const Arch& other : kArchs)
      if (std::string_view(a->base) == other.name) base = &other;
    a = base;
  }
  return set;
}

/// The host's own row, or else the highest x86-64 level that it has in full.
const Arch& native_arch() {
  const std::set<std::string> facts = host_facts();
  if (facts.empty())
    throw CompileError({ErrorCode::E401, "", "this host is not x86-64, so `native` names no target",
                        "state the architecture: --target=cpu:llvm:x86-64-v3"});
  const Arch* best = &kArchs[0];
  for (const Arch& arch : kArchs) {
    const std::set<std::string> needs = features_of(arch);
    const bool is_host = std::string_view(arch.name).starts_with("x86-64") || facts.contains(arch.name);
    if (is_host && std::includes(facts.begin(), facts.end(), needs.begin(), needs.end())) best = &arch;
  }
  return *best;
}

const Arch& find_arch(const std::string& name) {
  if (name.empty() || name == "native") return native_arch();
  for (const Arch& arch : kArchs)
    if (name == arch.name) return arch;
  const Names known = cpu_archs();
  throw CompileError({ErrorCode::E401, "", "unknown architecture `" + name + "`" + did_you_mean(name, known),
                      "known: " + join(known, ", ")});
}

void apply_changes(std::set<std::string>& set, const Names& changes) {
  for (const std::string& change : changes) {
    const bool remove = change.starts_with('-');
    const std::string name = change.substr(remove || change.starts_with('+') ? 1 : 0);
    if (!find_feature(name)) {
      Names known;
      for (const Feature& f : kFeatures) known.emplace_back(f.name);
      throw CompileError({ErrorCode::E401, "", "unknown CPU feature `" + name + "`" + did_you_mean(name, known),
                          "known: " + join(known, ", ")});
    }
    if (remove)
      remove_feature(set, name);
    else
      add_feature(set, name);
  }
}

// Decompositions must fill in everything else. Div to FloorMod and Shl, Shr are native for integers; float Mod is not.
constexpr Ops kNativeOps[] = {
    Ops::Cast, Ops::Bitcast, Ops::Neg,      Ops::Abs,      Ops::Not, Ops::Sqrt, Ops::Add,   Ops::Sub,  Ops::Mul,
    Ops::Div,  Ops::Mod,     Ops::FloorDiv, Ops::FloorMod, Ops::Max, Ops::Min,  Ops::And,   Ops::Or,   Ops::Xor,
    Ops::Shl,  Ops::Shr,     Ops::Lt,       Ops::Le,       Ops::Eq,  Ops::Ne,   Ops::Where, Ops::Dot4,
};

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

} // namespace

std::vector<std::string> cpu_archs() {
  Names names{"native"};
  for (const Arch& arch : kArchs) names.emplace_back(arch.name);
  return names;
}

std::string join(const Names& names, const char* separator) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : separator) + name;
  return text;
}

std::string did_you_mean(std::string_view text, const Names& names) {
  const std::string* best = nullptr;
  size_t least = text.size() / 2 + 1; // half of it wrong is another word
  for (const std::string& name : names)
    if (const size_t d = distance(text, name); d < least) {
      least = d;
      best = &name;
    }
  return best ? "; did you mean `" + *best + "`?" : "";
}

bool has_feature(const TargetInfo& target, std::string_view feature) {
  return std::find(target.features.begin(), target.features.end(), "+" + std::string(feature)) != target.features.end();
}

TargetInfo resolve_cpu(const TargetSpec& spec, const char* renderer) {
  const Arch& arch = find_arch(spec.arch);
  std::set<std::string> set = features_of(arch);
  apply_changes(set, spec.features);

  TargetInfo target;
  target.device = "cpu";
  target.renderer = renderer;
  target.arch = arch.name;
  for (const std::string& name : set) target.features.push_back("+" + name);
  for (const Ops op : kNativeOps) target.ops.set(static_cast<size_t>(op));
  if (set.contains("fma")) target.ops.set(static_cast<size_t>(Ops::Fma));
  if (set.contains("sse4.1"))
    for (const Ops op : {Ops::Floor, Ops::Ceil, Ops::Trunc, Ops::Round}) target.ops.set(static_cast<size_t>(op));
  for (int t = 1; t < kNumDTypes; ++t) target.dtypes.set(static_cast<size_t>(t));
  const bool wide = set.contains("avx512f");
  target.vector_bytes = wide ? 64 : set.contains("avx2") ? 32 : 16;
  target.vector_registers = wide ? 32 : 16;
  target.fma_latency = arch.fma_latency;
  target.fma_ports = arch.fma_ports;
  target.l1_bytes = arch.l1_kib << 10;
  target.l2_bytes = arch.l2_kib << 10;
  target.masked_memory = set.contains("avx512bw") && set.contains("avx512vl");
  return target;
}

} // namespace tgc
