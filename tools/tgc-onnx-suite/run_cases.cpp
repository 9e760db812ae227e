// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two thousand models in a few dozen processes, with a crash charged to the model that caused it. A worker is forked
// with a batch of cases and writes one line as each begins and one as it ends; when its pipe closes early, the case
// that had begun is a crash and the rest of the batch goes back to the queue. A case that exceeds its time is killed.
// The parent must be single-threaded when it forks; it is.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "tgc-onnx-suite/case.h"

namespace tgc::suite {

namespace {

using Clock = std::chrono::steady_clock;
using Batch = std::deque<size_t>;

struct Worker {
  pid_t pid = -1;
  int pipe = -1;
  Batch batch;             ///< cases without a verdict; the front is the running one
  std::string received;    ///< bytes of a line not yet complete
  Clock::time_point since; ///< when the running case began
  bool timed_out = false;
};

void write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) _exit(1);
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
}

/// A line per verdict: status digit, then the detail on the same line.
[[noreturn]] void work(std::span<const Case> cases, const Batch& batch, const Backend& backend, int out) {
  for (size_t index : batch) {
    Verdict verdict = run_case(cases[index], backend);
    for (char& c : verdict.detail) {
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
    write_all(out, std::to_string(static_cast<int>(verdict.status)) + verdict.detail + "\n");
  }
  std::fflush(nullptr);
  _exit(0);
}

Worker start(std::span<const Case> cases, Batch batch, const Backend& backend) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  std::fflush(nullptr);
  Worker worker;
  worker.pid = fork();
  if (worker.pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (worker.pid == 0) {
    signal(SIGINT, SIG_DFL);
    close(ends[0]);
    work(cases, batch, backend, ends[1]);
  }
  close(ends[1]);
  worker.pipe = ends[0];
  worker.batch = std::move(batch);
  worker.since = Clock::now();
  return worker;
}

class Run {
public:
  Run(std::span<const Case> cases, const Backend& backend, const RunOptions& options)
      : cases_(cases), backend_(backend), options_(options), verdicts_(cases.size()) {
    const size_t size = static_cast<size_t>(options.batch);
    for (size_t i = 0; i < cases.size(); ++i) {
      if (i % size == 0) queue_.emplace_back();
      queue_.back().push_back(i);
    }
  }

  std::vector<Verdict> all() {
    while (!queue_.empty() || !workers_.empty()) {
      while (!queue_.empty() && workers_.size() < static_cast<size_t>(options_.jobs)) {
        workers_.push_back(start(cases_, std::move(queue_.front()), backend_));
        queue_.pop_front();
      }
      wait();
    }
    if (options_.progress) std::fprintf(stderr, "\r\033[K");
    return std::move(verdicts_);
  }

private:
  void wait() {
    std::vector<pollfd> fds;
    for (const Worker& worker : workers_) fds.push_back({worker.pipe, POLLIN, 0});
    poll(fds.data(), fds.size(), 1000);
    for (size_t i = workers_.size(); i-- > 0;) {
      if (fds[i].revents != 0) receive(i);
    }
    const auto limit = std::chrono::seconds(options_.timeout_s);
    for (Worker& worker : workers_) {
      if (worker.timed_out || Clock::now() - worker.since < limit) continue;
      worker.timed_out = true;
      kill(worker.pid, SIGKILL);
    }
  }

  void receive(size_t i) {
    Worker& worker = workers_[i];
    char buffer[4096];
    const ssize_t got = read(worker.pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return finish(i);
    worker.received.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = worker.received.find('\n')) != std::string::npos; worker.received.erase(0, end + 1)) {
      settle(worker, {static_cast<Status>(worker.received[0] - '0'), worker.received.substr(1, end - 1)});
    }
  }

  void settle(Worker& worker, Verdict verdict) {
    if (worker.batch.empty()) return;
    verdicts_[worker.batch.front()] = std::move(verdict);
    worker.batch.pop_front();
    worker.since = Clock::now();
    ++done_;
    if (options_.progress && done_ % 10 == 0) std::fprintf(stderr, "\r%zu of %zu", done_, cases_.size());
  }

  void finish(size_t i) {
    Worker& worker = workers_[i];
    int status = 0;
    while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(worker.pipe);
    if (!worker.batch.empty()) {
      settle(worker, {Status::Crash, end_text(worker, status)});
      if (!worker.batch.empty()) queue_.push_front(std::move(worker.batch));
    }
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  std::string end_text(const Worker& worker, int status) const {
    if (worker.timed_out) return "no result after " + std::to_string(options_.timeout_s) + " s";
    if (WIFSIGNALED(status)) return std::string("killed by ") + strsignal(WTERMSIG(status));
    return "the process ended with exit code " + std::to_string(WEXITSTATUS(status));
  }

  std::span<const Case> cases_;
  const Backend& backend_;
  const RunOptions& options_;
  std::vector<Verdict> verdicts_;
  std::deque<Batch> queue_;
  std::vector<Worker> workers_;
  size_t done_ = 0;
};

} // namespace

std::vector<Verdict> run_cases(std::span<const Case> cases, const Backend& backend, const RunOptions& options) {
  return Run(cases, backend, options).all();
}

} // namespace tgc::suite
