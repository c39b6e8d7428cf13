/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which modules of several runs are the same file, in one build or in another:
 *
 *   - those of the same file name, wherever they lie;
 *   - of those that only one side has, one of each side that have the same name but for the numbers of
 *     their version (libx.so.1.2 and libx.so.1.3);
 *   - and the program of each side, if that is called otherwise: a file that is no library, in which or
 *     below which at least half of the side's samples are, if they have at least half of the functions of
 *     one of them in common.
 *
 * Where one build cannot be read any more but another can, the module is compared as a whole: half of it
 * without names would look as if everything had changed.
 */
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct modules;
struct profile;

enum { SIDE_OLD = 1, SIDE_NEW = 2, SIDES_BOTH = 3 };

struct builds {
	const struct profile *profile;
	uint32_t *
		same; /* by module: which stands for all builds; of the new side, if that has one */
	bool *rebuilt;    /* by module that stands for others: they are different builds */
	bool *unreadable; /* by module that stands for others: and the file of one of them is gone */
};

/* `sides`: by node of the profile, the sides that have samples there or below; NULL: there are no sides. */
struct err *builds_find(const struct profile *profile, struct modules *modules,
			const uint8_t *sides, struct builds *out);
void builds_free(struct builds *builds);

/* Whether there are different builds of it. */
bool builds_differ(const struct builds *builds, uint32_t module);
/* Whether it can only be compared as a whole. */
bool builds_whole(const struct builds *builds, uint32_t module);
/* A line for each module that is. */
void builds_note_wholes(const struct builds *builds, struct buf *notes);
/* Appends the file name of all builds. */
void builds_name(const struct builds *builds, uint32_t module, struct buf *out);
