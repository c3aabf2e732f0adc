#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the configure step cannot see: who includes which system. Each row: header pattern, who may.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rules=(
  '<nng/|^libs/rpc/'
  '<lmdb\.h>|^libs/store/'
  '<event2/|^(libs/rt/|services/nfs/|services/fuse/|services/cli/)'
  '<dlfcn\.h>|^libs/plug/'
  '<cyaml/|^libs/base/'
  '<isa-l|^libs/base/'
  '<rpc/|^services/(nfs|cli)/'
)
files=0
bad=0
while IFS= read -r f; do
  files=$((files + 1))
  for rule in "${rules[@]}"; do
    pattern=${rule%%|*}
    allowed=${rule#*|}
    if grep -qE "^#include $pattern" "$f" && ! [[ $f =~ $allowed ]]; then
      echo "$f includes $pattern, which only $allowed may" >&2
      bad=1
    fi
  done
  if [[ $f == plugins/* ]] && grep -E '^#include "holdfast/' "$f" | grep -qv '"holdfast/backend.h"'; then
    echo "$f: a plugin includes only holdfast/backend.h" >&2
    bad=1
  fi
done < <(git ls-files -- 'libs/*.c' 'libs/*.h' 'services/*.c' 'services/*.h' 'plugins/*.c' 'plugins/*.h')
[ $files -gt 0 ] || { echo "check-layers: no files" >&2; exit 1; }
# The configure step itself must refuse an upward edge.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/libs/low/src" "$tmp/libs/high/src" "$tmp/cmake"
cp cmake/HfBuild.cmake "$tmp/cmake/"
cat >"$tmp/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.24)
project(edge VERSION 0 LANGUAGES C)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_SOURCE_DIR}/cmake)
include(HfBuild)
hf_library(high LAYER 1)
hf_library(low LAYER 0 DEPS high)
EOF
if cmake -S "$tmp" -B "$tmp/b" -DHF_TESTS=OFF >"$tmp/out" 2>&1 || ! grep -q 'wrong edge' "$tmp/out"; then
  echo "check-layers: the configure step accepted an upward edge" >&2
  bad=1
fi
[ $bad = 0 ]
echo "check-layers: $files files"
