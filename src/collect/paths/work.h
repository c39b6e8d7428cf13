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
 *    meter.c   samples of the programs
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/agents/door.h"
#include "collect/paths/counting.h"

struct banks_header;

struct program {
	struct counting_program face; /* first: the one is the other */
	struct counting_plan plan;
	unsigned number;
	char **paths; /* of the objects' files; NULL: it could not be written, and that is its trouble */
	int memory; /* -1: none */
	uint32_t slots;
	uint64_t slots_at, stride, size;
	uint64_t arena;              /* as in struct banks_reply */
	struct banks_header *header; /* while its counter talks to us */
	struct err *problem;         /* why it has no copies */
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

struct counting_work {
	struct counting *counting;
	struct target target;
	struct door door;
	struct making making;
	struct meter *meter; /* NULL: nothing is sampled */
	struct client *clients;
	size_t client_count;
	unsigned program_count;
	bool prepared;
};

/* ---- clients.c ---- */

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
