# SPDX-License-Identifier: Apache-2.0
"""absences.py REPORT OUTPUT HZ: has each phase of tests/targets/absences.c the time that it took, on the CPU and off it?
REPORT is what `culprit report --json --min 0` printed, OUTPUT what the program said."""
import json
import math
import sys

LEAST = 3  # samples that a phase may have too many or too few in any case


def below(node, name, index):
    """Samples of a metric in functions of this name, whatever they call."""
    if node["kind"] == "function" and node["name"].split(".")[0] == name:
        return node["total"][index]
    return sum(below(child, name, index) for child in node.get("children", ()))


def problems(document, said, hz):
    summary = document["summary"]
    if summary["lost"] or summary["partial"]:
        yield f"lost {summary['lost']}, partial {summary['partial']}"
    for line in said.splitlines():
        name, *times = line.split()
        wall, cpu, queued = (int(ns) * hz / 1e9 for ns in times)
        truth = {"wall": wall, "cpu-clock": cpu, "blocked": wall - cpu - queued, "blocked.queued": queued}
        for index, metric in enumerate(each["name"] for each in document["metrics"]):
            if name == "wait_for_end" and metric == "blocked.queued":
                continue  # this thread does not say it
            true, found = truth[metric], below(document["tree"], name, index)
            error = math.sqrt(max(true, 1))
            print(f"      {name:14}{metric:16}{found:8} samples{true:10.1f} true{(found - true) / error:8.1f} standard errors")
            # What the program does between two phases is in none of them.
            if abs(found - true) > 4.5 * error + 0.01 * wall + LEAST:
                yield f"{name}: {found} samples of {metric}, not {true:.0f}"


def main():
    sys.setrecursionlimit(10000)
    with open(sys.argv[1], encoding="utf-8") as report, open(sys.argv[2], encoding="utf-8") as said:
        wrong = list(problems(json.load(report), said.read(), float(sys.argv[3])))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
