# SPDX-License-Identifier: Apache-2.0
"""What bench/overhead measured, as the tables of doc/results.md."""
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

# The order of columns, and their titles.
TITLES = {"again": "plain again", "clock": "the clock alone", "culprit": "culprit (kernel)", "culprit-agent": "culprit, agent",
          "culprit-analysis": "culprit, analysis",
          "perf": "perf -g", "perf-dwarf": "perf dwarf", "gperftools": "gperftools",
          "clock-10k": "clock, 10 kHz", "culprit-10k": "culprit, 10 kHz", "culprit-agent-10k": "agent, 10 kHz", "perf-10k": "perf -g, 10 kHz"}
DEFAULT = ("culprit", "culprit-10k")
AGENT = ("culprit-agent", "culprit-agent-10k")
ANALYSIS = ("culprit-analysis", "culprit-analysis-10k")
ENOUGH = 0.95
LINKS = ("valid", "likely", "invalid", "unknown")


def programs_of(suite):
    with open(os.path.join(suite, "suite.tsv"), encoding="utf-8") as lines:
        return [text.split("\t")[0] for text in lines if text.strip() and not text.startswith("#")]


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def spread(values):
    """The median of the distances from the median."""
    middle = median(values)
    return median([abs(v - middle) for v in values]) if values else None


def percent(value, digits=2):
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def size(value):
    if value is None:
        return "-"
    return f"{value / 1e6:.1f} MB" if value >= 1e6 else f"{value / 1e3:.1f} kB"


def count(value):
    return f"{value:,}".replace(",", " ")


def line(*cells):
    return "| " + " | ".join(str(c) for c in cells) + " |"


def head(*titles):
    return [line(*titles), line(*["---"] * len(titles))]


class Table:
    """The rows of one part, by program, tool and round."""

    def __init__(self, rows, part):
        self.rows = [r for r in rows if r["part"] == part and not r["status"]]
        self.failed = [r for r in rows if r["part"] == part and r["status"]]
        self.programs = sorted({r["program"] for r in self.rows})
        self.cells = {}
        for r in self.rows:
            self.cells.setdefault((r["program"], r["tool"]), {})[r["round"]] = r

    def of(self, program, tool):
        return list(self.cells.get((program, tool), {}).values())

    def ratios(self, program, tool, key="cpu"):
        """How much more than plainly, for each round that has both."""
        plain, other = (self.cells.get((program, t), {}) for t in ("plain", tool))
        return [other[n][key] / plain[n][key] - 1 for n in sorted(other)
                if n in plain and plain[n].get(key) and other[n].get(key)]

    def value(self, program, tool, key):
        return median([r.get(key) for r in self.of(program, tool)])

    def own_estimate(self, program, tool):
        return median([r["summary"]["overhead"] for r in self.of(program, tool) if r.get("summary")])

    def handler(self, program, tool):
        return median([r["summary"]["handler_ns"] for r in self.of(program, tool) if r.get("summary")])


def order_of_suite(table, suite):
    try:
        order = programs_of(suite)
    except OSError:
        order = []
    return sorted(table.programs, key=lambda p: (order.index(p) if p in order else len(order), p))


def over(table, program, tool):
    ratios = table.ratios(program, tool)
    if not ratios:
        return "-"
    return f"{100 * median(ratios):.2f} ± {100 * spread(ratios):.2f}"


def overhead_lines(table, programs):
    tools_there = [t for t in TITLES if any(table.of(p, t) for p in programs)]
    rounds = {t: max((len(table.ratios(p, t)) for p in programs), default=0) for t in tools_there}
    lines = head("program", "plain, s", *[f"{TITLES[t]} ({rounds[t]})" for t in tools_there],
                 "culprit says", "10 kHz says", "handler, µs")
    medians = {t: [] for t in tools_there}
    for p in programs:
        for t in tools_there:
            if table.ratios(p, t):
                medians[t].append((median(table.ratios(p, t)), p))
        handler = table.handler(p, "culprit")
        lines.append(line(p, f"{table.value(p, 'plain', 'cpu') or 0:.2f}",
                          *[over(table, p, t) for t in tools_there],
                          percent(table.own_estimate(p, "culprit")),
                          percent(table.own_estimate(p, "culprit-10k")),
                          "-" if handler is None else f"{handler / 1e3:.1f}"))
    own = [table.own_estimate(p, "culprit") for p in programs]
    own10 = [table.own_estimate(p, "culprit-10k") for p in programs]
    lines.append(line("**median**", "", *[f"{100 * median([m for m, _ in medians[t]]):.2f}"
                                          if medians[t] else "-" for t in tools_there],
                      percent(median(own)), percent(median(own10)), ""))
    lines.append(line("**worst**", "", *["{:.2f} ({})".format(100 * max(medians[t])[0], max(medians[t])[1])
                                         if medians[t] else "-" for t in tools_there],
                      percent(max((x for x in own if x is not None), default=None)),
                      percent(max((x for x in own10 if x is not None), default=None)), ""))
    return lines


def cost_lines(table, programs):
    """The clock, the tool's own CPU time, data."""
    def cell(p, tool, key, form):
        value = table.value(p, tool, key)
        return "-" if value is None else form(value)

    def seconds(value):
        return f"{value:.2f}"

    lines = head("program", "plain, s by the clock", "culprit", "10 kHz", "perf -g", "perf dwarf",
                 "own CPU time, s: culprit", "10 kHz", "perf -g", "perf dwarf",
                 "data: culprit", "10 kHz", "perf -g", "perf dwarf", "dwarf : culprit")
    worst = []
    for p in programs:
        ours, dwarf = table.value(p, "culprit", "bytes"), table.value(p, "perf-dwarf", "bytes")
        times = dwarf / ours if ours and dwarf else None
        worst.append(times)
        lines.append(line(
            p, *[cell(p, t, "tool_wall", seconds)
                 for t in ("plain", "culprit", "culprit-10k", "perf", "perf-dwarf")],
            *[cell(p, t, "own_cpu", seconds) for t in ("culprit", "culprit-10k", "perf", "perf-dwarf")],
            *[cell(p, t, "bytes", size) for t in ("culprit", "culprit-10k", "perf", "perf-dwarf")],
            "-" if times is None else f"{times:.0f} x"))
    known = [w for w in worst if w is not None]
    if known:
        lines += ["", f"Smallest ratio of perf's DWARF data to the profile: {min(known):.0f}; "
                      f"largest profile: "
                      f"{size(max(table.value(p, 'culprit', 'bytes') or 0 for p in programs))}."]
    clients = [(p, t) for p in programs for t in ("plain", *TITLES)
               if table.value(p, t, "client") is not None]
    if clients:
        lines += ["", "Seconds of a server's clients: " + ", ".join(
            f"{p} {t} {table.value(p, t, 'client'):.2f}" for p, t in clients) + "."]
    return lines


def add_up(rows):
    total = {"samples": 0, "complete": 0, "lost": 0, "partial": {}}
    for r in rows:
        s = r.get("summary")
        if not s:
            continue
        for key in ("samples", "complete", "lost"):
            total[key] += s[key]
        for reason, n in s["partial"].items():
            total["partial"][reason] = total["partial"].get(reason, 0) + n
    return total


def reasons(partial):
    return ", ".join(f"{n} {reason}" for reason, n in sorted(partial.items(), key=lambda x: -x[1])) or "0"


def stacks_cell(rows):
    found = [r["stacks"] for r in rows if r.get("stacks") and r["stacks"]["stacks"]]
    if not found:
        return "-"
    return percent(sum(s["rooted"] for s in found) / sum(s["stacks"] for s in found), 1)


def per_100_000(total):
    samples = total["samples"]
    return "-" if not samples else f"{1e5 * (samples - total['complete']) / samples:.2f}"


def expected(row):
    """How many samples the CPU time should have given."""
    return row["cpu"] * (10000 if row["tool"].endswith("10k") else 1000)


def whole_cells(rows):
    total, should = add_up(rows), sum(expected(r) for r in rows if r.get("summary"))
    return [count(total["samples"]), percent(total["samples"] / should, 1) if should else "-",
            reasons(total["partial"]), total["lost"]]


def missing_lines(rows):
    """Runs that have less samples than they should, whatever the reason."""
    short = [f"{r['program']} ({r['tool']}): {r['summary']['samples']} of {expected(r):.0f}"
             for r in rows if r.get("summary") and r["summary"]["samples"] < ENOUGH * expected(r)]
    return ["", f"Runs with less than {ENOUGH:.0%} of the samples that their CPU time should give: "
            + ("; ".join(short) if short else "none") + "."]


def whole_lines(table, programs):
    modes = [("kernel", DEFAULT), ("agent", AGENT), ("analysis", ANALYSIS)]
    lines = head("program", *[f"{start}{title}" for start in ("", "agent: ", "analysis: ")
                              for title in ("samples", "of expected", "partial", "lost")],
                 "perf -g reaches a root", "perf dwarf")
    sums = {mode: [] for mode, _ in modes}
    for p in programs:
        cells = []
        for mode, names in modes:
            rows = [r for t in names for r in table.of(p, t)]
            sums[mode] += rows
            cells += whole_cells(rows)
        lines.append(line(p, *cells, stacks_cell(table.of(p, "perf-stacks")),
                          stacks_cell(table.of(p, "perf-dwarf-stacks"))))
    cells, rates = [], []
    for mode, _ in modes:
        cells += whole_cells(sums[mode])
        rates.append(f"{per_100_000(add_up(sums[mode]))} ({mode})")
    lines.append(line("**all**", *cells, "", ""))
    lines += ["", "Partial paths per 100 000 samples: " + ", ".join(rates) + "."]
    return lines + missing_lines([r for rows in sums.values() for r in rows])


def links_lines(table, programs):
    lines = head("program", *LINKS, "analysis: valid", *LINKS[1:], "worst")
    sums = [dict.fromkeys(LINKS, 0), dict.fromkeys(LINKS, 0)]
    for p in programs:
        cells, worst = [], []
        for number, names in enumerate((DEFAULT, ANALYSIS)):
            part = dict.fromkeys(LINKS, 0)
            for r in (r for t in names for r in table.of(p, t) if r.get("links")):
                for key in LINKS:
                    part[key] += r["links"][key]
                worst += r["links"]["worst"]
            for key in LINKS:
                sums[number][key] += part[key]
            cells += [count(part[key]) for key in LINKS]
        worst.sort(key=lambda w: -w["samples"])
        lines.append(line(p, *cells, f"{worst[0]['caller']} → {worst[0]['callee']} ({worst[0]['samples']})"
                          if worst else ""))
    lines.append(line("**all**", *[count(part[key]) for part in sums for key in LINKS], ""))
    rates = [1e5 * part["invalid"] / sum(part.values()) if sum(part.values()) else 0 for part in sums]
    lines += ["", f"Invalid per 100 000 links: {rates[0]:.2f} (default), {rates[1]:.2f} (analysis)."]
    return lines


def start_lines(rows):
    parts = {}
    for r in rows:
        if r["part"] == "start" and not r["status"]:
            parts.setdefault(r["program"], []).append(r)
    lines = head("command", "runs", "ms by the clock", "±", "CPU time, ms")
    for name, runs in parts.items():
        walls = [1e3 * r["wall"] for r in runs]
        lines.append(line(f"`{name}`", len(runs), f"{median(walls):.1f}", f"{spread(walls):.1f}",
                          f"{1e3 * median([r['cpu'] for r in runs]):.1f}"))
    return lines if parts else []


def report_lines(rows):
    parts = {}
    for r in rows:
        if r["part"] == "report" and not r["status"]:
            parts.setdefault((r["program"], r["tool"]), []).append(r)
    worst = {}
    for (program, tool), runs in parts.items():
        worst.setdefault(tool, []).append((median([r["wall"] for r in runs]), program, runs[0]["bytes"]))
    lines = head("profiles", "median, s", "slowest, s", "of")
    for tool, found in sorted(worst.items()):
        slowest = max(found)
        lines.append(line(f"{tool} ({len(found)})", f"{median([f[0] for f in found]):.2f}",
                          f"{slowest[0]:.2f}", f"{slowest[1]} ({size(slowest[2])})"))
    return lines if parts else []


def machine():
    model = "unknown CPU"
    done = subprocess.run(["lscpu"], stdout=subprocess.PIPE, text=True, check=False) \
        if shutil.which("lscpu") else None
    for text in done.stdout.splitlines() if done else []:
        if text.startswith("Model name:"):
            model = text.split(":", 1)[1].strip()
    return f"{os.cpu_count()} x {model} ({platform.machine()}), Linux {platform.release()}"


def failed_lines(table):
    return [f"Failed: {r['program']} with {r['tool']} ({r['status']})." for r in table.failed]


def make_tables(rows, suite):
    """Name -> lines."""
    suite_table, deep = Table(rows, "suite"), Table(rows, "deep")
    programs = order_of_suite(suite_table, suite)
    result = {}
    if programs:
        load = next((r["load"] for r in rows if r["part"] == "machine"), 0)
        about = f"{machine()}; load before the start {load:.1f}."
        result["overhead"] = [about, ""] + overhead_lines(suite_table, programs) + failed_lines(suite_table)
        result["cost"] = cost_lines(suite_table, programs)
        result["whole"] = whole_lines(suite_table, programs)
        if any(r.get("links") for r in suite_table.rows):
            result["links"] = links_lines(suite_table, programs)
    if deep.programs:
        result["deep"] = overhead_lines(deep, sorted(deep.programs, reverse=True))[:-2] + failed_lines(deep)
    result["start"] = start_lines(rows)
    result["report"] = report_lines(rows)
    return {name: lines for name, lines in result.items() if lines}


def write_tables(path, tables_made, bench="overhead"):
    """Each between its markers in the file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, lines in tables_made.items():
        begin, end = f"<!-- bench/{bench}: {name} -->", f"<!-- {name}: end -->"
        pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            print(f"{path}: no place for the table '{name}'", file=sys.stderr)
            continue
        new = "\n".join([begin, *lines, end])
        text = pattern.sub(lambda _: new, text)  # pylint: disable=cell-var-from-loop
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
