# SPDX-License-Identifier: Apache-2.0
import re
import sys
import time


def tree(n):
    return 1 if n == 0 else tree(n - 1) + tree(n - 1) + 1


def numbers(n):
    for i in range(n):
        yield i * 7919 % 1009


def words(seed):
    text = ",".join(sorted(str(i * seed % 1009) for i in numbers(300)))
    return len(re.sub(r"(\d+),(\d+)", r"\2;\1", text))


end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 5)
total = n = 0
while time.monotonic() < end:
    n += 1
    total += tree(12) + words(n)
print(total > 0)
