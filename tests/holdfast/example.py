# SPDX-License-Identifier: Apache-2.0
"""libholdfast as other programs meet it: what the shared object exports is what the header declares,
and the example program, which knows no more than those two, copies files in and out."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import harness  # noqa: E402

HEADER = os.path.join(ROOT, "libs", "holdfast", "include", "holdfast", "holdfast.h")


def declared():
    with open(HEADER) as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return {n for n in re.findall(r"\b(hf_\w+)\s*\(", text) if not n.endswith("_fn")}


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] == "T"}


def check_exports():
    want, got = declared(), exported(os.path.join(os.environ["HF_BIN_DIR"], "..", "lib", "libholdfast.so"))
    assert len(want) > 60, want
    assert want == got, f"only declared: {want - got}, only exported: {got - want}"
    print(f"ok - exports: {len(got)} functions")


def check_copy(node):
    copy = os.path.join(os.environ["HF_BIN_DIR"], "holdfast-copy")
    url = f"ipc://{node.dir}/data/run/meta-0.sock"
    for size in (0, 1, 5000, 10_000_000):
        here, back = os.path.join(node.dir, "in"), os.path.join(node.dir, "out")
        data = os.urandom(size)
        with open(here, "wb") as f:
            f.write(data)
        subprocess.run([copy, url, "put", here, f"/f{size}"], check=True, timeout=60)
        subprocess.run([copy, url, "get", f"/f{size}", back], check=True, timeout=60)
        with open(back, "rb") as f:
            assert f.read() == data, size
    got = subprocess.run([copy, url, "get", "/none", "x"], check=False, timeout=60, capture_output=True, text=True)
    assert got.returncode == 1 and "no such file or directory" in got.stderr, got
    print("ok - copy: 4 files in and out")


if __name__ == "__main__":
    check_exports()
    with harness.Node() as the_node:
        check_copy(the_node)
