#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds without tests:  scripts/build.sh [preset [targets]]   → build/<preset>/bin, build/<preset>/lib
# Presets: release (default), dev, asan, tsan, clang (CMakePresets.json).
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/setup.sh build
cmake --preset "$preset" -DTGC_TESTS=OFF >/dev/null
cmake --build --preset "$preset" ${2:+--target "${@:2}"}
