# SPDX-License-Identifier: Apache-2.0
"""bash's own tests, of the bash that the system has."""
import glob
import os
import shutil

from suite import FAILED, PASSED, Job, Outcome, Suite, driver, scripts

HELPERS = ("recho", "zecho", "printenv", "xcase")
LOCALE = "/usr/lib/locale/C.utf8"
NOT_TESTS = ("run-all", "run-minimal", "run-gprof")


class Bash(Suite):
    """Each of its scripts compares what a shell prints with what is right, and prints the differences."""
    name = "bash"
    needs = {"/bin/bash": "bash", "cc": "gcc"}
    races = {"run-nameref": "the end of a coprocess unsets RO_PID, which the next command, `declare -p RO_PID`, may see or not"}
    run_one = 'timeout -k 5 180 sh "$1"'

    def prepare(self):
        source = self.workshop.source("bash")
        self.tests = os.path.join(self.workshop.place("bash"), "tests")
        if not os.path.exists(self.tests):
            new = f"{self.tests}.new"
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(os.path.join(source, "tests"), new, symlinks=True)
            for helper in HELPERS:
                self.workshop.make(["cc", "-O1", "-w", "-DHAVE_STDLIB_H", "-DHAVE_STRING_H", "-DHAVE_UNISTD_H", "-I.", "-Iinclude",
                                    f"support/{helper}.c", "-o", os.path.join(new, helper)], source)
            self.make_locale(new)
            os.rename(new, self.tests)

    def make_locale(self, tests):
        """The tests want American English; a system may have no more than C.UTF-8, which is enough for them."""
        if os.path.exists(LOCALE):
            shutil.copytree(LOCALE, os.path.join(tests, "locale/en_US.UTF-8"))

    def job(self, name, *names):
        return Job(name, [*driver(self.run_one), *names], cwd="{run}/tests", tree=self.tests, limit=1800,
                   env={"THIS_SH": "/bin/bash", "BUILD_DIR": "{run}", "BASH_TSTOUT": "{run}/tmp/output", "LOCPATH": "{run}/tests/locale",
                        "PATH": "{run}/tests:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})

    def jobs(self, short):
        names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.tests, "run-*")))
        return [self.job("all", *(name for name in names if name not in NOT_TESTS))]

    def alone(self, job, test):
        return self.job(job.name, test)

    def read(self, job, run):
        results = {}
        for name, output, status in scripts(run.output):
            said = [line for line in output.splitlines() if line and not line.startswith("# ")]
            results[name] = Outcome(FAILED if said or status else PASSED, output)
        return results
