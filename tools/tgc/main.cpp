// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program tgc: the command line, then the driver, then an exit code. Everything else is in the library tgc_driver,
// which tests link.
#include <cstdio>

#include "tgc/boundary.h"
#include "tgc/driver.h"
#include "tgc/options.h"

int main(int argc, char** argv) {
  tgc::interrupt_cleanly();
  return tgc::run_guarded("tgc", [&] {
    const tgc::Options options = tgc::parse_options({argv + 1, static_cast<size_t>(argc - 1)});
    if (options.help) {
      std::fputs(tgc::help_text().c_str(), stdout);
      return tgc::Exit::Ok;
    }
    if (options.version) {
      std::puts("tgc " TGC_VERSION);
      return tgc::Exit::Ok;
    }
    return static_cast<tgc::Exit>(tgc::run_tgc(options));
  });
}
