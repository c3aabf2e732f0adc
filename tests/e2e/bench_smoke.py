#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`holdfast bench nfs` against a node: every mix runs without errors, asks for what it says, leaves
nothing behind; a server that dies is reported. Not a measurement."""
import json
import os
import subprocess
import sys
import threading

import harness

MIXES = ["null", "getattr", "lookup", "create4k", "sfs", "seqread", "seqwrite"]
SFS = {"GETATTR": 26, "LOOKUP": 24, "READ": 18, "ACCESS": 11, "WRITE": 10, "SETATTR": 4, "READDIRPLUS": 2,
       "READLINK": 1, "READDIR": 1, "FSSTAT": 1}


def bench(node, mix, *more):
    cmd = [os.path.join(harness.bin_dir(), "holdfast"), "--json", "bench", "nfs",
           f"127.0.0.1:{node.port}{node.export}", "--mix", mix, "--connections", "3", "--depth", "5",
           "--seconds", "1", "--file-mib", "16", *more]
    r = subprocess.run(cmd, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return r.returncode, r.stdout, r.stderr


def check(cond, what):
    if not cond:
        raise AssertionError(what)


def one_mix(node, mix):
    rc, out, err = bench(node, mix)
    check(rc == 0, f"exit status {rc}: {err}")
    r = json.loads(out)
    for key in ("mix", "connections", "depth", "seconds", "ops", "ops_per_s", "mean_us", "p50_us", "p99_us",
                "max_us", "errors", "lost", "left_behind", "procedures"):
        check(key in r, f"{key} is missing")
    check(r["ops"] > 0 and r["errors"] == 0 and r["lost"] == 0 and r["left_behind"] == 0, out)
    check(r["p50_us"] <= r["p99_us"] <= r["max_us"], out)
    if mix == "sfs":
        total = r["ops"]
        for name, share in SFS.items():
            got = 100 * r["procedures"][name]["ops"] / total
            check(abs(got - share) < 0.5 + share * 0.1, f"{name}: {got:.2f} % where {share} % are due")
    if mix == "create4k":
        check(r["write_mb_per_s"] > 0, out)


def dies(node):
    killer = threading.Timer(1.0, node.kill)
    killer.start()
    rc, out, err = bench(node, "getattr", "--seconds", "30")
    killer.join()
    check(rc == 1, f"exit status {rc} after the server died: {err}")
    check(json.loads(out)["lost"] > 0, out)
    node.start()


def main():
    tests = [(m, lambda n, m=m: one_mix(n, m)) for m in MIXES]
    tests.append(("a server that dies", dies))
    failed = 0
    print(f"1..{len(tests) + 1}")
    with harness.Node() as node:
        for i, (name, fn) in enumerate(tests, 1):
            try:
                fn(node)
                print(f"ok {i} - {name}", flush=True)
            except AssertionError as e:
                failed += 1
                print(f"# {e}\nnot ok {i} - {name}", flush=True)
        rc, out, err = bench(node, "null", "--mount-port", "1", "--mix", "getattr")
        ok = rc == 3 and "cannot mount" in err
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {len(tests) + 1} - no MOUNT there")
        print("#", node.cli("fsck").strip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
