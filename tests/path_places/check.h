/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a sample at each instruction of copies would tell of its path must be true of the path that is counted in the end. The
 * steps of one thread come one after another (check_step). A function to which longjmp comes back goes on with another path
 * than it had: what is told of that is none of our business.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "copies/module.h"
#include "paths/spots.h"

#define WRONG_SHOWN 100u

static inline void check_must(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "%s\n", err_text(e));
	exit(1);
}

static inline void check_need(bool good, const char *what)
{
	if (!good)
		check_must(err_errno("%s", what));
}

struct call { /* that is going on */
	const struct path_item *function;
	uint64_t sp;             /* where it began */
	uint64_t ended;          /* the number of the path that has just ended; UINT64_MAX: none */
	struct path_spot *spots; /* of its path so far */
	uint64_t *places;        /* where these were */
	size_t count, room, place_room;
};

struct check {
	struct call *calls;
	size_t depth, room;
	bool link_register; /* calls leave SP as it is */
	uint64_t followed, known, wrong;
};

static inline bool comes_by(const struct path_item *function, uint64_t number, uint32_t block)
{
	struct numbering_path path = {0};
	bool found = false;
	check_must(numbering_decode(&function->sums.numbering, number, &path));
	for (size_t i = 0; i < path.count; i++)
		found |= path.blocks[i] == block;
	numbering_path_free(&path);
	return found;
}

static inline bool is_true(const struct path_item *function, const struct path_spot *spot,
			   uint64_t number)
{
	if (spot->count)
		return number >= spot->first && number - spot->first < spot->count;
	return spot->block != SPOT_NO_BLOCK && comes_by(function, number, spot->block);
}

static inline void end_path(struct check *c, struct call *call, uint64_t number)
{
	for (size_t i = 0; i < call->count; i++) {
		const struct path_spot *s = &call->spots[i];
		c->followed++;
		c->known += s->count > 0;
		if (is_true(call->function, s, number) || c->wrong++ >= WRONG_SHOWN)
			continue;
		printf("%s at %#" PRIx64 ": [%" PRIu64 ", +%" PRIu64 ") or block %" PRIu32
		       ", but it is path %" PRIu64 "\n",
		       call->function->name, call->places[i], s->first, s->count, s->block, number);
	}
	call->count = 0;
	call->ended = number;
}

static inline void leave(struct check *c)
{
	struct call *call = &c->calls[--c->depth];
	free(call->spots);
	free(call->places);
}

static inline struct call *enter(struct check *c, const struct path_item *function, uint64_t sp)
{
	check_need(ARRAY_ROOM(c->calls, c->depth, c->room), "memory");
	c->calls[c->depth] = (struct call){.function = function, .sp = sp, .ended = UINT64_MAX};
	return &c->calls[c->depth++];
}

/* Whether the innermost call has gone elsewhere by a tail call, and that has returned to the one before. */
static inline bool is_left(const struct check *c, const struct path_item *function, uint64_t at,
			   uint64_t sp)
{
	const struct call *last = &c->calls[c->depth - 1];
	return c->link_register && c->depth > 1 && last->sp == sp && last->function != function &&
	       at != function->copy.address && last[-1].function == function;
}

/* Calls whose stack is gone have ended; one begins where its function does. NULL: it is in the middle of one that was not seen
   to begin. */
static inline struct call *call_of(struct check *c, const struct path_item *function, uint64_t at,
				   uint64_t sp)
{
	while (c->depth && (c->calls[c->depth - 1].sp < sp || is_left(c, function, at, sp)))
		leave(c);
	if (at == function->copy.address) {
		if (c->depth && c->calls[c->depth - 1].sp == sp)
			leave(c); /* by a tail call */
		return enter(c, function, sp);
	}
	struct call *call = c->depth ? &c->calls[c->depth - 1] : NULL;
	return call && call->function == function ? call : NULL;
}

/* Whether the path has its number there, which is counted now, or was. */
static inline bool ends_at(const struct copy *copy, uint64_t at)
{
	bool whole = false;
	for (size_t i = 0; i < copy->place_count && copy->places[i].at <= at - copy->address; i++)
		whole = copy->places[i].block == COPY_WHOLE;
	return whole;
}

static inline void add_spot(struct call *call, const struct path_spot *spot, uint64_t pc)
{
	check_need(ARRAY_ROOM(call->spots, call->count, call->room) &&
			   (call->count < call->place_room ||
			    array_grow(&call->places, &call->place_room, sizeof *call->places)),
		   "memory");
	call->places[call->count] = pc;
	call->spots[call->count++] = *spot;
}

/* aarch64: after a return, SP is as at the beginning of the call. */
static inline bool returns_at(const struct copy *copy, uint64_t at)
{
	uint32_t word;
	memcpy(&word, copy->code + (at - copy->address), sizeof word);
	return (word & 0xfffffc1fu) == 0xd65f0000u || (word & 0xfffffbffu) == 0xd65f0bffu;
}

/* `at`: the address in the copy, as the module has it; `pc`: the same in memory. `spot` is what is known there. */
static inline void check_step(struct check *c, const struct path_item *f,
			      const struct path_spot *spot, uint64_t at, uint64_t pc, uint64_t sp)
{
	struct call *call = call_of(c, f, at, sp);
	if (!call)
		return;
	if (ends_at(&f->copy, at)) {
		if (call->ended != spot->first || call->count)
			end_path(c, call, spot->first);
	} else if (call->ended == UINT64_MAX ||
		   spot->count) { /* or behind the count, without its number */
		call->ended = UINT64_MAX;
		add_spot(call, spot, pc);
	}
	if (c->link_register && returns_at(&f->copy, at))
		leave(c);
}

static inline void check_end(struct check *c)
{
	while (c->depth)
		leave(c);
	free(c->calls);
	printf("%" PRIu64 " followed, %" PRIu64 " known, %" PRIu64 " wrong\n", c->followed,
	       c->known, c->wrong);
}
