# SPDX-License-Identifier: Apache-2.0
"""check.py RESULTS: is what culprit said in the booted machine (init) right?"""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import absences  # noqa: E402
import calls as calls_of  # noqa: E402
import known_tree  # noqa: E402

STEPS = """list load known tree.json usual usual.json born born.json agent agent.json calls calls.json io io.json probe itself attach machine machine.json machine_flat.json
    daemon db_check db_list.json db_show.json db_process.json db_report.json""".split()
COUNTERS = """events events.json turns turns.json turns_attach turns_attach.json turns_agent turns_agent.json never
    turns_list.json turns_show.json""".split()
HZ, SECONDS, EVERY = 250, 4, 5  # of the whole machine
ROUNDS = 5  # of calls.c


class Results:
    def __init__(self, folder):
        self.folder = folder
        self.counters = "aarch64" in self.text("uname")  # QEMU has none for x86-64
        self.cpus = int(self.text("cpus"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def load(self, name):
        return json.loads(self.text(name))


def statuses(results):
    for name in STEPS + (COUNTERS if results.counters else []):
        if not os.path.exists(results.path(f"{name}.status")):
            yield "it was not done"
            return
        status = results.text(f"{name}.status").strip()
        if status != "0":
            said = results.text(f"{name}.err" if name != "daemon" else name)
            yield f"{name}: status {status}: {said[-600:].strip()}"


def paths(document):
    """All contexts of known_tree and no others, with complete paths. Their shares of the time are not looked at: where the
    code is not known yet a sample wakes culprit, which takes long on so slow a CPU, in the time of the thread."""
    summary, found = document["summary"], {}
    for path, samples in known_tree.contexts(document["tree"]):
        found[path] = found.get(path, 0) + samples
    for path in set(known_tree.PIECES) - set(found):
        yield f"no sample in {' > '.join(path)}"
    for path in set(found) - set(known_tree.PIECES):
        if found[path] > 2 + summary["samples"] / 5000:
            yield f"{found[path]} samples in a context that there is not: {' > '.join(path)}"
    partial = sum(summary["partial"].values())
    print(f"      {summary['samples']} samples, {partial} partial, {summary['lost']} lost")
    if summary["samples"] < 3000 or partial > summary["samples"] / 1000 or summary["lost"]:
        yield f"{summary['samples']} samples, partial: {summary['partial']}, lost: {summary['lost']}"
    if (summary["processes"], summary["threads"]) != (known_tree.PROCESSES, known_tree.THREADS):
        yield f"{summary['processes']} processes, {summary['threads']} threads"


def known(results):
    """By the kernel's clock."""
    yield from paths(results.load("tree.json"))


def usual(results):
    """By what is the usual event there."""
    document, wanted = results.load("usual.json"), "cycles" if results.counters else "cpu-clock"
    if document["metrics"][0]["name"] != wanted:
        yield f"{document['metrics'][0]['name']} is sampled, not {wanted}"
    yield from paths(document)


def born(results):
    """Threads and processes that have not yet run: nobody takes them for the one that made them, whose path would then begin where it does
    not. Paths begin in the loader, the program, a thread and the kernel."""
    document = results.load("born.json")
    summary, begin = document["summary"], [(child["name"], child["total"][0]) for child in document["tree"]["children"]]
    print(f"      {summary['samples']} samples of {summary['threads']} threads: {begin}")
    if summary["samples"] < 1000 or summary["partial"] or summary["lost"]:
        yield f"{summary['samples']} samples, partial: {summary['partial']}, lost: {summary['lost']}"
    if len(begin) > 4:
        yield f"paths begin in {begin}"


def agent(results):
    """Who needs none of the kernel: contexts, shares, and as many samples as CPU time."""
    seconds = sum(int(us) for us in re.findall(r"^cpu (\d+) us$", results.text("agent"), re.M)) / 1e6
    yield from known_tree.problems(results.load("agent.json"), seconds, 400)


WAITS = ("read nanosleep until poll pollfd select epoll futex semaphore wait pause suspend").split()


def late(results):
    """The agent in processes that run already: their calls end as they would have, and a program that checks itself is content."""
    for name in [f"late_{call}" for call in WAITS] + [f"late{number}" for number in range(1, 6)]:
        if results.text(f"{name}.status").strip() != "0":
            yield f"{name}: {results.text(name + '.err').strip()[-600:]}"
    for call in WAITS:
        said = results.text(f"waiting_{call}").strip()
        if said != f"{call} ok":
            yield f"waiting: {said}"
    if results.text("self_check").strip() != "errors 0":
        yield f"self_check: {results.text('self_check')[-600:]}"
    summary = results.load("late.json")["summary"]
    if summary["samples"] < 100 or summary["lost"] or sum(summary["partial"].values()) > 0.02 * summary["samples"]:
        yield f"its samples: {summary}"


def calls(results):
    """What the kernel does for a program, as the agent's collector has it: at the call or the access, and no call is shorter."""
    spent = {name: int(us) for name, us in re.findall(r"^(compute|call|touch) (\d+)$", results.text("calls"), re.M)}
    yield from calls_of.problems(results.load("calls.json"), spent, 400)


def io(results):
    """What one function reads, as the kernel's program counts it."""
    document = results.load("io.json")
    column = {metric["name"]: i for i, metric in enumerate(document["metrics"])}
    node = next(node for node in all_nodes(document["tree"]) if node["name"] == "call")
    calls, size = (node["total"][column[name]] for name in ("io.calls", "io.bytes"))
    print(f"      {calls} reads, {size} bytes")
    if (calls, size) != (ROUNDS * 4, ROUNDS * 4 << 22):
        yield f"call reads {calls} times, {size} bytes"


def patched(results):
    """A process that counts its own calls: of all kinds, and its code is that of its files when nobody asks any more."""
    if not os.path.exists(results.path("probe_running.status")):
        yield "it was not done"
        return
    for name in [f"probe_{what}{number}" for number in range(1, 5) for what in ("late", "same")] + ["probe_started"]:
        status = results.text(f"{name}.status").strip()
        if status != "0":
            yield f"{name}: status {status}: {results.text(name)[-200:]} {results.text(f'{name}.err')[-600:].strip()}"
            return
    for number in range(1, 5):
        for p in results.load(f"probe_late{number}")["probes"]:
            ends = [p[how] for how in ("returned", "unwound", "abandoned", "active")]
            if p["engine"] != "patch" or not p["calls"] or sum(ends) != p["calls"]:
                yield f"probe_late{number}: {p}"
    said = results.text("probe_running").split()
    if results.text("probe_running.status").strip() != "0" or said[-2:] != ["wrong", "0"]:
        yield f"its answers are wrong, or it has ended otherwise: {said[-8:]}"
    if results.text("probe_killed_at").count("ptrace") < 10:
        yield f"it was hardly ever killed at a step: {results.text('probe_killed_at')}"
    if results.text("probe_memory").strip() != "0":
        yield "memory of the agent is left"
    for p in json.loads(results.text("probe_started.err").strip().splitlines()[-1])["probes"]:
        if p["engine"] != "patch" or not p["calls"] or p["returned"] != p["calls"]:
            yield f"probe_started: {p}"


def probe(results):
    """Calls of two functions, each from one place."""
    document = json.loads(results.text("probe.err").strip().splitlines()[-1])
    for one in document["probes"]:
        print(f"      {one['function']}: {one['calls']} calls, {one['returned']} returned")
        if (one["calls"], one["returned"]) != (ROUNDS, ROUNDS):
            yield f"{one['function']} was called {one['calls']} times"
    for path in document["paths"]:
        if "spend" not in str(path["frames"]) or "main" not in str(path["frames"]):
            yield f"a path lacks its callers: {path['frames']}"


def wakers(document):
    """Who woke the threads: sleeps end by an interrupt, and other waits by another thread."""
    found = {}
    for wait in document["waits"]:
        key = wait["reason"], wait["by"]
        found[key] = found.get(key, 0) + wait["samples"]
    print("     ", found)
    for reason, by in ("sleep", "interrupt"), ("pipe", "thread"), ("lock", "thread"):
        total = sum(samples for key, samples in found.items() if key[0] == reason)
        if not total or found.get((reason, by), 0) < 0.9 * total:
            yield f"waits for a {reason} were not ended by: {by}"
    times = document["summary"]["times"]
    print("     ", times)
    if not times["blocked_ns"] or not times["cpu_ns"]:
        yield "times were not counted"


def blocked(results):
    """Time off the CPU. For aarch64, Debian 12's kernel has no way to see it."""
    if os.path.exists(results.path("blocked.json")):
        yield from absences.problems(results.load("blocked.json"), results.text("blocked"), 400)
        yield from wakers(results.load("waits.json"))
    elif "x86_64" in results.text("uname"):
        yield "it cannot be sampled: " + results.text("list")


def events(results):
    """Two counters at once, the periods of which are in step. There an instruction takes eight cycles. Cycles have some more than their
    share: culprit, which samples wake, takes a tenth of so slow a CPU, and is not there when the next one comes."""
    if not results.counters:
        return
    document = results.load("events.json")
    totals = {metric["name"]: metric["total"] * metric["period"] for metric in document["metrics"]}
    rate = totals["cycles"] / totals["instructions"]
    print(f"      {document['summary']['samples']} samples: {rate:.2f} cycles per instruction")
    if not 7.5 < rate < 10:
        yield f"{rate:.2f} cycles per instruction, not 8"


def scaled(events, key, counted, least=0.85):
    """Events had too few counters: each was counted in a share of the time, `counted`. What is said of all of the time is as the clock, which needs none, has it: that many
    nanoseconds are as many cycles, and eight times the instructions. `least`: the agent's handler, which the clock has in its periods
    and counters leave out, is a part of so slow a CPU."""
    amounts = {event["name"]: event[key] * event["period"] for event in events}
    shares = {event["name"]: event["counted"] for event in events}
    clock = amounts["cpu-clock"]
    if shares["cpu-clock"] != 1:
        yield f"the clock was counted {shares['cpu-clock']:.1%} of the time"
    for name, each in (("cycles", 1), ("r11", 1), ("instructions", 8), ("r8", 8)):
        if name not in amounts:
            continue
        rate = amounts[name] * each / clock
        print(f"      {name}: counted {shares[name]:.1%}, {rate:.2f} of what it should be")
        # How the kernel deals turns out is its own affair: one may have fewer than the others.
        if not counted / 2 < shares[name] < 1.2 * counted:
            yield f"{name} was counted {shares[name]:.1%} of the time, where turns would give it {counted:.1%}"
        if not least < rate < 1.1:
            yield f"{name}: {rate:.2f} of what it should be"


def turns(results):
    if not results.counters:
        return
    for name in ("turns", "turns_attach", "turns_agent"):
        print(f"      {name}")
        yield from scaled(results.load(f"{name}.json")["metrics"], "total", 3 / 5,
                          0.7 if name == "turns_agent" else 0.85)
        if "cycles was counted" not in results.text(f"{name}.err"):
            yield f"{name} does not say that events took turns"
    print("      daemon")
    yield from scaled(results.load("turns_show.json")["events"], "samples", 3 / 5)
    events = [event for epoch in results.load("turns_list.json")["epochs"] for event in epoch["events"]]
    if not all(0.55 < event["counted"] < 0.65 for event in events if event["name"] != "cpu-clock"):
        yield f"db list: {events}"
    if "cycles was counted" not in results.text("turns_daemon"):
        yield "the daemon does not say that events take turns"
    if "instructions was never counted" not in results.text("never.err") or "cycles was counted" not in results.text("never.err"):
        yield f"of counters that others hold it says: {results.text('never.err')}"


def thrice(rows, column):
    """In program one, often takes three times what seldom takes."""
    often, seldom = (sum(row["total"][column] for row in rows if row["name"] == name)
                     for name in ("often", "seldom"))
    print(f"      {often} samples in often, {seldom} in seldom")
    if often + seldom < 100 or abs(often - 3 * seldom) > 3 * math.sqrt(3 * (often + seldom)):
        yield f"often has not three times the samples of seldom"


def all_nodes(node):
    yield node
    for child in node.get("children", ()):
        yield from all_nodes(child)


def machine(results):
    document = results.load("machine.json")
    summary = document["summary"]
    samples, partial = summary["samples"], sum(summary["partial"].values())
    print(f"      {samples} samples, {partial} partial, {summary['lost']} lost")
    if abs(samples / (HZ * SECONDS * results.cpus) - 1) > 0.1:
        yield f"{samples} samples of {results.cpus} CPUs in {SECONDS} seconds"
    if partial > samples / 200 or summary["lost"]:
        yield f"{partial} partial, {summary['lost']} lost of {samples}"
    # What two does in the kernel stands below all its calls, with its name.
    reading = [node for node in all_nodes(document["tree"]) if node["name"] == "reading"]
    names = {node["name"] for node in all_nodes({"name": "", "children": reading})}
    if not names & {"read_zero", "read_iter_zero", "__arch_clear_user"}:
        yield f"below reading are only {', '.join(sorted(names))}"
    yield from thrice(results.load("machine_flat.json")["rows"], 0)


def daemon(results):
    epochs = results.load("db_list.json")["epochs"]
    samples, walked = (sum(numbers) for numbers in zip(
        *((epoch["samples"], epoch["events"][0]["walked"]) for epoch in epochs)))
    print(f"      {samples} samples, {walked} with their path")
    if samples < HZ * SECONDS or any(epoch["lost"] for epoch in epochs):
        yield f"{samples} samples, lost: {[epoch['lost'] for epoch in epochs]}"
    if abs(samples - EVERY * walked) > EVERY * results.cpus:
        yield f"{walked} of {samples} samples have a path, not one of {EVERY}"
    runs = sum(epoch["daemon"]["kernel_runs"] for epoch in epochs)
    if runs != samples:
        yield f"the sampler ran {runs} times for {samples} samples"
    rows = results.load("db_process.json")["rows"]
    for name in ("one", "two"):
        part = sum(row["samples"][0] for row in rows if row["process"].startswith(f"{name} ("))
        if part < 0.25 * samples:
            yield f"{name} has {part} of {samples} samples, and should have nearly half"
    report = results.load("db_report.json")
    for column, metric in enumerate(report["metrics"]):
        if not metric["name"].endswith(":all"):
            yield from thrice(report["rows"], column)


def main():
    results, failed = Results(sys.argv[1]), 0
    print(results.text("uname").strip())
    for check in (statuses, known, usual, events, born, agent, late, calls, io, probe, patched, blocked, machine, turns, daemon):
        try:
            found = list(check(results))
        except (OSError, KeyError, ValueError, ZeroDivisionError) as why:
            found = [f"{type(why).__name__}: {why}"]
        failed += bool(found)
        print("FAIL " if found else "ok   ", check.__name__)
        for problem in found:
            print("     ", problem)
    return 1 if failed else 0


sys.exit(main())
