# SPDX-License-Identifier: Apache-2.0
"""reasons.py REPORT OUTPUT METRIC FUNCTIONS: has each function of tests/targets/reasons.c its reason, for the time that
it waited? REPORT is what `culprit report --by=reason --json --min 0` printed, OUTPUT what the program said, and
FUNCTIONS a regular expression."""
import json
import math
import re
import sys


def gather(document, metric):
    """The samples of each reason, by function."""
    seen = {}

    def walk(node, reason):
        if node["kind"] == "reason":
            reason = node["name"]
        if node["kind"] == "function" and node["name"].startswith("wait_"):
            found = seen.setdefault(node["name"], {})
            found[reason] = found.get(reason, 0) + node["total"][metric]
            return
        for child in node.get("children", ()):
            walk(child, reason)

    walk(document["tree"], None)
    return seen


def problems(document, said, metric, functions):
    seen = gather(document, metric)
    for line in said:
        reason, function, ns = line.rstrip("\n").split("\t")
        if not re.fullmatch(functions, function):
            continue
        true, found = int(ns) / 1e6, seen.get(function, {})
        # Processes that are started there sleep. Before it asks for a lock, the program waits until another thread has it.
        usual = {reason, "a CPU", "on a CPU"} | ({"sleep"} if reason == "child process" else set())
        if reason in ("lock", "file lock"):
            true -= found.get("semaphore", 0)
            usual.add("semaphore")
        others = sum(count for other, count in found.items() if other not in usual)
        print(f"      {function:16}{true:8.1f} ms {found}")
        if abs(found.get(reason, 0) - true) > 4.5 * math.sqrt(true) + 0.05 * true or others > 5 + 0.05 * true:
            yield f"{function}: not {true:.1f} ms for {reason}"
    listed = {each["name"]: each["total"][metric] for each in document["reasons"] if each["total"][metric]}
    grouped = {each["name"]: each["total"][metric] for each in document["tree"]["children"] if each["total"][metric]}
    if listed != grouped:
        yield f"reasons are {listed}, but rows {grouped}"


def main():
    with open(sys.argv[1], encoding="utf-8") as report, open(sys.argv[2], encoding="utf-8") as said:
        document = json.load(report)
        metric = [each["name"] for each in document["metrics"]].index(sys.argv[3])
        wrong = list(problems(document, said, metric, sys.argv[4]))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
