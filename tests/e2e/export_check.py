#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""export_check.py CULPRIT PROFILE [OPTION...]: exports the profile to every format, reads each back
and compares what every function took itself and in all with `culprit report --view=flat --json`.

The options are given to both. Says what differs, and ends with status 1.
"""
import collections
import csv
import gzip
import io
import json
import re
import subprocess
import sys
import threading

CULPRIT = PROFILE = None
OPTIONS = []
failed = []


def check(right, *what):
    if not right:
        failed.append(" ".join(str(w) for w in what))


def output(*arguments):
    return subprocess.run([CULPRIT, *arguments, *OPTIONS, PROFILE], check=True, stdout=subprocess.PIPE).stdout


def export(to, *arguments):
    return output("export", f"--to={to}", "--full-names", *arguments)


def clean(text):
    """As names are written: no control characters, nothing that is not UTF-8."""
    return re.sub("[\0-\x1f\x7f-\x9f\u2028\u2029]", "?", text or "")


class Totals:
    """Per key, own samples and those of all paths with it, of each metric."""

    def __init__(self, metrics):
        self.zero = [0] * metrics
        self.self = collections.defaultdict(lambda: list(self.zero))
        self.total = collections.defaultdict(lambda: list(self.zero))

    def add(self, path, metric, count):
        self.self[path[-1]][metric] += count
        for key in set(path):
            self.total[key][metric] += count

    def items(self):
        return {k: (self.self[k] if k in self.self else self.zero, v) for k, v in self.total.items()}


def compare(what, found, wanted):
    for key in sorted(set(found) | set(wanted), key=str):
        check(found.get(key) == wanted.get(key),
              f"{what}: {key}: {found.get(key)}, not {wanted.get(key)}")


def rows_of(totals, describe):
    """What functions took, sorted: for formats that tell functions of one name apart."""
    return sorted((*describe(key), *map(tuple, values)) for key, values in totals.items().items())


def shown(rows):
    """Without those that have no samples of these metrics."""
    return [r for r in rows if any(r[-1])]


# What report says


class Report:
    def __init__(self):
        flat = json.loads(output("report", "--view=flat", "--no-loops", "--json"))
        tree = json.loads(output("report", "--view=tree", "--no-loops", "--json"))
        self.metrics = flat["metrics"]
        self.samples = flat["summary"]["samples"]
        self.flat = flat["rows"]
        self.paths = []  # (list of nodes, self)
        self.walk(tree["tree"])
        # The tree's totals are those of the list: then it may stand in for names that several have.
        self.same(self.by(self.key), {self.key(r): (r["self"], r["total"]) for r in self.flat})

    def same(self, tree, flat):
        compare("report", {k: v for k, v in tree.items() if any(v[1])},
                {k: v for k, v in flat.items() if any(v[1])})

    @staticmethod
    def key(n):
        return (n["name"], n["kind"], n["module"], n["file"], n["line"], n.get("address"), n.get("guessed"))

    def walk(self, root):
        stack = [(root, [])]
        while stack:
            node, path = stack.pop()
            if node["kind"] != "root":
                path = path + [node]
                if any(node["self"]):
                    self.paths.append((path, node["self"]))
            stack += [(c, path) for c in node["children"]]

    def by(self, key):
        totals = Totals(len(self.metrics))
        for path, values in self.paths:
            keys = [key(n) for n in path]
            for metric, count in enumerate(values):
                if count:
                    totals.add(keys, metric, count)
        return totals.items()

    def rows(self):
        """(name, file, line, self, total) of each function that has samples."""
        return sorted((clean(r["name"]), clean(r["file"]), r["line"] or 0, tuple(r["self"]), tuple(r["total"]))
                      for r in self.flat)

    def period(self, metric):
        return self.metrics[metric]["period"] or 1


report = None
COUNT = 0


def one(values, metric):
    return {k: (s[metric], t[metric]) for k, (s, t) in values.items() if t[metric]}


# The formats


def folded_name(n):
    return re.sub(r" (?=[0-9.]+$)", "_", clean(n["name"]).replace(";", ":"))


def check_folded():
    for metric in range(COUNT):
        totals, sum_of_all = Totals(1), 0
        for line in export("folded", f"--metric={metric}").decode().splitlines():
            path, count = line.rsplit(" ", 1)
            totals.add(path.split(";"), 0, int(count))
            sum_of_all += int(count)
        compare("folded", one(totals.items(), 0), one(report.by(folded_name), metric))
        check(sum_of_all == report.metrics[metric]["total"] or OPTIONS, "folded: sum", sum_of_all)
        check(metric or OPTIONS or sum_of_all == report.samples, "folded: not all samples")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            assert value < 1 << 64
            return value, at


def message(data):
    """A protocol buffer: field -> list of numbers and bytes."""
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, f"wire type {tag & 7}"
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        fields[tag >> 3].append(value)
    return fields


def packed(values):
    numbers = []
    for value in values:
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


def first(fields, number):
    return fields[number][0] if fields[number] else 0


def check_pprof():
    top = message(gzip.decompress(export("pprof")))
    strings = [s.decode() for s in top[6]]
    check(strings[0] == "", "pprof: string 0 is not empty")
    check(len(set(strings)) == len(strings), "pprof: strings twice")
    types = [(strings[first(m, 1)], strings[first(m, 2)]) for m in map(message, top[1])]
    wanted = [m["name"] for m in report.metrics for _ in (0, 1)][::-1]
    check([t[0].replace("samples", wanted[0]) if COUNT == 1 else t[0].replace("-samples", "") for t in types] == wanted,
          "pprof: types", types)
    check(strings[first(top, 14)] == report.metrics[0]["name"], "pprof: default type")
    check(first(top, 12) == report.metrics[0]["period"], "pprof: period")
    functions = {first(m, 1): m for m in map(message, top[5])}
    mappings = {first(m, 1): m for m in map(message, top[3])}
    locations = {}
    for m in map(message, top[4]):
        check(first(m, 2) == 0 or first(m, 2) in mappings, "pprof: location without its mapping")
        locations[first(m, 1)] = [first(message(l), 1) for l in m[4]]
    totals = Totals(COUNT)
    for m in map(message, top[2]):
        values = packed(m[2])
        check(len(values) == 2 * COUNT, "pprof: values", values)
        values = [v for at in range(2 * COUNT - 2, -1, -2) for v in values[at:at + 2]]  # as in report
        path = [f for l in reversed(packed(m[1])) for f in reversed(locations[l])]
        labels = {strings[first(l, 1)] for l in map(message, m[3])}
        check(labels == {"thread", "tid", "process", "pid"}, "pprof: labels", labels)
        for metric in range(COUNT):
            check(values[2 * metric + 1] == values[2 * metric] * report.period(metric), "pprof: amounts")
            if values[2 * metric]:
                totals.add(path, metric, values[2 * metric])

    def describe(key):
        f = functions[key]
        return strings[first(f, 2)], strings[first(f, 4)], first(f, 5)
    check(rows_of(totals, describe) == shown(report.rows()), "pprof: functions differ")
    return top


def check_speedscope():
    d = json.loads(export("speedscope"))
    frames = d["shared"]["frames"]
    totals = Totals(COUNT)
    units = {"ns": "nanoseconds", "bytes": "bytes"}
    for p in d["profiles"]:
        check(p["type"] == "sampled" and len(p["samples"]) == len(p["weights"]), "speedscope: shape")
        check(p["endValue"] - p["startValue"] == sum(p["weights"]), "speedscope: sum of weights")
        name = p["name"].rsplit(": ", 1)[-1]
        metric = [m["name"] for m in report.metrics].index(name) if COUNT > 1 else 0
        check(p["unit"] == units.get(report.metrics[metric]["unit"], "none"), "speedscope: unit", p["unit"])
        for path, weight in zip(p["samples"], p["weights"]):
            if not path:  # the thread did not work
                continue
            check(weight % report.period(metric) == 0, "speedscope: weight", weight)
            totals.add(path, metric, weight // report.period(metric))
    found = rows_of(totals, lambda k: (frames[k]["name"], clean(frames[k].get("file")), frames[k].get("line", 0)))
    check(found == [r for r in shown([(*r[:2], r[2] if r[1] else 0, *r[3:]) for r in report.rows()])],
          "speedscope: functions differ")


def check_firefox():
    for metric in range(COUNT):
        d = json.loads(export("firefox", f"--metric={metric}"))
        shared = d["shared"]
        for name, table in shared.items():
            for column, values in table.items() if isinstance(table, dict) else ():
                check(column == "length" or len(values) == table["length"], "firefox: length", name, column)
        stack, frame, func = shared["stackTable"], shared["frameTable"], shared["funcTable"]
        text = shared["stringArray"]
        check(all(p is None or p < i for i, p in enumerate(stack["prefix"])), "firefox: order of stacks")
        totals = Totals(1)
        for thread in d["threads"]:
            samples = thread["samples"]
            check(len(samples["stack"]) == len(samples["weight"]) == len(samples["time"]) == samples["length"],
                  "firefox: samples")
            check(samples["time"] == sorted(samples["time"]), "firefox: times")
            for at, weight in zip(samples["stack"], samples["weight"]):
                path = []
                while at is not None:
                    path.append(func_of(stack, frame, at))
                    at = stack["prefix"][at]
                totals.add(path[::-1], 0, weight)

        def describe(key):
            source = func["source"][key]
            file = "" if source is None else text[shared["sources"]["filename"][source]]
            return text[func["name"][key]], file, func["lineNumber"][key] or 0
        wanted = sorted((*r[:3], (r[3][metric],), (r[4][metric],)) for r in report.rows())
        check(shown(rows_of(totals, describe)) == shown(wanted), "firefox: functions differ")


def func_of(stack, frame, at):
    return frame["func"][stack["frame"][at]]


def uncompress(table, text):
    number, name = re.fullmatch(r"\((\d+)\)(?: (.*))?", text).groups()
    if name is not None:
        assert number not in table
        table[number] = name
    return table[number]


def check_callgrind():
    tables = {"ob": {}, "fl": {}, "fn": {}}
    numbers = {}
    own, calls = collections.defaultdict(lambda: [0] * COUNT), collections.defaultdict(lambda: [0] * COUNT)
    here, there, is_call, sums = {}, {}, False, None
    for line in export("callgrind").decode().splitlines():
        match = re.fullmatch(r"(c?)(ob|fl|fi|fn)=(.*)", line)
        if match:
            kind = {"fi": "fl"}.get(match[2], match[2])
            side = there if match[1] else here
            side[kind] = uncompress(tables[kind], match[3])
            if kind == "fn":  # KCachegrind: a number is one function's
                which = (side["fn"], side["fl"], side["ob"])
                check(numbers.setdefault(match[3].split(" ")[0], which) == which, "callgrind: number of", which)
        elif line.startswith("calls="):
            is_call = True
        elif line.startswith("summary: "):
            sums = [int(n) for n in line.split()[1:]]
        elif re.match(r"\d+ ", line):
            side = there if is_call else here
            key = (side["fn"], side["fl"], side["ob"])
            for metric, count in enumerate(line.split()[1:]):
                (calls if is_call else own)[key][metric] += int(count)
            is_call = False
    # As KCachegrind and callgrind_annotate do it: in all is what all calls of it took.
    found = {k: (own[k], calls[k]) for k in [*own, *calls]}
    compare("callgrind", {k: v for k, v in found.items() if any(v[1])},
            report.by(lambda n: (clean(n["name"]), clean(n["file"]) or "???", clean(n["module"]) or "???")))
    check(OPTIONS or sums == [m["total"] for m in report.metrics], "callgrind: summary", sums)


def script_name(n):
    name = clean(n["name"])
    if name.startswith("(anonymous namespace)"):
        return "{anonymous}" + name[len("(anonymous namespace)"):]
    if name.startswith("("):
        return f"[{name[1:-1]}]" if name.endswith(")") else "_" + name
    return name


def check_perf_script():
    names = [m["name"] for m in report.metrics]
    totals = Totals(COUNT)
    for block in export("perf-script").decode().split("\n\n"):
        if not block:
            continue
        head, *frames = block.split("\n")
        period, event = re.fullmatch(r"\S+\s+-?\d+/-?\d+\s+\d+\.\d{6}:\s+(\d+) (\S+): ", head).groups()
        path = []
        for frame in frames:
            name, module = re.fullmatch(r"\t *[0-9a-f]+ (.+) \((.*)\)", frame).groups()
            path.append(name if module == "inlined" else re.sub(r"\+0x[0-9a-f]+$", "", name))
        metric = names.index(event)
        check(int(period) % report.period(metric) == 0, "perf-script: period", period)
        totals.add(path[::-1], metric, int(period) // report.period(metric))
    compare("perf-script", totals.items(), report.by(script_name))


def numbers(row, what):
    return tuple(int(row[f"{m['name']} {what}"]) for m in report.metrics)


def check_csv():
    text = export("csv").decode()
    check(text.count("\r\n") == text.count("\n"), "csv: line ends")
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    found = sorted((r["name"], r["file"], int(r["line"] or 0), numbers(r, "self"), numbers(r, "total"))
                   for r in rows)
    check(found == report.rows(), "csv: functions differ")
    nodes = {r["id"]: r for r in csv.DictReader(io.StringIO(export("csv", "--rows=context").decode(), newline=""))}
    totals = Totals(COUNT)
    for node in nodes.values():
        path, at = [], node
        while at["parent"]:
            path.append((at["kind"], at["name"], at["module"], at["file"], at["line"], at["address"]))
            at = nodes[at["parent"]]
        for metric, count in enumerate(numbers(node, "self")):
            if count and path:
                totals.add(path[::-1], metric, count)
    check(rows_of(totals, lambda k: (k[1], k[3], int(k[4] or 0))) == shown(report.rows()), "csv: contexts differ")


def main():
    global CULPRIT, PROFILE, OPTIONS, report, COUNT, finished
    CULPRIT, PROFILE, *OPTIONS = sys.argv[1:]
    report = Report()
    COUNT = len(report.metrics)
    check_folded()
    check_pprof()
    check_speedscope()
    check_firefox()
    check_callgrind()
    check_perf_script()
    check_csv()
    for line in failed[:20]:
        print(line)
    print(f"{len(failed)} differences; {len(report.flat)} functions, {len(report.paths)} paths, "
          f"{report.samples} samples")
    finished = True


finished = False


def in_deep_thread(function):
    """With room for trees of thousands of frames."""
    sys.setrecursionlimit(100000)
    threading.stack_size(512 << 20)
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


if __name__ == "__main__":
    in_deep_thread(main)
    sys.exit(1 if failed or not finished else 0)
