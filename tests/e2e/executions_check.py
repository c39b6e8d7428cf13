# SPDX-License-Identifier: Apache-2.0
"""executions_check.py PROFILE SOURCE | --ranges FILE | --autofdo FILE: is what export wrote of tests/targets/counted.c
well formed, and near to what is known of it?"""
import re
import struct
import sys


class Function:
    def __init__(self, name, total, head):
        self.name, self.total, self.head = name, total, head
        self.lines, self.calls, self.inlined = {}, {}, {}

    def sum(self):
        return sum(self.lines.values()) + sum(f.sum() for f in self.inlined.values())


def parse(path):
    """Functions by name, as LLVM's reader takes them."""
    functions, around = {}, []
    for line in open(path, encoding="ascii"):
        depth = len(line) - len(line.lstrip(" "))
        text = line.strip()
        if depth == 0:
            name, total, head = re.fullmatch(r"([^:]+):(\d+):(\d+)", text).groups()
            assert name not in functions, name
            functions[name] = Function(name, int(total), int(head))
            around = [functions[name]]
            continue
        assert depth <= len(around), line
        del around[depth:]
        place, rest = re.fullmatch(r"(\d+(?:\.\d+)?): (.*)", text).groups()
        if rest[0].isdigit():
            words = rest.split()
            assert place not in around[-1].lines, (place, around[-1].name)
            around[-1].lines[place] = int(words[0])
            around[-1].calls[place] = dict((w.rsplit(":", 1)[0], int(w.rsplit(":", 1)[1])) for w in words[1:])
        else:
            name, total = re.fullmatch(r"([^:]+):(\d+)", rest).groups()
            inside = Function(name, int(total), 0)
            around[-1].inlined[place, name] = inside
            around.append(inside)
    return functions


def near(what, value, wanted, times):
    """Within a factor: estimates from samples, on a machine that does other things, too."""
    assert wanted / times <= value <= wanted * times, f"{what}: {value}, not near {wanted}"


def check_totals(function):
    parts = function.sum()
    assert abs(parts - function.total) <= 0.01 * parts + 100, (function.name, parts, function.total)
    for inside in function.inlined.values():
        check_totals(inside)


def check_profile(path, source):
    functions = parse(path)
    text = open(source, encoding="utf-8").read().splitlines()
    begin = next(i for i, line in enumerate(text) if re.search(r"\bwork\(unsigned x\)$", line))

    def offset(pattern):
        return str(next(i for i, line in enumerate(text) if i > begin and re.search(pattern, line)) - begin)

    work = functions["work"]
    mixed = work.inlined[next(key for key in work.inlined if key[1] == "mix")]
    assert next(key[0] for key in work.inlined).split(".")[0] == offset(r"x = mix\(x\)"), work.inlined.keys()
    body = max(mixed.lines.values())
    assert body > 30 * work.head, f"of 1000 rounds of each call, {body / work.head}"
    calls = {}
    for place, called in work.calls.items():
        assert not called or place.split(".")[0] == offset("seldom"), (place, called)
        for name, count in called.items():
            calls[name] = calls.get(name, 0) + count
    assert "seldom" in calls, calls
    near("rounds with a call", body / calls["seldom"], 100, 10)
    if "twice" in calls or "thrice" in calls:  # llvm-profgen has no paths, so it knows them only from us, too
        near("calls through the pointer", calls.get("twice", 1) / calls.get("thrice", 1), 1, 4)
    seldom = functions["seldom"]
    assert max(max(f.lines.values()) for f in seldom.inlined.values()) > 2 * seldom.head, "seldom has a loop"
    return functions


def check_ranges(path):
    lines = iter(open(path, encoding="ascii").read().splitlines())

    def section(pattern):
        return [tuple(int(x, 16) for x in re.fullmatch(pattern + r":(?:\d+)", next(lines)).groups())
                for _ in range(int(next(lines)))]

    stretches = sorted(section(r"([0-9a-f]+)-([0-9a-f]+)"))
    assert stretches and all(first <= last for first, last in stretches)
    assert all(a[1] < b[0] for a, b in zip(stretches, stretches[1:])), "stretches overlap"
    jumps = section(r"([0-9a-f]+)->([0-9a-f]+)")
    assert jumps and {source for source, _ in jumps} <= {last for _, last in stretches}, "a jump from within a stretch"
    assert next(lines, None) is None


class Gcov:
    """What gcc -fauto-profile reads."""
    def __init__(self, path):
        self.bytes, self.at = open(path, "rb").read(), 0
        assert [self.word() for _ in range(3)] == [0x67636461, 2, 0]
        self.names = [self.text() for _ in range(self.section(0xaa000000))]
        assert self.names[0] == "", "gcc takes the number 0 for none"
        self.functions = {}
        for _ in range(self.section(0xac000000)):
            head = self.count()
            function = self.function(head)
            self.functions[function.name] = function
        assert self.section(0xae000000) == 0 and self.at == len(self.bytes)

    def word(self):
        self.at += 4
        return struct.unpack_from("=I", self.bytes, self.at - 4)[0]

    def count(self):
        return self.word() | self.word() << 32

    def text(self):
        size = self.word()
        self.at += size
        assert self.bytes[self.at - 1] == 0
        return self.bytes[self.at - size:self.at - 1].decode()

    def section(self, tag):
        assert self.word() == tag
        self.word()
        return self.word()

    def function(self, head):
        found = Function(self.names[self.word()], 0, head)
        places, inlined = self.word(), self.word()
        for _ in range(places):
            place, targets = self.word(), self.word()
            found.lines[place >> 16, place & 0xffff] = self.count()
            for _ in range(targets):
                self.word()
                name = self.names[self.count()]
                found.calls[name] = self.count()
        for _ in range(inlined):
            place = self.word()
            inside = self.function(0)
            found.inlined[place >> 16, inside.name] = inside
        return found


def check_autofdo(path):
    functions = Gcov(path).functions
    work = functions["work"]
    assert all((line, 0) in work.lines for line, _ in work.lines), "a line that gcc 12 does not find"
    mixed = next(inside for (_, name), inside in work.inlined.items() if name == "mix")
    assert max(mixed.lines.values()) > 30 * work.head, "1000 rounds of each call"
    assert "seldom" in work.calls, work.calls


if __name__ == "__main__":
    if sys.argv[1] == "--ranges":
        check_ranges(sys.argv[2])
    elif sys.argv[1] == "--autofdo":
        check_autofdo(sys.argv[2])
    else:
        for found in check_profile(sys.argv[1], sys.argv[2]).values():
            if not sys.argv[1].startswith("gen"):  # llvm-profgen sums otherwise
                check_totals(found)
