#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes src/casefold_table.h from CaseFolding.txt of Unicode 15.0 (Debian: unicode-data).

    libs/meta/tools/casefold.py /usr/share/unicode/CaseFolding.txt > libs/meta/src/casefold_table.h

Takes statuses C and S (simple folding) and packs them into ranges: code points first..last with a step
of 1 or 2 fold by adding delta. The table is part of the stored format: it is never regenerated from
another version of Unicode.
"""
import sys


def main():
    pairs = []
    with open(sys.argv[1], encoding="utf-8") as f:
        head = f.readline().strip("# \n")
        if head != "CaseFolding-15.0.0.txt":
            sys.exit(f"{sys.argv[1]}: is {head}, the format is pinned to CaseFolding-15.0.0.txt")
        for line in f:
            line = line.split("#")[0].strip()
            if not line:
                continue
            code, status, mapping = [s.strip() for s in line.split(";")[:3]]
            if status in "CS":
                pairs.append((int(code, 16), int(mapping, 16)))
    pairs.sort()
    ranges = []  # first, last, step, delta
    for code, to in pairs:
        delta = to - code
        if ranges:
            first, last, step, d = ranges[-1]
            gap = code - last
            if d == delta and gap in (1, 2) and (first == last or gap == step):
                ranges[-1] = (first, code, gap, d)
                continue
        ranges.append((code, code, 1, delta))
    print("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by tools/casefold.py from CaseFolding-15.0.0.txt: do not edit. Part of the stored format.\n */")
    print("static const struct fold_range fold_ranges[] = {")
    for first, last, step, delta in ranges:
        print(f"    {{0x{first:05x}, 0x{last:05x}, {step}, {delta}}},")
    print("};")
    n = sum((last - first) // step + 1 for first, last, step, _ in ranges)
    if n != len(pairs):
        sys.exit("ranges do not add up")


main()
