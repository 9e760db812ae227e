// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uop/target.h"

#include "testing.h"

using namespace tgc;
using tgc::testing::error_of;

namespace {

TEST(Target, PartsArePositional) {
  EXPECT_EQ(parse_target("cpu").device, "cpu");
  EXPECT_EQ(parse_target("cpu").renderer, "");
  EXPECT_EQ(parse_target("cpu:c").renderer, "c");
  EXPECT_EQ(parse_target("cpu::znver3").renderer, "");
  EXPECT_EQ(parse_target("cpu::znver3").arch, "znver3");
  const TargetSpec full = parse_target("cpu:llvm:x86-64-v3,+fma,-avx2");
  EXPECT_EQ(full.arch, "x86-64-v3");
  EXPECT_EQ(full.features, (std::vector<std::string>{"+fma", "-avx2"}));
}

TEST(Target, ErrorsGiveTheGrammar) {
  EXPECT_EQ(
      error_of([] { parse_target(""); }),
      "error TGC-E401: \"\": names no device\n"
      "  note: write device[:renderer][:arch[,+feature,-feature]], such as cpu, cpu:c or cpu:llvm:x86-64-v3,+fma");
  const auto first_line = [](const char* text) {
    const std::string all = error_of([&] { parse_target(text); });
    return all.substr(0, all.find('\n'));
  };
  EXPECT_EQ(first_line("cpu:a:b:c"), "error TGC-E401: \"cpu:a:b:c\": has more than three parts");
  EXPECT_EQ(first_line("cpu:l$"), "error TGC-E401: \"cpu:l$\": \"l$\" is not a name");
  EXPECT_EQ(first_line("cpu:c:native,fma"),
            "error TGC-E401: \"cpu:c:native,fma\": feature \"fma\" does not begin with + or -");
  EXPECT_EQ(first_line("cpu:c:native,"), "error TGC-E401: \"cpu:c:native,\": a feature is empty");
  EXPECT_EQ(first_line("cpu,+fma"), "error TGC-E401: \"cpu,+fma\": has features without an arch");
}

} // namespace
