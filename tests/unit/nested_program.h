/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A program with functions that are inlined into others. */

/* Line numbers matter: they are what is tested. */
static const char nested_program[] =
	/* 1 */ "volatile int sink;\n"
		/* 2 */ "static inline __attribute__((always_inline)) void deep(int a)\n"
		/* 3 */ "{\n"
		/* 4 */ "	sink = a * 3;\n"
		/* 5 */ "}\n"
		/* 6 */ "static inline __attribute__((always_inline)) void middle(int a)\n"
		/* 7 */ "{\n"
		/* 8 */ "	sink = a;\n"
		/* 9 */ "	deep(a + sink);\n"
		/* 10 */ "}\n"
		/* 11 */ "__attribute__((noinline)) int outer(int a)\n"
		/* 12 */ "{\n"
		/* 13 */ "	sink = 1;\n"
		/* 14 */ "	middle(a);\n"
		/* 15 */ "	return sink;\n"
		/* 16 */ "}\n"
		/* 17 */ "int main(int argc, char **argv) { (void)argv; return outer(argc); }\n";
