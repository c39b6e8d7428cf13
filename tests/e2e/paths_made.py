# SPDX-License-Identifier: Apache-2.0
"""paths_made.py SEED FUNCTIONS [alike]: writes a C program with so many functions of random control flow: blocks that go on
anywhere by conditions, switches, loops within loops, calls, and several returns. Each function ends, for it has a number of
steps. alike: the switches of a function all go to the same places."""
import random
import sys


def block(chance, index, count, cases_of_all, callees):
    lines = [f"b{index}:", "\tif (--left < 0)", "\t\treturn x;"]
    lines.append(f"\tx = x * {chance.randrange(3, 99, 2)} + {chance.randrange(1000)};")
    if callees and chance.random() < 0.2:
        lines.append(f"\tx ^= f{chance.choice(callees)}(x, left / 3);")
    if chance.random() < 0.15:
        lines.append(f"\tfor (unsigned i = 0; i < x % {chance.randrange(2, 6)}; i++)")
        lines.append(f"\t\tx += x >> {chance.randrange(3, 9)} & 1 ? i : {chance.randrange(50)};")
    if chance.random() < 0.2:
        lines.append(f"\tmade[x % 64] {chance.choice(['+=', '^=', '='])} x;")
    to = lambda: chance.randrange(count)
    kind = chance.random()
    if kind < 0.5:
        lines.append(f"\tif (x >> {chance.randrange(2, 20)} & 1)\n\t\tgoto b{to()};")
    elif kind < 0.62:
        lines.append(f"\tif ((x ^ {chance.randrange(1 << 16)}u) % {chance.randrange(2, 7)} == 0)\n\t\tgoto b{to()};\n\tgoto b{to()};")
    elif kind < (0.9 if cases_of_all else 0.74):
        cases = cases_of_all or [to() for _ in range(chance.randrange(5, 12))]
        lines.append(f"\tswitch (x >> {chance.randrange(2, 9)} & 15) {{")
        lines += [f"\tcase {i}:\n\t\tgoto b{case};" for i, case in enumerate(cases)]
        lines.append("\t}")
    elif kind < 0.8:
        lines.append("\treturn x ^ 1;")
    return lines


def main():
    seed, functions = int(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)
    print("#include <stdio.h>\nstatic unsigned made[64];")
    for number in range(functions):
        count = chance.randrange(3, 24)
        linkage = "static " if chance.random() < 0.3 else ""
        print(f"__attribute__((noinline)) {linkage}unsigned f{number}(unsigned x, int left)\n{{")
        cases = [chance.randrange(count) for _ in range(chance.randrange(5, 12))] if sys.argv[3:] == ["alike"] else None
        for index in range(count):
            print("\n".join(block(chance, index, count, cases, range(max(0, number - 5), number))))
        print("\treturn x;\n}")
    print("int main(void)\n{\n\tunsigned x = 1;")
    for number in range(functions):
        print(f"\tfor (int i = 0; i < 6; i++)\n\t\tx += f{number}(x + (unsigned)i, 30);")
    print('\tprintf("%u %u\\n", x, made[7]);\n\treturn 0;\n}')


main()
