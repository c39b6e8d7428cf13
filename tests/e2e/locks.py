# SPDX-License-Identifier: Apache-2.0
"""locks.py KIND: of the report in `report`, who is to blame, and how long did the victim wait, of the microseconds in `said`?"""
import json
import sys

document = json.load(open("report"))
names = [m["name"] for m in document["metrics"]]
ns, held = names.index("lock.ns"), names.index("lock.held")
found = {}

def look(node, inside):
    name = node["name"]
    inside = inside or (name if name in ("guilty", "innocent", "victim", "main") else None)
    if inside:
        found.setdefault(inside, [0] * len(names))
        for i, own in enumerate(node["self"]):
            found[inside][i] += own
    for child in node["children"]:
        look(child, inside)

look(document["tree"], None)
waited, said = found.get("victim", [0] * len(names))[ns] / 1000, int(open("said").read())
blame = {name: values[held] / 1000 for name, values in found.items()}
print(f"    {sys.argv[1]}: waited {waited:.0f} us of {said}, blamed {blame}")
bad = []
if max(blame, key=blame.get) != "guilty" or blame["guilty"] < 0.4 * said:
    bad.append("another is to blame")
# The program's own clock runs from before the call to after it; threads that are ready may have to wait for a CPU.
if not 0.7 * said - 20000 < waited < 1.05 * said + 5000:
    bad.append("it waited another time")
if document["summary"]["partial"] or document["summary"]["lost"]:
    bad.append(str(document["summary"]))
sys.exit("\n".join(bad) if bad else 0)
