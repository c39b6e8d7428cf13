/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A copy of a function that does the same as the function, and counts the paths that it takes.
 *
 * All addresses here are the module's own, as in its file. A copy runs so near its module that all that it refers to is in
 * reach, and it is loaded at the same distance as in these addresses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph_part;

struct copy_step {     /* an instruction */
	uint64_t from; /* of the function */
	uint32_t
		to; /* where it begins in the code of the copy; what is put before it belongs to the one before */
};

struct copy_landing {  /* where an exception goes on that comes from below a call */
	uint64_t call; /* of the function */
	uint64_t pad;  /* where it goes on in the function */
	uint32_t to;   /* where it goes on in the code of the copy */
};

struct copy_call { /* a place in the code that says how far it is to another function: see write_aim() */
	uint32_t at;
	uint64_t target;
	bool direct; /* a call that may go to the copy's `direct` */
};

struct copy_place { /* what is known of the path at code from `at` on, up to the next place */
	uint32_t at;
	uint32_t
		block; /* it has come there, or to the way there; COPY_WHOLE: it has ended, or is about to */
	int64_t value; /* its sum; of a whole path its number */
	uint8_t reg; /* this register is to be added to that. COPY_KNOWN: none; COPY_SUM_AWAY: the sum is in memory, or not set yet */
};
#define COPY_WHOLE UINT32_MAX
#define COPY_KNOWN 0xff
#define COPY_SUM_AWAY 0xfe

struct copy {
	const char *name;               /* of the function; NULL: it has none */
	uint64_t entry;                 /* of the function */
	const struct graph_part *parts; /* of the function: the first has the entry */
	size_t part_count;
	uint64_t
		address; /* of the copy: where its first instruction is, which is the one of the entry */
	uint8_t *code;
	size_t size;
	uint32_t
		direct; /* where calls by copies may enter that know their slot (copies/write.h); else they enter at 0 */
	struct copy_step *
		steps; /* ascending by `to`; within a part also by `from`. Code that is never reached is left out */
	size_t step_count;
	/* Ascending by call. Exceptions from elsewhere go on at the step of their landing pad. */
	struct copy_landing *landings;
	size_t landing_count;
	struct copy_place *places; /* ascending; the first is at 0 */
	size_t place_count;
	struct copy_call
		*calls; /* and jumps to other functions: they may go to their copies at once */
	size_t call_count;
};

/* Frees what write_copy() has made. */
void copy_free(struct copy *copy);
