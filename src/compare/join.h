/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Many recordings into one profile: equal modules and paths become one, processes and threads stay
 * apart, and the name of a process says which file it came from ("app@rank-07").
 */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct profile;

struct join_options {
	bool apart;      /* metrics of one name with different periods are kept side by side */
	bool keep_going; /* files that cannot be read are left out */
};

/* Lines about what was damaged or left out are appended to `warnings`; the profile's note has
   them too. */
struct err *join_files(const char *const *paths, size_t count, const struct join_options *options,
		       struct profile **out, struct buf *warnings);
