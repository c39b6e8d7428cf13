#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py NAME FILE: prints the file as an array of C."""
import sys

name, path = sys.argv[1:]
data = open(path, "rb").read()
print("/* Made by the build. */")
print(f"static const unsigned char {name}[] __attribute__((aligned(8))) = {{")
for at in range(0, len(data), 24):
    print(",".join(map(str, data[at:at + 24])) + ",")
print("};")
