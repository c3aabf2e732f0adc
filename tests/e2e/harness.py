# SPDX-License-Identifier: Apache-2.0
"""Starts servers for tests: a Holdfast node, or NFS-Ganesha as the peer to compare with.

Each runs in a temporary folder of its own on free ports and is ended by its pid. Waiting is for a
condition with a deadline: a server is ready when a MOUNT call for its export is answered. When the
with-block fails, the server's log is shown. Python's standard library only.
"""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time


def bin_dir():
    """The folder of the programs: $HF_BIN_DIR, else the release build of this checkout."""
    d = os.environ.get("HF_BIN_DIR")
    if d:
        return d
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, "build", "release", "bin")


def free_port(host="127.0.0.1"):
    with socket.socket() as s:
        s.bind((host, 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds=60, alive=lambda: True):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        if not alive():
            raise RuntimeError(f"{what}: the process has ended")
        time.sleep(0.02)
    raise RuntimeError(f"{what}: not within {seconds} s")


def xdr_string(b):
    return struct.pack(">I", len(b)) + b + b"\0" * (-len(b) % 4)


def mount_status(host, port, path, timeout=5):
    """mountstat3 of MNT path, or None if nobody answers."""
    cred = struct.pack(">I", 0) + xdr_string(b"harness") + struct.pack(">III", 0, 0, 0)
    body = struct.pack(">IIIIII", 0x68660001, 0, 2, 100005, 3, 1)
    body += struct.pack(">II", 1, len(cred)) + cred + struct.pack(">II", 0, 0) + xdr_string(path.encode())
    try:
        with socket.create_connection((host, port), timeout=timeout) as s:
            s.settimeout(timeout)
            s.sendall(struct.pack(">I", 0x80000000 | len(body)) + body)
            data = b""
            while len(data) < 32:
                got = s.recv(4096)
                if not got:
                    return None
                data += got
        return struct.unpack(">I", data[28:32])[0]
    except OSError:
        return None


class Server:
    """Common parts: a folder, a log, a process. netns: the network namespace it lives in."""

    name = "server"

    def __init__(self, host="127.0.0.1", netns=None, base=None):
        self.host, self.netns = host, netns
        self.dir = tempfile.mkdtemp(prefix=f"hf-{self.name}.", dir=base)
        self.log = os.path.join(self.dir, "log")
        self.proc = None
        self.port = self.mount_port = None
        self.export = None

    def command(self):
        raise NotImplementedError

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def answers(self):
        if self.netns is None:
            return mount_status(self.host, self.mount_port, self.export) == 0
        # ask from inside the namespace: connecting from here would reach another network
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import harness; "
                "sys.exit(harness.mount_status(sys.argv[2], int(sys.argv[3]), sys.argv[4]) is None)")
        cmd = self.inside([sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__)), self.host,
                           str(self.mount_port), self.export])
        return subprocess.run(cmd, check=False, stderr=subprocess.DEVNULL).returncode == 0

    def inside(self, cmd):
        return cmd if self.netns is None else ["nsenter", f"--net=/run/netns/{self.netns}"] + cmd

    def start(self):
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen(self.inside(self.command()), stdin=subprocess.DEVNULL, stdout=log,
                                         stderr=log)
        wait_for(self.name, self.answers, alive=self.alive)

    def end(self, sig):
        if self.proc is None:
            return None
        self.proc.send_signal(sig)
        try:
            rc = self.proc.wait(60)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise RuntimeError(f"{self.name} did not end within 60 s of signal {sig}") from None
        self.proc = None
        return rc

    def stop(self):
        return self.end(signal.SIGTERM)

    def kill(self):
        return self.end(signal.SIGKILL)

    def show_log(self):
        sys.stderr.write(f"---- log of {self.name} ({self.log})\n")
        with open(self.log, errors="replace") as f:
            sys.stderr.writelines(f.readlines()[-200:])
        sys.stderr.write("---- end of log\n")

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            if self.alive():
                self.kill() if kind else self.stop()
        finally:
            if kind:
                self.show_log()
            shutil.rmtree(self.dir, ignore_errors=True)
        return False


class Node(Server):
    """A Holdfast node. conf: further lines of configuration."""

    name = "node"

    def __init__(self, conf="", **kw):
        super().__init__(**kw)
        self.port = self.mount_port = free_port() if self.netns is None else 20490
        self.export = "/main"
        self.data = os.path.join(self.dir, "data")
        self.conf = os.path.join(self.dir, "conf.yml")
        with open(self.conf, "w") as f:
            f.write(f"node:\n  dir: {self.data}\nnfs:\n  listen: {self.host}:{self.port}\n{conf}")

    def command(self):
        return [os.path.join(bin_dir(), "holdfast-node"), "--config", self.conf]

    def cli(self, *args, check=True):
        r = subprocess.run([os.path.join(bin_dir(), "holdfast"), "--dir", self.data, *args], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and r.returncode != 0:
            raise RuntimeError(f"holdfast {' '.join(args)}: exit status {r.returncode}: {r.stdout}")
        return r.stdout


class Mount:
    """The node's file system mounted with FUSE, by a process of its own. umount() ends it as an administrator
    would, kill() as a crash does."""

    def __init__(self, node, *options):
        self.node, self.options = node, options
        self.dir = tempfile.mkdtemp(prefix="hf-mount.")
        self.log = self.dir + ".log"

    def __enter__(self):
        subprocess.run([os.path.join(bin_dir(), "holdfast"), "mount", "--node-dir", self.node.data, "--log-file", self.log,
                        *self.options, self.dir], check=True, timeout=60)
        return self

    def __exit__(self, kind, value, trace):
        if os.path.ismount(self.dir) or kind:
            subprocess.run(["umount", "-l", self.dir], check=False, stderr=subprocess.DEVNULL)
        if os.path.exists(self.log):
            if kind:
                with open(self.log, encoding="utf-8", errors="replace") as f:
                    sys.stderr.write(f"---- log of the mount\n{f.read()}---- end of log\n")
            os.unlink(self.log)
        try:
            os.rmdir(self.dir)
        except OSError:
            pass
        return False

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def umount(self):
        subprocess.run([os.path.join(bin_dir(), "holdfast"), "umount", self.dir], check=True, timeout=60)

    def pids(self):
        out = subprocess.run(["pgrep", "-f", f"holdfast-fuse.*{self.dir}$"], stdout=subprocess.PIPE, check=False).stdout
        return [int(p) for p in out.split()]

    def kill(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["umount", "-l", self.dir], check=True)


GANESHA_CONF = """
NFS_CORE_PARAM {{ Bind_addr = {host}; NFS_Port = {port}; MNT_Port = {mount}; NLM_Port = {nlm};
  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; NFS_Protocols = 3;
  mount_path_pseudo = false; }}
NFSV4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = {state}; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT_DEFAULTS {{ Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3;
  Transports = TCP; }}
EXPORT {{ Export_Id = 77; Path = {path}; Pseudo = /exp; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = EVENT; }}
"""


class Ganesha(Server):
    """NFS-Ganesha over a local folder. It registers with rpcbind, which is started if it does not run
    (in the server's network namespace, with a socket path of its own, it is not reachable from others)."""

    name = "ganesha"

    def __init__(self, **kw):
        super().__init__(**kw)
        self.export = os.path.join(self.dir, "export")
        state = os.path.join(self.dir, "state")
        os.mkdir(self.export)
        os.mkdir(state)
        if self.netns is None:
            self.port, self.mount_port, nlm = free_port(), free_port(), free_port()
        else:
            self.port, self.mount_port, nlm = 20490, 20491, 20492
        self.conf = os.path.join(self.dir, "ganesha.conf")
        self.rpcbind = None
        with open(self.conf, "w") as f:
            f.write(GANESHA_CONF.format(host=self.host, port=self.port, mount=self.mount_port, nlm=nlm,
                                        state=state, path=self.export))

    def command(self):
        return ["ganesha.nfsd", "-F", "-f", self.conf, "-p", os.path.join(self.dir, "pid"), "-L",
                os.path.join(self.dir, "ganesha.log"), "-N", "EVENT"]

    def start(self):
        os.makedirs("/var/run/ganesha", exist_ok=True)
        if not os.path.exists("/run/rpcbind.sock") or not self.rpcbind_answers():
            self.rpcbind = subprocess.Popen(["rpcbind", "-w", "-f"], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for("rpcbind", self.rpcbind_answers, 10)
        super().start()

    @staticmethod
    def rpcbind_answers():
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect("/run/rpcbind.sock")
                return True
            except OSError:
                return False

    def show_log(self):
        self.log = os.path.join(self.dir, "ganesha.log")
        if os.path.exists(self.log):
            super().show_log()

    def __exit__(self, *a):
        try:
            return super().__exit__(*a)
        finally:
            if self.rpcbind is not None:
                self.rpcbind.terminate()
                self.rpcbind.wait()
