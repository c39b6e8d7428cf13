/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of the instructions of one module, found once and kept. By the
 * structure of its procedure where there is one (loops and inlined functions),
 * else by the places alone. One thread at a time may add. Start with `= {0}`.
 */
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct place;
struct places;
struct structure;
struct structure_procedure;

struct answer {
	const struct place *places; /* innermost first */
	size_t count;
	const struct structure_procedure *procedure; /* NULL: nothing is known of its scopes */
	uint32_t scope;                              /* the innermost */
};

struct answers {
	struct answer *all;
	size_t count, room;
	struct lookup by_address;
};

/* Finds out about an instruction. `structure` may be NULL; both must outlive the answers. */
void answers_add(struct answers *answers, struct places *places, struct structure *structure,
		 uint64_t address);
/* The same of an instruction that is at another address in the file: `at`. */
void answers_add_at(struct answers *answers, struct places *places, uint64_t address, uint64_t at);
/* The same where the place is known. */
void answers_add_place(struct answers *answers, uint64_t address, const struct place *place);
/* NULL where it was not added. Stays until the next answers_add. */
const struct answer *answers_find(const struct answers *answers, uint64_t address);
void answers_free(struct answers *answers);
