# SPDX-License-Identifier: Apache-2.0
"""libuv's tests, made from Debian's source."""
import os

from suite import Job, Suite, read_tap


class Libuv(Suite):
    """Its runner starts a process for each test, and prints TAP."""
    name = "libuv"
    needs = {"cmake": "cmake", "cc": "gcc", "make": "make"}
    environment = {"UV_RUN_AS_ROOT": "1", "UV_TEST_TIMEOUT_MULTIPLIER": "3"}

    def prepare(self):
        folder = self.workshop.place("libuv")
        self.program = os.path.join(folder, "uv_run_tests")
        self.source = self.workshop.source("libuv1")
        if not os.path.exists(self.program):
            self.workshop.make(["cmake", "-DLIBUV_BUILD_TESTS=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", self.source], folder)
            self.workshop.make(["make", "uv_run_tests"], folder)

    def job(self, name, *tests):
        # Its tests read files of the source by names like test/fixtures/one_file.
        return Job(name, [self.program, *tests], tree=os.path.join(self.source, "test"), cwd="{run}", env=self.environment)

    def jobs(self, short):
        return [self.job("all")]

    def alone(self, job, test):
        return self.job(job.name, test)

    def read(self, job, run):
        return {name: outcome for _, name, outcome in read_tap(run.output)}
