#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that shows that Holdfast works: installs what it needs, builds, checks, runs every test.
#   ci/test.sh           all of it (under 20 minutes on 2 cores)
#   ci/test.sh --full    the same, then every fuzz target for a minute (ci/fuzz.sh)
#   ci/test.sh --quick   unit and protocol tests of the dev build, and the quick checks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=false full=false
case "${1:-}" in
'') ;;
--quick) quick=true ;;
--full) full=true ;;
*) sed -n '3,6p' "$0" >&2; exit 2 ;;
esac
jobs=$(nproc)
step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

step "packages"
deploy/install-deps.sh all

step "build: dev"
cmake --preset dev >/dev/null
cmake --build --preset dev -j "$jobs"

step "checks"
ci/check-format.sh
ci/check-layers.sh
ci/check-text.sh

if $quick; then
  step "tests: unit and protocol"
  ctest --preset dev -j "$jobs" -LE 'slow|kernel|crash'
  exit 0
fi

step "checks: static analysis"
ci/check-static.sh build/dev

step "build: release"
cmake --preset release >/dev/null
cmake --build --preset release -j "$jobs"

step "build: asan"
cmake --preset asan >/dev/null
cmake --build --preset asan -j "$jobs"

step "tests: address, undefined and leak sanitizers"
ctest --preset asan -j "$jobs" -LE 'slow|kernel|crash' # unit tests and the NFS protocol tests against a node

step "build: tsan"
cmake --preset tsan >/dev/null
cmake --build --preset tsan -j "$jobs"

step "tests: thread sanitizer" # what has threads; the rest of it by hand: ctest --preset tsan -LE 'kernel|crash'
ctest --preset tsan -j "$jobs" -LE 'slow|kernel|crash' \
  -R '^(rt|rpc|store|log|segment|plug|client|vfs|holdfast|svc-[a-z]+|native)\.|^e2e\.(nfs3_procs|nfs3_data|tree)$' \
  -E '\.(crash|kill9|torn|model.*)$' # one thread each, and long

step "tests: dev"
ctest --preset dev -j "$jobs"
if $full; then
  step "fuzz"
  ci/fuzz.sh 60
fi
step "done"
