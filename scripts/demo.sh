#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# From a bare Debian 12 to sixteen classified pictures: installs, builds, compiles a network to a bundle, and runs it
# from a C program that links nothing but libtgrt and libc.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/demo
mkdir -p "$out"
say() { printf '\n== %s\n' "$*"; }
seconds() { date +%s.%N; }
took() { awk -v a="$1" -v b="$(seconds)" 'BEGIN { printf "   %.2f s\n", b - a }'; }

say "install and build (build/release)"
start=$(seconds)
scripts/build.sh release tgc tgrun
took "$start"
bin=build/release/bin lib=build/release/lib

say "tgc models/fashion_cnn/model.onnx -o $out/fashion.bundle"
start=$(seconds)
"$bin/tgc" models/fashion_cnn/model.onnx -o "$out/fashion.bundle"
took "$start"
ls -l "$out/fashion.bundle" | awk '{ print "   " $5 " bytes" }'

say "cc models/fashion_cnn/classify.c -ltgrt"
cc -O2 -Wall -Ilib/runtime models/fashion_cnn/classify.c -L"$lib" -ltgrt -o "$out/classify"
ldd "$out/classify"

say "classify 16 pictures"
start=$(seconds)
"$out/classify" "$out/fashion.bundle" models/fashion_cnn/*.pgm | tee "$out/predictions.txt"
took "$start"
grep -q '16 of 16' "$out/predictions.txt"
