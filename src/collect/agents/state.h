/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The data of the sampler by agents. All files of agents/ share it. Each part belongs to the file that its
 * comment names.
 *
 *    agents --< arena --< process          a program and the children that it forked
 *                    \--< thread           for each record in the arena that is in use
 *
 * A process belongs to one arena. When it calls exec, the new program says HELLO. It becomes a new process
 * here, in a new arena, with the same pid; the old one has ended.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/agents/door.h"
#include "collect/loop.h"
#include "collect/tally.h"
#include "safe/arena.h"

struct unsignalled;
struct sample_rings;
struct process;
struct recording;
struct times;
struct copies;

struct client { /* talk.c: a connection from an agent */
	struct watch watch;
	struct agents *agents;
	struct client *next;
	int fd;
	uint64_t since_ns;
};

struct events { /* sampling.c: the events of a thread, as descriptors */
	bool open;
	int periodic[ARENA_METRICS_MAX];
	int once; /* the first event's sample by chance; -1: none (any more) */
	struct unsignalled *unsignalled; /* those that send no signal; NULL: none */
};

struct heap_sites { /* heaps.c: where the sites of a process are in the profile */
	struct placed_site *placed;
	size_t count, room;
};

struct process_agent {      /* scan.c: the agent's part of a process */
	struct watch watch; /* for its end */
	struct agents *agents;
	struct arena *arena;
	struct process *next, *previous; /* in the list of the arena */
	struct events early;             /* of its first thread, until that has a record */
	struct heap_sites sites;
	/* unseen.c: bytes that the kernel had counted at the beginning and at the end; of these, what the agent saw. */
	uint64_t io_start, io_end, io_moved;
	int io_fd;              /* -1: none */
	uint64_t judged_cpu_ns; /* budget.c: its CPU time, until it was judged */
	bool late;              /* its agent came when it ran already */
	bool served;            /* and has a thread of its own there: not in child processes */
};

struct thread { /* scan.c */
	struct process *process;
	uint32_t chunk, generation; /* of its record */
	pid_t tid;                  /* as we see it */
	struct events events;
	uint64_t attended_ns, changed_ns;
	uint64_t samples; /* when the periods were changed */
	/* How much the rates of clocks were changed, in the thread's own code and while the kernel works; and
	   whether the next change is the same in the other direction. */
	float swings[2][ARENA_METRICS_MAX];
	bool swings_back;
	/* To notice a clock that brings no samples: their number at the last look, and the clock's count
	   when that number stopped growing. */
	uint64_t clock_samples, clock_count;
	bool clock_watched, clock_known;
	unsigned clock_renewed; /* times it was reopened since the last sample */
	uint32_t profile;       /* index in the profile + 1; 0: not there yet */
	/* waits.c: since when it waits, and the node of its path (0: not known); its CPU time, and its time without a
	   CPU, from the beginning until the last look. */
	uint64_t wait_since;
	uint32_t wait_node;
	uint64_t cpu_ns, queued_ns, queued_start_ns;
	uint32_t trails_read; /* the same of its trails */
	uint32_t times_read;  /* bytes that were read of its time line's first chunk */
	char name[16];
};

struct arena { /* arenas.c */
	struct arena *next;
	int fd;
	struct arena_header *header;
	uint64_t size;
	uint32_t changes;   /* header->changes, as last seen */
	uint64_t unsampled; /* part of header->unsampled that is in the profile already */
	bool namespaced;    /* pids in it are of another namespace */
	bool has_python;    /* interpreted.c: its processes have this interpreter */
	struct python python;
	struct process *processes;
	struct thread *threads;
	size_t thread_count, thread_room;
	uint16_t *thread_of; /* for each chunk: index in `threads` + 1 */
	uint64_t inode;      /* of the memfd: tells which processes have it mapped */
	uint64_t checked_ns; /* last time we looked for ended threads */
	uint64_t tried_ns;   /* last time we tried to free it */
	size_t looked_at;    /* waits.c: the thread whose turn is next */
	/* patches.c: chunks that are filled, with descriptions and with sums; 0: none. */
	uint32_t probe_chunk, probe_sums;
};

struct bell { /* bell.c: targets ring it; a thread waits for that */
	struct watch watch;
	int fd, ring; /* fd: the shared memory; ring: an eventfd */
	_Atomic uint32_t *word;
	pthread_t waiter;
	bool waiting;
	_Atomic bool stop;
	_Atomic uint32_t pause_us; /* pause after each ring */
};

struct agents {
	struct recording *recording;
	struct loop *loop;
	struct bell bell;
	struct door door;
	struct watch door_watch;
	struct client *clients; /* newest first */
	size_t client_count;
	struct arena *arenas;
	size_t arena_count;
	struct copies *copies; /* copies.c; NULL: no samples wait */
	uint64_t walking_ns;   /* CPU time of all walks */
	uint64_t judged_ns;    /* budget.c: when the last second was judged; 0: not yet */
	pid_t attached;        /* attach.c: the process that is expected at the door; 0: none */
	struct times *times;   /* times.c; NULL: nothing is on a time line yet */

	struct {                       /* sampling.c */
		uint64_t busy;         /* threads that had samples lately */
		bool timers_interrupt; /* POSIX timers of this kernel interrupt system calls */
		struct tally tallies[ARENA_METRICS_MAX]; /* of events that are closed */
	} sampling;

	struct { /* unsignalled.c */
		struct watch watch;
		struct sample_rings *rings; /* NULL: there are none */
		/* The CPU has too few counters to count each event twice. */
		bool few_counters;
		size_t count; /* threads that have a ring */
	} unsignalled;
};
