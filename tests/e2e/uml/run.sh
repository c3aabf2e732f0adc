#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh NETNS WORK JOB [SECONDS] [MEMORY]: runs the script WORK/JOB in a user-mode Linux guest, which has
# the real kernel NFS client. The guest is an ordinary process; it boots from the host's root file system
# (read-only) in a few seconds. It sees the network namespace NETNS, made here if need be, where the host
# has 10.77.0.1 on tap0 and the guest is 10.77.0.2: a server to be mounted listens there. Needs root and
# the packages user-mode-linux, nfs-common, kmod, iproute2.
# Exit status: the job's; 99 if the guest ended before it said how the job went; 98 if it cannot start.
set -u
ns=$1 work=$(realpath "$2") job=$3 limit=${4:-300} mem=${5:-768M}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in linux.uml ip nsenter; do
  command -v "$tool" >/dev/null || { echo "run.sh: $tool is missing" >&2; exit 98; }
done
mkdir -p /lib/modules # the guest binds its own over it
"$here/net.sh" "$ns" || exit 98
out=$(mktemp)
trap 'rm -f "$out"' EXIT
timeout -k 5 "$limit" nsenter --net="/run/netns/$ns" linux.uml mem="$mem" root=/dev/root rootfstype=hostfs \
  rootflags=/ ro quiet init="$here/init.sh" vec0:transport=tap,ifname=tap0,depth=128,gro=1 \
  con=null con0=null,fd:1 con1=fd:0,fd:1 WORK="$work" JOB="$job" ADDR=10.77.0.2/24 </dev/null >"$out" 2>&1
tr -d '\r' <"$out" | sed -n '/^guest: begin/,$p'
rc=$(tr -d '\r' <"$out" | sed -n 's/^guest: end rc=\([0-9]*\).*/\1/p' | tail -1)
[ -n "$rc" ] || { echo "run.sh: the guest ended early; its last words:"; tail -20 "$out"; exit 99; }
exit "$rc"
