#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the Debian 12 packages that tgc needs; does nothing when they are there. The one list of packages.
#   scripts/setup.sh [build|test|full]     what to be able to do (default: test)
set -euo pipefail

build=(g++ cmake ninja-build ccache lld-19 llvm-19-dev liblld-19-dev libprotobuf-dev protobuf-compiler libonnx-dev
       libcli11-dev nlohmann-json3-dev)
test=(libgtest-dev clang-format-19 libonnx-testdata xz-utils)
full=(clang-19 clang-tidy-19 libclang-rt-19-dev libbenchmark-dev)

case "${1:-test}" in
  build) packages=("${build[@]}") ;;
  test) packages=("${build[@]}" "${test[@]}") ;;
  full) packages=("${build[@]}" "${test[@]}" "${full[@]}") ;;
  *) echo "usage: scripts/setup.sh [build|test|full]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: install as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -qy --no-install-recommends \
       "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "setup.sh: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
