/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions of a profile with the most CPU time of their own: functions of machine code, by symbols and unwind information.
 * Inlined code counts for the function that it was inlined into.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct profile;

struct hot_function {
	uint32_t module; /* of the profile */
	uint64_t entry;  /* of that module */
	char *name;      /* as its symbol; NULL: it has none */
	uint64_t samples;
};

struct hottest {
	struct hot_function *functions; /* the most samples first */
	size_t count;
	uint64_t samples; /* in the modules, also in code of no function */
	uint64_t all;     /* of the profile */
};

/* Those of the modules for which `wanted` is true. An error if the profile has no samples of CPU time; or if the file of
   such a module cannot be read, or is not the one that was recorded. */
struct err *hottest_make(const struct profile *profile, const bool *wanted, struct hottest *out);
void hottest_free(struct hottest *hottest);
