/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calling contexts, as a counted program (counter/contexts.c) and the code of copies (copies/write.h) make them, and the
 * collector reads them afterwards.
 *
 * A context is a record: a function, the context that it was called in, and the address that the call returns to. It has
 * the counters of the function's paths, and slots: one for each of its direct calls, with the record that this call led to.
 *
 *    head | counters: of calls, then of paths | slots
 *         ^ the address of the record
 *
 * In a bank, there is a cache behind: records and links of the function that were found last, by CONTEXTS_PLACE.
 *
 * A thread's records are in its arena, behind its bank. A function that calls itself, by others or not, has the record that
 * it has in the contexts above: there is a link then, a head without counters. What has no room, or has lost its context, is
 * counted in the bank, which has a record for each function, too: one without a caller.
 *
 * Nothing in an arena ever moves, and a head is never changed. The arena stays when its thread is gone; the next owner of
 * the bank goes on there.
 */
#include <stdint.h>

#define CONTEXTS_MAGIC 0x31787463u /* "ctx1" */
#define CONTEXTS_BUCKETS 32768u
#define CONTEXTS_ARENA (64ull << 20)
#define CONTEXTS_WORDS_MAX (1u << 14) /* functions with more counters are counted in the bank */

struct context_head {
	uint64_t next;     /* in its bucket: the address of the next record or link */
	uint64_t parent;   /* the address of the caller's record; 0: it is without a caller */
	uint64_t from;     /* where the call returns to */
	uint32_t function; /* the number of its first counter in the bank; CONTEXTS_ROOT */
	uint32_t size;     /* in bytes, with the head; of a link, that of the head alone */
	uint64_t record; /* the address of the record itself; of a link, of who has the counters */
	uint64_t reserved;
};
#define CONTEXTS_ROOT UINT32_MAX
#define CONTEXTS_CACHE 128u /* words */
/* Where in a cache who is called so may be: bytes. */
#define CONTEXTS_PLACE(parent, from) (((parent) + (from)) & (8 * (CONTEXTS_CACHE - 1)))
/* Words before the first counter of a function in a bank: its head. */
#define CONTEXTS_HEAD_WORDS (sizeof(struct context_head) / sizeof(uint64_t))

struct context_arena {
	uint32_t magic, reserved;
	uint64_t used;                 /* bytes from the arena on; heads begin at CONTEXTS_FIRST */
	uint64_t full;                 /* how often a record found no room */
	uint64_t lost;                 /* how often a function did not find its own context again */
	struct context_head root_head; /* of those whom nobody has called that is counted */
	uint64_t buckets[CONTEXTS_BUCKETS];
};
#define CONTEXTS_FIRST ((sizeof(struct context_arena) + 63) & ~63ull)

struct context_entry { /* of a thread's stack of contexts, which grows upwards: a function that goes on */
	uint64_t record;
	uint64_t sp; /* where it was entered */
};
