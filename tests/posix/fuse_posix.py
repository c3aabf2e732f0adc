#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""POSIX programs on a directory: the suite of this folder, the data checker, stress-ng, fio, setfacl.

  fuse_posix.py fuse     a node and two mounts of it; fsck at the end. Needs root and /dev/fuse
  fuse_posix.py local    the local file system: the control that shows that the tests are right
  fuse_posix.py DIR [DIR2]   a directory that is there

HF_DATACHECK_OPS: operations of the data checker (default 100000). HF_ONLY: the steps to run, by comma."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402

STRESSORS = ("access chmod chown dentry dir dup fallocate fcntl filename flock fstat getdent iomix link locka lockf "
             "lockofd mknod open rename symlink touch utime").split()
OPS = int(os.environ.get("HF_DATACHECK_OPS", "100000"))


def program(name):
    return os.path.join(os.path.dirname(harness.bin_dir()), "tests", name)


def run(what, cmd, timeout=1800, want=0):
    """Runs cmd; shows what it said unless it ends with want."""
    t0 = time.monotonic()
    try:
        r = subprocess.run(cmd, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=timeout)
        out, rc = r.stdout.decode(errors="replace"), r.returncode
    except subprocess.TimeoutExpired as e:
        out, rc = (e.stdout or b"").decode(errors="replace"), f"none within {timeout} s"
    ok = rc == want
    print(f"{'ok' if ok else 'not ok'} - {what} # {time.monotonic() - t0:.1f} s", flush=True)
    if not ok:
        print(f"exit status {rc} of: {' '.join(cmd)}\n{out[-20000:]}", flush=True)
    return ok, out


def suite(dirs):
    cmd = [program("posix-suite"), "--dir", dirs[0], "--dir2", dirs[1]]
    if os.path.ismount(dirs[0]):  # one of the node's
        cmd += ["--skip", "rmdir.attributes_of_what_is_gone=a removed directory that is open is ESTALE, as with NFS"]
    ok, out = run("the POSIX suite", cmd)
    for line in out.splitlines():
        if "# SKIP" in line or line.startswith("# passed"):
            print("  " + line)
    return ok


def datacheck(dirs):
    dc, ok = program("datacheck"), True
    ok &= run("datacheck", [dc, "--quiet", "--ops", str(OPS), os.path.join(dirs[0], "dc")])[0]
    ok &= run("datacheck, small files", [dc, "--quiet", "--ops", str(OPS // 5), "--max-size", "20000", "--every", "100",
                                         os.path.join(dirs[0], "dc")])[0]
    ok &= run("datacheck, two mounts in turns", [dc, "--quiet", "--ops", str(OPS // 5), "--two-dirs", *dirs])[0]
    # a fault must be found
    ok &= run("datacheck finds a spoiled byte", [dc, "--quiet", "--seed", "1", "--ops", "600", "--spoil", "500",
                                                 os.path.join(dirs[0], "spoiled")], want=1)[0]
    os.unlink(os.path.join(dirs[0], "spoiled"))
    return ok


def stress(dirs):
    ok = True
    for s in STRESSORS:
        ok &= run(f"stress-ng {s}", ["stress-ng", "--temp-path", dirs[0], f"--{s}", "1", "--timeout", "1", "--verify"],
                  timeout=120)[0]
    return ok


def fio(dirs):
    ok = True
    common = ["fio", f"--directory={dirs[0]}", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--size=24m",
              "--numjobs=3", "--rw=randwrite", "--end_fsync=1", "--output-format=terse", "--unlink=1", "--verify_state_save=0"]
    for name, flags in {
            "4 KiB to 128 KiB": ["--ioengine=psync", "--bsrange=4k-128k"],
            "odd sizes": ["--ioengine=psync", "--bsrange=512-70000", "--bs_unaligned=1"],
            "mapped": ["--ioengine=mmap", "--bs=4k", "--size=8m"],
            "with fsync": ["--ioengine=psync", "--bs=16k", "--size=4m", "--fsync=8"],
            "several in flight": ["--ioengine=libaio", "--iodepth=16", "--bs=64k"],
            "O_DIRECT": ["--ioengine=libaio", "--iodepth=8", "--bs=16k", "--direct=1", "--size=8m"]}.items():
        ok &= run(f"fio {name}", common + [f"--name={name.replace(' ', '-')}"] + flags, timeout=300)[0]
    return ok


def tools(dirs):
    """What users type; bytes of the ACLs are the suite's matter."""
    d = os.path.join(dirs[0], "tools")
    script = f"""set -e
mkdir {d}; cd {d}
setfacl -m u:64001:rwx,d:u:64001:rx,d:g:64011:r . ; touch f ; mkdir s
getfacl -n f | grep -q '^user:64001:r-x.*#effective:r--'
getfacl -n s | grep -q '^default:group:64011:r--'
setfacl -m g:64012:rw f ; getfacl -cn f | grep -q '^group:64012:rw-' ; setfacl -b f ; ! getfacl -cn f | grep -q 64012
setfattr -n user.greeting -v hello f ; getfattr -n user.greeting --only-values f | grep -q '^hello$'
cp -a f g ; getfattr -n user.greeting --only-values g | grep -q '^hello$'
mkdir t ; seq 1 20000 > t/a ; ln t/a t/b ; ln -s a t/c ; mkfifo t/p ; truncate -s 3M t/sparse ; echo end >> t/sparse
tar cf - t | (mkdir u ; tar xf - -C u) ; diff -r --no-dereference t/a u/t/a ; cmp t/sparse u/t/sparse
test "$(stat -c %h u/t/b)" = 2 ; test "$(readlink u/t/c)" = a ; test -p u/t/p
cp --sparse=always t/sparse v ; cmp t/sparse v
cd / ; rm -r {d}
"""
    return run("setfacl, setfattr, cp, tar", ["bash", "-c", script])[0]


STEPS = {"suite": suite, "datacheck": datacheck, "stress": stress, "fio": fio, "tools": tools}


def check(dirs):
    only = os.environ.get("HF_ONLY", ",".join(STEPS)).split(",")
    return all([STEPS[s](dirs) for s in only])  # all of them, also after one that failed


def fuse():
    with harness.Node() as node:
        with harness.Mount(node) as a, harness.Mount(node) as b:
            ok = check([a.dir, b.dir])
            left = os.listdir(a.dir)
            if left:
                print(f"not ok - left behind: {left}")
            a.umount()
            b.umount()
        out = node.cli("fsck", check=False)
        clean = ": 0 problems" in out
        print(f"{'ok' if clean else 'not ok'} - fsck\n{'' if clean else out}")
        if not (ok and clean and not left):
            raise RuntimeError("something failed, see above")


def local():
    d = tempfile.mkdtemp(prefix="hf-posix.")
    try:
        os.chmod(d, 0o755)
        if not check([d, d]):
            raise RuntimeError("something failed, see above")
    finally:
        shutil.rmtree(d)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.geteuid() != 0:
        print("skipped: users are changed and file systems mounted, which needs root")
        sys.exit(77)
    if sys.argv[1] in ("fuse", "local"):
        {"fuse": fuse, "local": local}[sys.argv[1]]()
    elif not check([sys.argv[1], sys.argv[-1]]):
        sys.exit(1)


if __name__ == "__main__":
    main()
