// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of tgc. One function lists every option: it is the parser, the help page and the documentation.
// CLI11 splits and counts; what an option's text means is parsed here, so that a wrong one is answered in our words
// with the text given and the form expected. Nothing is read from the environment or from a configuration file. This is
// the only file of the driver that includes CLI11 (8 s to compile).
#include "tgc/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

#include "nearest_name.h"

namespace tgc {

namespace {

/// What the command line holds before its values are understood.
struct RawOptions {
  std::vector<std::string> dims, print_after, only, disable_passes, disable_rules;
  std::string numerics = "standard", verify, jobs, beam;
};

constexpr const char* kExamples = R"(Examples:
  tgc model.onnx                            write model.bundle for this machine's CPU
  tgc model.onnx -o m.bundle --dim batch=1..64
  tgc model.onnx --check                    say whether every node is supported, write nothing
  tgc model.onnx --emit=kernels             print the kernels before lowering
  tgc model.onnx --verify=stages            compare with the reference interpreter after each pass
  tgc kernel.uop --start-before=expand --emit=linear
  cat model.onnx | tgc - -o model.bundle

Exit codes: 0 ok, 1 input error, 2 usage, 3 internal error, 4 numbers differ, 130 interrupted.
)";

class HelpPage : public CLI::Formatter {
public:
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: tgc MODEL [options]\n"; }
  /// The value's name alone: CLI11 adds " ..." to what may be repeated, as if one option took several values.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
};

void add_input_output(CLI::App& app, Options& o, RawOptions& raw) {
  app.add_option("MODEL", o.model, "ONNX model, JSON graph or .uop text, told by content; - is standard input")
      ->type_name("");
  app.add_option("-o,--output", o.output, "bundle or text to write (default: MODEL's name with .bundle, here)")
      ->type_name("FILE");
  app.add_option("--target", o.target, "what to compile for: device[:renderer][:arch[,+feat,-feat]] (default: cpu)")
      ->type_name("TARGET");
  app.add_option("--dim", raw.dims, "pin (NAME=4) or bound (NAME=1..64) a symbolic dimension; repeatable")
      ->type_name("NAME=V|LO..HI")
      ->allow_extra_args(false);
  app.add_option("--numerics", raw.numerics, "standard, strict or fast: which liberties floats allow (docs/ir.md)")
      ->type_name("MODE");
  app.add_option("--model-dir", o.model_dir, "folder of the model's external data (default: the model's folder)")
      ->type_name("DIR");
}

void add_report(CLI::App& app, Options& o, RawOptions& raw) {
  const char* group = "Look inside";
  app.add_option("--emit", o.emit, "print a stage instead: uops, kernels, plan, linear, source, asm")
      ->type_name("STAGE")
      ->group(group);
  app.add_flag("--check", o.check, "compile, report every unsupported node, write nothing")->group(group);
  app.add_option("--verify", raw.verify,
                 "write the bundle, run it and compare with the interpreter: outputs (default), stages (names the "
                 "first that differs) or sample")
      ->type_name("[=HOW]")
      ->group(group);
  app.add_flag("-v,--verbose", o.verbosity, "a line per stage; -vv: a line per pass and kernel")->group(group);
  app.add_flag("--list-targets", o.list_targets, "print devices and renderers, and whether they work here")
      ->group(group);
}

void add_passes(CLI::App& app, Options& o, RawOptions& raw) {
  const char* group = "Passes";
  app.add_flag("--list-passes", o.list_passes, "print the pass table in its order")->group(group);
  app.add_flag("--time-passes", o.time_passes, "print the time of each pass")->group(group);
  const auto repeatable = [&](const char* name, std::vector<std::string>& to, const char* doc, const char* type) {
    app.add_option(name, to, doc)->type_name(type)->allow_extra_args(false)->delimiter(',')->group(group);
  };
  repeatable("--print-after", raw.print_after, "print the IR after these passes", "PASS");
  app.add_option("--start-before", o.start_before, "the input is text as it stands before this pass")
      ->type_name("PASS")
      ->group(group);
  app.add_option("--stop-after", o.stop_after, "print the IR after this pass and stop")
      ->type_name("PASS")
      ->group(group);
  repeatable("--only", raw.only, "run no optional passes but these", "PASS");
  repeatable("--disable-pass", raw.disable_passes, "leave these optional passes out", "PASS");
  repeatable("--disable-rule", raw.disable_rules, "leave these rewrite rules out", "RULE");
}

void add_all(CLI::App& app, Options& o, RawOptions& raw) {
  app.set_help_flag();
  app.name("tgc");
  app.footer(kExamples);
  auto page = std::make_shared<HelpPage>();
  page->column_width(34);
  app.formatter(page);
  add_input_output(app, o, raw);
  add_report(app, o, raw);
  add_passes(app, o, raw);
  app.add_option("--tuned", o.tuned, "take kernels' opts from this tuning database where it has them (docs/tuning.md)")
      ->type_name("FILE");
  app.add_option("--beam", raw.beam,
                 "time N opt lists (default: 8) of each kernel that --tuned FILE does not hold, and add the best to it")
      ->type_name("[=N]");
  app.add_option("--cache", o.cache,
                 "folder of kernels compiled before, or off (default: $XDG_CACHE_HOME/tgc, else ~/.cache/tgc)")
      ->type_name("DIR|off");
  app.add_option("--jobs", raw.jobs, "threads of the compiler (default: one per core)")->type_name("N");
  app.add_flag("-h,--help", o.help, "print this page");
  app.add_flag("--version", o.version, "print the version");
}

[[noreturn]] void usage(const std::string& text) { throw UsageError(text); }

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

DimBound parse_dim(const std::string& text) {
  const auto wrong = [&](const std::string& what) { usage("--dim " + in_quotes(text) + ": " + what); };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) wrong("expected NAME=VALUE or NAME=LO..HI");
  const std::string_view value = std::string_view(text).substr(equals + 1);
  const size_t dots = value.find("..");
  const std::optional<int64_t> lo = whole_number(value.substr(0, dots));
  const std::optional<int64_t> hi = dots == std::string_view::npos ? lo : whole_number(value.substr(dots + 2));
  if (!lo || !hi) wrong("expected NAME=VALUE or NAME=LO..HI");
  if (*lo < 1 || *lo > *hi) wrong("expected 1 <= LO <= HI");
  return {text.substr(0, equals), *lo, *hi};
}

std::vector<DimBound> parse_dims(const std::vector<std::string>& texts) {
  std::vector<DimBound> dims;
  for (const std::string& text : texts) {
    dims.push_back(parse_dim(text));
    const auto same = [&](const DimBound& other) { return other.name == dims.back().name; };
    if (std::count_if(dims.begin(), dims.end(), same) > 1)
      usage("--dim " + in_quotes(text) + ": the name is given twice");
  }
  return dims;
}

/// The position of `text` among `names`. errors: UsageError that lists them.
size_t choice(const char* option, std::string_view text, std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  std::string all;
  for (std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  usage(std::string(option) + " " + in_quotes(text) + ": expected one of " + all + did_you_mean(text, names));
}

constexpr std::string_view kNumericsNames[] = {"strict", "standard", "fast"};
constexpr std::string_view kVerifyNames[] = {"outputs", "stages", "sample"};

void understand(Options& o, RawOptions& raw) {
  o.dims = parse_dims(raw.dims);
  o.numerics = static_cast<Numerics>(choice("--numerics", raw.numerics, kNumericsNames));
  if (!raw.verify.empty()) o.verify = static_cast<Verify>(1 + choice("--verify", raw.verify, kVerifyNames));
  if (!o.emit.empty()) {
    std::vector<std::string_view> stages;
    for (const StageName& stage : kEmitStages) stages.push_back(stage.name);
    choice("--emit", o.emit, stages);
  }
  if (!raw.jobs.empty()) {
    const std::optional<int64_t> jobs = whole_number(raw.jobs);
    if (!jobs || *jobs < 1 || *jobs > 256) usage("--jobs " + in_quotes(raw.jobs) + ": expected a number from 1 to 256");
    o.jobs = static_cast<int>(*jobs);
  }
  if (!raw.beam.empty()) {
    const std::optional<int64_t> lists = whole_number(raw.beam);
    if (!lists || *lists < 1 || *lists > 64)
      usage("--beam " + in_quotes(raw.beam) + ": expected a number from 1 to 64");
    o.beam = static_cast<int>(*lists);
  }
  o.print_after = std::move(raw.print_after);
  o.only = std::move(raw.only);
  o.disable_passes = std::move(raw.disable_passes);
  o.disable_rules = std::move(raw.disable_rules);
}

bool writes_bundle(const Options& o) { return o.emit.empty() && o.stop_after.empty() && !o.check; }

std::string default_output(const std::string& model) {
  const size_t slash = model.rfind('/');
  std::string name = slash == std::string::npos ? model : model.substr(slash + 1);
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0) name.resize(dot);
  return name + ".bundle";
}

/// Options that ask for different ends of one compile.
void check_ends(const Options& o) {
  if (!o.emit.empty() && !o.stop_after.empty()) usage("--emit and --stop-after both say where to stop; give one");
  if (o.verify != Verify::None && !writes_bundle(o))
    usage("--verify runs the bundle; --emit, --stop-after and --check write none");
  if (o.check && (!o.emit.empty() || !o.stop_after.empty()))
    usage("--check prints nothing; --emit and --stop-after do");
  if (o.check && !o.output.empty()) usage("--check writes nothing; leave -o out");
  if (o.beam > 0 && o.tuned.empty()) usage("--beam keeps what it finds in a database; name it: --tuned FILE");
  if (o.beam > 0 && !o.start_before.empty())
    usage("--beam runs kernels; those of a text are not known to stay within their operands");
  if (o.beam > 0 && o.check) usage("--check writes nothing; --beam writes the database");
  if (!o.only.empty() && !o.disable_passes.empty())
    usage("--only leaves all other passes out; --disable-pass cannot too");
}

/// Options that print something which depends on no model.
void check_list(const Options& o) {
  const char* list = o.list_passes ? "--list-passes" : "--list-targets";
  if (o.list_passes && o.list_targets) usage("give one of --list-passes and --list-targets");
  if (!o.model.empty()) usage(std::string(list) + " takes no MODEL; it would not look at " + in_quotes(o.model));
}

void complete(Options& o) {
  if (o.help || o.version) return;
  if (o.list_passes || o.list_targets) return check_list(o);
  if (o.model.empty()) usage("no MODEL given");
  if (o.tuned == "-") usage("--tuned \"-\": name a file (/dev/stdin is one, without --beam)");
  if (o.output == "-") usage("-o \"-\": name a file (--emit without -o prints to standard output)");
  check_ends(o);
  if (!o.output.empty() || !writes_bundle(o)) return;
  if (o.model == "-") usage("a model from standard input needs -o FILE");
  o.output = default_output(o.model);
}

/// No option means anything by an empty text; a shell variable that is not set gives one.
void refuse_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> texts =
        option->get_items_expected_max() > 0 ? option->results() : std::vector<std::string>();
    if (std::find(texts.begin(), texts.end(), "") == texts.end()) continue;
    const std::string name = option->get_name(), type = option->get_type_name();
    usage(name + " \"\": expected " + (type.empty() ? "a file" : type));
  }
}

std::string unknown_argument(const CLI::App& app, const std::string& argument) {
  if (argument.empty() || argument[0] != '-')
    return "unexpected argument " + in_quotes(argument) + "; one MODEL is taken";
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> spellings;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& spelling : option->get_lnames()) spellings.push_back("--" + spelling);
  }
  const std::vector<std::string_view> views(spellings.begin(), spellings.end());
  return "unknown option " + in_quotes(name) + did_you_mean(name, views);
}

} // namespace

Options parse_options(std::span<const char* const> args) {
  Options options;
  RawOptions raw;
  CLI::App app;
  add_all(app, options, raw);
  std::vector<std::string> reversed;
  for (const char* arg : args) {
    // An option with an optional value would otherwise take the MODEL that follows it.
    const std::string_view text = arg;
    reversed.push_back(text == "--verify" ? "--verify=outputs" : text == "--beam" ? "--beam=8" : arg);
  }
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ExtrasError&) {
    usage(unknown_argument(app, app.remaining().front()));
  } catch (const CLI::ParseError& error) {
    usage(error.what());
  }
  refuse_empty(app);
  if (!options.help && !options.version) understand(options, raw);
  complete(options);
  return options;
}

std::string help_text() {
  Options options;
  RawOptions raw;
  CLI::App app("Compiles a neural network to one bundle of native code.");
  add_all(app, options, raw);
  return app.help();
}

void check_names(const Options& options, const std::vector<std::string>& passes,
                 const std::vector<std::string>& rules) {
  const auto check = [](const char* option, const std::string& given, const std::vector<std::string>& known,
                        const char* what) {
    if (given.empty() || std::find(known.begin(), known.end(), given) != known.end()) return;
    const std::vector<std::string_view> views(known.begin(), known.end());
    usage(std::string(option) + " " + in_quotes(given) + ": no such " + what + did_you_mean(given, views));
  };
  for (const std::string& name : options.print_after) check("--print-after", name, passes, "pass");
  for (const std::string& name : options.only) check("--only", name, passes, "pass");
  for (const std::string& name : options.disable_passes) check("--disable-pass", name, passes, "pass");
  check("--start-before", options.start_before, passes, "pass");
  check("--stop-after", options.stop_after, passes, "pass");
  for (const std::string& name : options.disable_rules) check("--disable-rule", name, rules, "rule");
}

} // namespace tgc
