#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs in the guest, as root, in the folder that the host shares: what people do on a mounted file system.
# ./params sets SERVER PORT MOUNTPORT EXPORT, OPS of datacheck, SUITE: yes or no. Each check prints "result NAME ok|FAILED SECONDS"; the exit
# status is 0 when all were run, whatever they said: the host compares.
set -u
. ./params
work=$PWD
stressors="access chmod chown dentry dir dup fallocate fcntl filename flock fstat getdent iomix link locka
  lockf lockofd mknod open rename symlink touch utime"

do_mount() {
  mount -t nfs -o "vers=3,tcp,mountproto=tcp,nolock,port=$PORT,mountport=$MOUNTPORT,timeo=100" \
    "$SERVER:$EXPORT" /mnt/nfs
}

# Unmounting throws the client's caches away: what is read afterwards comes from the server.
remount() { cd / && umount /mnt/nfs && do_mount && cd /mnt/nfs/test; }

check() {
  local name=$1 t0=$SECONDS
  shift
  if ("$@") >"/tmp/out" 2>&1; then
    echo "result $name ok $((SECONDS - t0))"
  else
    echo "result $name FAILED $((SECONDS - t0))"
    tail -15 /tmp/out | sed "s/^/  $name: /"
  fi
}

untar() { mkdir tree && tar -C tree -xf "$work/tree.tar"; }
compare() { [ "$(find tree -type f | wc -l)" -ge 2000 ] && diff -r --no-dereference tree "$work/tree"; }
attributes() { # modes, times, links as tar has them
  (cd tree && find . -printf '%p %y %m %s %T@ %l\n' | grep -v '^\. ' | sort) | sed '/ d /s/ [0-9]* [0-9.]* $//' >/tmp/a
  (cd "$work/tree" && find . -printf '%p %y %m %s %T@ %l\n' | grep -v '^\. ' | sort) | sed '/ d /s/ [0-9]* [0-9.]* $//' >/tmp/b
  diff /tmp/a /tmp/b
}
compile() { cp -r "$work/project" . && make -C project && [ "$(project/hello)" = "hello from 8 files" ]; }
run_fio() {
  fio --name=v --directory=. --size=24m --rw=randwrite --bs=4k-128k --verify=crc32c --verify_fatal=1 \
    --ioengine=psync --fsync=64 "$@"
}
posix() { # small things programs rely on
  set -e
  mkdir p && cd p
  echo one >a && ln a b && mv a c && [ "$(cat b c)" = "one
one" ]
  exec 7>open && rm open && echo still >&7 && exec 7>&- # written after its removal
  [ -z "$(ls -A | grep -v '^[bc]$')" ]
  head -c 300000 /dev/urandom >big && cp big big2 && cmp big big2 && truncate -s 100 big2
  truncate -s 300000 big2 && [ "$(tail -c 299900 big2 | tr -d '\0' | wc -c)" = 0 ]
  mkdir -p x/y && ! rmdir x 2>/dev/null && touch -d @1000000000.123456789 big
  [ "$(stat -c %Y big)" = 1000000000 ]
  for i in $(seq 300); do echo "$i" >"f$i"; done && [ "$(ls | wc -l)" = 305 ]
  rm -r ../p
}
# The POSIX suite, without what NFSv3 or the kernel's client of it cannot do: the control fails every case in ./skips.
suite() {
  local skip=()
  while read -r pattern why; do [ -z "$pattern" ] || skip+=(--skip "$pattern=$why"); done <"$work/skips"
  "$work/posix-suite" --dir . "${skip[@]}" >/tmp/suite
  local rc=$?
  grep -Ev '^ok ' /tmp/suite | tail -60 >"$work/suite.out"
  return "$rc"
}
data() { "$work/datacheck" --quiet --no-punch --ops "$OPS" data; }
stress() { stress-ng --temp-path . "--$1" 1 --timeout 1 --verify --metrics-brief; }
cleanup() { cd /mnt/nfs && rm -rf test && [ ! -e test ]; }

if ! do_mount; then
  echo "result mount FAILED 0"
  exit 1
fi
echo "result mount ok 0"
mkdir /mnt/nfs/test && cd /mnt/nfs/test || exit 1
check untar untar
remount
check compare compare
check attributes attributes
check compile compile
check fio-buffered run_fio
check fio-direct run_fio --direct=1
check posix posix
if [ "$SUITE" = yes ]; then check suite suite; fi
if [ "$SUITE" = yes ]; then sed 's/^/  suite: /' "$work/suite.out"; fi
check datacheck data
for s in $stressors; do check "stress-$s" stress "$s"; done
remount
check compare-again compare
check cleanup cleanup
cd / && umount /mnt/nfs
