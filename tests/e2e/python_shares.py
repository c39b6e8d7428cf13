# SPDX-License-Identifier: Apache-2.0
"""python_shares.py SHARE: each function of tests/targets/python_tree.py has its share of the samples (report --json in the
file report; what the program said in the file said), C is between Python and Python where it was, and at least SHARE
of all samples are in the functions."""
import json, math, sys
sys.setrecursionlimit(100000)
spent = {name: int(us) for name, us in (line.split() for line in open("said"))}
document = json.load(open("report"))
summary, found, lines = document["summary"], dict.fromkeys(spent, 0), {}
raw = 0 # samples of the interpreter's own loop, without a Python function
between = []
cut = 0 # samples of partial paths that have a function of ours

def look(node, path):
    name = node["name"]
    if name in found and name not in path:
        found[name] += node["total"][0]
        if any(outer.startswith("(partial") for outer in path):
            global cut
            cut += node["total"][0]
    if name == "_PyEval_EvalFrameDefault" and "rounds" in path:
        global raw
        raw += node["total"][0]
    if name == "sum_of" and "from_c" in path:
        between.append(path[len(path) - path[::-1].index("from_c"):])
    for child in node["children"]:
        look(child, path + [name])

look(document["tree"], [])
whole, time = sum(found.values()), sum(spent.values())
print("   ", ", ".join(f"{name} {found[name] / max(1, whole):.2%} ({spent[name] / time:.2%})" for name in spent), f"of {whole}")
bad = []
# When Python starts, it reads links with frames of 20 KB, in the kernel. The agent has a copy of the innermost part only.
if summary["lost"] or cut or set(summary["partial"]) - {"stack not kept"} or sum(summary["partial"].values()) > 5:
    bad.append(f"lost {summary['lost']}, partial {summary['partial']}")
if whole < 300 or whole < summary["samples"] * float(sys.argv[1]):
    bad.append(f"{whole} of {summary['samples']} samples are in the functions")
if raw > 0.02 * whole: # the agent does not know what was called while the kernel worked
    bad.append(f"{raw} samples in the interpreter without a function")
for name, us in spent.items():
    share = us / time
    if abs(found[name] / max(1, whole) - share) > 4 * math.sqrt(share * (1 - share) / max(1, whole)) + 0.015:
        bad.append(f"{name} has not its share")
if "sum_of" in spent and not all("from_c.<locals>.<lambda>" in path and path[0] != "from_c.<locals>.<lambda>" for path in between):
    bad.append(f"C is not between Python and Python: {between[:2]}")
sys.exit("\n".join(bad) if bad else 0)
