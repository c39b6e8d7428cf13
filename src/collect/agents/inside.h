/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The arena of an agent that counts calls, in the memory of its process, which is read and written from outside: the collector
 * that has made it may be gone. moving.c and left.c use it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "safe/arena.h"

struct arena_probe;
struct err;
struct still_place;

#define ARENA_FILE "/memfd:culprit-arena" /* in the list of mappings */

struct inside { /* an arena in the memory of a process */
	pid_t pid;
	int memory;
	uint64_t base, size;
	bool namespaced;            /* threads have other numbers there */
	struct arena_header header; /* as it was when it was read */
	struct still_place *places;
	size_t place_count, place_room;
	struct busy { /* threads that are at work; read when they stand still */
		pid_t tid;
		uint64_t sp, top;
	} * busy;
	size_t busy_count, busy_room;
	bool looked;
};

/* Opens the memory of `pid`. Returns false if that is not possible. */
bool inside_open(struct inside *in);
void inside_close(struct inside *in);
/* Whether the arena is still there. */
bool inside_is_mapped(const struct inside *in);

/* Reads bytes of the arena. */
bool inside_read(const struct inside *in, uint64_t offset, void *out, size_t size);
bool inside_read_header(struct inside *in);
/* How many descriptions of probes there are; reads one after another. *chunk is that of header.probes at first. */
uint32_t inside_probe_count(const struct inside *in);
bool inside_next_probe(const struct inside *in, uint32_t index, uint32_t *chunk,
		       struct arena_probe *out);

/* Sets `stop` in the arena. */
bool inside_stop(const struct inside *in, uint32_t value);
/* The jumps are out, and the arena says stop: waits until no thread is inside of the agent, and lets that unmap its memory. */
struct err *inside_let_go(struct inside *in);
