/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Procedures that somebody asked for, by file and address. */
#include <stddef.h>
#include <stdint.h>

#include "base/term.h"

struct err;
struct structure;

struct wanted_procedure {
	uint64_t entry;
	const char *file;
};

struct wanted {
	struct wanted_procedure *items; /* free */
	size_t count, room;
	struct term_progress progress;
	size_t total;
};

/* Those of this name or address; NULL: all. An error where there is none. `out` is empty at first. */
struct err *wanted_find(struct structure *structure, const char *function, struct wanted *out);
