#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the fuzzers (clang 19, ASan, UBSan) and runs each. What it finds stays in build/fuzz/found/; what widens the
# coverage in build/fuzz/corpus/. Exits with 1 if anything was found.
#   scripts/fuzz.sh [--seconds N | --runs N] [NAME...]      NAME: onnx, json, text, bundle, tuning (default: all, 60 s each)
set -euo pipefail
cd "$(dirname "$0")/.."
limit=-max_total_time=60
names=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) limit=-max_total_time=${2:?} && shift ;;
    --runs) limit=-runs=${2:?} && shift ;;
    -*) echo "usage: scripts/fuzz.sh [--seconds N | --runs N] [NAME...]" >&2; exit 2 ;;
    *) names+=("$1") ;;
  esac
  shift
done
[ ${#names[@]} -gt 0 ] || names=(onnx json text bundle tuning)
cmake --preset fuzz >/dev/null
nice cmake --build --preset fuzz
found=0
for name in "${names[@]}"; do
  mkdir -p build/fuzz/corpus/"$name" build/fuzz/found
  echo "== $name"
  # 10 s is a hang for inputs of some KiB.
  log=build/fuzz/$name.log
  nice build/fuzz/bin/fuzz_"$name" -timeout=10 -rss_limit_mb=1500 -malloc_limit_mb=800 -max_len=16384 \
    -print_final_stats=1 -artifact_prefix=build/fuzz/found/"$name"- "$limit" \
    build/fuzz/corpus/"$name" build/fuzz/seeds/"$name" >"$log" 2>&1 || found=1
  grep -E "ERROR|SUMMARY|stat::number_of|Test unit written" "$log" || true
done
exit $found
