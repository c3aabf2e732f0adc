#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The FUSE mount against a real node: programs' calls, a tree compared by checksum here and over NFS, two mounts of
one file system, and what happens when the node or the mount is killed. Needs root and /dev/fuse."""
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import harness

SOURCE = "/usr/include"
TREE_FILES = 2000


def put(path, data, sync=False):
    with open(path, "wb") as f:
        f.write(data)
        if sync:
            f.flush()
            os.fsync(f.fileno())


def get(path):
    with open(path, "rb") as f:
        return f.read()


def sum_of(path):
    return hashlib.sha256(get(path)).hexdigest()


def fsck(node):
    out = node.cli("fsck")
    assert ": 0 problems" in out, out


def test_calls(node):
    with harness.Mount(node) as m:
        put(m.path("a"), b"hello\n")
        assert get(m.path("a")) == b"hello\n"
        os.mkdir(m.path("d"), 0o750)
        assert os.stat(m.path("d")).st_mode & 0o7777 == 0o750
        os.rename(m.path("a"), m.path("d/b"))
        os.link(m.path("d/b"), m.path("c"))
        assert os.stat(m.path("c")).st_nlink == 2
        os.symlink("d/b", m.path("l"))
        assert os.readlink(m.path("l")) == "d/b" and get(m.path("l")) == b"hello\n"
        assert sorted(os.listdir(m.dir)) == ["c", "d", "l"]
        big = random.Random(1).randbytes(9 << 20)
        put(m.path("big"), big)
        assert os.stat(m.path("big")).st_size == len(big)
        assert get(m.path("big")) == big
        with open(m.path("big"), "r+b") as f:
            f.seek(5 << 20)
            f.write(b"x" * 100)
            f.truncate(6 << 20)
        assert get(m.path("big")) == big[:5 << 20] + b"x" * 100 + big[(5 << 20) + 100:6 << 20]
        os.utime(m.path("c"), ns=(-5, 4102444800_000000001))
        assert os.stat(m.path("c")).st_mtime_ns == 4102444800_000000001
        assert os.stat(m.path("c")).st_atime_ns == -5
        assert os.statvfs(m.dir).f_bavail > 0
        m.umount()
        assert not os.path.ismount(m.dir)
        harness.wait_for("the mount's process ends", lambda: not m.pids(), 20)
    with harness.Mount(node) as m:
        assert get(m.path("d/b")) == b"hello\n"
        subprocess.run(["rm", "-r", m.path("d"), m.path("c"), m.path("l"), m.path("big")], check=True)
        assert os.listdir(m.dir) == []
        m.umount()


def some_files():
    found = []
    for top, _, names in os.walk(SOURCE):
        found += [os.path.relpath(os.path.join(top, n), SOURCE) for n in names
                  if os.path.isfile(os.path.join(top, n)) and not os.path.islink(os.path.join(top, n))]
        if len(found) > TREE_FILES:
            break
    return found


def test_tree(node):
    files = some_files()
    with harness.Mount(node) as m:
        for f in files:
            os.makedirs(os.path.dirname(m.path("tree", f)), exist_ok=True)
            put(m.path("tree", f), get(os.path.join(SOURCE, f)))
        sums = {f: sum_of(os.path.join(SOURCE, f)) for f in files}
        assert all(sum_of(m.path("tree", f)) == sums[f] for f in files)
        for f in files[::97]:  # the same bytes over NFS, by another name
            os.link(m.path("tree", f), m.path("sample"))
            url = f"nfs://127.0.0.1/main/sample?nfsport={node.port}&mountport={node.port}&version=3"
            data = subprocess.run(["nfs-cat", url], stdout=subprocess.PIPE, check=True, timeout=60).stdout
            assert hashlib.sha256(data).hexdigest() == sums[f], f
            os.unlink(m.path("sample"))
        m.umount()
    node.stop()
    node.start()
    with harness.Mount(node) as m:
        assert all(sum_of(m.path("tree", f)) == sums[f] for f in files)
        subprocess.run(["rm", "-r", m.path("tree")], check=True)
        m.umount()
    fsck(node)


def test_two_mounts(node):
    with harness.Mount(node, "-o", "attr_timeout=0,entry_timeout=0") as a, harness.Mount(node, "-o", "attr_timeout=0,entry_timeout=0") as b:
        for i in range(50):  # close-to-open
            data = (b"%d" % i) * (1 + i * 997)
            put(a.path("f"), data)
            assert get(b.path("f")) == data
            put(b.path("f"), data[::-1])
            assert get(a.path("f")) == data[::-1]
        with open(a.path("f"), "rb", buffering=0) as f:  # unlinked over there, open here
            want = f.read(1 << 20)
            os.unlink(b.path("f"))
            f.seek(0)
            assert f.read(1 << 20) == want
            assert os.fstat(f.fileno()).st_nlink == 0
            assert not os.path.exists(a.path("f"))
        os.mkdir(a.path("d"))
        os.rename(b.path("d"), b.path("e"))
        assert os.listdir(a.dir) == ["e"]
        os.rmdir(a.path("e"))
        appends(a, b)
        a.umount()
        b.umount()
    fsck(node)


def appends(a, b):
    """Two programs on two mounts append records: each is there once and whole."""
    def work(m, who):
        fd = os.open(m.path("log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for i in range(300):
            assert os.write(fd, f"{who}{i:06d}".encode().ljust(99, b".") + b"\n") == 100
        os.close(fd)
    threads = [threading.Thread(target=work, args=x) for x in ((a, "a"), (b, "b"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    lines = get(a.path("log")).split(b"\n")[:-1]
    assert len(lines) == 600 and all(len(x) == 99 for x in lines), len(lines)
    for who in (b"a", b"b"):
        assert [int(x[1:7]) for x in lines if x[:1] == who] == list(range(300))
    os.unlink(a.path("log"))


def write_until_told(top, k):
    """A program of its own (with files open on the mount, the test could not start a node: its child would close them
    first, and wait for the node): says the name and size of each file that it has fsynced."""
    i = 0
    while True:
        name = f"k{k}-{i}"
        size = random.Random(name).choice((100, 5000, 20000, 300000))
        put(os.path.join(top, name), random.Random(name).randbytes(size), sync=True)
        print(name, size, flush=True)
        i += 1


def test_node_killed(node):
    """What fsync has acknowledged is there after kill -9; programs go on."""
    done = []

    def collect(p):
        for line in p.stdout:
            if line.endswith("\n"):  # else it was cut off by the end
                name, size = line.split()
                done.append((name, int(size)))

    with harness.Mount(node) as m:
        writers = [subprocess.Popen([sys.executable, __file__, "--write", m.dir, str(k)], stdout=subprocess.PIPE, text=True)
                   for k in range(4)]
        threads = [threading.Thread(target=collect, args=(p,), daemon=True) for p in writers]
        for t in threads:
            t.start()
        for _ in range(4):
            n = len(done)
            harness.wait_for("files are written", lambda n=n: len(done) > n + 40, 60)
            node.kill()
            node.start()
        n = len(done)
        harness.wait_for("files are written", lambda: len(done) > n + 40, 60)
        for p in writers:
            assert p.poll() is None, "a program met an error"
            p.kill()
            p.wait(60)
        for t in threads:
            t.join(60)
        m.umount()
    with harness.Mount(node) as m:
        for name, size in done:
            assert get(m.path(name)) == random.Random(name).randbytes(size), name
        for name in os.listdir(m.dir):
            os.unlink(m.path(name))
        m.umount()
    fsck(node)


def test_mount_killed(node):
    with harness.Mount(node) as m, harness.Mount(node) as other:
        f = open(m.path("open"), "wb")
        f.write(b"x" * 100000)
        f.flush()
        os.fsync(f.fileno())
        os.unlink(other.path("open"))
        put(m.path("kept"), b"y" * 70000, sync=True)
        m.kill()
        try:
            f.close()
        except OSError:
            pass
        assert get(other.path("kept")) == b"y" * 70000
        os.unlink(other.path("kept"))
        other.umount()
    fsck(node)


def test_still_open(node):
    """A mount with open files ends when it is asked twice: refused first, then detached."""
    with harness.Mount(node) as m:
        f = open(m.path("f"), "wb")
        f.write(b"z" * 5000)
        f.flush()
        assert subprocess.run(["umount", m.dir], stderr=subprocess.DEVNULL, check=False).returncode != 0
        subprocess.run(["umount", "-l", m.dir], check=True)
        f.close()
        harness.wait_for("the mount's process ends", lambda: not m.pids(), 30)
    with harness.Mount(node) as m:
        assert get(m.path("f")) == b"z" * 5000
        os.unlink(m.path("f"))
        m.umount()


def test_mounted_by_node(_):
    """A node with fuse.mount mounts, unmounts when it stops, and does not complain that somebody did."""
    with tempfile.TemporaryDirectory(prefix="hf-mount.") as top, harness.Node(conf=f"fuse:\n  mount: {top}\n") as node:
        harness.wait_for("the node mounts", lambda: os.path.ismount(top))
        put(os.path.join(top, "f"), b"n" * 20000)
        node.stop()
        assert not os.path.ismount(top)
        assert b" WARN " not in get(node.log)


def main():
    if sys.argv[1:2] == ["--write"]:
        write_until_told(sys.argv[2], sys.argv[3])
    tests = [test_calls, test_tree, test_two_mounts, test_node_killed, test_mount_killed, test_still_open,
             test_mounted_by_node]
    wanted = sys.argv[1:]
    n = 0
    with harness.Node() as node:
        for t in tests:
            if wanted and t.__name__ not in wanted:
                continue
            begin = time.monotonic()
            t(node)
            n += 1
            print(f"ok {n} - {t.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    print(f"{n} passed, 0 failed")


if __name__ == "__main__":
    main()
