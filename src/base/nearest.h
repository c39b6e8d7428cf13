/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The name that somebody probably meant who wrote another one. */
#include <stddef.h>

struct nearest {
	const char *name; /* NULL: none is near enough */
	size_t wrong;     /* letters */
};

/* Looks at one more name. A slip of the finger is at most two letters that are wrong, missing or too many; or somebody
   left out the end. */
void nearest_try(struct nearest *n, const char *text, size_t length, const char *name);
