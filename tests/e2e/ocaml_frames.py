#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ocaml_frames.py PROGRAM CFI LOST: does the unwind information in CFI say of each call in an OCaml program what the
program's own table says, with which its collector finds what is on the stack? Of LOST calls it says nothing. PROGRAM is linked to a fixed address."""
import bisect
import re
import struct
import subprocess
import sys


class Program:
    def __init__(self, path):
        self.data = open(path, "rb").read()
        offset, = struct.unpack_from("<Q", self.data, 32)
        count, = struct.unpack_from("<H", self.data, 56)
        headers = [struct.unpack_from("<IIQQQQ", self.data, offset + 56 * i) for i in range(count)]
        self.segments = [(address, size, at) for kind, _, at, address, _, size in headers if kind == 1]

    def read(self, layout, address):
        for start, size, at in self.segments:
            if start <= address < start + size:
                return struct.unpack_from(layout, self.data, at + address - start)
        raise ValueError(f"nothing at {address:#x}")

    def calls(self, tables):
        """Each return address and how large the frame is then."""
        while (table := self.read("<Q", tables)[0]):
            tables += 8
            count, = self.read("<Q", table)
            at = table + 8
            for _ in range(count):
                address, size, live = self.read("<QHH", at)
                at += 12 + 2 * live
                if size != 0xffff:  # the program's own frame in C
                    yield address, size & ~3
                    allocations = 1
                    if size & 2:
                        allocations, = self.read("<B", at)
                        at += 1 + allocations
                    if size & 1:
                        at = (at + 3 & ~3) + 4 * allocations
                at = at + 7 & ~7


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def depths(path):
    """Addresses, ascending, and what the CFA is from each on; None: nothing is said."""
    said = {}
    for line in output("readelf", "-W", "--debug-dump=frames-interp", path):
        if (m := re.search(r" FDE .*pc=(\w+)\.\.(\w+)", line)):
            start, end = int(m[1], 16), int(m[2], 16)
            said[start] = said.get(start) or "sp+0"
            said.setdefault(end, None)
        elif (m := re.match(r"([0-9a-f]{16}) r?(\S+)", line)):
            said[int(m[1], 16)] = m[2]
    return sorted(said), said


def main(path, cfi, lost):
    symbols = {f[2]: int(f[0], 16) for f in map(str.split, output("nm", path)) if len(f) == 3}
    addresses, said = depths(cfi)
    total = wrong = silent = 0
    for address, size in Program(path).calls(symbols["caml_frametable"]):
        here = said[addresses[bisect.bisect_right(addresses, address - 1) - 1]]
        total += 1
        silent += here is None
        if here and here != f"sp+{size}":
            wrong += 1
            print(f"the call before {address:#x}: {here}, should be sp+{size}")
    print(f"{total} calls, {wrong} wrong, {silent} of which nothing is said")
    return wrong or total < 500 or silent != int(lost)


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
