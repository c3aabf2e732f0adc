#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_nfs.py [--rounds N] [--seconds S] [--mix M,M] [--dir D]: Holdfast beside NFS-Ganesha.

Starts a node and Ganesha (over a local folder) on the same file system of the same machine and runs
`holdfast bench nfs` against them by turns, 4 connections x depth 8, so that both meet the same noise.
Prints the median of each mix and the ratio. Exit status 1 if calls failed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402

MIXES = ["getattr", "lookup", "sfs", "create4k"]
WANTED = {"getattr": 1.5, "lookup": 1.5, "sfs": 1.5, "create4k": 2.0}


def bench(server, mix, o):
    cmd = [os.path.join(harness.bin_dir(), "holdfast"), "--json", "bench", "nfs",
           f"127.0.0.1:{server.port}{server.export}", "--mount-port", str(server.mount_port), "--mix", mix,
           "--connections", str(o.connections), "--depth", str(o.depth), "--seconds", str(o.seconds)]
    r = subprocess.run(cmd, check=False, stdout=subprocess.PIPE, text=True)
    if r.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(cmd)}: exit status {r.returncode}")
    return json.loads(r.stdout)


def table(runs, o):
    print(f"\nNFSv3, {o.connections} connections x depth {o.depth}, median of {o.rounds} rounds of "
          f"{o.seconds} s, by turns\n")
    print(f"{'mix':10} {'Holdfast /s':>12} {'Ganesha /s':>12} {'ratio':>7} {'wanted':>7}   "
          f"{'p50 us':>15} {'p99 us':>15} {'errors':>9}")
    errors = 0
    for mix in o.mix:
        h, g = runs["node", mix], runs["ganesha", mix]
        med = lambda rs, k: statistics.median(r[k] for r in rs)  # noqa: E731
        he, ge = (sum(r["errors"] + r["lost"] for r in rs) for rs in (h, g))
        errors += he
        ratio = med(h, "ops_per_s") / med(g, "ops_per_s")
        print(f"{mix:10} {med(h, 'ops_per_s'):12.0f} {med(g, 'ops_per_s'):12.0f} {ratio:7.2f} "
              f"{WANTED.get(mix, 0):7.1f}   {med(h, 'p50_us'):7.0f}/{med(g, 'p50_us'):<7.0f} "
              f"{med(h, 'p99_us'):7.0f}/{med(g, 'p99_us'):<7.0f} {he:4}/{ge:<4}")
    return errors


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=int, default=4)
    p.add_argument("--connections", type=int, default=4)
    p.add_argument("--depth", type=int, default=8)
    p.add_argument("--mix", type=lambda s: s.split(","), default=MIXES)
    p.add_argument("--dir", help="where both keep their files (default: the temporary folder)")
    o = p.parse_args()
    runs = {}
    with harness.Node(base=o.dir) as node, harness.Ganesha(base=o.dir) as ganesha:
        for i in range(o.rounds):
            for mix in o.mix:
                for server in (node, ganesha) if i % 2 == 0 else (ganesha, node):
                    r = bench(server, mix, o)
                    runs.setdefault((server.name, mix), []).append(r)
                    print(f"round {i + 1} {mix:9} {server.name:8} {r['ops_per_s']:10.0f} /s", flush=True)
    return 1 if table(runs, o) else 0


if __name__ == "__main__":
    sys.exit(main())
