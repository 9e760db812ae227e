// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program tgrun: the command line, then one action, then an exit code. Exceptions end here. SIGINT ends the process
// with 130.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "printable.h"
#include "tgrun/options.h"
#include "tgrun/run_model.h"

namespace {

extern "C" void leave(int) { _exit(130); }

tgc::RunExit act(const tgc::RunOptions& options) {
  if (options.help) return std::fputs(tgc::run_help_text().c_str(), stdout), tgc::RunExit::Ok;
  if (options.version) return std::puts("tgrun " TGC_VERSION), tgc::RunExit::Ok;
  if (options.list_devices) return tgc::list_devices();
  if (options.describe) return tgc::describe(options);
  if (options.check) return tgc::check_bundle(options);
  if (!options.extract.empty()) return tgc::extract(options);
  if (!options.test.empty()) return tgc::run_tests(options);
  if (options.bench) return tgc::bench(options);
  if (options.profile) return tgc::profile(options);
  return tgc::print_outputs(options);
}

int say(const char* kind, const char* text, tgc::RunExit code) {
  std::fprintf(stderr, "tgrun: %s%s\n", tgc::printable(kind).c_str(), tgc::printable(text).c_str());
  return static_cast<int>(code);
}

} // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, leave);
  try {
    const tgc::RunExit code = act(tgc::parse_run_options({argv + 1, static_cast<size_t>(argc - 1)}));
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      return say("", "standard output cannot be written", tgc::RunExit::User);
    return static_cast<int>(code);
  } catch (const tgc::RunUsageError& error) {
    return say(error.what(), " (see tgrun --help)", tgc::RunExit::Usage);
  } catch (const tgc::RunError& error) {
    say("", error.what(), tgc::RunExit::User);
    if (!error.note().empty()) std::fprintf(stderr, "  note: %s\n", tgc::printable(error.note()).c_str());
    return static_cast<int>(tgc::RunExit::User);
  } catch (const std::bad_alloc&) {
    return say("", "out of memory", tgc::RunExit::User);
  } catch (const std::exception& error) {
    return say("internal error: ", error.what(), tgc::RunExit::Internal);
  }
}
