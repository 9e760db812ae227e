// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line's verbs. Whatever is printed for a user to read on (a stage, a listing) goes to standard output, or
// to -o where one is given; what is said about the work goes to standard error.
#include "tgc/driver.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "printable.h"
#include "render/object_cache.h"
#include "tgc/beam.h"
#include "tgc/boundary.h"
#include "tgc/memory_use.h"
#include "tgc/passes.h"
#include "tgc/verify.h"
#include "uop/text.h"

namespace tgc {
namespace {

/// --emit=STAGE is a --stop-after; the last two render as well.
struct EmitStage {
  const char* name;
  const char* last_pass; ///< null: nothing runs; "": all
};
constexpr EmitStage kEmit[] = {{"uops", nullptr},    {"kernels", "mark-constants"},
                               {"plan", "optimize"}, {"linear", ""},
                               {"source", ""},       {"asm", ""}};

void print_passes() {
  for (std::span<const Pass> table : {graph_passes(), kernel_passes()})
    for (const Pass& p : table)
      std::printf("%-9s %-15s %-9s -> %-9s%s %s\n", p.stage, p.name, p.needs ? p.needs : "",
                  p.establishes ? p.establishes : "", p.optional ? " (optional)" : "           ", p.doc);
}

void print_targets() {
  for (const TargetRow& row : list_targets()) {
    std::printf("%s %s:%s  %s  %s\n", row.is_default ? "*" : " ", row.device.c_str(), row.renderer.c_str(),
                row.state.ok ? "PASS" : "FAIL", row.doc.c_str());
    if (!row.state.ok) std::printf("      %s; %s\n", row.state.reason.c_str(), row.state.remedy.c_str());
    std::string archs;
    for (const std::string& a : row.archs) archs += " " + a;
    std::printf("      arch:%s\n", archs.c_str());
  }
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw CompileError(
      Diagnostic{.code = ErrorCode::E502, .where = path, .message = "cannot be written: " + why, .note = ""});
}

using Inputs = std::vector<std::pair<std::string, const char*>>; ///< path, what it is

/// A slip of the hand must not cost the user a model, whose weights would be gone, or hours of timing.
void spare(const Inputs& inputs, const Options& options) {
  struct stat input{}, output{};
  if (options.output.empty() || options.check || stat(options.output.c_str(), &output) != 0) return;
  for (const auto& [path, what] : inputs)
    if (!path.empty() && stat(path.c_str(), &input) == 0 && S_ISREG(output.st_mode) && input.st_dev == output.st_dev &&
        input.st_ino == output.st_ino)
      throw UsageError("-o \"" + options.output + "\" is " + what + " itself");
}

void check_verifiable(const Options& options) {
  struct stat output{};
  if (options.verify != Verify::None && stat(options.output.c_str(), &output) == 0 && !S_ISREG(output.st_mode))
    throw UsageError("--verify runs the bundle; -o \"" + options.output + "\" is no file that can be read again");
}

Inputs weight_files(const Module& module) {
  Inputs files;
  for (const auto& [key, weight] : module.weights)
    if (files.empty() || files.back().first != weight.file) files.emplace_back(weight.file, "a file of weights");
  return files;
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) {
    std::fputs(text.c_str(), stdout);
    return;
  }
  OutputFile file(path);
  std::FILE* f = std::fopen(file.writing().c_str(), "wb");
  if (!f) cannot_write(path, std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), f) == text.size();
  if (std::fclose(f) != 0 || !written) cannot_write(path, std::strerror(errno));
  file.commit();
}

std::string sources_text(const Compilation& c) {
  std::string text;
  for (const KernelSource& s : c.sources) text += s.text + "\n";
  return text;
}

std::string assembly_text(const Compilation& c) {
  std::string text;
  for (const KernelSource& s : c.sources) text += c.renderer->assembly(s, c.target) + "\n";
  return text;
}

int kernel_count(const Compilation& c) { return static_cast<int>(kernels_of(c.module.root).size()); }

/// Prints what --emit or --stop-after asks for.
Exit emit(Compilation& c, const Options& options, CompileOptions& compile) {
  const EmitStage* stage = nullptr;
  for (const EmitStage& s : kEmit)
    if (options.emit == s.name) stage = &s;
  bool runs = !stage || stage->last_pass;
  if (stage && stage->last_pass && *stage->last_pass && options.stop_after.empty())
    compile.passes.stop_after = stage->last_pass;
  if (runs) run_pipeline(c, compile);
  bool rendered = stage && (options.emit == "source" || options.emit == "asm");
  if (!rendered) {
    write_text(options.output, print(c.module));
    return Exit::Ok;
  }
  drop_constant_calls(c);
  render(c);
  write_text(options.output, options.emit == "source" ? sources_text(c) : assembly_text(c));
  return Exit::Ok;
}

/// "-v": what the graph demands of its dims, which is checked at run time.
void print_checks(const Compilation& c) {
  const auto text = [](Ref dim) {
    const std::string shape = shape_text(std::vector<Ref>{dim});
    return printable(shape.substr(1, shape.size() - 2));
  };
  for (Ref s : c.module.root->src.subspan(1)) {
    if (!s->is(Ops::Check)) continue;
    const Ref condition = s->src[0];
    std::fprintf(stderr, "dim       %s %s %s  for %s\n", text(condition->src[0]).c_str(),
                 condition->is(Ops::Eq) ? "=" : "<=", text(condition->src[1]).c_str(),
                 printable(s->s(Attr::Why)).c_str());
  }
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// "-vv" lines: each kernel with its opts, then the nodes of each call of it.
void say_kernels(const Compilation& c) {
  for (Ref kernel : kernels_of(c.module.root)) {
    std::fprintf(stderr, "kernel    %s  %s\n", kernel->s(Attr::Name).c_str(), kernel->s(Attr::Opts, "").c_str());
    for (Ref call : c.module.root->src[0]->src)
      if (call->src[0] == kernel && call->has(Attr::Origin))
        std::fprintf(stderr, "  nodes   %s\n", printable(call->s(Attr::Origin)).c_str());
  }
}

/// What --cache says, else the place that the XDG base directory specification gives a user's caches; null: none.
std::unique_ptr<ObjectCache> open_cache(const Options& options) {
  if (options.cache == "off" || options.check) return nullptr; // --check writes nothing
  const char* caches = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder = options.cache;
  if (folder.empty() && caches && *caches == '/') folder = std::string(caches) + "/tgc";
  if (folder.empty() && home && *home == '/') folder = std::string(home) + "/.cache/tgc";
  return folder.empty() ? nullptr : std::make_unique<ObjectCache>(folder);
}

/// "-v": what the cache was good for. One that was asked for and cannot be written is told in any case.
void say_cache(const ObjectCache* cache, const Options& options) {
  const bool is_told = options.verbosity > 0;
  if (!cache) {
    const char* why = options.cache == "off" ? "--cache=off" : "no folder: neither XDG_CACHE_HOME nor HOME is set";
    if (is_told) std::fprintf(stderr, "cache     %s\n", why);
    return;
  }
  if (is_told)
    std::fprintf(stderr, "cache     %d kernels found, %d compiled  %s\n", cache->hits(), cache->misses(),
                 cache->folder().c_str());
  const std::string why = cache->problem();
  if (!why.empty() && is_told) std::fprintf(stderr, "cache     kernels are not kept: %s\n", why.c_str());
  if (!why.empty() && !is_told && !options.cache.empty())
    std::fprintf(stderr, "tgc: warning: --cache %s: kernels are not kept: %s\n", printable(options.cache).c_str(),
                 printable(why).c_str());
}

/// "-v": for how many kernels the database had opts.
void say_tuned(const Tuner& tuner, const std::string& path) {
  std::fprintf(stderr, "tuned     %d kernels found, %d timed, %d as the heuristic has them  %s\n", tuner.found(),
               tuner.timed(), tuner.unknown(), path.c_str());
}

/// For the smallest dims.
std::string memory_text(const BundleContents& contents) {
  const MemoryUse use = memory_use(contents);
  return std::to_string(use.weights) + " of weights, " + std::to_string(use.arena) + " of arena (" +
         std::to_string(use.live) + " live at once)";
}

/// "-v" lines: what a stage made and how long it took.
class Progress {
public:
  explicit Progress(bool on) : on_(on) {}
  void stage(const char* name, const std::string& what) {
    double t = now();
    if (on_) std::fprintf(stderr, "%-9s %7.1f ms  %s\n", name, (t - last_) * 1e3, what.c_str());
    last_ = t;
  }

private:
  bool on_;
  double last_ = now();
};

} // namespace

CompileOptions compile_options(const Options& options) {
  CompileOptions c;
  c.target = options.target;
  c.numerics = options.numerics;
  c.jobs = options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  c.import.folder = options.model_dir;
  for (const DimBound& d : options.dims) c.import.dims[d.name] = {d.lo, d.hi};
  c.passes.disabled = {options.disable_passes.begin(), options.disable_passes.end()};
  c.passes.only = {options.only.begin(), options.only.end()};
  c.passes.start_before = options.start_before;
  c.passes.stop_after = options.stop_after;
  c.disabled_rules = {options.disable_rules.begin(), options.disable_rules.end()};
  std::vector<std::string> print_after = options.print_after;
  bool timed = options.time_passes || options.verbosity > 1;
  c.after_pass = [print_after, timed](const Pass& pass, const Module& module, double seconds) {
    if (timed) std::fprintf(stderr, "pass      %7.1f ms  %s\n", seconds * 1e3, pass.name);
    if (std::find(print_after.begin(), print_after.end(), pass.name) != print_after.end())
      std::printf("; after %s\n%s", pass.name, print(module).c_str());
  };
  return c;
}

Exit run_tgc(const Options& options) {
  if (options.list_passes) return print_passes(), Exit::Ok;
  if (options.list_targets) return print_targets(), Exit::Ok;
  check_verifiable(options);
  spare({{options.model, "the model"}, {options.tuned, "the tuning database"}}, options);
  CompileOptions compile = compile_options(options);
  const std::unique_ptr<ObjectCache> cache = open_cache(options);
  compile.cache = cache.get();
  Progress progress(options.verbosity > 0);
  std::unique_ptr<Tuner> tuner;
  if (!options.tuned.empty()) tuner = std::make_unique<Tuner>(options.tuned, options.beam, compile);
  Compilation c = start_compilation(options.model, compile);
  check_names(options, pass_names(), rule_names(c.target));
  spare(weight_files(c.module), options);
  progress.stage("import", std::to_string(toposort(c.module.root).size()) + " nodes, " +
                               std::to_string(c.module.weights.size()) + " weights");
  if (options.verbosity > 0) print_checks(c);
  if (!options.emit.empty() || !options.stop_after.empty()) return emit(c, options, compile);
  Verifier verifier(c, options.verify, compile);
  run_pipeline(c, compile);
  if (options.verbosity > 1) say_kernels(c);
  progress.stage("schedule", std::to_string(kernel_count(c)) + " kernels, " +
                                 std::to_string(c.module.root->src[0]->src.size()) + " steps");
  if (tuner && options.verbosity > 0) say_tuned(*tuner, options.tuned);
  fold_constants(c, compile.jobs, compile.cache);
  progress.stage("fold", "weights made at compile time");
  render(c);
  progress.stage("render", std::to_string(sources_text(c).size()) + " bytes of source");
  BundleContents contents = assemble(c, compile);
  progress.stage("compile", std::to_string(contents.code.size()) + " bytes of code, " + memory_text(contents));
  if (!options.check) say_cache(compile.cache, options);
  if (options.check) {
    std::printf("%s: every node is supported and compiles\n", options.model.c_str());
    return Exit::Ok;
  }
  in_model(c, [&] { write_bundle(contents, options.output); });
  progress.stage("write", options.output);
  return verifier.run(options.output) ? Exit::Ok : Exit::Differ;
}

} // namespace tgc
