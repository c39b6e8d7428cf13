#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads, child processes, ctypes and multiprocessing."""
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

SCALE = int(sys.argv[1]) if len(sys.argv) > 1 else 100


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compare(a, b):
    return a[0] - b[0]


def main():
    depth = 18 + SCALE // 50
    results = []
    threads = [threading.Thread(target=lambda: results.append(fib(depth))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("threads", results)
    for i in range(5):
        done = subprocess.run([sys.executable, "-S", "-c", f"import sys; print(sum(range({i}0000))); sys.exit({i})"],
                              stdout=subprocess.PIPE, check=False)
        print("subprocess", done.returncode, done.stdout)
    numbers = (ctypes.c_int * 5000)(*[(i * 7919) % 5003 for i in range(5000)])
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    ctypes.CDLL(None).qsort(numbers, 5000, 4, kind(compare))
    print("sorted", list(numbers) == sorted(numbers))
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            print(way, pool.map(fib, [depth, depth - 1, depth - 2]))
    signal.signal(signal.SIGALRM, lambda *unused: print("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.pause()
    sys.stdout.flush()
    print("fds", len(os.listdir("/proc/self/fd")))
    sys.exit(33)


if __name__ == "__main__":
    main()
