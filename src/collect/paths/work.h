/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The data of a command that counts. All files of collect/paths/ share it; nobody else does.
 *
 *    command.c    the command, and everybody who comes to the door
 *    clients.c    conversations with counters (safe/banks.h)
 *    making.c     has copies made, by a thread of its own: so we hear of signals meanwhile
 *    programs.c   the files and the memory of a program; what was counted
 *    change.c     writes the jumps into a process
 *    running.c    the same in a process that runs already, and how that ends; hooks.c: how its new threads come to us
 *    meter.c   samples of the programs
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/agents/door.h"
#include "collect/paths/counting.h"
#include "inject/still.h"
#include "safe/banks.h"

struct program {
	struct counting_program face; /* first: the one is the other */
	struct counting_plan plan;
	unsigned number;
	char **paths; /* of the objects' files; NULL: it could not be written, and that is its trouble */
	int memory; /* -1: none */
	uint32_t slots;
	uint64_t patches_at, slots_at, stride, size;
	struct banks_header *header; /* while its counter talks to us */
	struct err *problem;         /* why it has no copies */
	/* Of one that ran already: the file with code for functions of libc, where that is, and what is changed in them. */
	struct banks_function functions[BANKS_HOOKED];
	char *hooks_path;
	uint64_t hooks_base, bodies[BANKS_HOOKED];
	struct still_write hooks[BANKS_HOOKED];
	size_t hook_count;
	bool plan_had; /* there are functions to be counted */
	bool *summed;  /* slots whose counts are in face.counts already; NULL: none */
	size_t listed; /* banks_header.patch_count */
};

#define CLIENTS_MAX 200u /* others wait at the door */

enum client_state { CLIENT_SILENT, CLIENT_MAKING, CLIENT_TALKING };

struct client { /* a connection from a counter */
	struct client *next;
	struct client *next_job; /* making.c */
	struct program *program;
	int fd;
	pid_t pid;
	enum client_state state;
	uint64_t since_ns;
	size_t object; /* how many it was told */
	bool hooked;   /* and the hooks */
};

struct making {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	bool started, end;
	struct client *jobs, *done; /* oldest first; newest first */
	int bell; /* an eventfd that is readable if there are done ones; -1: none */
};

struct meter;

struct running {
	pid_t pid;
	int descriptor;               /* is readable when it has ended; -1: none */
	uint64_t begun_ns, counts_ns; /* since when it has the counter, and counts */
	uint64_t end_ns;              /* when it is to end; 0: not known */
	struct program *program;      /* once its counter has said HELLO */
	struct err *e;                /* why it is not counted */
	bool over;
	struct still_report report;
};

struct counting_work {
	struct counting *counting;
	struct target target;
	struct door door;
	struct making making;
	struct meter *meter; /* NULL: nothing is sampled */
	struct running running;
	struct client *clients;
	size_t client_count;
	unsigned program_count;
	bool prepared;
};

/* ---- clients.c ---- */

/* Whether its files are for a process of another user, which must be able to read them. */
static inline bool work_is_late(const struct counting_work *work)
{
	return work->counting->pid > 0;
}

void clients_accept(struct counting_work *work);
/* A packet came, or the other side has closed. The client may be gone afterwards. */
void client_hear(struct counting_work *work, struct client *client);
/* Its copies are made, or not. */
void client_made(struct counting_work *work, struct client *client);
/* Whether the process is at the other end, and has said nothing more. */
bool client_waits(const struct client *client);
/* Closes the connection. The program goes on, as it is if it has not been changed. */
void client_end(struct counting_work *work, struct client *client);
/* Ends clients that have said nothing for too long. */
void clients_end_silent(struct counting_work *work);

/* ---- making.c ---- */

struct err *making_open(struct counting_work *work);
void making_add(struct counting_work *work, struct client *client);
/* Hands over those that are done: to client_made. */
void making_take(struct counting_work *work);
/* Waits for the one that is being made. */
void making_close(struct counting_work *work);

/* ---- programs.c ---- */

/* It becomes one of counting->programs. NULL: no memory. */
struct program *programs_add(struct counting_work *work, pid_t pid);
/* Has its copies made, writes the files, makes the memory: called by the thread of making.c. */
void program_make(struct counting_work *work, struct program *program);
/* Whether an object was loaded where it must be. */
bool program_has_loaded(const struct program *program, size_t object);
/* What was not changed. False: there is no memory. */
bool program_expect_unchanged(struct program *program);
void program_unchanged(struct program *program, size_t patch, const char *why);
void program_note_unchanged(struct counting_work *work, const struct program *program,
			    size_t asked);
/* Reads what was counted by processes with this number, or by all, that is not in face.counts yet. False: no memory. */
bool program_sum(struct program *program, pid_t pid);
/* Adds a line to the notes. */
void program_note(struct counting_work *work, const struct program *program, const char *format,
		  ...) __attribute__((format(printf, 3, 4)));
/* Notes why an object is not there. */
void program_trouble(struct program *program, size_t object, const char *why);
/* The conversation is over. */
void program_settle(struct program *program);
/* Reads what programs have counted that run no more; at the end, all of them. */
void programs_read(struct counting_work *work, bool end);
void program_free(struct program *program);

/* ---- change.c ---- */

/* Writes the jumps. Returns whether any was written. */
bool change_code(struct counting_work *work, struct client *client);

/* ---- hooks.c ---- */

/* Finds room for their code, before copies get theirs. */
struct err *hooks_place(struct program *program);
/* Plans how functions of libc are entered by the counter, and writes the file. */
struct err *hooks_make(const struct counting_work *work, struct program *program);

/* ---- running.c ---- */

/* Lets the process load the counter. */
struct err *running_begin(struct counting_work *work);
/* Whether somebody, the time or its end has ended it. */
bool running_is_over(struct counting_work *work);
/* READY has come. Returns how many banks there must be; 0: these are enough, and it was changed, or not. */
uint64_t running_change(struct counting_work *work, struct client *client,
			const struct banks_request *request, bool *changed);
/* Restores the code of all its processes. */
void running_end(struct counting_work *work);

/* ---- meter.c: all of it does nothing if nothing is sampled ---- */

struct err *meter_open(struct counting_work *work);
void meter_close(struct counting_work *work);
/* Readable if there is much to read; -1: none. */
int meter_fd(const struct counting_work *work);
/* From now on, the program and all processes that are forked from it are sampled. */
void meter_begin(struct counting_work *work, struct program *program);
void meter_end(struct counting_work *work, const struct program *program);
/* Hands over the samples that have come. */
void meter_read(struct counting_work *work);
/* How many samples had no room. */
uint64_t meter_lost(const struct counting_work *work);
