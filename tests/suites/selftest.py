# SPDX-License-Identifier: Apache-2.0
"""A suite with tests that see the agent, and with unsteady ones: does `run` tell them apart?"""
import os

from judge import ONCE, OURS, UNSTEADY
from suite import Job, Suite, read_tap

SCRIPT = """
ours=false
case $LD_PRELOAD in *culprit*) ours=true ;; esac
runs=$(cat "$1" 2>/dev/null || echo 0)
echo $((runs + 1)) >"$1"
echo "ok 1 - steady"
echo "not ok 2 - never passes"
if $ours; then echo "not ok 3 - fails with us"; echo "# LD_PRELOAD is $LD_PRELOAD"; else echo "ok 3 - fails with us"; fi
if $ours; then echo "ok 4 - skipped with us # skip not now"; else echo "ok 4 - skipped with us"; fi
if ! $ours; then echo "ok 5 - gone with us"; fi
if [ $((runs % 4)) = 1 ] || [ $((runs % 4)) = 2 ]; then echo "not ok 6 - unsteady"; else echo "ok 6 - unsteady"; fi
if $ours; then echo "not ok 8 - races"; else echo "ok 8 - races"; fi
if [ $runs = 1 ]; then echo "not ok 7 - once with us"; else echo "ok 7 - once with us"; fi
"""
FOUND = {OURS: {"fails with us", "skipped with us", "gone with us"}, ONCE: {"once with us"}, UNSTEADY: {"unsteady", "races"}}


class SelfTest(Suite):
    """The unsteady test fails in the second and third of four runs: with us first, then plain."""
    name = "self-test"
    races = {"races": "as we say"}

    def jobs(self, short):
        count = os.path.join(self.workshop.place("self-test"), "count")
        if os.path.exists(count):
            os.unlink(count)
        return [Job("all", ["/bin/sh", "-c", SCRIPT, "sh", count])]

    def alone(self, job, test):
        return job

    def read(self, job, run):
        return {name: outcome for _, name, outcome in read_tap(run.output)}
