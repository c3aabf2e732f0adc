#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Holdfast needs from Debian 12 (bookworm) and nothing else.
#   deploy/install-deps.sh build   what building and running needs (default)
#   deploy/install-deps.sh test    what the tests need besides
#   deploy/install-deps.sh all     both
# Quick when everything is there. Needs root or sudo for what is missing.
set -euo pipefail

build=(build-essential cmake ninja-build pkg-config ccache rpcsvc-proto
  libevent-dev libnng-dev liblmdb-dev protobuf-c-compiler protobuf-compiler libprotobuf-c-dev
  libtirpc-dev libcyaml-dev libyaml-dev libjansson-dev libisal-dev libsodium-dev
  # the product's list; what comes next (Kafka, FUSE, policies, TLS) builds on these
  librdkafka-dev libfuse3-dev libsqlite3-dev libssl-dev)
test=(libcriterion-dev libnfs-dev libnfs-utils python3 git
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev cppcheck
  nfs-ganesha nfs-ganesha-vfs rpcbind user-mode-linux nfs-common kmod iproute2 stress-ng fio acl attr fuse3
  unicode-data)

case "${1:-build}" in
build) want=("${build[@]}") ;;
test) want=("${test[@]}") ;;
all) want=("${build[@]}" "${test[@]}") ;;
*)
  sed -n '3,7s/^# //p' "$0" >&2
  exit 2
  ;;
esac

missing=()
for p in "${want[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null)" = "ii " ] || missing+=("$p")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "install-deps: everything is installed (${#want[@]} packages)"
  exit 0
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    echo "install-deps: missing: ${missing[*]}; run this as root" >&2
    exit 1
  }
  sudo=(sudo)
fi
echo "install-deps: installing ${missing[*]}"
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# Packages must not start daemons of their own: the tests start what they need, where they need it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
  "${sudo[@]}" chmod 755 "$policy"
  trap '"${sudo[@]}" rm -f "$policy"' EXIT
fi
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  "${missing[@]}" >/dev/null
