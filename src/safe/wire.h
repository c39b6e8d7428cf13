/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The protocol between the agent (agent/) and the collector (collect/agents/).
 *
 * They say little: each conversation is one connection to the SOCK_SEQPACKET unix socket at $CULPRIT_SOCKET.
 * The agent connects, sends a wire_request, reads a wire_reply and closes. It keeps no descriptor.
 *
 *    HELLO    a new program has started. The reply brings the settings and three descriptors: the arena (a
 *             memfd, mapped shared and writable), the tables file (mapped read-only) and the bell (a memfd of one
 *             page, mapped shared and writable)
 *    MODULES  a library goes away, or the program ends. The reply has no descriptors. It comes when the
 *             collector has walked the copies that wait, and the lists are up to date
 *
 * Everything else goes through shared memory:
 *
 *  - The bell is one 32-bit word. A target raises it and wakes its futex if it has something for the
 *    collector: a new thread or process in the arena, a copy, a thread that is done.
 *  - The tables file only grows; what is in it never changes. The agent maps wire_reply.tables_map bytes of it
 *    at once, more than there are yet. It holds unwind tables (unwind/table.h) at multiples of 64 bytes, and
 *    lists of modules: a struct wire_list followed by its wire_modules.
 *  - arena_thread.list_place is the offset of the process's list in the tables file. When the modules of a process
 *    change, the collector writes a new list and sets the offset in all records of that process. A new thread
 *    and a forked child begin with the offset of the thread that made them.
 *  - A sample that meets code of no module in its list leaves a copy (safe/arena.h) and rings. The collector
 *    reads the process's memory map again and walks the copy. So code that was loaded a moment ago is known in
 *    time, constructors included, and dlopen need not be intercepted.
 */
#include <stdint.h>
#include "safe/arena.h"

#define WIRE_MAGIC 0x32746c63u /* "clt2" */
#define WIRE_SOCKET "CULPRIT_SOCKET"
#define WIRE_SIGNAL 16 /* SIGSTKFLT: nothing else uses it, and a second pending one is dropped */

enum wire_kind { WIRE_HELLO = 1, WIRE_MODULES };

struct wire_request {
	uint32_t magic, kind;
	int32_t process;
	uint32_t machine; /* ELF machine of the agent; not ours if an emulator runs it */
};

enum wire_sampler {
	WIRE_NONE, /* this program is not sampled */
	/* The collector opens perf events. si_fd % (2 * event_count) tells the event of a signal;
	   event_count stands for the first event's sample by chance (collect/agents/sampling.c). */
	WIRE_EVENTS,
	WIRE_TIMERS, /* each thread arms a POSIX timer on its own CPU clock */
};

struct wire_event {
	uint64_t period;
	/* 1: a clock over all of the thread's CPU time, and `period` is in nanoseconds. 0: another event,
	   or a clock whose signals come in the thread's own code only. */
	uint32_t clock;
	uint32_t interrupts; /* samples may come while the kernel works for the program */
};

/* Allocations: agent/heap.h. */
struct wire_heap {
	uint32_t wanted;
	/* Values of a node: its samples, the reference to its site, and bytes that it frees. */
	uint32_t samples, site, released;
	uint64_t bytes; /* from sample to sample, on average; 1: all allocations; 0: as it fits */
	uint64_t brief; /* ticks: memory that was freed earlier has lived for a short while */
};

/* Waits for locks: agent/lock.c. */
struct wire_locks {
	uint32_t wanted;
	uint32_t waits, ns, held; /* values of a node */
};

/* Calls of MPI: agent/mpi.c. */
struct wire_mpi {
	uint32_t wanted;
	uint32_t calls, ns; /* values of a node */
	uint32_t reserved;
};

/* Time off the CPU, and calls that read and write: agent/pauses.h. */
#define WIRE_OFF_MAX 2
struct wire_pauses {
	uint32_t off; /* how many metrics count time off the CPU */
	uint32_t io;  /* 1 + the first of the four metrics of reads and writes; 0: not wanted */
	struct {
		uint64_t period; /* in nanoseconds */
		uint32_t metric, reserved;
	} metrics[WIRE_OFF_MAX];
};

struct wire_reply {
	uint32_t magic, sampler; /* enum wire_sampler */
	uint64_t arena_size;     /* 0: there is none, and the program runs without us */
	uint64_t tables_map;     /* bytes of the tables file to map; not all are in use yet */
	uint64_t list_place;     /* offset of the process's list, a struct wire_list */
	uint32_t event_count;
	uint32_t max_depth;      /* limit for the frames of a path */
	uint32_t collapse;       /* bound recursion in the tree */
	uint32_t frame_pointers; /* walk by frame pointers only */
	uint32_t timeline;       /* note the time of each sample of the first event */
	uint32_t calls;          /* count returns, as the metric after the events */
	/* The first event has one sample by chance, too: collect/agents/sampling.c. */
	uint32_t chance;
	uint32_t follow; /* follow the code at samples of the first event: agent/follow.c */
	struct wire_event events[ARENA_METRICS_MAX];
	struct wire_heap heap;
	struct wire_locks locks;
	struct wire_mpi mpi;
	struct wire_pauses pauses;
};

/* One entry of a list: an executable mapping. Entries are disjoint and ascend by start. */
struct wire_module {
	uint64_t start, end, bias;
	uint64_t table, table_size; /* in the tables file; size 0: there is none */
	/* Of the module, the same in the whole recording: 1 … WIRE_MODULE_MAX - 1. */
	uint32_t id;
	uint32_t flags; /* WIRE_MODULE_… */
};
/* A list: the modules that a process has in memory, and where. */
struct wire_list {
	uint32_t count, reserved;
	struct wire_module modules[];
};
#define WIRE_MODULE_MAX 0x7ffcu /* larger numbers are the tree's own: cct/cct.h */
#define WIRE_MODULE_AGENT 1u    /* the agent itself: its frames are left out of paths */
/* Memory that a program made executable, such as code of a JIT compiler. Its id is 0 and it has no table.
   It is walked by frame pointers. WIRE_MODULE_TOP: its frame records are known to be at the upper ends of
   their frames. */
#define WIRE_MODULE_JIT 2u
#define WIRE_MODULE_TOP 4u
/* The same, but its code keeps no frame pointers. (WIRE_MODULE_JIT is not set then.) */
#define WIRE_MODULE_BARE 8u
#define WIRE_MODULE_READ 16u /* its bytes can be read */
/* For recordings that count returns (agent/sentinel.c), and for probes: some of its procedures look at their own return address;
   its runtime walks stacks with its own tables of return addresses; some of its procedures sign theirs; it has an
   unwinder for exceptions in it. */
#define WIRE_MODULE_OWN_RETURNS 32u
#define WIRE_MODULE_OWN_WALKS 64u
#define WIRE_MODULE_SIGNS 128u
#define WIRE_MODULE_OWN_UNWINDER 256u
/* V8 is in it: that looks at the return addresses of what its builtins call, which have no unwind information. */
#define WIRE_MODULE_V8 512u
#define WIRE_STUB 16u /* bytes of a stub; a sentinel is known by the number of its stub */
#define WIRE_STUBS 4096u
