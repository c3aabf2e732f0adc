#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's examples, run as they are written: its shell blocks that need neither root nor the start-up script, against
a node of the test's own. Only the port, the folder of the programs and the seconds of the bench are replaced."""
import os
import re
import subprocess

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def blocks():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        found = re.findall(r"```sh\n(.*?)```", f.read(), re.DOTALL)
    chosen = [b for b in found if "sudo" not in b and "deploy/up.sh" not in b]
    if len(chosen) < 2:
        raise AssertionError("the README has lost its examples")
    return chosen


def run(block, node):
    text = block.replace("20490", str(node.port)).replace("build/release/bin/", harness.bin_dir() + "/")
    text = text.replace("--seconds 10", "--seconds 1")
    env = dict(os.environ, HOLDFAST_DIR=os.path.join(node.dir, "data"))
    r = subprocess.run(["bash", "-euxc", text], check=False, cwd=ROOT, env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=120)
    print(r.stdout)
    if r.returncode != 0:
        raise AssertionError(f"exit status {r.returncode} of:\n{text}")


def main():
    with harness.Node() as node:
        for block in blocks():
            run(block, node)
    print("ok")


if __name__ == "__main__":
    main()
