# SPDX-License-Identifier: Apache-2.0
"""calls.py REPORT OUTPUT HZ: has a program its time where it spent it? Used for tests/targets/calls.c and in_step.c. REPORT
is what `culprit report --json --min 0` printed, OUTPUT what the program said (CPU time by function, in microseconds)."""
import json
import math
import sys


def below(node, name):
    """Samples in functions of this name, whatever they call."""
    if node["kind"] == "function" and node["name"].split(".")[0] == name:
        return node["total"][0]
    return sum(below(child, name) for child in node.get("children", ()))


def problems(document, spent, hz):
    summary, found = document["summary"], {name: below(document["tree"], name) for name in spent}
    whole, time = sum(found.values()), sum(spent.values())
    print("      " + ", ".join(f"{name} {found[name] / max(1, whole):.2%} ({spent[name] / time:.2%} of the CPU time)" for name in spent))
    if summary["lost"] or summary["partial"]:
        yield f"lost {summary['lost']}, partial {summary['partial']}"
    if abs(whole / hz * 1e6 / time - 1) > 0.05:
        yield f"{whole} samples, but the CPU time makes {time * hz / 1e6:.0f}"
    for name, cost in spent.items():
        share = cost / time
        # The program's own clock is read within the calls that it measures.
        error = 4 * math.sqrt(share * (1 - share) / max(1, whole)) + 0.01
        if abs(found[name] / max(1, whole) - share) > error:
            yield f"{name}: {found[name] / max(1, whole):.2%}, not {share:.2%}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        spent = {name: int(us) for name, us in (line.split() for line in file)}
    found = list(problems(document, spent, float(sys.argv[3])))
    for problem in found:
        print(problem)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
