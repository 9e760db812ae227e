// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <signal.h>

namespace tgc {

/// Holds SIGINT and SIGTERM back from this thread and those it starts, while files exist that must be removed. One that
/// came has its effect when the object ends.
class HeldInterrupts {
public:
  HeldInterrupts() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~HeldInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;

  static bool pending() {
    sigset_t signals;
    return sigpending(&signals) == 0 && (sigismember(&signals, SIGINT) == 1 || sigismember(&signals, SIGTERM) == 1);
  }

private:
  sigset_t before_;
};

} // namespace tgc
