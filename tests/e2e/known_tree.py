# SPDX-License-Identifier: Apache-2.0
"""known_tree.py REPORT OUTPUT HZ: is the profile of tests/targets/known_tree.c what it must be?
REPORT is what `culprit report --json` printed, OUTPUT what the program did. The share of every
context must be within three standard errors of its share of the CPU time that the program measured,
the sum must fit the CPU time."""
import json
import math
import re
import sys

# Pieces of work per round, by context: how much that is in CPU time the program says. Calls of libc are left out of paths.
PIECES = {
    ("main", "main_part", "phase_a", "leaf_one"): 3,
    ("main", "main_part", "phase_a", "leaf_two"): 2,
    ("main", "main_part", "phase_b", "leaf_one"): 1,
    ("main", "main_part", "recurse", "recurse", "recurse", "leaf_two"): 2,
    ("main", "main_part", "plugin_entry", "plugin_inner"): 2,
    ("thread_alpha", "leaf_one"): 4,  # in two processes
    ("thread_alpha", "plugin_entry", "plugin_inner"): 2,
    ("thread_beta", "phase_b", "leaf_one"): 3,
    ("main", "child_main", "leaf_two"): 2,
    ("main", "child_main", "grandchild_main", "phase_a", "leaf_one"): 3,
    ("main", "child_main", "grandchild_main", "phase_a", "leaf_two"): 2,
}
PROCESSES, THREADS = 3, 6
OURS = {name for path in PIECES for name in path} | {"work"}


def contexts(node, path=()):
    """(path of our functions down to work, samples in it)"""
    name = node["name"].split(".")[0]  # compilers make copies: leaf_two.constprop.0
    if node["kind"] == "function" and name in OURS:
        path += (name,)
    if path and path[-1] == "work":
        yield path[:-1], node["total"][0]
        return
    for child in node.get("children", ()):
        yield from contexts(child, path)


INTERRUPT = 10e-6  # seconds, at most


def problems(document, cpu_seconds, hz, spent=None):
    """`spent`: CPU time of each context. Without it, pieces are taken to be equal: that holds where time is
    counted in instructions."""
    spent = PIECES if spent is None else spent
    counted = {}
    for path, samples in contexts(document["tree"]):
        counted[path] = counted.get(path, 0) + samples
    summary, worked = document["summary"], sum(counted.values())
    samples = summary["samples"]
    # Totals are sums of periods: bring them to samples.
    unit = document["tree"]["total"][0] / samples if samples else 1
    worked, counted = worked / unit, {path: count / unit for path, count in counted.items()}
    if samples < 3000:
        yield f"only {samples} samples"
        return
    if set(spent) != set(PIECES):
        yield f"the program was in {len(spent)} contexts, not in {len(PIECES)}"
        return
    for path in set(counted) - set(PIECES):
        # An instruction or two before a frame stands: it may be seen, but hardly ever.
        if counted[path] > 2 + samples / 5000:
            yield f"{counted[path]:.0f} samples in a context that there is not: {' > '.join(path)}"
    for path, cost in spent.items():
        share = cost / sum(spent.values())
        error = math.sqrt(share * (1 - share) / worked)
        found = counted.get(path, 0) / worked
        if abs(found - share) > 3 * error:
            yield (f"{' > '.join(path)}: {found:.2%}, not {share:.2%} "
                   f"({(found - share) / error:+.1f} standard errors)")
    if worked < 0.97 * samples:
        yield f"only {worked:.0f} of {samples} samples in work()"
    expected = cpu_seconds * hz
    # The event goes on while the kernel handles its interrupts, and CPU time may not: on virtual machines they take some us each.
    interrupts = samples * INTERRUPT * hz
    if not -0.03 * expected < samples + summary["lost"] - expected < 0.03 * expected + interrupts:
        yield f"{samples} samples and {summary['lost']} lost, but the CPU time makes {expected:.0f}"
    partial = sum(summary["partial"].values())
    if summary["complete"] + partial != samples or partial > samples / 10000:
        yield f"{summary['complete']} complete, {partial} partial of {samples}"
    for what, right in (("processes", PROCESSES), ("threads", THREADS)):
        if summary[what] != right:
            yield f"{summary[what]} {what}, not {right}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        said = file.read()
    times = [int(n) for n in re.findall(r"^cpu (\d+) us$", said, re.M)]
    spent = {}
    for cost, names in re.findall(r"^context (\d+) ns (.*)$", said, re.M):
        path = tuple(names.split())
        spent[path] = spent.get(path, 0) + int(cost)
    found = list(problems(document, sum(times) / 1e6, int(sys.argv[3]), spent))
    if len(times) != PROCESSES:
        found.append(f"{len(times)} processes said their time")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
