// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uop/text.h"

#include <cmath>
#include <limits>

#include "testing.h"

using namespace tgc;
using tgc::testing::error_of;

namespace {

// print → parse → print: equal text, equal hash.
void round_trips(Ref root) {
  const std::string text = print(root);
  const Module back = parse(text);
  ASSERT_TRUE(back.root);
  EXPECT_EQ(back.root->hash, root->hash) << text;
  EXPECT_EQ(print(back.root), text);
}

WeightData mapped(std::string file, uint64_t offset, uint64_t length, uint64_t hash) {
  WeightData w;
  w.kind = WeightData::Kind::Mapped;
  w.file = std::move(file);
  w.offset = offset;
  w.length = length;
  w.hash = hash;
  return w;
}

Module example() {
  Module m;
  Context& c = *m.ctx;
  const Ref n = c.var("batch", 1, 64);
  const Ref x =
      c.make(Ops::Param, DType::F32, {n, c.index(4)}, {{Attr::Slot, int64_t{0}}, {Attr::Name, std::string("x")}});
  const Ref w = c.make(Ops::Weight, DType::F32, {c.index(4)}, {{Attr::Key, std::string("w")}});
  const Ref wide =
      c.make(Ops::Expand, DType::F32, {c.make(Ops::Reshape, DType::F32, {w, c.index(1), c.index(4)}), n, c.index(4)});
  const Ref sum = c.make(Ops::Reduce, DType::F32, {x * wide},
                         {{Attr::Kind, std::string("add")}, {Attr::Axes, std::vector<int64_t>{1}}});
  const Ref out = c.make(Ops::Param, DType::F32, {n}, {{Attr::Slot, int64_t{1}}, {Attr::Name, std::string("y")}});
  const Ref sink = c.make(Ops::Sink, DType::Void, {c.make(Ops::Store, DType::Void, {out, sum})});
  m.root = c.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, std::string("main")}});
  m.origin[sum->id] = "dot 1";
  m.weights["w"] = mapped("w.bin", 64, 16, 0xabc);
  return m;
}

constexpr const char* kExample = R"(; tgc uop 1
weights {
  "w" = mapped "w.bin" 64 16 0xabc
}
func @main {
  %0 = var index {name="batch" min=1 max=64}
  %1 = param f32[batch] %0 {slot=1 name="y"}
  %2 = param f32[batch,4] %0 4 {slot=0 name="x"}
  %3 = weight f32[4] 4 {key="w"}
  %4 = reshape f32[1,4] %3 1 4
  %5 = expand f32[batch,4] %4 %0 4
  %6 = mul f32[batch,4] %2 %5
  %7 = reduce f32[batch] %6 {kind="add" axes=[1]} !"dot 1"
  %8 = store %1 %7
  sink %8
}
)";

TEST(Text, PrintsAModule) { EXPECT_EQ(print(example()), kExample); }

TEST(Text, ParsesWhatItPrints) {
  const Module m = parse(kExample, "m.uop");
  EXPECT_EQ(m.root->hash, example().root->hash);
  EXPECT_EQ(print(m), kExample);
  EXPECT_EQ(m.weights.at("w").offset, 64u);
  EXPECT_EQ(m.source, "m.uop");
}

TEST(Text, ConstantsAreExact) {
  Context c;
  const double kInf = std::numeric_limits<double>::infinity();
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64})
    for (double v : {0.0, -0.0, 0.1, -1.5, 1e-7, 65504.0, 3.0e38, 1.0 / 3, kInf, -kInf, std::nan(""), 5e-324, 1e-45})
      round_trips(c.make(Ops::Neg, t, {c.constant(t, v)}));
  for (DType t : {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64,
                  DType::U64, DType::Index})
    for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                      std::numeric_limits<int64_t>::max()})
      round_trips(c.make(Ops::Not, t, {c.constant_int(t, v)}));
}

/// Adds every elementwise op of one or two operands of one type.
void elementwise_of_each(Ref n, std::vector<Ref>& out) {
  for (int o = 0; o < kNumOps; ++o) {
    const Ops op = static_cast<Ops>(o);
    const bool plain =
        info(op).cls == OpClass::Unary || info(op).cls == OpClass::Binary || info(op).cls == OpClass::Compare;
    if (plain && info(op).max_src == 1 && op != Ops::Cast && op != Ops::Bitcast) out.push_back(unary(op, n));
    if (plain && info(op).max_src == 2) out.push_back(binary(op, n, n));
  }
}

// One node of every op, so that no op is without a text form.
std::vector<Ref> one_of_each(Context& c) {
  const auto str = [](const char* s) { return std::string(s); };
  const Ref i2 = c.index(2), i3 = c.index(3);
  const Ref x = c.make(Ops::Param, DType::F32, {i2, i3}, {{Attr::Slot, int64_t{0}}, {Attr::Name, str("x")}});
  const Ref flat = c.make(Ops::Param, DType::F32, {c.index(6)}, {{Attr::Slot, int64_t{1}}});
  const Ref n = c.make(Ops::Param, DType::I32, {i2, i3}, {{Attr::Slot, int64_t{2}}});
  const Ref r = c.range(i2, 0), k = c.range(i3, 1, "reduce");
  const Ref load = c.make(Ops::Load, DType::F32, {flat, r * i3 + k, lt(k, i2), c.constant(DType::F32, -0.0)});
  const Ref stage =
      c.make(Ops::Stage, DType::F32, {load, k},
             {{Attr::Space, str("scratch")}, {Attr::At, int64_t{1}}, {Attr::Layout, std::vector<int64_t>{0}}});
  const Ref store = c.make(Ops::Store, DType::Void,
                           {flat, r, c.make(Ops::Reduce, DType::F32, {load, k}, {{Attr::Kind, str("add")}})});
  const Ref kernel = c.make(Ops::Func, DType::Void, {c.make(Ops::Sink, DType::Void, {store})},
                            {{Attr::Name, str("k")}, {Attr::Opts, str("a \"b\"")}});
  const Ref tuple = c.make(Ops::Tuple, DType::Void, {x, n});
  const Ref call = c.make(Ops::Call, DType::Void, {kernel, x, flat});
  std::vector<Ref> out{
      c.constant(DType::F32, 1),
      x,
      c.make(Ops::Weight, DType::I8, {i2}, {{Attr::Key, str("w \n\x01")}}),
      c.make(Ops::Buffer, DType::F32, {i2}, {{Attr::Slot, int64_t{0}}, {Attr::Space, str("global")}}),
      c.var("n", 1, 9),
      r,
      c.make(Ops::Iota, DType::Index, {i2}, {{Attr::Dim, int64_t{1}}, {Attr::Rank, int64_t{2}}}),
      c.make(Ops::Reshape, DType::F32, {x, i3, i2}),
      c.make(Ops::Permute, DType::F32, {x}, {{Attr::Axes, std::vector<int64_t>{1, 0}}}),
      c.make(Ops::Expand, DType::F32,
             {c.make(Ops::Reshape, DType::F32, {flat, c.index(1), c.index(6)}), i2, c.index(6)}),
      c.make(Ops::Pad, DType::F32, {x, i2, i2, i2, i2}),
      c.make(Ops::Shrink, DType::F32, {x, c.index(0), c.index(0), i2, i2}),
      c.make(Ops::Flip, DType::F32, {x}, {{Attr::Axes, std::vector<int64_t>{}}}),
      cast(x, DType::BF16),
      bitcast(x, DType::U32),
      where(lt(x, x), x, x),
      c.make(Ops::Fma, DType::F32, {x, x, x}),
      c.make(Ops::Dot4, DType::I32, {cast(x, DType::I32), cast(x, DType::I32), c.constant(DType::I32, 0)}),
      c.make(Ops::Reduce, DType::F32, {x},
             {{Attr::Kind, str("max")}, {Attr::Axes, std::vector<int64_t>{0}}, {Attr::Keep, int64_t{1}}}),
      load,
      store,
      c.make(Ops::Gather, DType::F32, {flat, cast(flat, DType::I64)}, {{Attr::Dim, int64_t{0}}}),
      stage,
      c.make(Ops::Pick, DType::F32, {stage, i2}),
      kernel,
      call,
      tuple,
      c.make(Ops::Get, DType::F32, {tuple}, {{Attr::Slot, int64_t{0}}}),
      c.make(Ops::After, DType::F32, {x, call}),
      c.make(Ops::End, DType::Void, {r}),
      c.make(Ops::Sink, DType::Void, Refs{}),
      c.make(Ops::Check, DType::Void, {c.make(Ops::Eq, DType::Bool, {c.var("n", 1, 9), i2})},
             {{Attr::Why, str("x \"y\"")}, {Attr::Sites, std::vector<int64_t>{0, 1}}}),
      c.make(Ops::Linear, DType::Void, {r, store, c.make(Ops::End, DType::Void, {r})})};
  elementwise_of_each(n, out);
  return out;
}

TEST(Text, EveryOpRoundTrips) {
  Context c;
  std::vector<bool> seen(kNumOps);
  for (Ref node : one_of_each(c)) {
    seen[static_cast<size_t>(node->op)] = true;
    round_trips(node);
  }
  for (int o = 0; o < kNumOps; ++o) EXPECT_TRUE(seen[static_cast<size_t>(o)]) << name(static_cast<Ops>(o));
}

TEST(Text, OddNamesAndStringsSurvive) {
  Context c;
  const Ref sink = c.make(Ops::Sink, DType::Void, Refs{});
  for (const std::string& odd : {std::string("a b"), std::string("\"\\\n\t\x7f"), std::string(), std::string("; ----"),
                                 std::string("naïve"), std::string("a\0b", 3)})
    round_trips(c.make(Ops::Func, DType::Void, {sink}, {{Attr::Name, odd}, {Attr::Opts, odd}}));
}

TEST(Text, FuncsOfOneNameGetLabels) {
  Context c;
  const auto kernel = [&](double v) {
    const Ref p = c.make(Ops::Param, DType::F32, {c.index(1)}, {{Attr::Slot, int64_t{0}}});
    const Ref store = c.make(Ops::Store, DType::Void, {p, c.index(0), c.constant(DType::F32, v)});
    return c.make(Ops::Func, DType::Void, {c.make(Ops::Sink, DType::Void, {store})}, {{Attr::Name, std::string("k")}});
  };
  const Ref buffer =
      c.make(Ops::Buffer, DType::F32, {c.index(1)}, {{Attr::Slot, int64_t{0}}, {Attr::Space, std::string("global")}});
  const Ref calls[] = {c.make(Ops::Call, DType::Void, {kernel(1), buffer}),
                       c.make(Ops::Call, DType::Void, {kernel(2), buffer})};
  const Ref root =
      c.make(Ops::Func, DType::Void, {c.make(Ops::Linear, DType::Void, calls)}, {{Attr::Name, std::string("main")}});
  EXPECT_EQ(print(root), R"(; tgc uop 1
func @k {
  %0 = param f32[1] 1 {slot=0}
  %1 = store %0 0 1:f32
  sink %1
}
func @k.2 {name="k"} {
  %0 = param f32[1] 1 {slot=0}
  %1 = store %0 0 2:f32
  sink %1
}
func @main {
  %0 = buffer f32[1] 1 {slot=0 space="global"}
  call @k %0
  call @k.2 %0
  linear
}
)");
  round_trips(root);
}

TEST(Text, LinearBodiesThatAreNoSequenceListTheirSources) {
  Context c;
  const Ref x = c.make(Ops::Param, DType::F32, {c.index(1)}, {{Attr::Slot, int64_t{0}}});
  const Ref load = c.make(Ops::Load, DType::F32, {x, c.index(0)}),
            store = c.make(Ops::Store, DType::Void, {x, c.index(0), load});
  for (const std::vector<Ref>& src : {std::vector<Ref>{x, load, store}, std::vector<Ref>{store, load},
                                      std::vector<Ref>{store}, std::vector<Ref>{c.index(0)}})
    round_trips(c.make(Ops::Linear, DType::Void, src));
  const Ref again = c.make(Ops::Linear, DType::Void, {load, store, load, store, store});
  EXPECT_EQ(print(again),
            "; tgc uop 1\n%0 = param f32[1] 1 {slot=0}\n%1 = load f32 %0 0\n%2 = store %0 0 %1\n%1\n%2\n%2\nlinear\n");
  round_trips(again);
}

TEST(Text, WeightsKeepTheirBytes) {
  const std::string text = "; tgc uop 1\nweights {\n  \"a b\" = splat x0000803f 0x1\n  \"c\" = inline x00ff10 "
                           "0xffffffffffffffff\n  \"d\" = mapped \"dir/w.bin\" 0 18446744073709551615 0x0\n}\nsink\n";
  const Module m = parse(text);
  EXPECT_EQ(print(m), text);
  EXPECT_EQ(m.weights.at("c").data[1], std::byte{0xff});
  EXPECT_EQ(m.weights.at("a b").length, 4u);
  EXPECT_EQ(m.weights.at("d").data, nullptr);
}

TEST(Text, HandWrittenTextMayLeaveOutWhatIsDerived) {
  const Module m = parse("; tgc uop 1 ; a comment\n\n  %10 = param f32 4 {name=\"x\" slot=0} ; attributes in any "
                         "order\n%7 = add %10 2.5:f32\n\nexpand %7 4 !origin");
  EXPECT_EQ(print(m), "; tgc uop 1\n%0 = param f32[4] 4 {slot=0 name=\"x\"}\n%1 = add f32[4] %0 2.5:f32\n%2 = expand "
                      "f32[4] %1 4 !origin\n");
}

TEST(Text, GoldenSeparatorEndsTheText) {
  EXPECT_EQ(print(parse("; tgc uop 1\nsink\n; ----\nthis is not parsed")), "; tgc uop 1\nsink\n");
}

std::string parse_error(const std::string& lines) {
  return error_of([&] { parse("; tgc uop 1\n" + lines, "f.uop"); });
}

TEST(Text, ErrorsGiveThePlaceWhatWasFoundAndWhatIsExpected) {
  EXPECT_EQ(error_of([] { parse("hello", "f.uop"); }),
            "f.uop:1:1: error TGC-E102: found \"hello\", expected the header \"; tgc uop 1\"");
  const std::pair<const char*, const char*> cases[] = {
      {"%0 = foo f32", "2:6: error TGC-E102: found \"foo\", expected an op"},
      {"%0 = const", "2:11: error TGC-E102: found the end of the text, expected an element type"},
      {"%0 = const f33 {value=1}", "2:12: error TGC-E102: found \"f33\", expected an element type"},
      {"%0 = const f32 {value=one}", "2:23: error TGC-E102: found \"one}\", expected a number"},
      {"%0 = const i8 {value=300}", "2:22: error TGC-E102: found \"300}\", expected a value of type i8"},
      {"%0 = const f32 {valu=1}", "2:17: error TGC-E102: found \"valu=1}\", expected an attribute name or \"}\""},
      {"%0 = const f32 {value 1}", "2:23: error TGC-E102: found \"1}\", expected \"=\""},
      {"%x = const f32", "2:2: error TGC-E102: found \"x\", expected a number"},
      {"%0 = iota index 3\n%0 = iota index 4", "3:1: error TGC-E102: %0 is defined twice"},
      {"%1 = neg index %0", "2:16: error TGC-E102: found \"%0\", expected a value defined above"},
      {"call @k", "2:6: error TGC-E102: found \"@k\", expected a func defined above"},
      {"call 1", "2:1: error TGC-E102: found \"call\", expected call @func"},
      {"%0 = neg f32 1.5:f3", "2:18: error TGC-E102: found \"f3\", expected an element type"},
      {"%0 = neg f32 abc", "2:14: error TGC-E102: found \"abc\", expected a source: %n, @func or a constant"},
      {"%0 = iota index[4] 3", "2:16: error TGC-E102: the shape is [3], not [4]"},
      {"%0 = iota f32 3", "2:6: error TGC-E102: the type is index, not f32"},
      {"%0 = iota index[3 3", "2:20: error TGC-E102: found the end of the text, expected \"]\""},
      {"%0 = var index {name=\"a", "2:22: error TGC-E102: the string that starts here does not end on its line"},
      {"%0 = var index {name=\"\\q\"}",
       "2:24: error TGC-E102: found \"q\"}\", expected an escape: \\n, \\\", \\\\ or \\xhh"},
      {"%0 = flip 1 {axes=[0,]}", "2:22: error TGC-E102: found \"]}\", expected an integer"},
      {"func @f {\n}", "3:1: error TGC-E102: found \"}\", expected a line"},
      {"func @f {\nsink\n", "4:1: error TGC-E102: found the end of the text, expected \"}\""},
      {"func f {\nsink\n}", "2:6: error TGC-E102: found \"f\", expected \"@name\""},
      {"func @f {\nsink\n}\nfunc @f {\nsink\n}", "5:7: error TGC-E102: func @f is defined twice"},
      {"%0 = iota index 3\n%0\nsink", "3:1: error TGC-E102: only a linear body repeats a line"},
      {"sink }", "2:6: error TGC-E102: found \"}\", expected a source: %n, @func or a constant"},
      {"weights {\n\"a\" = x\n}", "3:7: error TGC-E102: found \"x\", expected mapped, splat or inline"},
      {"weights {\n\"a\" = inline x0 0x1\n}",
       "3:14: error TGC-E102: found \"x0\", expected bytes as x followed by pairs of hex digits"},
      {"weights {\n\"a\" = inline x0g 0x1\n}", "3:15: error TGC-E102: found \"0g\", expected two hex digits"},
      {"weights {\n\"a\" = inline x00 1\n}", "3:18: error TGC-E102: found \"1\", expected the content hash as 0x…"},
      {"weights {\n\"a\" = splat x00 0x1\n\"a\" = splat x00 0x1\n}", "4:1: error TGC-E102: a weight is given twice"},
      {"%0 = param f32 99999999999999999999 {slot=0}",
       "2:16: error TGC-E102: found \"99999999999999999999\", expected a source: %n, @func or a constant"},
      {"%0 = add index 1 true", "2:6: error TGC-E101: add: sources have different dtypes"},
      {"%0 = const f32 {slot=1 value=2}", "2:6: error TGC-E101: const: takes no attribute slot"},
      {"sink\nfunc @f {\nsink\n}", "3:1: error TGC-E102: found \"func\", expected an op other than func inside a body"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(parse_error(text), std::string("f.uop:") + message) << text;
}

TEST(Text, HostileSizesAreRefused) {
  std::string dims = "%0 = param f32";
  for (int i = 0; i < 200; ++i) dims += " 1";
  EXPECT_EQ(parse_error(dims + " {slot=0}"), "f.uop:2:276: error TGC-E102: more than 130 sources");
  dims = "%0 = param f32";
  for (int i = 0; i < 65; ++i) dims += " 1";
  EXPECT_EQ(parse_error(dims + " {slot=0}"), "f.uop:2:6: error TGC-E102: a shape has more than 64 dims");
  const std::string var = "%0 = var index {name=\"n\" min=1 max=2}\n%1 = add index %0 1\n";
  for (const std::string op : {"mul", "sub", "add"}) {
    std::string powers = var;
    for (int i = 2; i < 64; ++i) {
      const std::string last = " %" + std::to_string(i - 1);
      powers += "%" + std::to_string(i) + " = " + op + " index" + last + last + "\n";
    }
    EXPECT_EQ(parse_error(powers + "%64 = param f32 %63 4 {slot=0}\nreshape %64 4"),
              "f.uop:67:1: error TGC-E207: a dim is too large an expression")
        << op;
  }
  std::string ranges = "%0 = range index 2 {id=0 axis=\"loop\"}\n%1 = add index %0 0\n";
  for (int i = 1; i < 400; ++i) {
    const std::string a = std::to_string(2 * i), b = std::to_string(2 * i + 1), last = std::to_string(2 * i - 1);
    ranges += "%" + a + " = range index 2 {id=" + std::to_string(i) + " axis=\"loop\"}\n%" + b + " = add index %" +
              last + " %" + a + "\n";
  }
  EXPECT_EQ(parse_error(ranges), "f.uop:515:8: error TGC-E102: more than 256 open ranges");
}

// Small deterministic generator: seeds are part of the test.
uint64_t next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

TEST(Text, MutatedTextIsAnErrorOrAModuleNeverACrash) {
  Context c;
  std::vector<std::string> seeds{kExample};
  for (Ref node : one_of_each(c)) seeds.push_back(print(node));
  const std::string pieces[] = {"%",
                                "0",
                                "-",
                                "99999999999999999999",
                                "-9223372036854775808",
                                "[",
                                "]",
                                "{",
                                "}",
                                "\"",
                                "\n",
                                "f32",
                                "index",
                                "@k",
                                "=",
                                "nan:f32",
                                "sink",
                                "true",
                                "axes=[",
                                "x00",
                                ";",
                                "\\",
                                std::string(1, '\0'),
                                "%1",
                                "64",
                                "9223372036854775807"};
  uint64_t state = 2024;
  int errors = 0, modules = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = seeds[next(state) % seeds.size()];
    for (uint64_t k = next(state) % 4 + 1; k > 0; --k) {
      const size_t at = 12 + next(state) % (text.size() - 11), cut = next(state) % 3 == 0 ? next(state) % 8 : 0;
      text.replace(std::min(at, text.size()), cut, next(state) % 4 == 0 ? "" : pieces[next(state) % std::size(pieces)]);
    }
    try {
      const Module m = parse(text);
      ++modules;
      if (m.root) {
        EXPECT_EQ(print(parse(print(m))), print(m)) << text;
      }
    } catch (const CompileError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
  EXPECT_GT(modules, 200);
}

} // namespace
