// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of tgc: what each option sets, and the exact text of each complaint.
#include "tgc/options.h"

#include <gtest/gtest.h>

#include <initializer_list>

using namespace tgc;

namespace {

using Names = std::vector<std::string>;

Options parse(std::initializer_list<const char*> args) { return parse_options({args.begin(), args.size()}); }

std::string complaint(std::initializer_list<const char*> args) {
  try {
    parse(args);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string name_complaint(std::initializer_list<const char*> args) {
  const Names passes = {"rangeify", "expand", "lower-reduce", "linearize"};
  const Names rules = {"mul-zero", "add-zero"};
  try {
    check_names(parse(args), passes, rules);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST(Options, DefaultsCompileForTheCpuIntoABundleNamedAfterTheModel) {
  const Options o = parse({"models/net/model.onnx"});
  EXPECT_EQ(o.model, "models/net/model.onnx");
  EXPECT_EQ(o.output, "model.bundle");
  EXPECT_EQ(o.target, "cpu");
  EXPECT_EQ(o.numerics, Numerics::Standard);
  EXPECT_EQ(o.verify, Verify::None);
  EXPECT_EQ(o.cache, "");
  EXPECT_EQ(o.jobs, 0);
  EXPECT_EQ(o.verbosity, 0);
}

TEST(Options, EveryRowSetsItsField) {
  const Options o = parse({"-o",
                           "x.bundle",
                           "--target=cpu:llvm:znver3,+avx512f",
                           "--dim",
                           "batch=1..64",
                           "m.onnx",
                           "--dim=seq=8",
                           "--numerics=strict",
                           "--model-dir",
                           "data",
                           "-vv",
                           "--cache=kept",
                           "--tuned=db.txt",
                           "--jobs",
                           "3",
                           "--print-after=expand,linearize",
                           "--print-after",
                           "rangeify",
                           "--start-before=expand",
                           "--stop-after=linearize",
                           "--disable-pass=a",
                           "--disable-rule=b,c",
                           "--time-passes"});
  EXPECT_EQ(o.model, "m.onnx");
  EXPECT_EQ(o.output, "x.bundle");
  EXPECT_EQ(o.target, "cpu:llvm:znver3,+avx512f");
  EXPECT_EQ(o.dims, (std::vector<DimBound>{{"batch", 1, 64}, {"seq", 8, 8}}));
  EXPECT_EQ(o.numerics, Numerics::Strict);
  EXPECT_EQ(parse({"m.onnx", "--numerics=fast"}).numerics, Numerics::Fast);
  EXPECT_EQ(o.model_dir, "data");
  EXPECT_EQ(parse({"m.onnx", "--verify=sample"}).verify, Verify::Sample);
  EXPECT_EQ(o.verbosity, 2);
  EXPECT_EQ(o.cache, "kept");
  EXPECT_EQ(o.tuned, "db.txt");
  EXPECT_EQ(parse({"m.onnx", "--tuned=t", "--beam=3"}).beam, 3);
  EXPECT_EQ(o.jobs, 3);
  EXPECT_EQ(o.print_after, (Names{"expand", "linearize", "rangeify"}));
  EXPECT_EQ(o.start_before, "expand");
  EXPECT_EQ(o.stop_after, "linearize");
  EXPECT_EQ(o.disable_passes, Names{"a"});
  EXPECT_EQ(o.disable_rules, (Names{"b", "c"}));
  EXPECT_EQ(parse({"m.onnx", "--only=d"}).only, Names{"d"});
  EXPECT_TRUE(o.time_passes);
  EXPECT_EQ(parse({"m.onnx", "--emit=linear"}).emit, "linear");
  EXPECT_TRUE(parse({"m.onnx", "--check"}).check);
}

TEST(Options, VerifyWithoutAValueDoesNotTakeTheModel) {
  const Options o = parse({"--verify", "m.onnx"});
  EXPECT_EQ(o.model, "m.onnx");
  EXPECT_EQ(o.verify, Verify::Outputs);
}

TEST(Options, BeamWithoutAValueDoesNotTakeTheModel) {
  const Options o = parse({"--beam", "m.onnx", "--tuned", "t.txt"});
  EXPECT_EQ(o.model, "m.onnx");
  EXPECT_EQ(o.beam, 8);
  EXPECT_EQ(parse({"m.onnx"}).beam, 0);
}

TEST(Options, ListsAndVersionNeedNoModel) {
  EXPECT_TRUE(parse({"--list-targets"}).list_targets);
  EXPECT_TRUE(parse({"--list-passes"}).list_passes);
  EXPECT_TRUE(parse({"--version"}).version);
  EXPECT_TRUE(parse({"-h"}).help);
}

TEST(Options, TextForTheScreenNeedsNoOutput) {
  EXPECT_EQ(parse({"-", "--emit=uops"}).output, "");
  EXPECT_EQ(parse({"m.onnx", "--check"}).output, "");
}

TEST(OptionsErrors, SayWhatWasGivenAndWhatIsExpected) {
  EXPECT_EQ(complaint({}), "no MODEL given");
  EXPECT_EQ(complaint({"-"}), "a model from standard input needs -o FILE");
  EXPECT_EQ(complaint({"a.onnx", "b.onnx"}), "unexpected argument \"b.onnx\"; one MODEL is taken");
  EXPECT_EQ(complaint({"a.onnx", "--taget=cpu"}), "unknown option \"--taget\"; did you mean \"--target\"?");
  EXPECT_EQ(complaint({"a.onnx", "--zzzzzz"}), "unknown option \"--zzzzzz\"");
  EXPECT_EQ(complaint({"a.onnx", "--dim", "batch"}), "--dim \"batch\": expected NAME=VALUE or NAME=LO..HI");
  EXPECT_EQ(complaint({"a.onnx", "--dim", "n=1..x"}), "--dim \"n=1..x\": expected NAME=VALUE or NAME=LO..HI");
  EXPECT_EQ(complaint({"a.onnx", "--dim=n=8..2"}), "--dim \"n=8..2\": expected 1 <= LO <= HI");
  EXPECT_EQ(complaint({"a.onnx", "--dim=n=0"}), "--dim \"n=0\": expected 1 <= LO <= HI");
  EXPECT_EQ(complaint({"a.onnx", "--dim=n=2", "--dim=n=3"}), "--dim \"n=3\": the name is given twice");
  EXPECT_EQ(complaint({"a.onnx", "--jobs=0"}), "--jobs \"0\": expected a number from 1 to 256");
  EXPECT_EQ(complaint({"a.onnx", "--emit=kernel"}),
            "--emit \"kernel\": expected one of uops, kernels, plan, linear, source, asm; did you mean \"kernels\"?");
  EXPECT_EQ(complaint({"a.onnx", "--numerics=loose"}), "--numerics \"loose\": expected one of strict, standard, fast");
  EXPECT_EQ(complaint({"a.onnx", "--verify=all"}), "--verify \"all\": expected one of outputs, stages, sample");
  EXPECT_EQ(complaint({"a.onnx", "--target"}), "--target: 1 required TARGET missing");
  EXPECT_EQ(complaint({"a.onnx", "--emit=source", "--stop-after=expand"}),
            "--emit and --stop-after both say where to stop; give one");
  EXPECT_EQ(complaint({"a.onnx", "--check", "-o", "x"}), "--check writes nothing; leave -o out");
  EXPECT_EQ(complaint({"a.onnx", "--only=a", "--disable-pass=b"}),
            "--only leaves all other passes out; --disable-pass cannot too");
  EXPECT_EQ(complaint({"a.onnx", "--beam"}), "--beam keeps what it finds in a database; name it: --tuned FILE");
  EXPECT_EQ(complaint({"a.onnx", "--tuned=t", "--beam=0"}), "--beam \"0\": expected a number from 1 to 64");
  EXPECT_EQ(complaint({"a.uop", "--tuned=t", "--beam", "--start-before=optimize"}),
            "--beam runs kernels; those of a text are not known to stay within their operands");
  EXPECT_EQ(complaint({"a.onnx", "--tuned=t", "--beam", "--check"}),
            "--check writes nothing; --beam writes the database");
  EXPECT_EQ(complaint({"a.onnx", "--list-targets"}), "--list-targets takes no MODEL; it would not look at \"a.onnx\"");
  EXPECT_EQ(complaint({"a.onnx", "--list-passes"}), "--list-passes takes no MODEL; it would not look at \"a.onnx\"");
  EXPECT_EQ(complaint({"--list-targets", "--list-passes"}), "give one of --list-passes and --list-targets");
  EXPECT_EQ(complaint({"a.onnx", "--verify", "--check"}),
            "--verify runs the bundle; --emit, --stop-after and --check write none");
  EXPECT_EQ(complaint({"a.onnx", "--emit=uops", "--check"}), "--check prints nothing; --emit and --stop-after do");
}

TEST(OptionsErrors, AnEmptyTextIsNoValue) {
  EXPECT_EQ(complaint({"a.onnx", "--tuned", ""}), "--tuned \"\": expected FILE");
  EXPECT_EQ(complaint({"a.onnx", "-o", ""}), "--output \"\": expected FILE");
  EXPECT_EQ(complaint({"a.onnx", "--target", ""}), "--target \"\": expected TARGET");
  EXPECT_EQ(complaint({"a.onnx", "--cache", ""}), "--cache \"\": expected DIR|off");
  EXPECT_EQ(complaint({"a.onnx", "--stop-after", ""}), "--stop-after \"\": expected PASS");
  EXPECT_EQ(complaint({""}), "MODEL \"\": expected a file");
}

TEST(OptionsErrors, ADatabaseIsAFile) {
  EXPECT_EQ(complaint({"a.onnx", "--tuned", "-"}), "--tuned \"-\": name a file (/dev/stdin is one, without --beam)");
}

TEST(OptionsErrors, NamesOfPassesAndRulesAreCheckedAgainstTheTables) {
  EXPECT_EQ(name_complaint({"m", "--stop-after=expand", "--disable-rule=mul-zero"}), "");
  EXPECT_EQ(name_complaint({"m", "--stop-after=lower_reduce"}),
            "--stop-after \"lower_reduce\": no such pass; did you mean \"lower-reduce\"?");
  EXPECT_EQ(name_complaint({"m", "--print-after=expand,nothing"}), "--print-after \"nothing\": no such pass");
  EXPECT_EQ(name_complaint({"m", "--disable-rule=add-zeros"}),
            "--disable-rule \"add-zeros\": no such rule; did you mean \"add-zero\"?");
}

TEST(Options, HelpNamesEveryOptionAndShowsExamples) {
  const std::string help = help_text();
  for (const char* word : {"MODEL",          "--output",      "--target",       "--dim",          "--numerics",
                           "--model-dir",    "--emit",        "--check",        "--verify",       "--verbose",
                           "--list-targets", "--list-passes", "--time-passes",  "--print-after",  "--start-before",
                           "--stop-after",   "--only",        "--disable-pass", "--disable-rule", "--jobs",
                           "--version",      "--tuned",       "--beam",         "Examples:",      "Exit codes:"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(help.find(" ..."), std::string::npos); // one option takes one value
  EXPECT_NE(help.find("--dim NAME=V|LO..HI "), std::string::npos);
  for (const StageName& stage : kEmitStages) EXPECT_NE(help.find(stage.name), std::string::npos) << stage.name;
}
