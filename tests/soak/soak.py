#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory over a long mixed load: a node serves NFS and a FUSE mount at the same time for --minutes; the resident
memory of both processes is sampled and must be flat after the warm-up.

    soak.py [--minutes 30] [--warm-up 0.2] [--allow 15]

Prints a row a minute and ends with status 1 if the highest resident size after the warm-up exceeds that at its end by
more than --allow per cent and 32 MiB."""
import argparse
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402


def rss_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


class Files(threading.Thread):
    """Programs on the mount: files of all sizes written, read, renamed, listed, removed; half of the work is on new
    names, so caches that grow with the names would show."""

    def __init__(self, top, seed, stop):
        super().__init__(daemon=True)
        self.top, self.random, self.stop, self.ops, self.error = top, random.Random(seed), stop, 0, None
        self.dir = os.path.join(top, f"s{seed}")
        os.mkdir(self.dir)

    def run(self):
        try:
            while not self.stop.is_set():
                self.round()
        except BaseException as e:  # noqa: BLE001 - told by the main thread
            self.error = e

    def round(self):
        r, names = self.random, []
        for _ in range(40):
            name = os.path.join(self.dir, f"f{r.getrandbits(48):x}")
            data = r.randbytes(r.choice((0, 100, 4096, 9000, 70000, 600000, 5 << 20 if r.random() < 0.1 else 10)))
            with open(name, "wb") as f:
                f.write(data)
                if r.random() < 0.3:
                    os.fsync(f.fileno())
            names.append((name, data))
            self.ops += 1
        sub = os.path.join(self.dir, f"d{r.getrandbits(32):x}")
        os.mkdir(sub)
        for name, data in names:
            with open(name, "rb") as f:
                if f.read() != data:
                    raise AssertionError(f"{name} differs")
            if r.random() < 0.3:
                os.setxattr(name, "user.soak", b"x" * r.randrange(1, 2000))
            os.rename(name, os.path.join(sub, os.path.basename(name)))
            self.ops += 3
        for name in os.listdir(sub):
            os.stat(os.path.join(sub, name))
            os.unlink(os.path.join(sub, name))
            self.ops += 2
        os.rmdir(sub)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--minutes", type=float, default=30)
    ap.add_argument("--warm-up", type=float, default=0.2, help="share of the time")
    ap.add_argument("--allow", type=float, default=15, help="per cent")
    a = ap.parse_args()
    seconds, begin, stop, samples = a.minutes * 60, time.monotonic(), threading.Event(), []
    with harness.Node() as node, harness.Mount(node) as m:
        loads = [Files(m.dir, i, stop) for i in range(3)]
        for t in loads:
            t.start()
        nfs = subprocess.Popen([os.path.join(harness.bin_dir(), "holdfast"), "bench", "nfs", f"127.0.0.1:{node.port}/main",
                                "--mix", "sfs", "--seconds", str(int(seconds)), "--connections", "2", "--depth", "4"],
                               stdout=subprocess.DEVNULL)
        mount_pid = m.pids()[0]
        print("  minute   node MiB   mount MiB   operations")
        while (now := time.monotonic() - begin) < seconds:
            samples.append((now, rss_mib(node.proc.pid), rss_mib(mount_pid)))
            if int(now / 60) != int((now - 5) / 60) or len(samples) == 1:
                print(f"{now / 60:8.1f} {samples[-1][1]:10.1f} {samples[-1][2]:11.1f} {sum(t.ops for t in loads):12d}",
                      flush=True)
            for t in loads:
                if t.error:
                    raise t.error
            time.sleep(min(5, max(0.0, seconds - now)))
        stop.set()
        for t in loads:
            t.join(120)
        if nfs.wait(120) != 0:
            raise RuntimeError("the NFS load met errors")
        m.umount()
        print(node.cli("fsck").strip().splitlines()[-1])
    bad = False
    for i, who in ((1, "node"), (2, "mount")):
        warm = [s[i] for s in samples if s[0] <= seconds * a.warm_up][-1]
        most = max(s[i] for s in samples if s[0] > seconds * a.warm_up)
        grew = most > warm * (1 + a.allow / 100) and most > warm + 32
        bad |= grew
        print(f"{who}: {warm:.1f} MiB after the warm-up, at most {most:.1f} MiB later: {'GREW' if grew else 'flat'}")
    print(f"{0 if bad else 1} passed, {1 if bad else 0} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
