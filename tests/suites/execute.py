# SPDX-License-Identifier: Apache-2.0
"""Runs a job, plain or under `culprit record`, in a folder of its own."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../stress"))
from processes import descendants, kill_all, reap_all, take_orphans, wait_for  # noqa: E402,F401 pylint: disable=wrong-import-position

HZ = 5000
PLAIN, COLLECTORS = "plain", ("agent", "kernel")
REMOVED = ("NO_COLOR", "CLICOLOR_FORCE", "DEBUGINFOD_URLS", "LD_PRELOAD", "MALLOC_PERTURB_", "PYTHONPATH", "PYTHONHOME", "PERL5LIB",
           "PERL5OPT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BASH_ENV", "ENV", "POSIXLY_CORRECT")


class Run:
    """What one run of a job gave."""

    def __init__(self, folder):
        self.folder = folder
        self.status = None  # as subprocess has it: negative where a signal ended it
        self.output = ""
        self.seconds, self.samples = 0.0, 0
        self.late = False
        self.problems = []


class Executor:
    """Knows the program and where runs take place."""

    def __init__(self, build):
        self.culprit = os.path.join(os.path.abspath(build), "src/cmd/culprit")
        self.folder = tempfile.mkdtemp(prefix="suites-")
        os.chmod(self.folder, 0o755)  # some tests give up being root

    def refusal(self, collector):
        """Why this collector cannot be used here, or None."""
        done = subprocess.run([self.culprit, "record", "-q", f"--collector={collector}", "-o", os.path.join(self.folder, "x"), "--",
                               "true"], capture_output=True, text=True, check=False)
        return done.stderr.strip() if done.returncode else None

    def execute(self, job, mode, limit):
        """Runs the job; who calls removes the folder of the run."""
        run = Run(tempfile.mkdtemp(dir=self.folder))
        os.chmod(run.folder, 0o755)
        os.mkdir(os.path.join(run.folder, "tmp"))
        os.chmod(os.path.join(run.folder, "tmp"), 0o1777)
        if job.tree:
            shutil.copytree(job.tree, os.path.join(run.folder, os.path.basename(job.tree)), symlinks=True)
        words = [word.replace("{run}", run.folder) for word in job.words]
        profile = os.path.join(run.folder, "profile")
        if mode != PLAIN:
            words = [self.culprit, "record", "-q", f"--collector={mode}", "-F", str(HZ), "-o", profile, "--", *words]
        self.start(job, words, limit, run)
        self.clear(run)
        if mode != PLAIN and not run.late:
            self.look_at(profile, run)
        return run

    def environment(self, job, run, cwd):
        env = {name: value for name, value in os.environ.items() if name not in REMOVED and "proxy" not in name.lower()}
        env.update(TMPDIR=os.path.join(run.folder, "tmp"), HOME=run.folder, LC_ALL="C.UTF-8", TERM="dumb", PWD=cwd,
                   PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", XDG_CACHE_HOME=os.path.join(self.folder, "cache"))
        env.update({name: value.replace("{run}", run.folder) for name, value in job.env.items()})
        return env

    def start(self, job, words, limit, run):
        """Waits for the end, or makes it."""
        cwd, start = job.cwd.replace("{run}", run.folder), time.monotonic()
        with open(os.path.join(run.folder, "output"), "w+b") as output:
            process = subprocess.Popen(words, cwd=cwd, env=self.environment(job, run, cwd), stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                run.status = process.wait(limit)
            except subprocess.TimeoutExpired:
                run.late = True
                kill_all([process.pid, *descendants(process.pid)])
                process.wait()
            run.seconds = time.monotonic() - start
            output.seek(0)
            run.output = output.read().decode(errors="replace")

    def clear(self, run):
        """Tests may leave processes; we leave none, and no file."""
        if not wait_for(reap_all, 0.5):
            left = descendants(os.getpid())
            kill_all(left)
            wait_for(reap_all, 5)
        files = [name for name in os.listdir(os.path.join(run.folder, "tmp")) if "culprit" in name]
        if files and not run.late:
            run.problems.append(f"left in TMPDIR: {' '.join(files)}")

    def look_at(self, profile, run):
        """Is the profile readable?"""
        try:
            done = subprocess.run([self.culprit, "report", "--json", "--view=flat", "--no-inline", profile], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=300, check=False)
            run.samples = json.loads(done.stdout)["summary"]["samples"]
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            run.problems.append(f"the profile cannot be read: {error}")
