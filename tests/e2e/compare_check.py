#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_check.py CULPRIT OLD... -- NEW...: what `culprit stats` and `culprit diff` say of recordings, against a
computation by hand from `culprit report --json` of each. Says what differs, and ends with status 1.

The formulas are those of the manual pages: nothing is shared with the program.
"""
import collections
import json
import math
import os
import re
import statistics
import subprocess
import sys

CULPRIT, *FILES = sys.argv[1:]
OLD, NEW = FILES[:FILES.index("--")], FILES[FILES.index("--") + 1:]
ALPHA, NOISE, MIN = 0.05, 0.02, 0.001
wrong = 0


def check(what, found, wanted):
    global wrong
    same = math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-12) if isinstance(wanted, float) else found == wanted
    if not same:
        if isinstance(wanted, set):
            found, wanted = found - wanted, wanted - found
        print(f"{what}: {found}, by hand {wanted}")
        wrong += 1


def output(*arguments):
    return json.loads(subprocess.run([CULPRIT, *arguments], check=True, stdout=subprocess.PIPE).stdout)


def plain(name):
    """Of a clone, and of the first and second lambda of a function, the same."""
    name = re.sub(r" \[clone [^]]*\]", "", name)
    name = re.sub(r"(\.(constprop|isra|part|cold|lto_priv|localalias)(\.\d+)*)+$", "", name)
    return re.sub(r"#\d+", "#", name)


def key(row):
    return plain(row["name"]), os.path.basename(row["module"] or "")


def counts_of(path):
    """What each function took itself, by report; and the sum."""
    sums = collections.Counter()
    report = output("report", "--view=flat", "--no-loops", "--json", path)
    for row in report["rows"]:
        sums[key(row)] += row["self"][0]
    return +sums, report["metrics"][0]["total"]


def t_above(t, df):
    """Of Student's distribution, by adding up; t = sqrt(df) tan(x)."""
    def area(low):
        steps = 20000
        width = (math.pi / 2 - low) / steps
        values = [max(0.0, math.cos(low + i * width)) ** (df - 1) for i in range(steps + 1)]
        return width / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))
    return area(math.atan(t / math.sqrt(df))) / (2 * area(0.0))


def p_of(old, new):
    off = abs(statistics.mean(new) - statistics.mean(old)) - 0.5 / len(old) - 0.5 / len(new)
    common = (sum(old) + sum(new)) / (len(old) + len(new))
    if len(old) == len(new) == 1:
        return math.erfc(max(0, off) / math.sqrt(4 * common + 2 * (NOISE * common) ** 2) / math.sqrt(2))
    parts = [max(common, statistics.variance(side)) / len(side) for side in (old, new)]
    df = sum(parts) ** 2 / sum(v * v / (len(side) - 1) for v, side in zip(parts, (old, new)))
    return min(1.0, 2 * t_above(max(0, off) / math.sqrt(sum(parts)), df))


def check_stats(files, runs):
    found = output("stats", "--json", "--min", "0", *files)
    totals = [total for _, total in runs]
    check("stats: total", found["total"]["samples"], totals)
    rows = {key(r): r for r in found["rows"]}
    names = {k for counts, _ in runs for k in counts}
    check("stats: functions", set(rows), names)
    for k in names & set(rows):
        samples = [counts[k] for counts, _ in runs]
        r = rows[k]
        check(f"stats: {k}", r["samples"], samples)
        check(f"stats: sum of {k}", r["sum"], sum(samples))
        check(f"stats: mean of {k}", r["mean"], float(statistics.mean(samples)))
        check(f"stats: deviation of {k}", r["deviation"], float(statistics.stdev(samples)))
        check(f"stats: range of {k}", r["range"], (max(samples) - min(samples)) / sum(samples))
        check(f"stats: share of {k}", r["share"], sum(samples) / sum(totals))
    return len(names)


def check_diff(old, new, before, after):
    found = output("diff", "--json", *old, "--", *new)
    sides = [[total for _, total in side] for side in (before, after)]
    whole = sum(map(statistics.mean, sides)) / 2
    ps = {None: p_of(*sides)}
    for k in {k for counts, _ in before + after for k in counts}:
        pair = [[counts[k] for counts, _ in side] for side in (before, after)]
        if sum(map(statistics.mean, pair)) / 2 >= MIN * whole and sum(map(sum, pair)) >= 10:
            ps[k] = p_of(*pair)
    rows = {key(r): r for r in found["rows"] if r["tested"]}
    rows[None] = found["total"]
    check("diff: rows", set(rows), set(ps))
    for k, p in ps.items():
        if k in rows:
            corrected, (low, high) = min(1.0, p * len(ps)), rows[k]["interval"]
            check(f"diff: p of {k}", rows[k]["p"], p)
            check(f"diff: corrected p of {k}", rows[k]["p_corrected"], corrected)
            check(f"diff: {k} changed", rows[k]["changed"], corrected <= ALPHA)
            check(f"diff: interval of {k}", low > 1 or (high is not None and high < 1), corrected <= ALPHA)
    return len(ps)


def main():
    before, after = ([counts_of(path) for path in side] for side in (OLD, NEW))
    functions = check_stats(OLD + NEW, before + after)
    tests = check_diff(OLD[:1], NEW[:1], before[:1], after[:1]) + check_diff(OLD, NEW, before, after)
    print(f"{wrong} differences; {functions} functions, {tests} tests")
    return 1 if wrong else 0


sys.exit(main())
