#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs the ONNX backend tests against the scoreboard:  scripts/onnx_suite.sh BUILD [options of tgc-onnx-suite]
# The tests are, whichever is there first: $TGC_ONNX_TESTS (a folder or a .tar.xz), onnx-backend-tests.tar.xz in a folder
# shared/data beside the checkout, Debian's libonnx-testdata. Exits 77 when there are none.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
shift
archive=$source_dir/../shared/data/onnx-backend-tests.tar.xz
debian=/usr/share/libonnx-testdata/data

data=${TGC_ONNX_TESTS:-}
if [ -z "$data" ]; then
  if [ -f "$archive" ]; then data=$archive; else data=$debian; fi
fi
if [ -f "$data" ]; then
  folder=$build/onnx-tests
  if [ ! -f "$folder/.complete" ] || [ "$data" -nt "$folder/.complete" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    tar -xf "$data" -C "$folder"
    touch "$folder/.complete"
  fi
  data=$folder
fi
if [ ! -d "$data" ]; then
  echo "skip: no ONNX tests: neither $archive nor the package libonnx-testdata is there"
  exit 77
fi
scoreboard=$source_dir/test/onnx_scoreboard.csv
[ "$data" = "$debian" ] && scoreboard=$source_dir/test/onnx_scoreboard_debian.csv
"$build/bin/tgc-onnx-suite" "$data" --csv "$build/onnx-suite.csv" --scoreboard "$scoreboard" "$@"
