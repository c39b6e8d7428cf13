# SPDX-License-Identifier: Apache-2.0
"""What runs with and without us gave, test by test, and which differences are ours."""
import collections
import math

from execute import PLAIN
from suite import FAILED, PASSED, Outcome

WHOLE = "(the run itself)"  # a test of our own: the command ended as it should
OURS, ONCE, UNSTEADY = "DIFF", "ONCE", "unsteady"
SURE = 0.01  # a test that fails plain, too, must fail so much more often with us that chance makes it this rarely


class Results:
    """Outcomes of the tests of one job: tests[name][mode] is a list, one for each run."""

    def __init__(self):
        self.tests = collections.OrderedDict()
        self.runs = collections.Counter()

    def add(self, mode, outcomes, run):
        """Notes a run. What is not in it that was in another is found later, by its count."""
        self.runs[mode] += 1
        for name, outcome in {**outcomes, WHOLE: whole(outcomes, run)}.items():
            self.tests.setdefault(name, collections.defaultdict(list))[mode].append(outcome)

    def outcomes(self, name, mode):
        return self.tests[name][mode] if name in self.tests else []

    def good(self, name, mode):
        return sum(outcome.result == PASSED for outcome in self.outcomes(name, mode))

    def ran(self, name, mode):
        """Runs that say something of it: also those that have no word of it, unless they did not end."""
        return max(self.good(WHOLE, mode) if name != WHOLE else 0, len(self.outcomes(name, mode)))

    def bad(self, name, mode):
        """Runs in which it did not pass."""
        return self.ran(name, mode) - self.good(name, mode)

    def passed(self, mode):
        """How many tests passed in each run."""
        return sum(name != WHOLE and self.good(name, mode) == self.runs[mode] for name in self.tests)

    def suspects(self, mode):
        """Tests that do not always pass with us, but do without, at least sometimes."""
        return [name for name in self.tests if self.bad(name, mode) and self.good(name, PLAIN)]

    def said(self, name, mode):
        """What it said where it did not pass, else where it did."""
        outcomes = sorted(self.outcomes(name, mode), key=lambda outcome: outcome.result == PASSED)
        if not outcomes:
            return "no result"
        return f"{outcomes[0].result} {outcomes[0].text}".strip()


def whole(outcomes, run):
    """Did the command end as the results of its tests say?"""
    if run.late:
        return Outcome(FAILED, f"did not end in {run.seconds:.0f} s\n{run.output[-3000:]}")
    if run.problems:
        return Outcome(FAILED, "\n".join(run.problems))
    if not outcomes or (run.status and all(outcome.result != FAILED for outcome in outcomes.values())):
        return Outcome(FAILED, f"status {run.status}\n{run.output[-3000:]}")
    return Outcome(PASSED)


def chance(bad_plain, runs_plain, bad_ours, runs_ours):
    """How likely so many of the failures would be ours if it were all the same (Fisher's exact test)."""
    bad, runs = bad_plain + bad_ours, runs_plain + runs_ours
    return sum(math.comb(runs_ours, n) * math.comb(runs_plain, bad - n) for n in range(bad_ours, min(bad, runs_ours) + 1)
               if bad - n <= runs_plain) / math.comb(runs, bad)


def verdict(bad_plain, runs_plain, bad_ours, runs_ours):
    """Is it a difference that we make? What never fails plain must never fail with us."""
    if not bad_ours:
        return UNSTEADY
    if not bad_plain:
        return OURS if bad_ours > 1 else ONCE
    return OURS if chance(bad_plain, runs_plain, bad_ours, runs_ours) < SURE else UNSTEADY
