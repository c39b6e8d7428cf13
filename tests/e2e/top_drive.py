# SPDX-License-Identifier: Apache-2.0
"""top_drive.py CULPRIT FILE RECORDER: uses top as people do. RECORDER is the process that records to FILE; it
is ended here."""
import os
import signal
import sys
import time

from terminal import Terminal

culprit, file, recorder = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = 0


def check(condition, what, terminal):
    global steps
    steps += 1
    if not condition:
        print(what, "\n".join(terminal.lines), sep="\n")
        sys.exit(1)


def start(*arguments, **settings):
    terminal = Terminal([culprit, "top", "-i", "0.5", *arguments], **settings)
    terminal.shows(r"\bmain\b")
    return terminal


def restored(terminal, before):
    check(not terminal.alternate and terminal.cursor_shown, "the screen is not as it was", terminal)
    check(before == terminal.mode()[:4], f"the terminal has mode {terminal.mode()[:4]}, not {before} as it was (step {steps})", terminal)


def plain_mode(columns=100, rows=30):
    """The mode of a terminal that nobody has touched."""
    terminal = Terminal(["true"], columns, rows)
    mode = terminal.mode()[:4]
    terminal.end()
    return mode


before = plain_mode()

def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Rows, orders, paths
t = Terminal([culprit, "top", file])
t.shows(r"^culprit top  t\.prof")
t.shows(r"\bheavy\b")
check(cpu_seconds(t.pid) < 1, "the first screen took more than a second of CPU time", t)
check(t.alternate and not t.cursor_shown and t.is_raw(), "it is not on a screen of its own", t)
t.shows(r"now [0-9]+ samples/s, [0-9.]+% of a CPU")
t.shows(r"[0-9]% +[0-9.]+% .*\bspin\b")
t.type("m")
t.shows(r"^ +SELF +total +CPU +so far +module")
t.shows(r"shares  /")
t.type("t")
t.shows(r"helper \(thread [0-9]+\)")
t.type("n")
t.shows(r"shares\.c:[0-9]+  spin")
t.type("l")
t.shows(r"loop at shares\.c:[0-9]+  in spin")
t.type("f")
t.shows(r"\bheavy  shares\.c")
t.type("s")
t.shows(r"self +TOTAL")
t.type("a")
t.shows(r"SO FAR")
t.type("sa")
t.shows(r"SELF +total +CPU +so far")
# The hot path of the selected row, which stays selected.
t.type("/^(heavy|light)$\r")
t.shows(r"filter: \^\(heavy")
t.wait(lambda: not t.has(r"\bmain  shares"), what="rows that do not match are gone")
t.type("s")  # of these, the order by self is chance
t.shows(r"self +TOTAL")
t.type("\x1b[B\r")
t.shows(r"^hot path")
t.wait(lambda: [x for x in ("main", "light", "spin") if any(line.split("%  ")[-1].strip() == x for line in t.lines)] ==
       ["main", "light", "spin"], what="main, light, spin as the hot path")
t.type("\x1b")
t.wait(lambda: not t.has("^hot path"), what="escape closes the path")
t.type("s")
t.type("\x1b")
t.shows(r"\bmain\b")
t.type("/(\r")
t.shows("no regular expression")
t.type("\x1b?")
t.shows("functions   l loops")
t.type("x ")
t.shows("paused: space goes on")
t.read(0.3)
lines = list(t.lines)
end = time.time() + 1.5
while time.time() < end:
    t.read(0.1)
check(t.lines == lines, "what is paused changes", t)
t.type(" ")
t.wait(lambda: t.lines[1] != lines[1], what="it goes on")
t.type("e")
t.shows("there is one event only")
t.type("+")
t.shows("every 2 s")
t.type("-")
t.shows("every 1 s")

# Sizes
for columns, rows in ((40, 12), (20, 6), (9, 4), (200, 60), (3, 3), (5, 2), (1, 1), (80, 24)):
    t.resize(columns, rows)
    t.bytes = b""
    t.wait(lambda: b"\x1b[H" in t.bytes and not t.overflow and t.bytes.endswith(b"\x1b[?2026l"),
           what=f"a picture of {columns} columns and {rows} rows")
    steps += 1
t.shows(r"\bheavy\b")

# Ways out
t.type("q")
check(t.end() == 0, "q does not end it well", t)
restored(t, before)

t = start(file)
t.type("\x03")
check(t.end() == 0, "Ctrl-C", t)
restored(t, before)

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    t = start(file)
    os.kill(t.pid, number)
    check(t.end() == 128 + number, f"signal {number}", t)
    restored(t, before)

# Ctrl-Z and fg, as a shell does it; stopped from elsewhere, too
t = Terminal(["bash", "--norc", "--noprofile", "-i"])
t.wait(lambda: b"$ " in t.bytes or b"# " in t.bytes, what="a prompt")
shell = t.mode()[:4]
t.type(f"{culprit} top -i 0.5 {file}\r")
t.shows(r"\bheavy\b")
t.type("\x1a")
t.wait(lambda: b"Stopped" in t.bytes and t.mode()[:4] == shell, what="it stops, and the shell asks again")
restored(t, shell)
t.type("fg\r")
t.wait(lambda: t.alternate and t.is_raw() and t.has(r"\bheavy\b"), what="it goes on after fg")
t.type("q")
t.wait(lambda: not t.alternate, what="it ends")
t.type("echo status $?\r")
t.wait(lambda: b"status 0" in t.bytes and t.mode()[:4] == shell, what="status 0, and the shell asks again")
restored(t, shell)
t.type("exit\r")
t.end()

# Other terminals
t = start(file, env={"NO_COLOR": "1", "LC_ALL": "C"})
t.type("\r")
t.shows("^hot path")
t.shows("###")
check(b"\x1b[3" not in t.bytes and b"\x1b[1m" not in t.bytes, "there is colour", t)
check(not any(byte >= 0x80 for byte in t.bytes), "there are letters that are not ASCII", t)
t.type("q")
check(t.end() == 0, "without colour", t)
t = Terminal([culprit, "top", "-n", "1", "-i", "0.5", file], env={"TERM": "dumb"})
status = t.end()
check(status == 0 and b"\x1b" not in t.bytes and b"heavy" in t.bytes, f"a dumb terminal: {status} {t.bytes}", t)

# The end of the recording
t = start(file)
os.kill(recorder, signal.SIGTERM)
t.shows("has ended, this is all of")
t.shows(r"\bheavy\b")
t.type("m")
t.shows(r"shares  /")
t.type("q")
check(t.end() == 0, "after the end", t)
restored(t, before)
print(f"{steps} steps")
