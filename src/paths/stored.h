/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was counted of paths, in a profile, and out of it again: all that is shown of it (paths/show.h). */
#include <stddef.h>

struct err;
struct path_result;
struct profile;

/* Adds the functions to the profile. A function that is too large for that is stored as one that was refused. */
struct err *path_result_store(const struct path_result *result, struct profile *profile);

/* The functions of a profile, which must outlive them. Those that are damaged or too much are not there: *left_out says how
   many. */
struct err *path_result_restore(const struct profile *profile, struct path_result *out,
				size_t *left_out);
