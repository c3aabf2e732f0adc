#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone on Debian 12 to a file system that serves NFS: installs what is missing, builds, starts
# one node in $HOLDFAST_DIR (default ./.holdfast) and says how to mount it. Run again, it finds it running.
#   HOLDFAST_DIR       where everything is kept
#   HOLDFAST_NFS_PORT  port of NFS and MOUNT on 127.0.0.1 (default 20490)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${HOLDFAST_DIR:-./.holdfast}
port=${HOLDFAST_NFS_PORT:-20490}
bin=$root/build/release/bin
case "$port" in
'' | *[!0-9]*) echo "up: HOLDFAST_NFS_PORT='$port' is not a port number" >&2; exit 2 ;;
esac
case "${1:-}" in
'') ;;
-h | --help) sed -n '3,6p' "$0"; exit 0 ;;
*) echo "up: '$1' is not understood; see --help" >&2; exit 2 ;;
esac

say_how() {
  local listen
  listen=$("$bin/holdfast" --dir "$dir" status --json | sed -n 's/.*"nfs_listen": *"\([^"]*\)".*/\1/p' | head -1)
  port=${listen##*:}
  cat <<EOF
Holdfast serves NFSv3 on ${listen}, export /main, data in $(cd "$dir" && pwd).

  mount (Linux):  mount -t nfs -o vers=3,tcp,nolock,port=$port,mountport=$port 127.0.0.1:/main /mnt
  libnfs:         nfs-ls 'nfs://127.0.0.1/main?nfsport=$port&mountport=$port&version=3'
  status:         $bin/holdfast --dir $dir status
  stop:           deploy/down.sh
EOF
}

running() {
  [ -x "$bin/holdfast" ] && "$bin/holdfast" --dir "$dir" status --json >/dev/null 2>&1
}

if running; then
  echo "up: already running"
  say_how
  exit 0
fi

# "Is it built?" costs a tenth of a second when nothing changed; installing is asked only before a build.
if [ ! -e "$root/build/release/build.ninja" ]; then
  "$root/deploy/install-deps.sh" build
  (cd "$root" && cmake --preset release >/dev/null)
fi
(cd "$root" && ninja -C build/release -d keeprsp 2>&1 | tail -1) ||
  { echo "up: the build failed; run: ninja -C build/release" >&2; exit 1; }

mkdir -p "$dir/log"
log=$dir/log/node.log
HOLDFAST_NFS_LISTEN=${HOLDFAST_NFS_LISTEN:-127.0.0.1:$port} setsid \
  "$bin/holdfast-node" --node-dir "$dir" >>"$log" 2>&1 </dev/null &
pid=$!
deadline=$((SECONDS + 60))
until "$bin/holdfast" --dir "$dir" status --json 2>/dev/null | tr -d ' \n' | grep -q '"name":"nfs","state":"serving"'; do
  if ! kill -0 "$pid" 2>/dev/null; then
    echo "up: the node did not start; $log says:" >&2
    tail -5 "$log" >&2
    exit 1
  fi
  if [ $SECONDS -ge $deadline ]; then
    echo "up: not serving after 60 s; see $log" >&2
    exit 1
  fi
  sleep 0.05
done
say_how
