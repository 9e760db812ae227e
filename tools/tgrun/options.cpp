// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of tgrun. One function lists every option; it is the parser and the help page. CLI11 splits and
// counts, what an option's text means is parsed here, so that a wrong one is answered with the text given and the form
// expected. This is the only file of tgrun that includes CLI11.
#include "tgrun/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

#include "nearest_name.h"

namespace tgc {

namespace {

struct RawOptions {
  std::vector<std::string> inputs, dims;
  std::string seed, threads;
};

constexpr const char* kExamples = R"(Examples:
  tgrun m.bundle                              run once on seeded random inputs, print the outputs
  tgrun m.bundle --input image=a.pgm,b.pgm    a batch of two pictures
  tgrun m.bundle --input x=x.npy --save out   out/output_0.npy …, in the model's order
  tgrun m.bundle --test test_data_set_0       compare with ONNX test data
  tgrun m.bundle --dim batch=8 --bench        time of a run
  tgrun m.bundle --profile                    time of each kernel
  tgrun m.bundle --describe                   the plan as JSON

Input files: .npy; .pb (an ONNX TensorProto); .pgm (grey picture, values 0..255 as they are).
Exit codes: 0 ok, 1 input error, 2 usage, 3 internal error, 4 numbers differ, 130 interrupted.
TGRT_PERF_MAP=1 writes /tmp/perf-PID.map, with which `perf` names the kernels.
)";

class HelpPage : public CLI::Formatter {
public:
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: tgrun BUNDLE [options]\n"; }
  /// The value's name alone: CLI11 adds " ..." to what may be repeated, as if one option took several values.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
};

void add_all(CLI::App& app, RunOptions& o, RawOptions& raw) {
  app.set_help_flag();
  app.name("tgrun");
  app.footer(kExamples);
  auto page = std::make_shared<HelpPage>();
  page->column_width(34);
  app.formatter(page);
  const auto repeatable = [&](const char* name, std::vector<std::string>& to, const char* doc, const char* type) {
    app.add_option(name, to, doc)->type_name(type)->allow_extra_args(false);
  };
  app.add_option("BUNDLE", o.bundle, "made by tgc")->type_name("");
  repeatable("--input", raw.inputs, "an input from a file, or from several along its first axis; repeatable",
             "NAME=FILE[,FILE…]");
  repeatable("--dim", raw.dims, "value of a symbolic dimension that no input file gives (default: its minimum)",
             "NAME=VALUE");
  app.add_option("--seed", raw.seed, "of the inputs that no file gives (default: 0)")->type_name("N");
  app.add_option("--threads", raw.threads, "threads of a run (default: one per CPU); results do not depend on it")
      ->type_name("N");
  app.add_flag("--guard", o.guard, "debug: red zones and NaN around every buffer, checked after each kernel");
  app.add_option("--save", o.save, "write the outputs as DIR/output_0.npy …")->type_name("DIR");
  app.add_flag("--json", o.json, "print --bench and --profile as JSON");
  const char* group = "Instead of printing the outputs";
  app.add_option("--test", o.test, "compare with DIR/input_N.pb, output_N.pb, or all DIR/test_data_set_*")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--rtol", o.rtol, "relative tolerance of --test (default: 1e-3)")->type_name("X")->group(group);
  app.add_option("--atol", o.atol, "absolute tolerance of --test (default: 1e-7)")->type_name("X")->group(group);
  app.add_flag("--bench", o.bench, "time runs: median, minimum, 90th percentile")->group(group);
  app.add_flag("--profile", o.profile, "time kernels: share, operations, bytes, the nodes in each")->group(group);
  app.add_flag("--describe", o.describe, "print the bundle as JSON; for bundles of any CPU")->group(group);
  app.add_option("--extract", o.extract, "write its parts as files: code.so, plan.json, weights.bin …")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--check", o.check, "check every byte of the bundle, weights included")->group(group);
  app.add_flag("--list-devices", o.list_devices, "print this build's devices, and whether they work here")
      ->group(group);
  app.add_flag("-h,--help", o.help, "print this page");
  app.add_flag("--version", o.version, "print the version");
}

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

/// A whole number from `range.first` to `range.second`.
uint64_t parse_number(const std::string& option, const std::string& text, std::pair<uint64_t, uint64_t> range) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size() && value >= range.first && value <= range.second)
    return value;
  throw RunUsageError(option + " " + in_quotes(text) + ": expected a number from " + std::to_string(range.first) +
                      " to " + std::to_string(range.second));
}

InputFiles parse_input(const std::string& text) {
  InputFiles input;
  const size_t equals = text.find('=');
  if (equals != std::string::npos) input.name = text.substr(0, equals);
  size_t start = equals == std::string::npos ? 0 : equals + 1;
  for (size_t comma; start <= text.size(); start = comma + 1) {
    comma = std::min(text.find(',', start), text.size());
    if (comma == start) throw RunUsageError("--input " + in_quotes(text) + ": expected NAME=FILE[,FILE…]");
    input.files.push_back(text.substr(start, comma - start));
  }
  return input;
}

std::pair<std::string, int64_t> parse_dim(const std::string& text) {
  const size_t equals = text.rfind('=');
  int64_t value = 0;
  const char* end = text.data() + text.size();
  if (equals != std::string::npos && equals > 0) {
    const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, value);
    if (error == std::errc() && stop == end) return {text.substr(0, equals), value};
  }
  throw RunUsageError("--dim " + in_quotes(text) + ": expected NAME=VALUE");
}

/// An option that would have no effect is a mistake: it goes with the actions named, or without any.
struct Companion {
  const char* option;
  std::initializer_list<const char*> actions; ///< "" is printing the outputs
};
constexpr Companion kCompanions[] = {
    {"--input", {"", "--bench", "--profile"}},
    {"--dim", {"", "--bench", "--profile", "--test"}},
    {"--seed", {"", "--bench", "--profile"}},
    {"--threads", {"", "--bench", "--profile", "--test"}},
    {"--guard", {"", "--bench", "--profile", "--test"}},
    {"--save", {""}},
    {"--json", {"--bench", "--profile"}},
    {"--rtol", {"--test"}},
    {"--atol", {"--test"}},
};
constexpr const char* kActions[] = {"--test", "--bench", "--profile", "--describe", "--extract", "--check"};

std::string list_of(std::initializer_list<const char*> actions) {
  std::string text;
  for (const char* action : actions)
    if (*action) text += (text.empty() ? "" : " or ") + std::string(action);
  return text;
}

void check_companions(const CLI::App& app) {
  std::string action;
  for (const char* name : kActions)
    if (app.count(name) > 0) action = name;
  for (const Companion& c : kCompanions) {
    const auto fits = [&](const char* name) { return action == name; };
    if (app.count(c.option) == 0 || std::any_of(c.actions.begin(), c.actions.end(), fits)) continue;
    if (action.empty()) throw RunUsageError(std::string(c.option) + " goes with " + list_of(c.actions));
    throw RunUsageError(std::string(c.option) + " has no effect with " + action);
  }
}

void check(const RunOptions& o) {
  if (o.help || o.version) return;
  if (o.list_devices && !o.bundle.empty())
    throw RunUsageError("--list-devices takes no BUNDLE; it would not look at " + in_quotes(o.bundle));
  if (o.list_devices) return;
  if (o.bundle.empty()) throw RunUsageError("no BUNDLE given");
  const int actions = !o.test.empty() + o.bench + o.profile + o.describe + o.check + !o.extract.empty();
  if (actions > 1)
    throw RunUsageError("give one of --test, --bench, --profile, --describe, --extract and --check, not several");
  for (const auto& [name, tolerance] : {std::pair("--rtol", o.rtol), std::pair("--atol", o.atol)})
    if (!(tolerance >= 0)) throw RunUsageError(std::string(name) + ": expected a number that is not negative");
}

/// No option means anything by an empty text; a shell variable that is not set gives one.
void refuse_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> texts =
        option->get_items_expected_max() > 0 ? option->results() : std::vector<std::string>();
    if (std::find(texts.begin(), texts.end(), "") == texts.end()) continue;
    const std::string type = option->get_type_name();
    throw RunUsageError(option->get_name() + " \"\": expected " + (type.empty() ? "a file" : type));
  }
}

std::string unknown_argument(const CLI::App& app, const std::string& argument) {
  if (argument.empty() || argument[0] != '-')
    return "unexpected argument " + in_quotes(argument) + "; one BUNDLE is taken";
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> spellings;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& spelling : option->get_lnames()) spellings.push_back("--" + spelling);
  const std::vector<std::string_view> views(spellings.begin(), spellings.end());
  return "unknown option " + in_quotes(name) + did_you_mean(name, views);
}

} // namespace

RunOptions parse_run_options(std::span<const char* const> args) {
  RunOptions options;
  RawOptions raw;
  CLI::App app;
  add_all(app, options, raw);
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    throw RunUsageError(unknown_argument(app, app.remaining().front()));
  } catch (const CLI::ParseError& error) {
    throw RunUsageError(error.what());
  }
  refuse_empty(app);
  if (!raw.seed.empty()) options.seed = parse_number("--seed", raw.seed, {0, UINT64_MAX});
  if (!raw.threads.empty()) options.threads = static_cast<uint32_t>(parse_number("--threads", raw.threads, {1, 1024}));
  for (const std::string& text : raw.inputs) {
    options.inputs.push_back(parse_input(text));
    const auto same = [&](const InputFiles& other) { return other.name == options.inputs.back().name; };
    if (std::count_if(options.inputs.begin(), options.inputs.end(), same) > 1)
      throw RunUsageError("--input " + in_quotes(text) + ": the input is given twice");
  }
  for (const std::string& text : raw.dims) {
    options.dims.push_back(parse_dim(text));
    const auto same = [&](const auto& other) { return other.first == options.dims.back().first; };
    if (std::count_if(options.dims.begin(), options.dims.end(), same) > 1)
      throw RunUsageError("--dim " + in_quotes(text) + ": the name is given twice");
  }
  check(options);
  if (!options.help && !options.version && !options.list_devices) check_companions(app);
  return options;
}

std::string run_help_text() {
  RunOptions options;
  RawOptions raw;
  CLI::App app;
  add_all(app, options, raw);
  return app.help();
}

} // namespace tgc
