# SPDX-License-Identifier: Apache-2.0
"""Writes perf.data files for the tests of import, byte by byte.

import_make.py OUT DUMP...: of samples that tests/e2e/import_dump.c left of itself.
"""
import struct
import sys

IP, TID, TIME, ID, CALLCHAIN, PERIOD = 1, 2, 4, 64, 32, 256
REGS_USER, STACK_USER, IDENTIFIER = 1 << 12, 1 << 13, 1 << 16
ID_ALL, FREQ = 1 << 18, 1 << 10
KERNEL, USER = (1 << 64) - 128, (1 << 64) - 512
FEATURES = {"build_id": 2, "host": 3, "release": 4, "arch": 6, "command": 11, "events": 12}


def pad(data, to=8):
    return data + bytes(-len(data) % to)


def text(string):
    data = pad(string.encode() + b"\0", 64)
    return struct.pack("<I", len(data)) + data


def attr(sample_type, type_=1, config=0, freq=1000, regs=0, stack=0, flags=ID_ALL | FREQ):
    return pad(struct.pack("<IIQQQQQIIQQQQI", type_, 128, config, freq, sample_type, 0, flags, 0, 0,
                           0, 0, 0, regs, stack), 128)[:128]


def record(kind, body, misc=2):
    body = pad(body)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


class File:
    """`events`: (attr, name, ids) each; all records are followed by their times."""

    def __init__(self, events, arch):
        self.events, self.arch, self.data = events, arch, b""
        self.features = {"arch": text(arch), "host": text("elsewhere"), "release": text("1.2.3"),
                         "command": struct.pack("<I", 2) + text("perf") + text("record")}
        self.sample_type = struct.unpack_from("<Q", events[0][0], 24)[0]

    def trailer(self, time, event=0):
        """As sample_id_all has it."""
        out, ids = b"", self.events[event][2]
        for bit, data in ((TID, struct.pack("<II", 0, 0)), (TIME, struct.pack("<Q", time)),
                          (ID, struct.pack("<Q", ids[0] if ids else 0)),
                          (IDENTIFIER, struct.pack("<Q", ids[0] if ids else 0))):
            if self.sample_type & bit:
                out += data
        return out

    def mmap(self, pid, start, size, offset, path, time=0, build_id=b""):
        misc = 2
        middle = bytes(24)
        if build_id:
            misc |= 1 << 14
            middle = pad(bytes([len(build_id), 0, 0, 0]) + build_id, 24)
        body = struct.pack("<IIQQQ", pid, pid, start, size, offset) + middle
        body += struct.pack("<II", 5, 2) + pad(path.encode() + b"\0")
        self.data += record(10, body + self.trailer(time), misc)

    def comm(self, pid, tid, name, time=0, exec_=False):
        body = struct.pack("<II", pid, tid) + pad(name.encode() + b"\0")
        self.data += record(3, body + self.trailer(time), 2 | (exec_ << 13))

    def fork(self, pid, parent, tid, time, other=False):
        body = struct.pack("<IIIIQ", pid, parent, tid, parent, time)
        self.data += record(7, body + self.trailer(time), other << 13)

    def lost(self, count, time=0):
        self.data += record(2, struct.pack("<QQ", 0, count) + self.trailer(time))

    def round(self):
        self.data += record(68, b"")

    def sample(self, pid, tid, ip, time, event=0, chain=(), regs=(), stack=None, misc=2, ident=None):
        kind, out = self.sample_type, b""
        ids = self.events[event][2]
        ident = ident if ident is not None else (ids[0] if ids else 0)
        for bit, data in ((IDENTIFIER, struct.pack("<Q", ident)), (IP, struct.pack("<Q", ip)),
                          (TID, struct.pack("<II", pid, tid)), (TIME, struct.pack("<Q", time)),
                          (ID, struct.pack("<Q", ident)), (PERIOD, struct.pack("<Q", 1000000))):
            if kind & bit:
                out += data
        if kind & CALLCHAIN:
            out += struct.pack(f"<Q{len(chain)}Q", len(chain), *chain)
        if kind & REGS_USER:
            out += struct.pack(f"<Q{len(regs)}Q", 2 if regs else 0, *regs)
        if kind & STACK_USER:
            out += struct.pack("<Q", len(stack or b""))
            if stack:
                out += stack + struct.pack("<Q", len(stack))
        self.data += record(9, out, misc)

    def write(self, path):
        descriptions = struct.pack("<II", len(self.events), 128)
        for a, name, ids in self.events:
            descriptions += a + struct.pack("<I", len(ids)) + text(name)
            descriptions += struct.pack(f"<{len(ids)}Q", *ids)
        self.features["events"] = descriptions
        ids, attrs = b"", b""
        for a, _, own in self.events:
            attrs += a + struct.pack("<QQ", 104 + len(ids), 8 * len(own))
            ids += struct.pack(f"<{len(own)}Q", *own)
        attrs_at = 104 + len(ids)
        data_at = attrs_at + len(attrs)
        bits = sum(1 << FEATURES[f] for f in self.features)
        head = struct.pack("<QQQQQQQQQ", 0x32454c4946524550, 104, 144, attrs_at, len(attrs), data_at,
                           len(self.data), 0, 0) + bits.to_bytes(32, "little")
        place = data_at + len(self.data) + 16 * len(self.features)
        table, tail = b"", b""
        for _, contents in sorted((FEATURES[f], c) for f, c in self.features.items()):
            table += struct.pack("<QQ", place + len(tail), len(contents))
            tail += contents
        with open(path, "wb") as file:
            file.write(head + ids + attrs + self.data + table + tail)


def read_dump(path):
    """Registers in perf's order, bytes of the stack, mappings."""
    with open(path, "rb") as file:
        data = file.read()
    machine, count, size, sp = struct.unpack_from("<16sQQQ", data)
    regs = struct.unpack_from(f"<{count}Q", data, 40)
    at = 40 + 8 * count
    return machine.rstrip(b"\0").decode(), regs, data[at:at + size], data[at + size:].decode(), sp


def code_of(path):
    """Where the kernel maps the code of a static program; what an emulator tells is less exact."""
    with open(path, "rb") as file:
        data = file.read()
    place, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data,
                                                                     place + i * size)
        if kind == 1 and flags & 1:
            skip = address % 4096
            yield address - skip, (length + skip + 4095) // 4096 * 4096, offset - skip


def main(out, dumps):
    file = None
    for number, dump in enumerate(dumps):
        machine, regs, stack, maps, _ = read_dump(dump)
        mask = (1 << 33) - 1 if machine == "aarch64" else 0xff01ff
        pc = regs[32] if machine == "aarch64" else regs[8]
        if not file:
            kind = IP | TID | TIME | CALLCHAIN | PERIOD | REGS_USER | STACK_USER
            file = File([(attr(kind, regs=mask, stack=len(stack)), "cpu-clock:u", [])], machine)
            file.comm(77, 77, "dump", 10, True)
            exe = next(f[5] for f in (l.split(None, 5) for l in maps.splitlines()) if len(f) > 5)
            for start, size, offset in code_of(exe):
                file.mmap(77, start, size, offset, exe, 20)
        file.sample(77, 77, pc, 1000 + number, chain=(USER, pc), regs=regs, stack=stack)
    file.write(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
