# SPDX-License-Identifier: Apache-2.0
"""Perl's own tests, of the perl that the system has."""
import glob
import os
import re
import shutil
import subprocess

from suite import FAILED, PASSED, Job, Outcome, Suite, driver, read_tap, scripts

PERL = "/usr/bin/perl"
# Folders of the source, and the scripts in each; below t/ they start in t/, others where their module is.
FOLDERS = ("t/base", "t/cmd", "t/io", "t/op", "t/re", "ext/POSIX/t", "dist/threads/t", "dist/threads-shared/t", "dist/Thread-Queue/t",
           "dist/Time-HiRes/t", "dist/IO/t", "cpan/Socket/t", "cpan/IPC-SysV/t")
# They look at the files that a build of perl leaves.
NOT_HERE = {"t/re/uniprops*", "t/re/fold_grind*", "t/op/magic-27839.t"}


class Perl(Suite):
    """The tests stand in a copy of the source's tree, with the system's modules as its lib."""
    name = "perl"
    needs = {PERL: "perl"}
    # Switches of the first line that cannot be set later stand on the command line.
    run_one = ('cd "$TREE/${1%%/t/*}" 2>/dev/null; case $1 in t/*) cd "$TREE/t"; set -- "${1#t/}" ;; *) set -- "t/${1##*/t/}" ;; esac; '
               'timeout -k 5 240 perl $(sed -n "1s/^#!.*perl *\\(-[tT]\\)\\b.*/\\1/p" "$1") "$1"')

    def prepare(self):
        source = self.workshop.source("perl")
        self.tree = os.path.join(self.workshop.place("perl"), "tree")
        if os.path.exists(self.tree):
            return
        new = f"{self.tree}.new"
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(f"{new}/lib")
        shutil.copytree(f"{source}/t", f"{new}/t", symlinks=True)
        for folder in FOLDERS:
            if not folder.startswith("t/"):
                shutil.copytree(f"{source}/{folder}", f"{new}/{folder}", symlinks=True)
        for key in ("privlibexp", "archlibexp"):
            where = subprocess.run([PERL, "-MConfig", "-e", f"print $Config{{{key}}}"], stdout=subprocess.PIPE, text=True,
                                   check=True).stdout
            self.workshop.make(["cp", "-rs", f"{os.path.realpath(where)}/.", f"{new}/lib/"], new)
        os.symlink(PERL, f"{new}/t/perl")
        os.rename(new, self.tree)

    def job(self, name, *names):
        return Job(name, [*driver(self.run_one), *names], tree=self.tree, limit=1800, env={"TREE": "{run}/tree", "PERL_CORE": ""})

    def jobs(self, short):
        left_out = {path for pattern in NOT_HERE for path in glob.glob(f"{self.tree}/{pattern}")}
        for folder in FOLDERS:
            paths = sorted(set(glob.glob(f"{self.tree}/{folder}/*.t")) - left_out)
            yield self.job(folder, *(os.path.relpath(path, self.tree) for path in paths))

    def alone(self, job, test):
        return self.job(job.name, test.split()[0])

    def read(self, job, run):
        results = {}
        for name, output, status in scripts(run.output):
            cases = {f"{name} {number}": outcome for number, _, outcome in read_tap(output)}
            results.update(cases)
            planned = re.search(r"^1\.\.(\d+)", output, re.M)
            whole = status == 0 and planned and int(planned.group(1)) == len(cases)
            results[name] = Outcome(PASSED if whole else FAILED, f"status {status}\n{output[-2000:]}")
        return results
