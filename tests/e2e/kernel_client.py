#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernel_client.py [--only node|ganesha] [--keep]: the real Linux kernel NFSv3 client.

Boots a user-mode Linux guest (uml/run.sh) that mounts the server and works on it (uml/job.sh): first
Holdfast, then NFS-Ganesha as a control of the job itself. What the control passes Holdfast must pass. The
POSIX suite takes long and is run on Holdfast only: uml/skips names what NFSv3 cannot do, which the control fails.
Prints TAP. Needs root.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
ADDRESS = "10.77.0.1"
FILES = 2000
OPS = int(os.environ.get("HF_DATACHECK_OPS", "5000"))  # of the data checker: some milliseconds each, the guest is slow


def make_tree(work):
    """2,000 files of many sizes and modes, links among them; the same every time."""
    rng = random.Random(1)
    tree = os.path.join(work, "tree")
    for i in range(FILES):
        d = os.path.join(tree, f"d{i % 40}", f"e{i % 7}")
        os.makedirs(d, exist_ok=True)
        path = os.path.join(d, f"file {i}" if i % 50 == 0 else f"f{i}")
        size = min(int(2 ** rng.uniform(0, 17)), 100000)
        with open(path, "wb") as f:
            f.write(rng.randbytes(size))
        os.chmod(path, 0o644 if i % 3 else 0o755 if i % 2 else 0o400)
        os.utime(path, (1600000000 + i, 1500000000 + i))
    for i in range(0, 100, 5):
        name = f"file {i}" if i % 50 == 0 else f"f{i}"
        link = os.path.join(tree, f"d{i % 40}", f"link{i}")
        os.symlink(f"e{i % 7}/{name}", link)
        os.utime(link, (1400000000 + i, 1400000000 + i), follow_symlinks=False)
    with tarfile.open(os.path.join(work, "tree.tar"), "w") as t:
        t.add(tree, arcname=".")


def make_project(work):
    """A C program of eight files and a Makefile."""
    d = os.path.join(work, "project")
    os.mkdir(d)
    with open(os.path.join(d, "parts.h"), "w") as f:
        f.writelines(f"int part{i}(void);\n" for i in range(7))
    for i in range(7):
        with open(os.path.join(d, f"part{i}.c"), "w") as f:
            f.write(f'#include "parts.h"\nint part{i}(void)\n{{\n    return 1;\n}}\n')
    with open(os.path.join(d, "hello.c"), "w") as f:
        total = " + ".join(f"part{i}()" for i in range(7))
        f.write('#include <stdio.h>\n#include "parts.h"\nint main(void)\n{\n'
                f'    printf("hello from %d files\\n", 1 + {total});\n    return 0;\n}}\n')
    with open(os.path.join(d, "Makefile"), "w") as f:
        f.write("objs := hello.o $(patsubst %,part%.o,0 1 2 3 4 5 6)\n"
                "hello: $(objs)\n\t$(CC) -o $@ $^\n$(objs): parts.h\n")


def run_guest(server, export, work, netns, suite):
    """The job in a guest against a server; {check: passed}."""
    shutil.copy(os.path.join(HERE, "uml", "job.sh"), work)
    shutil.copy(os.path.join(HERE, "uml", "skips"), work)
    for name in ("posix-suite", "datacheck"):
        shutil.copy(os.path.join(os.path.dirname(harness.bin_dir()), "tests", name), work)
    with open(os.path.join(work, "params"), "w") as f:
        f.write(f"SERVER={ADDRESS} PORT={server.port} MOUNTPORT={server.mount_port} EXPORT={export} OPS={OPS} "
                f"SUITE={'yes' if suite else 'no'}\n")
    r = subprocess.run([os.path.join(HERE, "uml", "run.sh"), netns, work, "job.sh", str(420 + OPS // 100)], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    results = {}
    for line in r.stdout.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0] == "result":
            results[words[1]] = words[2] == "ok"
    sys.stdout.writelines(f"# {server.name}: {line}\n" for line in r.stdout.splitlines())
    if r.returncode != 0:
        results["guest"] = False
    sys.stdout.flush()
    return results


def run_node(work, netns):
    with harness.Node(host=ADDRESS, netns=netns) as node:
        node.cli("export", "add", "/uml", "--clients", "10.77.0.0/24", "--squash", "none")
        results = run_guest(node, "/uml", work, netns, True)
        try:
            print("# node:", node.cli("fsck").strip().replace("\n", "\n# "))
            results["fsck"] = True
        except RuntimeError as e:
            print("#", str(e).replace("\n", "\n# "))
            results["fsck"] = False
        if not all(results.values()):
            node.show_log()
        return results


def run_ganesha(work, netns):
    with harness.Ganesha(host=ADDRESS, netns=netns) as ganesha:
        return run_guest(ganesha, ganesha.export, work, netns, False)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--only", choices=["node", "ganesha"])
    p.add_argument("--keep", action="store_true", help="keep the work folder")
    o = p.parse_args()
    work = tempfile.mkdtemp(prefix="hf-kernel.")
    netns = f"hf-{os.getpid()}"
    node = ganesha = None
    try:
        make_tree(work)
        make_project(work)
        subprocess.run([os.path.join(HERE, "uml", "net.sh"), netns], check=True)
        if o.only != "ganesha":
            node = run_node(work, netns)
        if o.only != "node":
            ganesha = run_ganesha(work, netns)
    finally:
        subprocess.run(["ip", "netns", "del", netns], check=False)
        if not o.keep:
            shutil.rmtree(work, ignore_errors=True)
    return report(node, ganesha)


def report(node, ganesha):
    """TAP: a check fails if Holdfast fails what the control passes; without a control, what it fails."""
    checks = list(dict.fromkeys([*(node or {}), *(ganesha or {})]))
    print(f"1..{len(checks) + 1}")
    bad = 0
    for i, name in enumerate(checks, 1):
        peer = ganesha.get(name) if ganesha is not None else None
        ours = node.get(name, False) if node is not None else bool(peer)
        if node is not None and name not in node and peer:
            ours = False
        ok = ours or (ganesha is not None and name in ganesha and not peer)
        note = "" if ours else " # TODO the control fails it, too" if ok else ""
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {i} - {name}{note}")
    enough = len(checks) >= 30
    print(f"{'ok' if enough else 'not ok'} {len(checks) + 1} - the job ran to its end ({len(checks)} checks)")
    return 0 if bad == 0 and enough else 1


if __name__ == "__main__":
    sys.exit(main())
