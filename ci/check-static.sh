#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy and cppcheck at zero findings, over the compile commands of a build folder that has been
# built (generated headers). What is shipped, not the tests: their macros are Criterion's.
#   ci/check-static.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/dev}
jobs=$(nproc)

mapfile -t files < <(git ls-files -- ':(glob)libs/*/src/**/*.c' ':(glob)services/*/*.c' ':(glob)plugins/*/*.c')
[ ${#files[@]} -gt 0 ] || { echo "check-static: no files" >&2; exit 1; }

# For a file without a command clang-tidy guesses one from its neighbours.
bad=0
for f in "${files[@]}"; do
  grep -qF "\"file\": \"$PWD/$f\"" "$build/compile_commands.json" ||
    { echo "check-static: $f has no compile command in $build" >&2; bad=1; }
done
[ $bad = 0 ]

# Findings are errors (.clang-tidy), so that status says it all, a crash or a missing tool included.
# One file a process: with more, version 14 carries the analyzer's va_list state over between them.
out=$(mktemp)
trap 'rm -f "$out"' EXIT
if ! printf '%s\0' "${files[@]}" | xargs -0 -P "$jobs" -n 1 clang-tidy-14 -p "$build" --quiet >"$out" 2>&1; then
  grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter|^$' "$out" >&2 || true
  echo "check-static: clang-tidy failed" >&2
  exit 1
fi

includes=(libs/*/include services/*/include)
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,portability \
  --suppress=missingInclude --suppress=preprocessorErrorDirective -j "$jobs" \
  -D__linux__ -D_GNU_SOURCE -DHF_VERSION='"0"' "${includes[@]/#/-I}" "${files[@]}"
echo "check-static: ${#files[@]} files"
