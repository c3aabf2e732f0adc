#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the model test against a node of its own, and checks that what is left is sound.
HF_MODEL_OPS: how many operations (50000)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402


def main():
    program, *more = sys.argv[1:]
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # the order of things is tested, not the disk
    with harness.Node(base=base) as node:
        url = f"ipc://{os.path.realpath(node.data)}/run/meta-0.sock"
        rc = subprocess.run([program, "--url", url, "--ops", os.environ.get("HF_MODEL_OPS", "50000"), *more], check=False).returncode
        out = node.cli("fsck").strip().splitlines()[-1]
        print(out)
        if rc == 0 and ": 0 problems" not in out:
            rc = 1
    return rc


if __name__ == "__main__":
    sys.exit(main())
