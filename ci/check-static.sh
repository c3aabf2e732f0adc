#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy and cppcheck at zero findings, over the compile commands of a build folder.
#   ci/check-static.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/dev}

mapfile -t files < <(git ls-files -- 'libs/*/src/*.c' 'services/*/*.c' 'plugins/*/*.c')
[ ${#files[@]} -gt 0 ] || { echo "check-static: no files" >&2; exit 1; }
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 8 clang-tidy-14 -p "$build" --quiet 2>&1 |
  grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter|^$' >"$build/tidy.out" || true
if grep -qE 'warning:|error:' "$build/tidy.out"; then
  cat "$build/tidy.out" >&2
  exit 1
fi
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,portability \
  --suppress=missingInclude --suppress=preprocessorErrorDirective -j "$(nproc)" \
  -D__linux__ -D_GNU_SOURCE -DHF_VERSION='"0"' $(printf -- '-I%s ' libs/*/include services/*/include) "${files[@]}"
echo "check-static: ${#files[@]} files"
