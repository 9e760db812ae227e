// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much memory a bundle takes, and how much of it the memory plan is to blame for. A buffer is in use from a step
// that writes it (argument 0) to the last that reads it before it is written again; the parts of one that is made in
// place so count apart, which can only make the live bytes fewer.
#include "tgc/memory_use.h"

#include <algorithm>
#include <map>

#include "runtime/tgrt_bundle.h"

namespace tgc {
namespace {

using Arg = BundleContents::Arg;

int64_t aligned(int64_t bytes) { return (bytes + TGRT_DATA_ALIGN - 1) / TGRT_DATA_ALIGN * TGRT_DATA_ALIGN; }
int64_t bytes_of(const BundleContents::Buffer& buffer) { return buffer.bytes ? buffer.bytes->lo : 0; }

int64_t live_bytes(const BundleContents& contents) {
  std::vector<int64_t> change(contents.steps.size() + 1, 0); // of bytes in use, at each step
  std::vector<size_t> first(contents.buffers.size()), last(contents.buffers.size());
  std::vector<bool> used(contents.buffers.size());
  const auto close = [&](size_t buffer) {
    if (!used[buffer]) return;
    change[first[buffer]] += aligned(bytes_of(contents.buffers[buffer]));
    change[last[buffer] + 1] -= aligned(bytes_of(contents.buffers[buffer]));
  };
  for (size_t step = 0; step < contents.steps.size(); ++step)
    for (const Arg& arg : contents.steps[step].args) {
      if (arg.kind != Arg::Kind::Buffer) continue;
      const auto buffer = static_cast<size_t>(arg.index);
      const bool written = &arg == contents.steps[step].args.data();
      if (written) close(buffer);
      if (written || !used[buffer]) first[buffer] = step;
      used[buffer] = true;
      last[buffer] = step;
    }
  for (size_t buffer = 0; buffer < used.size(); ++buffer) close(buffer);
  int64_t now = 0, most = 0;
  for (int64_t bytes : change) most = std::max(most, now += bytes);
  return most;
}

} // namespace

MemoryUse memory_use(const BundleContents& contents) {
  MemoryUse use;
  std::map<uint64_t, uint64_t> stored; // bytes by place
  const std::vector<uint64_t> places = place_weights(contents);
  for (size_t i = 0; i < places.size(); ++i) stored[places[i]] = std::max(stored[places[i]], contents.weights[i].bytes);
  for (const auto& [place, bytes] : stored) use.weights += static_cast<int64_t>(bytes);
  std::map<int, int64_t> slots;
  for (const auto& buffer : contents.buffers) {
    int64_t& slot = slots[buffer.slot];
    slot = std::max(slot, static_cast<int64_t>(buffer.at) + bytes_of(buffer));
  }
  for (const auto& [slot, bytes] : slots) use.arena += aligned(bytes);
  use.live = live_bytes(contents);
  return use;
}

} // namespace tgc
