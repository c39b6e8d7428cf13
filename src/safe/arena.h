/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory in which a target counts: one memfd that the collector makes and
 * both map. What is in it is the recording; a target that dies in whatever way
 * loses nothing of it.
 *
 *    chunk 0: header | chunk 1 | chunk 2 | …              (16 KiB each)
 *
 * Chunks are handed out without locks: fresh ones ascending, then those that
 * were given back. A process shares its arena with the children that it forks,
 * so that a child can count before anybody knows of it.
 *
 *    thread record (one chunk): struct arena_thread | what the agent needs for itself
 *       `nodes` -> chunk -> chunk …   the thread's calling context tree (cct/cct.h)
 *       `scratch` -> chunk …          of no interest to others
 *       `times` -> chunk …            its time line: the thread writes at the end, the collector
 *                                     reads from the beginning and gives back what is full
 *
 * Invariants:
 *  1. A thread record is linked into header->threads once and stays there; it
 *     is taken again for another thread after the collector set it FREE.
 *  2. Only the thread itself writes to its record and chunks while it is LIVE;
 *     only the collector does when the thread is DONE or its process is gone.
 *  3. `used` of a chunk is raised after what it covers is written, so a reader
 *     at any moment, and after any death, sees whole nodes.
 *  4. Nothing here is believed by the collector without a check: a target may
 *     write over its own arena.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_MAGIC 0x31616e6572612d63ull /* "c-arena1" */
#define ARENA_VERSION 5u
#define ARENA_CHUNK_BITS 14
#define ARENA_CHUNK (1u << ARENA_CHUNK_BITS)
#define ARENA_METRICS_MAX 8

/* Why a sample is in no tree. */
enum arena_lost {
	ARENA_LOST_ROOM,   /* the arena is full */
	ARENA_LOST_THREAD, /* there was no record for the thread */
	ARENA_LOST_KINDS,
};

struct arena_header {
	uint64_t magic;
	uint32_t version;
	uint32_t metrics;             /* values of each node */
	uint64_t size;                /* bytes, whole chunks */
	_Atomic uint64_t free_chunks; /* tag << 32 | first chunk; 0: none */
	_Atomic uint32_t fresh;       /* first chunk that was never taken */
	_Atomic uint32_t threads;     /* first thread record */
	_Atomic uint32_t stop;        /* set by the collector: count no more */
	_Atomic uint32_t changes;     /* raised whenever a record gets LIVE or DONE, or a snapshot
					 is left */
	_Atomic uint64_t lost[ARENA_LOST_KINDS];
	uint32_t times_max;     /* chunks for time lines at most; 0: none are wanted */
	_Atomic uint32_t times; /* of them are in use */
	_Atomic uint32_t
		restricted; /* programs that let us ask the kernel for nothing (agent/sandbox.c) */
};

/* What every chunk but the first begins with. */
struct arena_chunk {
	_Atomic uint32_t next; /* chunk in the same list; 0: none */
	_Atomic uint32_t used; /* bytes from the chunk's start, this header included */
};

/* A sample that could not be walked because it met code of no known module: its registers and
   stack, for the collector to walk. Its bytes go on in the chunks after the first (chunk.next),
   each after its struct arena_chunk. */
#define ARENA_SNAPSHOTS 512       /* of a thread at most: half a second at 1 kHz */
#define ARENA_SNAPSHOT_CHUNKS 33u /* chunks of one at most: 512 KiB of stack */

struct arena_snapshot {
	struct arena_chunk chunk;
	uint32_t event, weight;
	uint64_t ns;            /* CLOCK_MONOTONIC, where there is a time line */
	uint64_t registers[32]; /* by DWARF number, as in unwind/walk.h */
	uint64_t pc;
	uint64_t address; /* of the stack bytes: at SP, or as far below as code may use */
	uint64_t size;    /* of them */
	uint64_t cut;     /* the stack goes on beyond */
	uint8_t bytes[];  /* to the end of this chunk */
};

/* A sample on the time line: in chunks, after their struct arena_chunk. */
struct arena_time {
	uint64_t ns;   /* CLOCK_MONOTONIC */
	uint32_t node; /* of the thread's tree (cct/cct.h) */
	uint32_t weight;
};

enum arena_state { ARENA_FREE, ARENA_TAKEN, ARENA_LIVE, ARENA_DONE };

struct arena_thread {
	struct arena_chunk chunk; /* next: the record that was linked before */
	_Atomic uint32_t state;   /* enum arena_state */
	_Atomic uint32_t nodes;   /* first chunk of the tree; nodes[0] is the root */
	_Atomic uint32_t scratch; /* first chunk of the agent's own */
	_Atomic uint32_t times;   /* first chunk of its time line that is not read yet */
	uint32_t generation;      /* raised each time the record is taken */
	int32_t process, parent, tid;
	_Atomic uint32_t timer; /* the thread samples itself by a POSIX timer */
	_Atomic uint64_t space; /* where the process's list of modules is: safe/wire.h */
	_Atomic uint32_t snapshots[ARENA_SNAPSHOTS]; /* first chunks; 0: free for the thread to
							set, else for the collector to take */
	_Atomic uint32_t vain;   /* raised by the collector for each of them that it could not walk
				  either */
	uint64_t stack_top;      /* beyond it nothing of the thread's stack is */
	uint64_t handler_stack;  /* the agent's own is the chunk before; 0: it has none */
	uint64_t start_ns;       /* CLOCK_MONOTONIC */
	_Atomic uint64_t end_ns; /* 0: not ended */
	_Atomic uint64_t cpu_start_ns,
		cpu_ns; /* the thread's CPU time, when it began and at its last sample */
	_Atomic uint64_t
		samples[ARENA_METRICS_MAX]; /* handled, by event: weights are in the tree */
	_Atomic uint64_t weights[ARENA_METRICS_MAX]; /* the same as sums of weights */
	_Atomic uint64_t ticks;                      /* spent in the handler (safe/ticks.h) */
	_Atomic uint64_t walked;                     /* frames stepped over */
	_Atomic uint64_t reused;                     /* frames that the walk before knew */
	_Atomic uint64_t lost;                       /* samples that are in no tree: no room */
	_Atomic uint64_t untimed;                    /* samples that are not on the time line */
};

static inline void *arena_at(const struct arena_header *arena, uint32_t chunk)
{
	return (char *)arena + ((size_t)chunk << ARENA_CHUNK_BITS);
}

/* Takes a chunk (its first 8 bytes zero, the rest as it was left); 0 where the arena is full.
   Async-signal-safe and lock-free. */
uint32_t arena_take(struct arena_header *arena);
/* Gives back a list of chunks that begins with `first` (0 is fine). */
void arena_give(struct arena_header *arena, uint32_t first);

/* The same for a time line, of which all together have a limit; one at a time is given back. */
uint32_t arena_take_times(struct arena_header *arena);
void arena_give_times(struct arena_header *arena, uint32_t chunk);

/* Makes a new arena in zeroed memory. */
void arena_format(struct arena_header *arena, uint64_t size, uint32_t metrics);
/* Whether the header is one, for memory of this size. */
bool arena_is_sane(const struct arena_header *arena, uint64_t size);

/* A thread record for (process, tid), TAKEN, with an empty node list; NULL where there is no room. */
struct arena_thread *arena_thread_take(struct arena_header *arena);
/* Gives back a DONE record's chunks and sets it FREE: for the collector, after it has read it. */
void arena_thread_free(struct arena_header *arena, struct arena_thread *thread);
