#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# clang-tidy over what differs from a revision, or over everything:  scripts/tidy.sh [REVISION | --all]
# (default: --all). Needs scripts/setup.sh full.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset clang >/dev/null
if [ "${1:---all}" = --all ]; then
  files=$(git ls-files 'lib/*.cpp' 'tools/*.cpp' 'lib/*.c' 'tools/*.c')
else
  files=$(git diff --name-only --diff-filter=d "$1" -- 'lib/*.cpp' 'tools/*.cpp' 'lib/*.c' 'tools/*.c')
fi
[ -n "$files" ] || exit 0
printf '%s\n' "$files" | xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p build/clang
