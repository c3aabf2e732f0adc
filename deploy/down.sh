#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stops the node that deploy/up.sh started in $HOLDFAST_DIR (default ./.holdfast): requests in flight are
# answered, everything is on disk when this returns.
set -euo pipefail

case "${1:-}" in
'') ;;
-h | --help) sed -n '3,4s/^# //p' "$0"; exit 0 ;;
*) echo "down: '$1' is not understood; see --help" >&2; exit 2 ;;
esac
dir=${HOLDFAST_DIR:-./.holdfast}
lock=$dir/lock
pid=$(head -1 "$lock" 2>/dev/null || true)
if [ -z "$pid" ] || flock -n "$lock" true 2>/dev/null; then
  echo "down: nothing runs in $dir"
  exit 0
fi
kill -TERM "$pid"
deadline=$((SECONDS + 60))
while ! flock -n "$lock" true 2>/dev/null; do
  if [ $SECONDS -ge $deadline ]; then
    echo "down: process $pid has not stopped after 60 s; see $dir/log/node.log" >&2
    exit 1
  fi
  sleep 0.05
done
echo "down: stopped"
