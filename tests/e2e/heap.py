# SPDX-License-Identifier: Apache-2.0
"""heap.py exact|sampled REPORT SAID: are the numbers of allocations those that tests/targets/heap.c says?

REPORT: report --json --min 0. exact: all are equal. sampled: within four standard errors, as the number of samples
and their sizes have it."""
import json
import math
import sys

sys.setrecursionlimit(10000)
METRICS = ["alloc.calls", "alloc.bytes", "alloc.live", "alloc.peak", "alloc.temporary"]
document = json.load(open(sys.argv[2], encoding="utf-8"))
names = [metric["name"] for metric in document["metrics"]]
places = [names.index(metric) for metric in METRICS]
samples = names.index("alloc")
said = {}
for line in open(sys.argv[3], encoding="utf-8"):
    name, *numbers = line.split()
    said[name] = numbers
found = {name: [0] * len(names) for name in said}




def look_self(node, outer):
    """Adds what the node has itself to the innermost of our functions that it is in."""
    mine = node["name"] if node["name"] in said else outer
    if mine:
        for i in range(len(names)):
            found[mine][i] += node["self"][i]
    for child in node["children"]:
        look_self(child, mine)


look_self(document["tree"], None)
wrong = []
for name, numbers in said.items():
    for metric, place, wanted in zip(METRICS, places, numbers):
        got, count = found[name][place], found[name][samples]
        if wanted == "-":
            continue
        # Each sample stands for about as much as the others, or less.
        error = 0 if sys.argv[1] == "exact" else 4 * int(wanted) / math.sqrt(max(1, count))
        if abs(got - int(wanted)) > error:
            wrong.append(f"{name}: {metric} is {got}, not {wanted}")
    if sys.argv[1] == "sampled":
        print(f"    {name}: {found[name][samples]} samples, {found[name][places[1]]} of {numbers[1]} bytes")
        if found[name][samples] < 20:
            wrong.append(f"{name} has too few samples")
summary = document["summary"]
if summary["lost"] or summary["partial"]:
    wrong.append(f"lost {summary['lost']}, partial {summary['partial']}")
sys.exit("\n".join(wrong) if wrong else 0)
