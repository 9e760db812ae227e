#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Everything a change must pass: installs what it needs, builds, tests, tests again under ASan+UBSan and TSan, checks
# the format. The last line counts test cases: "N passed, N failed".
#   scripts/test.sh [--full] [--quick]
#     --full    also what takes long: exhaustive tests (TGC_FULL=1), fuzzing, clang build, clang-tidy
#     --quick   the release build and its tests only
# Logs are in build/logs.
set -uo pipefail
cd "$(dirname "$0")/.."
full=0 quick=0
for argument in "$@"; do
  case "$argument" in
    --full) full=1 ;;
    --quick) quick=1 ;;
    *) echo "usage: scripts/test.sh [--full] [--quick]" >&2; exit 2 ;;
  esac
done
jobs=$(nproc)
mkdir -p build/logs
passed=0 failed=0

# step NAME COMMAND...: one line; on failure the end of its log and one failed case.
step() {
  local name=$1 start=$SECONDS log="build/logs/$1.log"
  shift
  printf '%-28s' "$name"
  if "$@" >"$log" 2>&1; then
    printf 'ok      %4ds\n' $((SECONDS - start))
    return 0
  fi
  printf 'FAILED  %4ds  (%s)\n' $((SECONDS - start)) "$log"
  tail -n 40 "$log" | sed 's/^/    /'
  failed=$((failed + 1))
  return 1
}

# Adds the cases of a ctest run: what GoogleTest programs counted, one for any other test; a skipped test counts as none.
# $1: what ctest printed (which tests passed), $2: its log (what they printed).
count_cases() {
  local counts
  counts=$(awk '
    FNR == NR && / Test +#[0-9]+: / { name = $0; sub(/.* Test +#[0-9]+: /, "", name); sub(/ .*/, "", name)
                                      state[name] = / Passed / ? "pass" : /\*\*\*Skipped/ ? "skip" : "fail"; next }
    FNR == NR                      { next }
    / Testing: /                   { name = $NF }
    /^\[  PASSED  \] [0-9]+ test/  { good[name] = $4 }
    /^\[  FAILED  \] [0-9]+ test/  { bad[name] = $4 }
    END { for (name in state) {
            if (state[name] == "pass") passed += (name in good) ? good[name] : 1
            if (state[name] == "fail") { passed += good[name]; failed += (name in bad) ? bad[name] : 1 }
          }
          print passed + 0, failed + 0 }' "$1" "$2")
  passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* }))
}

# run_tests PRESET CTEST-ARGUMENTS...
run_tests() {
  local preset=$1 before=$failed
  shift
  local last="build/$preset/Testing/Temporary/LastTest.log"
  rm -f "$last"
  if ! step "test-$preset" ctest --test-dir "build/$preset" --output-on-failure -j "$jobs" "$@"; then
    failed=$before
  fi
  if [ -f "$last" ]; then count_cases "build/logs/test-$preset.log" "$last"; else failed=$((failed + 1)); fi
  grep -hE '^(suite|skip): ' "$last" 2>/dev/null | sed 's/^/    /'
}

build() {
  local preset=$1
  shift
  step "configure-$preset" cmake --preset "$preset" -DTGC_TESTS=ON && step "build-$preset" cmake --build --preset "$preset" "$@"
}

finish() {
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
  exit
}

level=test
[ "$full" -eq 1 ] && level=full
step setup scripts/setup.sh "$level" || finish
step format scripts/format.sh --check
if build release; then
  [ "$full" -eq 1 ] && export TGC_FULL=1 # hours under sanitizers, which see nothing more by it
  run_tests release
  unset TGC_FULL
fi
if [ "$quick" -eq 0 ]; then
  build asan && run_tests asan -LE 'suite|layout'
  build tsan --target test_runtime && run_tests tsan -R '^runtime$'
fi
# Every ONNX test compiled for cpu:llvm and for cpu:c must give the same bits. gcc takes minutes for the largest models.
targets_agree() {
  scripts/onnx_suite.sh build/release --against cpu:c --timeout 400 --csv build/release/onnx-suite-against-c.csv
  local code=$?
  [ "$code" -eq 77 ] || return "$code"
}

if [ "$full" -eq 1 ]; then
  step targets-agree targets_agree
  step fuzz scripts/fuzz.sh
  build clang && run_tests clang -LE 'suite|layout'
  step tidy scripts/tidy.sh --all
fi
finish
