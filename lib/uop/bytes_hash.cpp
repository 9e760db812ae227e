// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights are hashed whole, gigabytes of them, so hashing must keep up with memory. One chain of multiplications waits
// for itself (a word in some six cycles); eight chains side by side, each over every eighth word, do not. Every step is
// a bijection of its chain, and the chains meet at the end. The tail counts as if followed by zeros; the length tells
// it from one that is.
#include "uop/bytes_hash.h"

#include <bit>
#include <cstring>

namespace tgc {
namespace {

constexpr size_t kLanes = 8;

uint64_t mix(uint64_t x, uint64_t word) { return std::rotl((x ^ word) * 0x9E3779B97F4A7C15u, 29); }

void mix_block(uint64_t (&lanes)[kLanes], const std::byte* block) {
  uint64_t words[kLanes];
  std::memcpy(words, block, sizeof words);
  for (size_t i = 0; i < kLanes; ++i)
    lanes[i] = mix(lanes[i], std::endian::native == std::endian::little ? words[i] : __builtin_bswap64(words[i]));
}

} // namespace

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  constexpr size_t kBlock = kLanes * sizeof(uint64_t);
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = 0xD1B54A32D192ED03u * (i + 1);
  size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) mix_block(lanes, bytes.data() + at);
  if (at < bytes.size()) {
    std::byte tail[kBlock] = {};
    std::memcpy(tail, bytes.data() + at, bytes.size() - at);
    mix_block(lanes, tail);
  }
  uint64_t hash = bytes.size();
  for (uint64_t lane : lanes) hash = mix(hash, lane);
  hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
  return hash ^ hash >> 32;
}

} // namespace tgc
