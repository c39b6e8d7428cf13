# SPDX-License-Identifier: Apache-2.0
"""libevent's regression tests, made from Debian's source."""
import os
import re

from suite import FAILED, PASSED, SKIPPED, Job, Outcome, Suite

BACKENDS = ("EPOLL", "POLL", "SELECT")
LINE = re.compile(r"^([a-z_0-9]+/[\w./]+): (.*?)(?=^[a-z_0-9]+/[\w./]+: |^\d+(?:/\d+)? (?:TESTS|tests)|\Z)", re.M | re.S)


class Libevent(Suite):
    """All tests for each way to wait that Linux has. What a test fails at stands between its name and the next."""
    name = "libevent"
    needs = {"cmake": "cmake", "cc": "gcc", "make": "make"}

    def prepare(self):
        folder = self.workshop.place("libevent")
        self.program = os.path.join(folder, "bin/regress")
        source = self.workshop.source("libevent")
        if not os.path.exists(self.program):
            options = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DEVENT__LIBRARY_TYPE=STATIC", "-DEVENT__DISABLE_SAMPLES=ON",
                       "-DEVENT__DISABLE_BENCHMARK=ON", "-DEVENT__DISABLE_OPENSSL=ON", "-DEVENT__DISABLE_MBEDTLS=ON"]
            self.workshop.make(["cmake", *options, source], folder)
            self.workshop.make(["make", "regress"], folder)

    def job(self, name, *tests):
        others = {f"EVENT_NO{backend}": "1" for backend in BACKENDS if backend.lower() != name}
        return Job(name, [self.program, "--timeout", "120", *tests], env=others)

    def jobs(self, short):
        return [self.job(backend.lower()) for backend in BACKENDS]

    def alone(self, job, test):
        return self.job(job.name, test)

    def read(self, job, run):
        results = {}
        for name, text in LINE.findall(run.output):
            last = text.strip().splitlines()[-1:] or [""]
            if "FAILED]" in text:
                result = FAILED
            elif re.search(r"(SKIPPED|DISABLED)$", last[0]):
                result = SKIPPED
            else:
                result = PASSED if re.search(r"OK$", text.strip(), re.M) else FAILED
            results[name] = Outcome(result, f"{name}: {text}")
        return results
