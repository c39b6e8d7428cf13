#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bundle.py FILE...: prints the tables of CPUs as strings of C."""
import os
import sys

print("/* Made by the build. */")
print("static const struct model_text { const char *name, *text; } model_texts[] = {")
for path in sys.argv[1:]:
    with open(path, encoding="ascii") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    name = os.path.splitext(os.path.basename(path))[0]
    print(f'{{"{name}",')
    for line in lines:
        quoted = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        print(f'"{quoted}\\n"')
    print("},")
print("};")
