#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone on Debian 12 to a file system that serves NFS: installs what is missing, builds, starts
# one node in $HOLDFAST_DIR (default ./.holdfast) and says how to mount it. Run again, it finds it running.
#   HOLDFAST_DIR       where everything is kept
#   HOLDFAST_NFS_PORT  port of NFS and MOUNT on 127.0.0.1 (default 20490)
# Any other key of holdfast-node can be set too, for example HOLDFAST_NFS_LISTEN=0.0.0.0:20490.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${HOLDFAST_DIR:-./.holdfast}
port=${HOLDFAST_NFS_PORT:-20490}
bin=$root/build/release/bin
case "${1:-}" in
'') ;;
-h | --help) sed -n '3,7s/^# //p' "$0"; exit 0 ;;
*) echo "up: '$1' is not understood; see --help" >&2; exit 2 ;;
esac
if ! [[ $port =~ ^[0-9]{1,5}$ ]] || ((10#$port < 1 || 10#$port > 65535)); then
  echo "up: HOLDFAST_NFS_PORT='$port' is not a port number (1 to 65535)" >&2
  exit 2
fi
# Asked before the build: nobody should wait for a compiler to learn this.
if ! mkdir -p "$dir/log" 2>/dev/null || ! [ -w "$dir" ] || ! [ -w "$dir/log" ]; then
  echo "up: HOLDFAST_DIR='$dir' cannot be made or written by this user" >&2
  exit 1
fi
dir=$(cd "$dir" && pwd)

say_how() {
  local listen down=deploy/down.sh
  [ -z "${HOLDFAST_DIR:-}" ] || down="HOLDFAST_DIR=$dir $down"
  listen=$("$bin/holdfast" --dir "$dir" status --json | sed -n 's/.*"nfs_listen": *"\([^"]*\)".*/\1/p' | head -1)
  port=${listen##*:}
  cat <<EOF
Holdfast runs, data in $dir. NFSv3 on ${listen}, export /main.

  mount (native): $bin/holdfast mount --node-dir $dir /mnt
  mount (NFS):    mount -t nfs -o vers=3,tcp,nolock,port=$port,mountport=$port 127.0.0.1:/main /mnt
  libnfs:         nfs-ls 'nfs://127.0.0.1/main?nfsport=$port&mountport=$port&version=3'
  status:         $bin/holdfast --dir $dir status
  stop:           $down
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
(cd "$root" && ninja -C build/release -d keeprsp 2>&1 | tail -1 | sed '/^ninja: no work to do/d') ||
  { echo "up: the build failed; run: ninja -C build/release" >&2; exit 1; }

log=$dir/log/node.log
said=$(stat -c %s "$log" 2>/dev/null || echo 0)
HOLDFAST_NFS_LISTEN=${HOLDFAST_NFS_LISTEN:-127.0.0.1:$port} setsid \
  "$bin/holdfast-node" --node-dir "$dir" >>"$log" 2>&1 </dev/null &
pid=$!
deadline=$((SECONDS + 60))
until "$bin/holdfast" --dir "$dir" status --json 2>/dev/null | tr -d ' \n' | grep -q '"name":"nfs","state":"serving"'; do
  if ! kill -0 "$pid" 2>/dev/null; then
    echo "up: the node did not start; $log says:" >&2
    tail -c "+$((said + 1))" "$log" | tail -5 >&2
    tail -1 "$log" | grep -q 'Address already in use' &&
      echo "up: choose another port, for example HOLDFAST_NFS_PORT=$((10#$port + 1)) deploy/up.sh" >&2
    exit 1
  fi
  if [ $SECONDS -ge $deadline ]; then
    echo "up: not serving after 60 s; see $log" >&2
    exit 1
  fi
  sleep 0.05
done
say_how
