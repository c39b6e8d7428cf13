# SPDX-License-Identifier: Apache-2.0
"""Tests of Go's standard library, made with the Go that the system has."""
import os
import re
import subprocess
import zipfile

from suite import FAILED, PASSED, SKIPPED, Job, Outcome, Suite

PACKAGES = ("os/signal", "os/exec", "os", "syscall", "time", "net", "runtime", "sync", "sync/atomic", "context", "io", "bufio",
            "internal/poll", "runtime/pprof")
ZONES = "/usr/share/zoneinfo"
RESULT = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+) \(", re.M)


class Go(Suite):
    """Programs are linked by the C linker: the agent cannot come into static ones."""
    name = "go"
    needs = {"go": "golang-go", "cc": "gcc"}

    def prepare(self):
        self.folder = self.workshop.place("go")
        env = {"GOFLAGS": "", "CGO_ENABLED": "1", "GOCACHE": os.path.join(self.folder, "cache")}
        self.root = subprocess.run(["go", "env", "GOROOT"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        for package in PACKAGES:
            if not os.path.exists(self.program(package)):
                self.workshop.make(["go", "test", "-c", "-ldflags=-linkmode=external", "-o", self.program(package), package],
                                   self.folder, env)

        self.make_root()

    def make_root(self):
        """Tests of time want Go's own list of time zones, which Debian leaves out, in Go's root."""
        self.shadow = os.path.join(self.folder, "root")
        if os.path.exists(self.shadow) or not os.path.exists(f"{ZONES}/America"):
            return
        os.makedirs(f"{self.shadow}/lib/time")
        for name in os.listdir(self.root):
            if name != "lib":
                os.symlink(os.path.join(self.root, name), os.path.join(self.shadow, name))
        with zipfile.ZipFile(f"{self.shadow}/lib/time/zoneinfo.zip", "w", zipfile.ZIP_STORED) as packed:
            for folder, _, files in os.walk(ZONES):
                for path in (os.path.join(folder, file) for file in files):
                    packed.write(path, os.path.relpath(path, ZONES))

    def program(self, package):
        return os.path.join(self.folder, package.replace("/", "_") + ".test")

    def job(self, package, *words):
        cache, root = os.path.join(self.folder, "cache"), self.shadow if package == "time" else self.root
        return Job(package, [self.program(package), "-test.v", "-test.short", *words], cwd=os.path.join(self.root, "src", package),
                   env={"GOCACHE": cache, "GOFLAGS": "", "GOROOT": root, "GOPATH": "{run}"})

    def jobs(self, short):
        return [self.job(package) for package in PACKAGES]

    def alone(self, job, test):
        # With all parts of the test: some wait for each other.
        return self.job(job.name, f"-test.run=^{re.escape(test.split('/')[0])}$")

    def read(self, job, run):
        words = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
        lines = run.output.splitlines()
        results = {}
        for number, line in enumerate(lines):
            match = RESULT.match(line)
            if match:
                test = match.group(2)
                near = lines[max(0, number - 15):number + 15] if match.group(1) == "FAIL" else [line]
                results[test] = Outcome(words[match.group(1)], "\n".join(near))
        return results
