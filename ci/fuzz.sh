#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets and runs each in turn, beginning with the committed corpus.
#   ci/fuzz.sh [SECONDS [TARGET...]]   at most 60 each (default); all targets (meta, wal, ...)
# A finding ends with 1 and stays in build/fuzz/findings/TARGET: see tests/fuzz/README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] && [ "$seconds" -ge 1 ] || {
  sed -n '4s/^# //p' "$0" >&2
  exit 2
}
[ "$seconds" -le 60 ] || seconds=60
shift || true

build=build/fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" --target fuzzers
if [ $# -eq 0 ]; then
  for f in tests/fuzz/fuzz_*.c; do
    n=${f##*/fuzz_}
    set -- "$@" "${n%.c}"
  done
fi

failed=()
for t in "$@"; do
  found=$build/findings/$t work=$build/work/$t
  mkdir -p "$found" "$work"
  echo "fuzz: $t, $seconds s"
  if ! UBSAN_OPTIONS=print_stacktrace=1 "$build/fuzz/fuzz_$t" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=2500 -max_len=4096 -verbosity=0 -print_final_stats=1 -artifact_prefix="$found/" \
    "$work" "tests/fuzz/corpus/$t" >"$build/$t.log" 2>&1; then
    tail -n 40 "$build/$t.log"
    failed+=("$t")
  fi
  grep -E 'number_of_executed_units' "$build/$t.log" || true
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzz: findings in ${failed[*]}, inputs in $build/findings" >&2
  exit 1
fi
