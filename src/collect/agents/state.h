/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the sampler by agents holds. Each part belongs to the file that it names.
 *
 *    agents --< arena --< process          a program image and the children that it forked
 *                    \--< thread           for each record in the arena that is in use
 *
 * A process belongs to one arena. When it execs, the new image says HELLO and is a
 * process of its own, in a new arena, with the same pid; the old one has ended.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/loop.h"
#include "collect/tally.h"
#include "safe/arena.h"

struct inside;
struct inside_rings;
struct process;
struct recording;
struct times;
struct unwalked;

struct client { /* talk.c */
	struct watch watch;
	struct agents *agents;
	struct client *next;
	int fd;
	uint64_t since_ns;
};

struct events { /* sampling.c: those of a thread, as descriptors */
	bool open;
	int periodic[ARENA_METRICS_MAX];
	int once;              /* the first event's sample by chance; -1: none (any more) */
	struct inside *inside; /* NULL: none */
};

struct process_agent {      /* scan.c: more of a process */
	struct watch watch; /* of its end */
	struct agents *agents;
	struct arena *arena;
	struct process *next, *previous; /* in the arena */
	struct events early;             /* of its first thread, until its record is there */
};

struct thread { /* scan.c */
	struct process *process;
	uint32_t chunk, generation; /* of its record */
	pid_t tid;                  /* as we see it */
	struct events events;
	uint64_t opened_ns, attended_ns, changed_ns;
	uint64_t samples;
	uint64_t clock_samples, clock_count; /* when a sample was missed first */
	bool clock_watched, clock_known;
	unsigned clock_renewed; /* times since the last sample */
	uint32_t profile;       /* its index there + 1; 0: not there yet */
	uint32_t times_read;    /* bytes of the first chunk of its time line */
	char name[16];
};

struct arena { /* arenas.c */
	struct arena *next;
	int fd;
	struct arena_header *header;
	uint64_t size;
	uint32_t changes;                /* of the header, as seen last */
	uint64_t lost[ARENA_LOST_KINDS]; /* of the header, in the profile already */
	bool namespaced;                 /* numbers of processes in it may mean others to us */
	struct process *processes;
	struct thread *threads;
	size_t thread_count, thread_room;
	uint16_t *thread_of; /* for each chunk the index in `threads` + 1 */
	uint64_t inode;      /* of the memory: how to tell who has it mapped */
	uint64_t checked_ns; /* whether threads have ended, last */
	uint64_t tried_ns;   /* to give it back, last */
};

struct bell { /* bell.c: what targets ring, waited for by a small thread */
	struct watch watch;
	int fd, ring; /* ring: an eventfd */
	_Atomic uint32_t *word;
	pthread_t waiter;
	bool waiting;
	_Atomic bool stop;
	_Atomic uint32_t pause_us; /* between two rings at least */
};

struct door { /* door.c: how agents find us */
	struct watch watch;
	char *directory, *socket, *preload;
	int lock; /* the directory, which nobody else may take for a dead one's */
	int listener;
	struct client *clients; /* oldest last */
	size_t client_count;
};

struct agents {
	struct recording *recording;
	struct loop *loop;
	struct bell bell;
	struct door door;
	struct arena *arenas;
	size_t arena_count;
	struct unwalked *unwalked; /* unwalked.c; NULL: none is waiting */
	uint64_t walking_ns;       /* CPU time that they took */
	struct times *times;       /* times.c; NULL: none was on a time line yet */

	struct {                       /* sampling.c */
		uint64_t busy;         /* threads */
		bool timers_interrupt; /* those of this kernel end calls of the program */
		struct tally tallies[ARENA_METRICS_MAX]; /* of events that are closed */
	} sampling;

	struct { /* inside.c */
		struct watch watch;
		struct inside_rings *rings; /* NULL: nothing is sampled so */
		bool few_counters;          /* of the CPU: for one of each event at most */
		size_t count;               /* of threads */
	} inside;
};
