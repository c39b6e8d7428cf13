/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of cmocka that tests of the target side use, for builds for the
 * other CPU, where the library is not installed. Prints TAP; a failed assertion
 * ends its case.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*test)(void **state);
};

static jmp_buf standin_case;

static inline void standin_check(int holds, const char *text, const char *file, int line)
{
	if (holds)
		return;
	printf("# %s:%d: %s\n", file, line, text);
	longjmp(standin_case, 1);
}

static inline int standin_run(const struct CMUnitTest *tests, size_t count)
{
	volatile int failed = 0;
	void *state = NULL;
	volatile size_t i;
	printf("1..%zu\n", count);
	for (i = 0; i < count; i++) {
		switch (setjmp(standin_case)) {
		case 0:
			tests[i].test(&state);
			printf("ok %zu - %s\n", i + 1, tests[i].name);
			break;
		case 2:
			printf("ok %zu - %s # SKIP\n", i + 1, tests[i].name);
			break;
		default:
			printf("not ok %zu - %s\n", i + 1, tests[i].name);
			failed++;
		}
		fflush(stdout);
	}
	return failed;
}

/* clang-format off */
#define STANDIN(condition) standin_check(!!(condition), #condition, __FILE__, __LINE__)
/* Values pass through variables, so that each is worked out once. */
#define STANDIN_COMPARE(a, operator, b)                                                        \
	do {                                                                                   \
		uintmax_t standin_a = (uintmax_t)(a), standin_b = (uintmax_t)(b);              \
		if (!(standin_a operator standin_b))                                           \
			printf("# %#jx, %#jx\n", standin_a, standin_b);                        \
		standin_check(standin_a operator standin_b, #a " " #operator " " #b, __FILE__, \
			      __LINE__);                                                       \
	} while (0)

#define cmocka_unit_test(function)    {#function, function}
#define cmocka_run_group_tests(tests, setup, teardown) \
	standin_run(tests, sizeof tests / sizeof((tests)[0]))
#define fail()                        standin_check(0, "fail()", __FILE__, __LINE__)
#define skip()                        longjmp(standin_case, 2)
#define assert_true(c)                STANDIN(c)
#define assert_false(c)               STANDIN(!(c))
#define assert_null(p)                STANDIN((p) == NULL)
#define assert_non_null(p)            STANDIN((p) != NULL)
#define assert_ptr_equal(a, b)        STANDIN((a) == (b))
#define assert_ptr_not_equal(a, b)    STANDIN((a) != (b))
#define assert_int_equal(a, b)        STANDIN_COMPARE(a, ==, b)
#define assert_int_not_equal(a, b)    STANDIN_COMPARE(a, !=, b)
#define assert_in_range(v, low, high) STANDIN((v) >= (low) && (v) <= (high))
#define assert_string_equal(a, b)     STANDIN(!strcmp(a, b))
#define assert_memory_equal(a, b, n)  STANDIN(!memcmp(a, b, n))
#define print_message(...)            printf("# " __VA_ARGS__)
