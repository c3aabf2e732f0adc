#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# net.sh NETNS: makes the network namespace of a guest with tap0 = 10.77.0.1/24, if it is not there.
# Remove it with `ip netns del NETNS`.
set -eu
ns=$1
ip netns list | grep -qw "$ns" || ip netns add "$ns"
in_ns() { nsenter --net="/run/netns/$ns" "$@"; }
in_ns ip link set lo up
if ! in_ns ip link show tap0 >/dev/null 2>&1; then
  in_ns ip tuntap add dev tap0 mode tap
  in_ns ip addr add 10.77.0.1/24 dev tap0
  in_ns ip link set tap0 up
fi
