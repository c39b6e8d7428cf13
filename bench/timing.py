# SPDX-License-Identifier: Apache-2.0
"""Runs programs for bench/overhead and bench/continuous, and reads what they took."""
import os
import signal
import subprocess
import time

RUN_LIMIT = 300  # seconds of one run


def raise_priority():
    """In the child: before other jobs of this machine, where we may."""
    os.setsid()
    try:
        os.nice(-20)
        with open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write("-20")
    except OSError:
        pass


def execute(command, ahead=True):
    """Runs a command, `ahead` of other jobs or as they; its exit status, seconds by the clock and of CPU time."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, preexec_fn=raise_priority if ahead else os.setsid)
    previous = signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(RUN_LIMIT)
    _, status, usage = os.wait4(process.pid, 0)
    left = signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (process.returncode if left else "hung", time.monotonic() - start,
            usage.ru_utime + usage.ru_stime)


def read_times(path):
    """What bench_cputime wrote: CPU seconds, and seconds by the clock."""
    with open(path, encoding="ascii") as lines:
        user, system, wall = (float(word) for word in lines.read().split())
    return user + system, wall
