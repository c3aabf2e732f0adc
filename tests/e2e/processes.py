#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The services as processes of their own, over ipc: holdfast-segment, holdfast-meta and holdfast-nfs serve one
file system; each is killed -9 in turn, while files come and go, and the others carry on with the new one.
Then a holdfast-nfs of its own beside a node: both are gateways to the same files, also after the node was killed."""
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import harness


class Cluster:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="hf-procs.")
        os.mkdir(self.path("seg"))
        self.port = harness.free_port()
        seg, meta = f"ipc://{self.path('seg.sock')}", f"ipc://{self.path('meta.sock')}"
        self.commands = {
            "segment": ["--segment-dir", self.path("seg"), "--segment-listen", seg, "--segment-segments", "1,2"],
            "meta": ["--meta-dir", self.path("meta"), "--meta-listen", meta, "--meta-segments",
                     f"hot:1:{seg},hot:2:{seg}"],
            "nfs": ["--meta-url", meta, "--nfs-listen", f"127.0.0.1:{self.port}"],
        }
        self.running = {}

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, name):
        with open(self.path(name + ".log"), "ab") as log:
            self.running[name] = subprocess.Popen(
                [os.path.join(harness.bin_dir(), "holdfast-" + name), *self.commands[name]], stdout=log, stderr=log)

    def end(self, name, sig):
        p = self.running.pop(name)
        p.send_signal(sig)
        return p.wait(timeout=60)

    def url(self, name):
        return f"nfs://127.0.0.1/main/{name}?nfsport={self.port}&mountport={self.port}&version=3"

    def serves(self):
        return harness.mount_status("127.0.0.1", self.port, "/main") == 0

    def put(self, name, data):
        src = self.path("src")
        with open(src, "wb") as f:
            f.write(data)
        subprocess.run(["nfs-cp", src, self.url(name)], check=True, stdout=subprocess.DEVNULL, timeout=60)

    def get(self, name):
        return subprocess.run(["nfs-cat", self.url(name)], check=True, stdout=subprocess.PIPE, timeout=60).stdout

    def logs(self):
        for name in self.commands:
            with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as f:
                sys.stderr.write(f"---- holdfast-{name}\n{f.read()}")


def check_files(c, files):
    for name, digest in files.items():
        if hashlib.sha256(c.get(name)).hexdigest() != digest:
            raise AssertionError(f"{name} differs")


def nfs_url(port, name):
    return f"nfs://127.0.0.1/main/{name}?nfsport={port}&mountport={port}&version=3"


def copy(src, dst):
    subprocess.run(["nfs-cp", src, dst], check=True, stdout=subprocess.DEVNULL, timeout=60)


def cat(port, name):
    return subprocess.run(["nfs-cat", nfs_url(port, name)], check=True, stdout=subprocess.PIPE, timeout=60).stdout


def gateway_beside_a_node():
    with harness.Node() as node:
        port, log = harness.free_port(), os.path.join(node.dir, "gateway.log")
        with open(log, "ab") as f:
            gateway = subprocess.Popen(
                [os.path.join(harness.bin_dir(), "holdfast-nfs"), "--meta-url", f"ipc://{node.data}/run/meta-0.sock",
                 "--nfs-listen", f"127.0.0.1:{port}"], stdout=f, stderr=f)
        try:
            def serves():
                return harness.mount_status("127.0.0.1", port, "/main") == 0

            files = {}
            for kill in (False, True):
                if kill:
                    node.kill()
                    node.start()
                harness.wait_for("the gateway serves", serves, 60, lambda: gateway.poll() is None)
                for n, (to, size) in enumerate(((port, 100), (node.port, 100), (port, 9_000_000), (node.port, 9_000_000))):
                    name, src = f"g{kill}-{n}", os.path.join(node.dir, "src")
                    files[name] = os.urandom(size)
                    with open(src, "wb") as f:
                        f.write(files[name])
                    copy(src, nfs_url(to, name))
                for name, data in files.items():
                    for at in (port, node.port):
                        if cat(at, name) != data:
                            raise AssertionError(f"{name} differs through port {at}")
            gateway.terminate()
            if gateway.wait(60) != 0:
                raise AssertionError("the gateway did not end well")
        except BaseException:
            with open(log, encoding="utf-8", errors="replace") as f:
                sys.stderr.write(f"---- the gateway\n{f.read()}")
            raise
        finally:
            if gateway.poll() is None:
                gateway.kill()
                gateway.wait()
    print(f"ok: {len(files)} files through a node and a gateway beside it")


def main():
    c = Cluster()
    files = {}
    try:
        for name in ("segment", "meta", "nfs"):
            c.start(name)
        for n, victim in enumerate(("none", "segment", "meta", "nfs", "segment", "meta")):
            if victim != "none":
                c.end(victim, signal.SIGKILL)
                c.start(victim)
            harness.wait_for("the gateway serves", c.serves, 60)
            check_files(c, files)
            for size in (100, 9_000_000):
                name, data = f"f{n}-{size}", os.urandom(size)
                c.put(name, data)
                files[name] = hashlib.sha256(data).hexdigest()
        check_files(c, files)
        for name in ("nfs", "meta", "segment"):
            rc = c.end(name, signal.SIGTERM)
            if rc != 0:
                raise AssertionError(f"holdfast-{name} ended with {rc} after SIGTERM")
        print(f"ok: {len(files)} files through 5 kills of single processes")
    except BaseException:
        c.logs()
        raise
    finally:
        for name in list(c.running):
            c.end(name, signal.SIGKILL)
        shutil.rmtree(c.dir)
    gateway_beside_a_node()


if __name__ == "__main__":
    main()
