# SPDX-License-Identifier: Apache-2.0
"""paths_check.py JSON TRACE PROGRAM [FUNCTION...] [-FUNCTION...]: the paths that `culprit paths --json --limit 0` has counted are those that the
program takes, as a trace of its instructions says (paths_trace.c), and each as often. The functions that are named must be
among those that were counted and called; those with a - before them are not looked at.

The trace says for each call of a function which blocks it comes by. That is cut where culprit says that a path may end: after a
block from which the next path goes on elsewhere. What is left at the end of a call is a path if the call ended by a return or a
jump, or if an exception came that was caught in it. If an exception left it, or it never returned, it may have been counted or not.
"""
import bisect
import collections
import json
import re
import subprocess
import sys


RETURNS_AGAIN = re.compile("_?setjmp|__sigsetjmp|vfork|getcontext")
THROWS = re.compile("__cxa_throw|__cxa_rethrow|_Unwind_Resume")
CALLS = re.compile(r"call|blr?\b")
ENDS = re.compile(r"(repz |bnd |notrack )*(ret|j[a-z]+|b\b|br\b|b\.|cbn?z|tbn?z)")


class Function:
    def __init__(self, told, contexts=None):
        self.name, self.told, self.entry = told["name"], told, int(told["address"], 16)
        assert len(told["paths"]) == told["taken"], (self.name, "--limit 0 is needed")
        self.counted, self.cuts, self.starts = {}, set(), {self.entry}
        for path in told["paths"]:
            blocks = tuple(int(b, 16) for b in path["blocks"])
            after = int(path["next"], 16) if path["next"] else None
            self.counted[blocks, after] = path["count"]
            self.starts.update(blocks)
            if after is not None:
                self.cuts.add((blocks[-1], after))
                self.starts.add(after)
        self.dead_ends = {blocks[-1] for blocks, after in self.counted if after is None}
        self.edges = {(int(a, 16), int(b, 16)): n for a, b, n in told["edges"]}
        self.starts.update(b for _, b in self.edges)
        self.entries, self.sure, self.perhaps = 0, collections.Counter(), collections.Counter()
        self.traced_edges = collections.Counter()
        # By context: of a path, how often; of None, the calls.
        self.context_sure, self.context_perhaps = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        self.has_contexts = bool(told.get("contexts") is not None)
        self.context_counts = collections.defaultdict(collections.Counter)
        for number in told.get("contexts") or []:
            self.context_counts[context_key(contexts, number)][None] += contexts[number]["entries"]
        for path in told["paths"]:
            key = tuple(int(b, 16) for b in path["blocks"]), int(path["next"], 16) if path["next"] else None
            for number, count in path.get("contexts", []):
                self.context_counts[context_key(contexts, number)][key] += count


def context_key(contexts, number):
    """The calls that lead to a context: each function's entry, and where it was called."""
    key = []
    while number is not None:
        context = contexts[number]
        if not context["known"]:
            return None
        key.append((int(context["address"], 16), int(context["site"], 16) if context["site"] else None))
        number = context["caller"]
    return tuple(key)


class Context:
    """Of a call in the trace."""

    def __init__(self, entry, parent, site):
        self.entry, self.parent, self.callees = entry, parent, {}
        self.key = ((entry, site),) + (parent.key if parent else ())

    def callee(self, entry, site):
        if (entry, site) not in self.callees:
            above = self
            while above and above.entry != entry:
                above = above.parent
            self.callees[entry, site] = above or Context(entry, self, site)
        return self.callees[entry, site]


class Call:
    def __init__(self, function, sp, returns, context):
        self.function, self.sp, self.returns, self.context = function, sp, returns, context
        if context:
            function.context_sure[context.key][None] += 1
        self.blocks, self.edges, self.last = [], [], None
        function.entries += 1

    def end_path(self, after, sure=True):
        if self.blocks:
            f = self.function
            (f.sure if sure else f.perhaps)[tuple(self.blocks), after] += 1
            if self.context:
                (f.context_sure if sure else f.context_perhaps)[self.context.key][tuple(self.blocks), after] += 1
            if sure:
                f.traced_edges.update(self.edges)
        self.blocks, self.edges = [], []

    def step(self, pc, code):
        f = self.function
        before, following = code.get(self.last, ("", None))
        thrown = CALLS.match(before) and (pc != following or THROWS.search(before))
        call = code.again.get(pc)
        if thrown and call in f.starts:  # it returns once more
            self.end_path(None, False)
            self.blocks = [call]
        elif thrown:
            # A path is counted where its exception is caught, or before a call that never returns.
            if THROWS.search(before):
                self.end_path(None, False)
            elif self.blocks and self.blocks[-1] in f.dead_ends and (self.blocks[-1], pc) not in f.cuts:
                self.end_path(None)
            else:
                self.edges.append((self.last, pc))
                self.end_path(pc)
            self.blocks = [pc]
        elif pc in f.starts:
            if self.last is not None:
                self.edges.append((self.last, pc))
            if self.blocks and (self.blocks[-1], pc) in f.cuts:
                self.end_path(pc)
            self.blocks.append(pc)
        self.last = pc

    def is_left_for(self, pc, code):
        """Whether somebody goes on there although who was called has not returned."""
        before, following = code.get(self.last, ("", None))
        return CALLS.match(before) and pc != following

    def has_returned(self, code):
        return self.last in code and "ret" in code[self.last][0].split(" <")[0]

    def end(self, code):
        self.end_path(None, bool(ENDS.match(code.get(self.last, ("",))[0])))


class Code(dict):
    """address -> (mnemonic, address of the next); again: what comes behind a call that may return several times -> the call"""


def read_code(program):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    found = [(int(a, 16), m) for a, m in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", text, re.M)]
    code = Code((a, (m.strip(), following[0])) for (a, m), following in zip(found, found[1:] + [(0, "")]))
    code.calls = {following: a for a, (m, following) in code.items() if CALLS.match(m)}
    code.again = {following: a for a, (m, following) in code.items() if CALLS.match(m) and RETURNS_AGAIN.search(m)}
    return code


def read_symbols(program):
    """Ranges of code and their owners' entries; parts that were moved away belong to their function."""
    text = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    symbols = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] (.*)$", text, re.M)
    entries = {name: int(a, 16) for a, _, name in symbols}
    ranges = sorted((int(a, 16), int(a, 16) + int(size, 16), entries.get(name.removesuffix(".cold"), int(a, 16)))
                    for a, size, name in symbols)
    return ranges


def replay(trace, functions, code, ranges):
    starts = [r[0] for r in ranges]

    def owner(pc):
        at = bisect.bisect(starts, pc) - 1
        return ranges[at][2] if at >= 0 and pc < ranges[at][1] else None

    entries, stack, before = {r[2] for r in ranges}, [], (None, 0)
    other = Function({"name": "?", "address": "0x0", "paths": [], "taken": 0, "edges": []})

    outside = Context(None, None, None)
    outside.key = ()

    def open_call(pc, sp, returns):
        f, context = functions.get(pc, other), None
        if f.has_contexts:
            caller = next((c.context for _, c in reversed(stack) if c.context), outside)
            site = code.calls.get(returns) if returns else None
            context = caller.callee(pc, site if site and owner(site) == caller.entry else None)
        stack.append((pc, Call(f, sp, returns, context)))

    for line in open(trace):
        pc, sp, *more = (int(word, 16) for word in line.split())
        while stack and (sp > stack[-1][1].sp or stack[-1][1].has_returned(code)):
            stack.pop()[1].end(code)
        # Where a call does not change SP, who was called may have ended by a jump, or was left by an exception.
        while pc not in entries and owner(pc) and stack and sp >= stack[-1][1].sp and (
                owner(pc) != stack[-1][0] or stack[-1][1].is_left_for(pc, code)):
            stack.pop()[1].end(code)
        called = before[0] in code and CALLS.match(code[before[0]][0])
        if pc in entries and (not stack or called or stack[-1][0] != pc):
            returns = more[0] if more else None
            if stack and not called and stack[-1][1].sp == sp:  # a jump, as the last act
                returns = stack[-1][1].returns
                stack.pop()[1].end(code)
            open_call(pc, sp, returns)
        before = pc, sp
        if stack and owner(pc) == stack[-1][0]:
            stack[-1][1].step(pc, code)
    while stack:
        stack.pop()[1].end(code)


def check(f):
    problems = []
    if f.told["entries"] != f.entries:
        problems.append(f"{f.told['entries']} calls counted, {f.entries} traced")
    for path in f.counted.keys() | f.sure.keys():
        counted, sure, perhaps = f.counted.get(path, 0), f.sure[path], f.perhaps[path]
        if not sure <= counted <= sure + perhaps:
            problems.append(f"path {[hex(b) for b in path[0]]} -> {path[1] and hex(path[1])}: "
                            f"{counted} counted, {sure} traced, {perhaps} more without an end")
    if not f.perhaps:
        for edge in f.edges.keys() | f.traced_edges.keys():
            if f.edges.get(edge, 0) != f.traced_edges[edge]:
                problems.append(f"edge {hex(edge[0])} -> {hex(edge[1])}: {f.edges.get(edge, 0)} counted, "
                                f"{f.traced_edges[edge]} traced")
    for context in f.context_counts.keys() | f.context_sure.keys() if f.has_contexts else ():
        counts, sure, perhaps = f.context_counts[context], f.context_sure[context], f.context_perhaps[context]
        for path in counts.keys() | sure.keys():
            if not sure[path] <= counts[path] <= sure[path] + perhaps[path]:
                what = f"path {[hex(b) for b in path[0]]}" if path else "calls"
                by = context and " by ".join(f"{hex(entry)} from {site and hex(site)}" for entry, site in context)
                problems.append(f"context {by}: {what}: {counts[path]} counted, {sure[path]} traced, {perhaps[path]} more without an end")
    if f.told["checks"] or f.told["unknown"]:
        problems.append(f"{f.told['checks']}, {f.told['unknown']} unknown")
    return problems


def main():
    document = json.load(open(sys.argv[1]))
    program = sys.argv[3]
    named = [name for name in sys.argv[4:] if name[0] != "-"]
    left_out = [name[1:] for name in sys.argv[4:] if name[0] == "-"]
    code, ranges = read_code(program), read_symbols(program)
    known = {r[2] for r in ranges}
    contexts = {context["id"]: context for context in document.get("contexts", [])}
    exact = [Function(f, contexts) for f in document["functions"]
             if f["state"] == "exact" and f["name"] not in left_out and int(f["address"], 16) in known]
    replay(sys.argv[2], {f.entry: f for f in exact}, code, ranges)
    problems = [f"{f.name}: {problem}" for f in exact for problem in check(f)]
    called = {f.name for f in exact if f.entries}
    for name in named:
        if name not in called:
            problems.append(f"{name} was not counted: {[f for f in document['functions'] if f['name'] == name]}")
    if document["checks"]["violated"]:
        problems.append(str(document["checks"]))
    for problem in problems:
        print(problem)
    contexts = sum(len(f.context_sure) for f in exact if f.has_contexts)
    print(f"{len(called)} functions, {contexts} contexts, {sum(sum(f.sure.values()) for f in exact)} paths, "
          f"{sum(sum(f.perhaps.values()) for f in exact)} without an end")
    return 1 if problems else 0


sys.exit(main())
