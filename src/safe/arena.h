/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The arena: memory in which a target counts its samples. The collector makes it as a memfd, and both map it.
 * The agent (agent/) and the tree (cct/) write to it; the collector (collect/agents/) reads it. What is in
 * the arena is the recording itself, so a target that dies in any way loses nothing.
 *
 *    chunk 0: header | chunk 1 | chunk 2 | …              (16 KiB each)
 *
 * Chunks are taken and given back without locks. Chunks that were given back are used first, then fresh ones
 * in ascending order. A process shares its arena with the children that it forks. So a child can count before
 * the collector knows of it.
 *
 *    thread record (one chunk): struct arena_thread | the agent's private data
 *       `nodes` -> chunk -> chunk …   the thread's calling context tree (cct/cct.h)
 *       `scratch` -> chunk …          private to the agent
 *       `trails` -> chunk …           struct arena_trail, one after another; appended and read as times are
 *       `times` -> chunk …            the thread's time line: the thread appends at the end, the collector
 *                                     reads from the beginning and gives back chunks that it has read
 *
 * Invariants:
 *  1. A thread record is linked into header->threads once and stays there. After the collector has set it
 *     FREE, it is taken again for another thread.
 *  2. While a thread is LIVE, only the thread itself writes to its record and chunks. When it is DONE, or its
 *     process is gone, only the collector does.
 *  3. `used` of a chunk is raised after the bytes that it covers are written. So a reader sees whole nodes at
 *     any moment, also after the target died.
 *  4. The collector checks everything that it reads here: a target may overwrite its own arena.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/python.h"

#define ARENA_MAGIC 0x31616e6572612d63ull /* "c-arena1" */
#define ARENA_VERSION 13u
#define ARENA_CHUNK_BITS 14
#define ARENA_CHUNK (1u << ARENA_CHUNK_BITS)
#define ARENA_METRICS_MAX 32

struct arena_header {
	uint64_t magic;
	uint32_t version;
	uint32_t metrics;             /* values in each node */
	uint64_t size;                /* in bytes; a whole number of chunks */
	_Atomic uint64_t free_chunks; /* tag << 32 | first chunk that was given back; 0: none */
	_Atomic uint32_t fresh;       /* first chunk that was never taken */
	_Atomic uint32_t threads;     /* first thread record of the list */
	_Atomic uint32_t heaps;       /* first heap of the list: safe/heap.h */
	_Atomic uint32_t stop;        /* set by the collector: stop sampling */
	/* Raised when a record becomes LIVE or DONE, and when a thread leaves a copy. */
	_Atomic uint32_t changes;
	/* Threads that are not sampled, because there was no record or no timer for them. */
	_Atomic uint64_t unsampled;
	uint32_t times_max;     /* limit for chunks of time lines; 0: no time lines */
	_Atomic uint32_t times; /* chunks of time lines in use */
	/* Programs that were left alone because they refuse our system calls (agent/sandbox.c). */
	_Atomic uint32_t restricted;
	/* Why returns are not counted, though that was asked for (agent/sentinel.c): ARENA_UNCOUNTED_… */
	_Atomic uint32_t uncounted;
	_Atomic uint64_t stubs; /* address of the first stub; 0: returns are not counted */
	/* The program is interpreted: the collector says where its interpreter is, once. */
	_Atomic uint32_t has_python;
	struct python python;
	/* Probes: safe/probes.h. First chunk of their descriptions; 0: none. Nanoseconds of a tick, times 2^32. */
	_Atomic uint32_t probes, probe_count;
	uint64_t probe_tick;
	/* Probes in a process that ran before (agent/late_probes.c). The collector: its process, and when that began. The
	   agent: its own thread. */
	int32_t owner, served_by;
	uint64_t owner_start;
	/* Where it has the arena, its code, and its stubs within that; how many descriptions it has read; threads
	   that make their record now; it counts no more. */
	uint64_t address, code, code_end, stubs_begin, stubs_end;
	_Atomic uint32_t probes_read, joining, quiet;
};
/* Values of `stop`. */
#define ARENA_STOP 1u
#define ARENA_GO 2u /* no thread is inside of the agent: it may unmap the arena */

/* Every chunk except chunk 0 begins with this. */
struct arena_chunk {
	_Atomic uint32_t next; /* next chunk of the same list; 0: none */
	_Atomic uint32_t used; /* bytes from the chunk's start, this header included */
};

/* A copy: the registers and the stack of a sample that met code of no known module. The collector walks
   it. The stack goes on in further chunks (chunk.next), in each of them after its struct arena_chunk. */
#define ARENA_COPIES 366      /* per thread: more than a third of a second at 1 kHz */
#define ARENA_COPY_CHUNKS 33u /* per copy: 512 KiB of stack */
#define ARENA_COPY_MORE 4

struct arena_copy {
	struct arena_chunk chunk;
	uint32_t event, weight;
	uint64_t ns;   /* CLOCK_MONOTONIC; set only if there is a time line */
	uint64_t site; /* of an allocation (safe/heap.h); 0: it is none */
	/* Keys of frames below the walk: a function that was called, and what it does; 0: none. */
	uint64_t below[2];
	/* Further values. */
	uint32_t more_count, more_metrics[ARENA_COPY_MORE];
	uint64_t more[ARENA_COPY_MORE];
	uint64_t registers[32]; /* by DWARF number, as in unwind/walk.h */
	uint64_t pc;
	/* Of the first copied stack byte: SP, or a little below it if code may keep something there. */
	uint64_t address;
	uint64_t size;   /* of the copied stack, in bytes */
	uint64_t cut;    /* the stack goes on beyond the copied part */
	uint8_t bytes[]; /* up to the end of this chunk */
};

/* An interpreted function: a copy of what the interpreter knows of it. Pieces follow (struct
   python_piece). It is in a scratch chunk, and never changes. */
struct arena_script {
	uint64_t code; /* address of the code object */
	uint64_t size; /* of all */
};

/* What a thread does (the leaf of a path, see CCT_OBJECT): it moves bytes, or waits for something. */
enum arena_act {
	ARENA_READ = 1,
	ARENA_WRITE,
	ARENA_COPY,
	ARENA_SYNC,
	ARENA_WAITS,                          /* from here on: for what it waits */
	ARENA_WAITS_DESCRIPTOR = ARENA_WAITS, /* what its descriptor stands for */
	ARENA_WAITS_LOCK,
	ARENA_WAITS_CONDITION,
	ARENA_WAITS_SEMAPHORE,
	ARENA_WAITS_BARRIER,
	ARENA_WAITS_THREAD,
	ARENA_WAITS_FUTEX,
	ARENA_WAITS_SLEEP,
	ARENA_WAITS_POLL,
	ARENA_WAITS_PIPE,
	ARENA_WAITS_SOCKET,
	ARENA_WAITS_TERMINAL,
	ARENA_WAITS_EVENT,
	ARENA_WAITS_MESSAGE,
	ARENA_WAITS_SIGNAL,
	ARENA_WAITS_CHILD,
	ARENA_WAITS_DISK,
	ARENA_WAITS_FILE_LOCK,
	ARENA_WAITS_CPU,   /* it could run */
	ARENA_WAITS_OTHER, /* it is not known for what */
	ARENA_ACTS,
};

/* Of a wait, the key of the leaf may have who ended it, instead of a reference: a thread of the same process, and whether
   that one waited itself. */
#define ARENA_WAKER(tid, waited) ((tid) << 1 | (waited))

/* What a descriptor stands for. It is in a scratch chunk, and never changes. */
#define ARENA_OBJECT_NAME 512u
struct arena_object {
	uint32_t mode;             /* as in struct stat; 0: there is no such descriptor */
	uint16_t family, type;     /* of a socket */
	uint16_t port, other_port; /* of a socket: as in harvest/objects.h */
	uint16_t size;             /* of the name */
	uint16_t reserved;
	uint8_t address[16]; /* of a socket's other side */
	char name[];         /* as the kernel tells it; what a socket of this machine is bound to */
};

/* One sample on a time line. Chunks of a time line hold these after their struct arena_chunk. */
struct arena_time {
	uint64_t ns;   /* CLOCK_MONOTONIC */
	uint32_t node; /* of the thread's tree (cct/cct.h) */
	uint32_t weight;
};

/* Where a thread went next after a sample (trail/trail.h). Keys are as in cct/cct.h. */
#define ARENA_TRAIL_EDGES 24u
#define ARENA_TRAIL_CHUNKS 16u /* of a thread, that the collector has not read yet */
struct arena_trail {
	uint64_t begin; /* where the sample was */
	uint32_t edge_count, reserved;
	struct {
		uint64_t from, to;
	} edges[];
};

#define ARENA_UNCOUNTED_SHADOW 1u   /* the CPU keeps a stack of return addresses */
#define ARENA_UNCOUNTED_LEFT 2u     /* too many sentinels were left behind */
#define ARENA_UNCOUNTED_UNWINDER 4u /* the program has an unwinder of its own */

/* A sentinel that was put into a stack (agent/sentinel.c). A ring of these is in a scratch chunk, after two
   struct arena_chunk. A copy of a stack has the address of stub number N in the word at `slot`: it stands
   for `word`. */
struct arena_mark {
	_Atomic uint64_t place; /* ARENA_MARK_PLACE(slot, N) */
	_Atomic uint64_t word;
};
#define ARENA_MARK_PLACE(slot, number) ((uint64_t)(slot) | (uint64_t)(number) << 52)
#define ARENA_MARKS ((uint32_t)(ARENA_CHUNK / sizeof(struct arena_mark) - 1))

/* The wait that a thread is in. */
struct arena_wait {
	_Atomic uint64_t since; /* CLOCK_MONOTONIC; 0: it is in none. The last that is written */
	uint64_t function;      /* address of the function that waits */
	uint32_t act;           /* ARENA_WAITS_… */
	int32_t descriptor;
	uint64_t registers[32], pc; /* in the function of ours that was called */
};

enum arena_state { ARENA_FREE, ARENA_TAKEN, ARENA_LIVE, ARENA_DONE };

struct arena_thread {
	struct arena_chunk chunk; /* next: the record that was linked before this one */
	_Atomic uint32_t state;   /* enum arena_state */
	_Atomic uint32_t nodes;   /* first chunk of the tree; nodes[0] is the root */
	_Atomic uint32_t scratch; /* first chunk of the agent's private data */
	_Atomic uint32_t times;   /* first chunk of the time line that is not fully read */
	_Atomic uint32_t trails;  /* first chunk of trails that is not fully read */
	/* How many there are: the thread adds, the collector takes away. */
	_Atomic uint32_t trail_chunks;
	_Atomic uint32_t marks; /* the chunk with the ring of struct arena_mark; 0: none */
	uint32_t generation;    /* raised each time the record is taken */
	int32_t process, parent, tid;
	_Atomic uint32_t timer;      /* the thread samples itself with a POSIX timer */
	_Atomic uint64_t list_place; /* offset of the process's list of modules: safe/wire.h */
	/* First chunk of each copy. 0: the thread may set it; else the collector takes it and sets 0. */
	_Atomic uint32_t copies[ARENA_COPIES];
	/* Copies that the collector could not walk either. The collector raises it. */
	_Atomic uint32_t vain;
	uint64_t stack_top; /* upper end of the thread's stack */
	/* Upper end of the agent's own stack, which is the chunk below this address; 0: none. */
	uint64_t handler_stack;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	/* The thread's CPU time: when it began, and at its last sample. */
	_Atomic uint64_t cpu_start_ns, cpu_ns;
	/* Samples that the handler took, by event. (The tree has weights instead.) */
	_Atomic uint64_t samples[ARENA_METRICS_MAX];
	_Atomic uint64_t weight; /* of the first event's samples */
	_Atomic uint64_t ticks;  /* spent in the handler (safe/ticks.h) */
	_Atomic uint64_t walked; /* frames stepped over */
	_Atomic uint64_t reused; /* frames known from the walk before */
	/* Weight of samples that found no room in a tree. */
	_Atomic uint64_t lost;
	/* Weight of samples that are missing on the time line. */
	_Atomic uint64_t untimed;
	/* Time off the CPU in waits that were seen; when the thread ended, by its own account (0: not known). */
	_Atomic uint64_t waited_ns, end_ns;
	/* The thread is at work for a call of a probed function: SP at its first instruction; 0: it is not. */
	uint64_t probe_busy;
	/* Bytes of reads and writes that were seen, of those that the kernel counts, too (/proc/PID/io). */
	_Atomic uint64_t moved;
	struct arena_wait wait;
};

static inline void *arena_at(const struct arena_header *arena, uint32_t chunk)
{
	return (char *)arena + ((size_t)chunk << ARENA_CHUNK_BITS);
}

/* Takes a chunk. Its `next` is 0 and its `used` covers the header; the rest is as its last user left it.
   Returns 0 if the arena is full. Async-signal-safe and lock-free. */
uint32_t arena_take(struct arena_header *arena);
/* Gives back a list of chunks that begins with `first` (0 is fine). */
void arena_give(struct arena_header *arena, uint32_t first);

/* The same for chunks of time lines. All time lines together have a limit (times_max), and chunks are
   given back one by one. */
uint32_t arena_take_times(struct arena_header *arena);
void arena_give_times(struct arena_header *arena, uint32_t chunk);

/* Makes a new arena in zeroed memory. */
void arena_format(struct arena_header *arena, uint64_t size, uint32_t metrics);
/* Whether this is the header of an arena of `size` bytes. */
bool arena_is_sane(const struct arena_header *arena, uint64_t size);

/* Returns a thread record in state TAKEN, with all counts zero and no chunks; NULL if the arena is full. */
struct arena_thread *arena_thread_take(struct arena_header *arena);
/* Gives back all chunks of a record and sets it FREE. The collector calls this after it has read
   the record. */
void arena_thread_free(struct arena_header *arena, struct arena_thread *thread);
