#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_native.py [--rounds N] [--mib M] [--files N] [--million N] [--dir D]: FUSE and libholdfast beside the
local directory.

Starts a node and a mount of it, and by turns, so that all meet the same noise, runs durable creates of empty files
through libholdfast, small files (create, 4 KiB, fsync, close) through FUSE and on the local directory, and a file
written and read in pieces of 1 MiB through libholdfast, through FUSE and locally: written with an fsync at the end,
read cold (page caches dropped) and cached. With --million N also a directory of N files: the rate of its creation,
and `ls -l` of it through FUSE. Prints medians and the ratio to the local directory. Needs root and /dev/fuse.
Every figure has a column cpu: processor seconds of node and mount for the work, which noise of others moves less.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402

MIB = 1 << 20
WANTED = {("write", "fuse"): 0.7, ("read cold", "fuse"): 0.7, ("read cached", "fuse"): 0.7,
          ("write", "library"): 0.9, ("read cold", "library"): 0.9, ("read cached", "library"): 0.9}


def cpu_seconds(pids):
    """Processor time of the processes so far."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def thread_seconds(pid, name):
    """Processor time of the threads of that name."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii") as f:
            head, tail = f.read().rsplit(")", 1)
        if head.split("(", 1)[1] == name:
            fields = tail.split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3\n")


def write_file(path, mib):
    """MiB/s, the fsync included."""
    piece = os.urandom(MIB)
    begin = time.monotonic()
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
    for _ in range(mib):
        if os.write(fd, piece) != MIB:
            raise RuntimeError(f"{path}: a short write")
    os.fsync(fd)
    os.close(fd)
    return mib / (time.monotonic() - begin)


def read_file(path, mib):
    buf = bytearray(MIB)
    got = 0
    begin = time.monotonic()
    fd = os.open(path, os.O_RDONLY)
    while n := os.readv(fd, [buf]):
        got += n
    os.close(fd)
    if got != mib * MIB:
        raise RuntimeError(f"{path}: {got} bytes, not {mib} MiB")
    return mib / (time.monotonic() - begin)


class Run:
    def __init__(self, node, mount, local, o):
        self.node, self.mount, self.local, self.o = node, mount, local, o
        self.values = {}
        self.pids = [node.proc.pid] + mount.pids()
        self.errors = 0
        tests = os.path.join(os.path.dirname(harness.bin_dir()), "tests")
        self.small = self.compiled(os.path.join(tests, "fuse_files"))

    def compiled(self, path):
        """The release preset builds no tests: fuse_files is one file and compiled when it is not there."""
        if os.path.exists(path):
            return path
        src = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuse_files.c")
        path = os.path.join(self.local, "..", "fuse_files")
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-pthread", "-o", path, src], check=True)
        return path

    def put(self, what, where, fn):
        before = cpu_seconds(self.pids)
        value = fn()
        cpu = cpu_seconds(self.pids) - before
        self.values.setdefault((what, where), []).append((value, cpu))
        print(f"{what:12} {where:8} {value:10.0f}   cpu {cpu:6.2f} s", flush=True)

    def native(self, mix, *more):
        r = subprocess.run([os.path.join(harness.bin_dir(), "holdfast"), "--dir", self.node.data, "--json", "bench",
                            "native", "--mix", mix, *more], check=False, stdout=subprocess.PIPE, text=True)
        if r.returncode not in (0, 1):
            raise RuntimeError(f"bench native --mix {mix}: exit status {r.returncode}")
        out = json.loads(r.stdout)
        self.errors += out["errors"]
        return out

    def files(self, base):
        d = tempfile.mkdtemp(dir=base)
        try:
            out = subprocess.run([self.small, "--dir", d, "--threads", "8", "--files", str(self.o.files)], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        finally:
            shutil.rmtree(d)
        return float(out.split()[-2])

    def library(self, mix):
        """MiB/s. seqread writes its file first: cold only if somebody drops the caches between, which the bench
        cannot do; what it reads is then in the page cache of the node."""
        return self.native(mix, "--file-mib", str(self.o.mib))["mb_per_s"] * 1e6 / MIB

    def round(self):
        o = self.o
        places = {"local": os.path.join(self.local, "big"), "fuse": self.mount.path("big")}
        self.put("create", "library", lambda: self.native("create", "--inflight", "64", "--seconds",
                                                          str(o.seconds))["ops_per_s"])
        for where, base in (("fuse", self.mount.dir), ("local", self.local)):
            self.put("files 4k", where, lambda base=base: self.files(base))
        for where, path in places.items():
            self.put("write", where, lambda path=path: write_file(path, o.mib))
        self.put("write", "library", lambda: self.library("seqwrite"))
        for where, path in places.items():
            drop_caches()
            self.put("read cold", where, lambda path=path: read_file(path, o.mib))
            self.put("read cached", where, lambda path=path: read_file(path, o.mib))
        self.put("read cached", "library", lambda: self.library("seqread"))
        for path in places.values():
            os.unlink(path)

    def million(self, n):
        """About n files in one directory, made through libholdfast; then listings of it."""
        pid = self.node.proc.pid
        before = thread_seconds(pid, "meta-0")
        out = self.native("create", "--inflight", "64", "--seconds", str(max(10, n // 20000)), "--keep")
        cpu = thread_seconds(pid, "meta-0") - before
        made = out["ops"]
        print(f"\n{made} files in one directory: {out['ops_per_s']:.0f}/s, {cpu / made * 1e6:.1f} us of the shard's "
              f"thread each; first tenth {out['first_tenth_per_s']:.0f}/s, last {out['last_tenth_per_s']:.0f}/s")
        d = next(self.mount.path(x) for x in os.listdir(self.mount.dir) if x.startswith(".bench-native-"))
        for flags in ("-l", "-lU", "-U"):
            drop_caches()
            begin = time.monotonic()
            with open(os.path.join(self.local, "ls"), "wb") as f:
                try:
                    subprocess.run(["ls", flags, d], check=True, stdout=f, timeout=600)
                except subprocess.TimeoutExpired:
                    print(f"ls {flags}: not within 600 s")
                    continue
            print(f"ls {flags:4} {time.monotonic() - begin:6.1f} s")


def table(run, o):
    print(f"\nmedian of {o.rounds} rounds by turns; files of {o.mib} MiB; rates in 1/s and MiB/s\n")
    print(f"{'what':12} {'where':8} {'rate':>10} {'local':>10} {'ratio':>7} {'wanted':>7} {'cpu s':>7}")
    for (what, where), runs in sorted(run.values.items()):
        rate = statistics.median(v for v, _ in runs)
        local = run.values.get((what, "local"))
        base = statistics.median(v for v, _ in local) if local else 0
        print(f"{what:12} {where:8} {rate:10.0f} {base:10.0f} {rate / base if base else 0:7.2f} "
              f"{WANTED.get((what, where), 0):7.1f} {statistics.median(c for _, c in runs):7.2f}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=int, default=4, help="of creates")
    p.add_argument("--mib", type=int, default=1024)
    p.add_argument("--files", type=int, default=20000)
    p.add_argument("--million", type=int, default=0, help="also a directory of about so many files")
    p.add_argument("--dir", help="where all keep their files (default: the temporary folder)")
    o = p.parse_args()
    with harness.Node(base=o.dir) as node, harness.Mount(node) as mount:
        local = os.path.join(node.dir, "local")
        os.mkdir(local)
        run = Run(node, mount, local, o)
        for i in range(o.rounds):
            print(f"round {i + 1}", flush=True)
            run.round()
        table(run, o)
        if o.million:
            run.million(o.million)
        mount.umount()
    return 1 if run.errors else 0


if __name__ == "__main__":
    sys.exit(main())
