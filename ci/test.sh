#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that shows that Holdfast works: installs what it needs, builds, checks, runs every test.
#   ci/test.sh           all of it (under 20 minutes on 2 cores)
#   ci/test.sh --quick   unit and protocol tests of the dev build, and the quick checks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=false
case "${1:-}" in
'') ;;
--quick) quick=true ;;
*) sed -n '3,5p' "$0" >&2; exit 2 ;;
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
ctest --preset asan -j "$jobs" -LE 'kernel|crash' # unit tests and the NFS protocol tests against a node

step "tests: dev"
ctest --preset dev -j "$jobs"
step "done"
