# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests, of the Python that the system has."""
import os
import xml.etree.ElementTree as xml

from suite import FAILED, PASSED, SKIPPED, Job, Outcome, Suite

PYTHON = "/usr/bin/python3"
MODULES = """
    test_signal test_threadsignals _test_eintr test_file_eintr test_faulthandler
    test_thread test_threading test_threading_local test_queue test_concurrent_futures
    test_subprocess test_popen test_pipes test_fork1 test_wait3 test_wait4 test_posix test_os test_cmd_line
    test_multiprocessing_fork test_multiprocessing_spawn
    test_socket test_socketserver test_select test_selectors test_poll test_epoll test_asyncio
    test_io test_mmap test_fcntl test_pty test_openpty
    test_time test_sched test_resource test_sys test_atexit test_ctypes
""".split()
# What some modules are told: in a virtual machine whose host does not answer, tests with VSOCK wait for ever; a server
# of this machine is all the network that others want. One test of signals says of itself that all signals may be
# ignored by chance, and fails then.
OPTIONS = {"test_socket": ["-i", "*VSOCK*"], "test_socketserver": ["-u", "network"],
           "test_signal": ["-i", "*test_stress_modifying_handlers*"]}
# What is told most in little time: parts of modules, by the patterns of `-m`.
SHORT = {
    "_test_eintr": ["*OSEINTRTest*", "*SocketEINTRTest*", "*SelectEINTRTest*"],
    "test_signal": ["*WakeupFDTests*", "*WakeupSocketSignalTests*", "*StressTest*", "*test_pthread_*", "*test_sigwaitinfo*"],
    "test_threadsignals": ["*test_signals", "*test_lock_acquire_retries*"],
    "test_threading": ["*ThreadJoinOnShutdown*", "*test_main_thread_after_fork*", "*test_various_ops*"],
    "test_subprocess": ["*_fds*", "*preexec*", "*session*", "*restore_signals*", "*eintr*", "*test_communicate_pipe*", "*vfork*"],
}


class CPython(Suite):
    """regrtest writes its results as XML. A module that crashes writes none."""
    name = "cpython"
    needs = {PYTHON: "python3", "/usr/lib/python3*/test/test_signal.py": "libpython3.N-testsuite"}

    def job(self, module, patterns=()):
        only = [word for pattern in patterns for word in ("-m", pattern)]
        only += OPTIONS.get(module, [])
        return Job(module, [PYTHON, "-m", "test", "-v", "--junit-xml", "{run}/results.xml", *only, module])

    def jobs(self, short):
        return [self.job(*pair) for pair in SHORT.items()] if short else [self.job(module) for module in MODULES]

    def alone(self, job, test):
        return self.job(job.name, [test])

    def read(self, job, run):
        results = {}
        try:
            cases = xml.parse(os.path.join(run.folder, "results.xml")).getroot().iter("testcase")
        except (OSError, xml.ParseError):
            return results
        for case in cases:
            said = [part for part in case if part.tag in ("failure", "error")]
            if said:
                outcome = Outcome(FAILED, "\n".join(part.text or "" for part in said))
            else:
                outcome = Outcome(SKIPPED if case.find("skipped") is not None else PASSED)
            results[case.get("name")] = outcome
        return results
