# SPDX-License-Identifier: Apache-2.0
"""What a test suite of another project is to us: jobs, each a command that runs a part of it, and a way to read what
passed. A suite is a class in a file of its own, named in run's list."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
from debian_sources import Sources  # noqa: E402 pylint: disable=wrong-import-position

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Missing(Exception):
    """Why a suite cannot be run here."""


class Outcome:
    """What became of one test, and what it said."""

    def __init__(self, result, text=""):
        self.result, self.text = result, text


class Job:
    """A part of a suite that one command runs. In `words`, and in the values of `env`, {run} is the folder that each run
    has for itself, where it starts unless `cwd` says otherwise. `tree` is copied there before."""

    def __init__(self, name, words, cwd="{run}", env=None, tree=None, limit=900):
        self.name, self.words, self.cwd = name, words, cwd
        self.env, self.tree, self.limit = env or {}, tree, limit


class Suite:
    """`needs`: commands and files without which it cannot be had, and the packages that bring them. `races`: tests whose
    result is a matter of luck without us, too, and why."""
    name = ""
    needs = {}
    races = {}

    def __init__(self, workshop):
        self.workshop = workshop

    def prepare(self):
        """Makes what the jobs start; raises Missing."""

    def jobs(self, short):
        """Its parts; for `short`, those that are told most in little time."""
        raise NotImplementedError

    def alone(self, job, test):
        """The job that runs this one test of a job."""
        raise NotImplementedError

    def read(self, job, run):
        """{name of the test: Outcome} of a run."""
        raise NotImplementedError

    def check_needs(self):
        missing = {package for path, package in self.needs.items() if not (shutil.which(path) or glob.glob(path))}
        if missing:
            raise Missing(f"not installed: {' '.join(sorted(missing))}")


class Workshop:
    """Where suites are made; what is made stays there for the next time."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self._sources = None

    def source(self, package):
        """The folder with the source of a package; the archive is asked where it is not there yet."""
        there = glob.glob(os.path.join(self.folder, "sources", f"{package}-*/"))
        if there:
            return os.path.abspath(there[0])
        if not shutil.which("dpkg-source"):
            raise Missing("not installed: dpkg-dev")
        if not self._sources:
            self._sources = Sources(os.path.join(self.folder, "sources"))
        found = self._sources.get(package)
        if not found:
            raise Missing(f"no source of {package} to be had from the archive")
        return os.path.abspath(found)

    def place(self, name):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def make(self, words, cwd, env=None):
        """Runs a step of making; its output is kept in a file beside."""
        with open(os.path.join(self.folder, "make.log"), "a", encoding="utf-8") as log:
            print("$", *words, file=log, flush=True)
            done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                  env={**os.environ, **(env or {})}, check=False)
        if done.returncode:
            raise Missing(f"cannot be made: {' '.join(words)[:120]} ended with status {done.returncode} "
                          f"(see {log.name})")


# ---- scripts that run one after the other ----

MARK = "@@@"
# The errors of each come after its output, so that no line is torn.
DRIVER = f"""
for script; do
	echo "{MARK} begin $script"
	run_one "$script" </dev/null 2>"$TMPDIR/errors"
	status=$?
	sed 's/^/# /' "$TMPDIR/errors" | head -n 200
	echo
	echo "{MARK} end $script $status"
done
exit 0
"""


def driver(run_one):
    """Words of a command that runs scripts, which are to be added; `run_one` is shell code that runs "$1"."""
    return ["/bin/sh", "-c", f"run_one() {{ {run_one}; }}{DRIVER}", "sh"]


def scripts(output):
    """(script, its output, its exit status or None) of what a driver printed."""
    for match in re.finditer(rf"^{MARK} begin (\S+)\n(.*?)(?:^{MARK} end \1 (\d+)$|\Z)", output, re.M | re.S):
        yield match.group(1), match.group(2), int(match.group(3)) if match.group(3) else None


# ---- TAP ----

TAP = re.compile(r"^(ok|not ok)\b ?(\d*)(?: - | )?(.*)$", re.M)


def read_tap(output):
    """(number, text, Outcome) for each line of a test; what follows the line belongs to it."""
    found = list(TAP.finditer(output))
    for index, match in enumerate(found):
        text = match.group(3)
        end = found[index + 1].start() if index + 1 < len(found) else len(output)
        directive = re.search(r"# *(skip|todo)\b", text, re.I)
        if directive:
            result = SKIPPED
        else:
            result = PASSED if match.group(1) == "ok" else FAILED
        yield match.group(2) or str(index + 1), text.split(" # ")[0].strip(), Outcome(result, output[match.start():end].strip())
