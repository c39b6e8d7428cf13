# SPDX-License-Identifier: Apache-2.0
"""lives.py REPORT SAID: are the numbers of memory those that tests/targets/lives.c says? REPORT: report --json --min 0.

Times may be off by 2 %: the two clocks are compared while the program runs."""
import json
import sys

sys.setrecursionlimit(10000)
document = json.load(open(sys.argv[1], encoding="utf-8"))
names = [metric["name"] for metric in document["metrics"]]
said = [line.split() for line in open(sys.argv[2], encoding="utf-8")]
functions = {line[0] for line in said}
found = {name: [0] * len(names) for name in functions}


def look(node, outer):
    """Adds what the node has itself to the innermost of the program's functions that it is in."""
    mine = node["name"] if node["name"] in functions else outer
    if mine:
        for i in range(len(names)):
            found[mine][i] += node["self"][i]
    for child in node["children"]:
        look(child, mine)


look(document["tree"], None)
wrong = []
for function, metric, least, most in said:
    got, slack = found[function][names.index(metric)], 0.02 if metric == "alloc.lifetime" else 0
    if not int(least) * (1 - slack) <= got <= int(most) * (1 + slack):
        wrong.append(f"{function}: {metric} is {got}, not {least} to {most}")
sys.exit("\n".join(wrong) if wrong or not said else 0)
