/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a command whose functions count their paths.
 *
 * A library is preloaded (counter/). Before anything else of the program runs, it connects to us and waits. We look at what
 * is in the process' memory, and have copies of functions made (make). The library loads them, we change the first
 * instructions of the functions to jumps, and the program goes on. Counts are in memory that we share, a bank for each
 * thread (safe/banks.h): they survive whatever becomes of the process. Children that are forked have banks of their own in
 * the same memory. Programs that are executed come to us again. What the code of copies may rely on, and what must not be
 * copied, is in counter/counter.h.
 *
 * A process may also run already (`pid`): then a thread of its own loads the library (inject/), its threads get their counters
 * and its functions their jumps while all stand still, and at the end the code is restored (running.c).
 *
 *    counting_run(&counting)     the command runs to its end; programs come and go
 *    counting.programs, …        what was counted
 *    counting_free(&counting)    removes the files; from here on, signals end us again
 *    return counting_exit(&counting)
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "collect/target.h"

struct counting_contexts;
struct counting_work;
struct err;
struct recording_event;

#define COUNTING_LIBRARY "libculprit-paths.so"
#define COUNTING_PATCH 16u
#define COUNTING_START 32u

struct counting_object { /* a shared object with copies */
	char *name;      /* of the file, without folder */
	void *bytes;     /* malloc'ed */
	size_t size;
	uint64_t base; /* the address in memory at which its first byte must be */
};

struct counting_patch { /* in memory: what is there, and what is to be there */
	uint64_t at;
	uint8_t length;
	uint8_t expected[COUNTING_PATCH], bytes[COUNTING_PATCH];
	size_t object; /* only if that was loaded where it must be */
	/* The function begins so, in its file. A tool that has changed it may have done that behind what is known above. */
	uint64_t entry;
	uint8_t start_size, start[COUNTING_START];
};

struct counting_plan { /* all lists are malloc'ed */
	struct counting_object *objects;
	size_t object_count;
	struct counting_patch *patches;
	size_t patch_count;
	uint64_t words; /* of a bank */
	bool contexts;  /* calling contexts are told apart */
};

struct counting_unchanged {
	size_t patch; /* its index */
	const char *why;
};

struct counting_program { /* from an exec to the end of the last process that was forked from it */
	pid_t pid;
	/* aarch64: as in struct write_input */
	uint64_t thread_word;
	bool atomics;
	bool late;               /* it ran already when we came */
	uint64_t kept, kept_end; /* no copies are to be there; 0: no such place */
	char name[32];           /* as the kernel has it */
	uint64_t words;
	bool can_contexts;                  /* calling contexts can be told apart on this CPU */
	struct counting_contexts *contexts; /* those of all threads; NULL: there are none */
	uint64_t
		*counts; /* the sums of all banks, once they are known; NULL: nothing was counted */
	void *made;      /* what the maker keeps about it */
	/* Objects that could not be loaded, by index: a sentence for each; NULL: it was. NULL: all were. */
	char **troubles;
	/* Patches that were not made although their object was loaded. The functions run as they are. */
	struct counting_unchanged *unchanged;
	size_t unchanged_count;
	bool changed;   /* some patches were made: without, the program runs as it is */
	uint64_t forks; /* processes that were forked from it */
	bool runs_on; /* when the command ended, its processes still ran: the counts are those of that moment */
};

struct counting {
	char **command; /* NULL: a process that runs already: */
	pid_t pid;
	uint64_t duration_ns;         /* 0: until the process or somebody ends that */
	uint64_t stop_ns, counted_ns; /* out: for how long it stood still, at most; and counted */
	void (*begun)(void *context); /* from now on it counts; NULL: nobody wants to know */
	const char *libdir;           /* as for agent_path_find() */
	/* Makes the copies for a program that waits. An error leaves the program as it is: it is told in the notes. It is called
	   by a thread of ours, for one program at a time. */
	struct err *(*make)(void *context, struct counting_program *program,
			    struct counting_plan *plan);
	/* What a program has counted is known, and it counts no more. Called by the thread that runs counting_run. When it has
	   returned, the counts are freed. NULL: they are kept. */
	void (*ended)(void *context, struct counting_program *program);
	/* What is sampled of programs (event_parse); none: nothing. For each sample in user code, the PC, the registers by the numbers of
	   isa/insn.h, and how much of the event it stands for. Called before `ended`. */
	const struct recording_event *events;
	size_t event_count;
	void (*sampled)(void *context, struct counting_program *program, size_t event, uint64_t pc,
			const uint64_t *registers, uint64_t value);
	void *context;
	bool emulated; /* the command is an emulator, which has threads of its own */
	struct counting_program **programs; /* all that came, in the order of their beginning */
	size_t program_count, program_room;
	int status;        /* of the command, as waitpid returns it */
	struct buf notes;  /* lines for people, each with a newline */
	_Atomic bool over; /* the command has ended: nobody waits for what make does */
	struct counting_work *work;
};

/* Runs the command to its end. Returns an error if it cannot be started, or if a process cannot be counted. Its terminal, signals and exit status are passed through
   as by `record`. Until counting_free, signals that would end us are held back. */
struct err *counting_run(struct counting *counting);
/* Whether somebody has asked us to end since the command ended. */
bool counting_interrupted(const struct counting *counting);
/* Also after counting_run has failed. What the maker keeps is the caller's. */
void counting_free(struct counting *counting);
/* Returns the exit status of the command, or dies as it did: target_exit. */
int counting_exit(const struct counting *counting);
