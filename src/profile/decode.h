/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tables of a file, as far as they are intact, with the indices that they
 * have in the file: some rows may be missing.
 */
#include "profile/sections.h"

#define INDEX_NONE UINT32_MAX

/* Which index of the file each row of a table had, ascending; then those that stand in for rows
   that are missing and that something refers to, ascending too. */
struct index_map {
	uint32_t *old;
	size_t count, room;
	uint32_t *stand_ins;
	size_t stand_in_count, stand_in_room;
};

/* What became of a table. */
struct table_state {
	const char *problem; /* the first one */
	uint64_t total;      /* rows, as the end says; 0 where it is missing */
	uint64_t got;
};

struct decoder {
	struct profile *p;
	struct sections sections;
	struct table_state tables[FORMAT_TYPES];
	struct index_map modules, metrics, processes, threads, nodes, contexts;
	struct profile_value last;     /* the one read last, as in the file; count 0: none yet */
	uint64_t dropped;              /* samples of values that could not be placed */
	struct profile_span last_span; /* likewise, samples 0: none yet */
	struct err *error;
};

/* All sections into d->p, references as the file has them (parents of nodes excepted, they are
   right already). False where d->error says why not. */
bool decode_tables(struct decoder *d);
void decode_free(struct decoder *d);

/* Turns the file's indices into the profile's. Where a row is missing that something refers to,
   another called "(lost)" stands in for it; what cannot be placed is dropped. */
bool decode_references(struct decoder *d);

/* A text of a row, as the profile's own string; "" without memory, and then d->error says so. */
const char *decode_text(struct decoder *d, struct cursor *c);
/* Notes the index that the next row of a table had. */
bool decode_map_push(struct decoder *d, struct index_map *m, uint32_t old);
/* Notes the first problem of a table. */
void decode_complain(struct decoder *d, unsigned type, const char *problem);

/* The index in the profile, or INDEX_NONE. */
uint32_t map_find(const struct index_map *m, uint32_t old);
