#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C file is as clang-format (version 14) would write it and starts with its licence.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(git ls-files -- '*.c' '*.h')
[ ${#files[@]} -gt 0 ] || { echo "check-format: no files" >&2; exit 1; }
clang-format-14 --dry-run -Werror "${files[@]}"
bad=0
while IFS= read -r f; do
  head -3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || { echo "$f: no SPDX line" >&2; bad=1; }
done < <(git ls-files -- '*.c' '*.h' '*.def' '*.proto' '*.x' '*.sh' '*.py' '*.cmake' 'CMakeLists.txt' '*/CMakeLists.txt')
[ $bad = 0 ]
echo "check-format: ${#files[@]} files"
