/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the agent and the collector say to each other. Little is said: over a
 * SOCK_SEQPACKET unix socket at $CULPRIT_SOCKET, each conversation one
 * connection: the agent connects, sends a wire_request, reads a wire_reply,
 * and closes; it keeps no descriptor.
 *
 *    HELLO    a new program image. The reply comes with three descriptors: the arena (a memfd,
 *             mapped shared and writable), the tables (mapped read-only) and the bell (a memfd of
 *             one page, mapped shared and writable), and with the settings
 *    MODULES  a library went away: the reply (no descriptors) comes when the lists are up to date
 *
 * Everything else goes through shared memory:
 *
 *  - The bell is one 32-bit word: who has something for the collector (a new thread or process in
 *    the arena, code of no known module, a thread that is done) raises it and wakes its futex.
 *  - The tables file grows and never changes what it has. The agent maps wire_reply.tables_map
 *    bytes of it at once, more than there are yet. It holds unwind tables (unwind/table.h) at
 *    multiples of 64 bytes, and lists: struct wire_space followed by its wire_modules.
 *  - arena_thread.space says at which offset of the tables file the list of the thread's process
 *    is. The collector writes it whenever the modules of the process change (to all records of
 *    that process); a new thread and a forked child begin with that of the thread that made them.
 *  - A sample that meets code of no module in its list leaves a snapshot (safe/arena.h), rings,
 *    and the collector walks it with the new modules: so code that was loaded a moment ago is
 *    known in time, constructors included, and nobody has to intercept dlopen.
 */
#include <stdint.h>
#include "safe/arena.h"

#define WIRE_MAGIC 0x31746c63u /* "clt1" */
#define WIRE_SOCKET "CULPRIT_SOCKET"
#define WIRE_SIGNAL 16 /* SIGSTKFLT: nothing else uses it, and a second one pending is dropped */

enum wire_kind { WIRE_HELLO = 1, WIRE_MODULES };

struct wire_request {
	uint32_t magic, kind;
	int32_t process, parent, tid;
	uint32_t machine; /* ELF machine of the agent: an emulator may run it */
};

enum wire_sampler {
	WIRE_NONE,   /* do not sample this program: only wait */
	WIRE_EVENTS, /* the collector opens perf events; si_fd % (2 * event_count) of their
			signals is the event, or the one beyond the last: the first event's
			only sample by chance */
	WIRE_TIMERS, /* each thread arms a POSIX timer on its CPU clock for itself */
};

struct wire_event {
	uint64_t period;
	uint32_t clock;      /* the period is nanoseconds of the thread's CPU time, all of it: 0 for
			        a clock whose samples come in user code only */
	uint32_t interrupts; /* samples may come while the kernel works for the program */
};

struct wire_reply {
	uint32_t magic, sampler; /* enum wire_sampler */
	uint64_t arena_size;     /* 0 where there is none: the program runs without us */
	uint64_t tables_map;     /* bytes to map of the tables file, some of them to come */
	uint64_t space;          /* offset of the process's struct wire_space */
	uint32_t event_count;
	uint32_t max_depth;      /* frames of a path */
	uint32_t collapse;       /* bound recursion in the tree */
	uint32_t frame_pointers; /* walk by frame pointers alone */
	uint32_t timeline;       /* note when each sample of the first event came */
	uint32_t
		chance; /* the first event has a sample by chance, too: collect/agents/sampling.c */
	struct wire_event events[ARENA_METRICS_MAX];
};

/* A list of executable mappings, ascending by start, disjoint. */
struct wire_module {
	uint64_t start, end, bias;
	uint64_t table, table_size; /* in the tables file; size 0: there is none */
	uint32_t id;    /* of the module in the whole recording, 1 … WIRE_MODULE_MAX - 1 */
	uint32_t flags; /* WIRE_MODULE_… */
};
struct wire_space {
	uint32_t count, reserved;
	struct wire_module modules[];
};
#define WIRE_MODULE_MAX 0x7ffeu /* numbers beyond are the tree's own: cct/cct.h */
#define WIRE_MODULE_AGENT 1u    /* the agent itself: its frames are left out of paths */
/* id 0, no table: memory that a program made executable. Frame pointers are followed there; their
   records may be known to lie at the upper ends of frames. */
#define WIRE_MODULE_JIT 2u
#define WIRE_MODULE_TOP 4u
#define WIRE_MODULE_BARE 8u  /* the same, but its code keeps no frame pointers */
#define WIRE_MODULE_READ 16u /* its bytes may be read */
