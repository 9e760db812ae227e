#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes test/golden/<graph>.<pass>.uop for every pass from the JSON graphs in test/golden_graphs: the text before the
# pass, a separator, the text after it. Run it when a pass is added; for changed output, TGC_BLESS=1 is enough.
# usage: scripts/make_golden.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
tgc=$1/bin/tgc
target=cpu:llvm:x86-64-v3
for graph in test/golden_graphs/*.json; do
  name=$(basename "$graph" .json)
  before=$("$tgc" "$graph" --target=$target --emit=uops)
  "$tgc" --list-passes | awk '{print $2}' | while read -r pass; do
    after=$("$tgc" "$graph" --target=$target --stop-after="$pass")
    {
      echo "; tgc uop 1"
      echo "; run: $pass $target"
      tail -n +2 <<<"$before"
      echo "; ----"
      echo "$after"
    } >"test/golden/$name.$pass.uop"
    before=$after
  done
done
