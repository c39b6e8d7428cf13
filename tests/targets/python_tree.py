# SPDX-License-Identifier: Apache-2.0
"""python_tree.py ROUNDS [fork|thread|codes|deep]: functions of many kinds, each with CPU time of its own, and says how much
each had, in microseconds. fork, thread: in a child, in a thread. codes: functions come and go, others take their places.
deep: all of it below 900 calls."""
import os
import random
import sys
import threading
import time

spent = {}


def count(name, function, *arguments):
    start = time.thread_time_ns()
    function(*arguments)
    spent.setdefault(name, []).append(time.thread_time_ns() - start)


def sum_of_times(times):
    """While a virtual machine stands still its clocks go on, but no sample is taken: one such call counts as a usual one."""
    usual = sorted(times)[len(times) // 2]
    return sum(each if each < 10 * usual else usual for each in times)


def plain(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


class Shape:
    def area(self, n):
        total = 0
        for i in range(n):
            total += i ^ n
        return total


def numbers(n):
    for _ in range(3):
        total = 0
        for i in range(n):
            total += i | n
        yield total


def from_c(n):
    """C calls back: sorted() is between the two."""
    return sorted((1, 2), key=lambda x: sum_of(n) + x)


def sum_of(n):
    total = 0
    for i in range(n):
        total -= i & n
    return total


def deep(levels, n):
    if levels:
        return deep(levels - 1, n)
    total = 0
    for i in range(n):
        total += i % 7
    return total


def some(n):
    """About so many: rounds of equal length could be in step with the samples."""
    return int(n * random.uniform(0.3, 1.7))


def rounds(many):
    for _ in range(many):
        count("plain", plain, some(20000))
        count("Shape.area", Shape().area, some(15000))
        count("numbers", lambda n: list(numbers(n)), some(8000))
        count("sum_of", from_c, some(9000))
        count("deep", deep, 40, some(12000))


def codes(many):
    """Two functions in turn at one place in memory, if the memory is used again."""
    text = "def {0}(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n"
    for _ in range(many):
        for name in ("first", "second"):
            space = {}
            exec(compile(text.format(name), name + ".py", "exec"), space)
            count(name, space.pop(name), 30000 if name == "first" else 10000)
            space.clear()


def below(levels, function, *arguments):
    if levels:
        below(levels - 1, function, *arguments)
    else:
        function(*arguments)


def main():
    many, how = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if how == "fork":
        child = os.fork()
        if child:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        rounds(many)
    elif how == "thread":
        thread = threading.Thread(target=rounds, args=(many,))
        thread.start()
        thread.join()
    elif how == "codes":
        codes(many)
    elif how == "deep":
        below(900, rounds, many)
    else:
        rounds(many)
    for name, times in spent.items():
        print(name, sum_of_times(times) // 1000)


if __name__ == "__main__":
    main()
