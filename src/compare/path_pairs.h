/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which functions with counted paths are the same in two recordings. Of one build, they are known by their addresses. Of
 * several builds, those are the same that have
 *
 *    1. the same name, or the same but for numbers that compilers give to copies (compare/names.h)
 *    2. the same family (other template arguments, other parameters), if there is one on each side
 *    3. the same shape, if as many have it on each side
 *    4. the same two neighbours, if they have no name, and nothing else is between these
 *
 * in files of the same name, or of the same one but for the numbers of a version; or in the two programs, or in the only files that
 * the other side has not.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct ranking;

#define PATH_FUNCTION_ALONE UINT32_MAX

struct path_pair { /* of functions of two rankings: their indexes; PATH_FUNCTION_ALONE: only the other side has it */
	uint32_t old, new;
};

/* All functions of both, malloc'ed; those of the new side come first, in its order. */
struct err *path_pairs_find(const struct ranking *old, const struct ranking *new,
			    struct path_pair **out, size_t *count);
