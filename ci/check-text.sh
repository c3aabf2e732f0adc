#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Small habits that a grep can hold: bounded calls only, no unfinished work, a README in each folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(git ls-files -- 'libs/*.[ch]' 'services/*.[ch]' 'plugins/*.[ch]' 'tests/*.[ch]')
[ ${#files[@]} -gt 0 ] || { echo "check-text: no files" >&2; exit 1; }
bad=0
if grep -nE '\b(strcpy|strcat|sprintf|vsprintf|gets|atoi|system|alloca)\(' "${files[@]}"; then
  echo "check-text: use the bounded or checked call" >&2
  bad=1
fi
if grep -nE '\b(TODO|FIXME|XXX)\b' "${files[@]}"; then
  echo "check-text: unfinished work" >&2
  bad=1
fi
for d in libs/* services/* plugins/* tests/*; do
  [ ! -d "$d" ] || [ -z "$(git ls-files -- "$d")" ] || [ -f "$d/README.md" ] || { echo "$d: no README.md" >&2; bad=1; }
done
[ $bad = 0 ]
echo "check-text: ${#files[@]} files"
