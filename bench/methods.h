/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ways to walk the own stack. Each is prepared once, outside the time that is measured. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_MAX 512

struct method {
	const char *name;
	const char *what;
	bool (*prepare)(void);             /* NULL: nothing to do; false: it does not work here */
	size_t (*walk)(uintptr_t *frames); /* innermost first, at most FRAMES_MAX; how many */
};

extern const struct method method_culprit, method_culprit_tables, method_unw_step,
	method_unw_backtrace, method_elfutils, method_glibc;

/* The stack of the calling thread ends here. */
extern uintptr_t stack_top;
