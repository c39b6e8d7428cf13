/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Chooses the functions whose paths are counted by a profile that was recorded before: the hottest ones. */
#include <stddef.h>
#include <stdint.h>

#include "analyze/hottest.h"

struct buf;
struct err;
struct path_choice;
struct path_place;
struct path_result;
struct profile;

struct path_hot {
	const char *path; /* of the profile */
	struct profile *profile;
	char *damage; /* of it, in one line; NULL: none */
	struct hottest hottest;
	size_t count;              /* of its functions, so many are chosen: the first ones */
	uint64_t samples;          /* theirs */
	struct path_place *places; /* the same functions, for a path_choice */
};

/* Of the functions that are in the modules of `choice` and match it, the hottest ones, until they have `cover` per cent of the
   samples in these modules. Without modules in the choice, they are those of the programs that were recorded. The error says what
   the profile lacks. */
struct err *path_hot_open(const char *path, double cover, const struct path_choice *choice,
			  struct path_hot *out);
void path_hot_close(struct path_hot *hot);

/* Appends lines: how many functions were chosen, what share of the samples they have, and how much of that was refused. */
void path_hot_tell(const struct path_hot *hot, const struct path_result *result, struct buf *out);
