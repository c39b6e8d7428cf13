/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A procedure, ready to be shown: its scopes in the order of their addresses, with all that each covers. */
#include <stdint.h>

struct err;
struct structure_procedure;

struct shown_piece { /* of a scope's addresses */
	uint64_t start, end;
	uint32_t next; /* 0: the last */
};

struct shown {
	const struct structure_procedure *p;
	struct shown_piece *pieces; /* from 1 */
	uint32_t piece_count;
	uint32_t *first, *last;    /* pieces of each scope */
	uint32_t *order;           /* scopes, by parent and address */
	uint32_t *children, *many; /* of each scope: where in `order`, and how many */
};

/* `p` must outlive it. shown_free in any case. */
struct err *shown_make(const struct structure_procedure *p, struct shown *s);
void shown_free(struct shown *s);
/* Calls `open` before and `close` after a scope's children. Once. */
typedef void shown_open(void *context, struct shown *s, uint32_t scope, unsigned depth);
typedef void shown_close(void *context, struct shown *s, uint32_t scope);
void shown_walk(struct shown *s, shown_open *open, shown_close *close, void *context);
