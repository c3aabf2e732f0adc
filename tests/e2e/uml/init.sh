#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest (see run.sh). The host's root file system is mounted read-only; what programs
# write to is tmpfs; the host folder WORK is at /mnt/work, writable. Runs /mnt/work/JOB and powers off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TERM=dumb LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for word in $(cat /proc/cmdline); do
  case $word in WORK=* | JOB=* | ADDR=*) export "${word?}" ;; esac
done
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for d in /dev/shm /run /mnt /var/tmp /var/lib/nfs; do mount -t tmpfs tmpfs "$d"; done
mkdir -p /mnt/work /mnt/nfs /var/lib/nfs/sm /var/lib/nfs/rpc_pipefs
mount -t hostfs none /mnt/work -o "$WORK"
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp /var/tmp
# the guest kernel's modules (nfs and what it needs) are not where modprobe looks
mount --bind /usr/lib/uml/modules /lib/modules
ip link set lo up
ip link set vec0 up
ip addr add "$ADDR" dev vec0
cd /mnt/work || echo "guest: no folder $WORK"
echo "guest: begin, Linux $(uname -r)"
bash "/mnt/work/$JOB" 2>&1
echo "guest: end rc=$?"
sync
echo o >/proc/sysrq-trigger
sleep 10
