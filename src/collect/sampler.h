/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who samples for a session. There are two: agents inside the programs (agents/), and the kernel (kernel/). What
 * differs between them stands in this table; the rest of a session does not ask which it is. Each adds what it
 * finds to the recording.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct harvest;
struct loop;
struct recording;
struct recording_counted;
struct recording_state;
struct tally;

#define SAMPLER_TICK_NS 100000000ull

struct sampler {
	/* Makes what it needs, watches its descriptors, and begins. `*self` is what the others get, and is to be
	   closed also where this failed, unless it is NULL. */
	struct err *(*open)(struct recording *r, struct loop *loop, void **self);
	/* Before the recording is closed. Processes that are left are ended. */
	void (*close)(void *self);
	/* The environment for the command: see session_environment. */
	char **(*environment)(void *self, char **environment);
	/* In the process of the command, before exec. */
	void (*join)(void *self);
	/* A process that is there already. */
	struct err *(*attach)(void *self, pid_t pid);
	/* Every SAMPLER_TICK_NS. */
	void (*tick)(void *self);
	/* Adds what came, and what was lost, that is not in the recording yet. */
	void (*status)(void *self, struct recording_state *out);
	/* Adds what its events have counted, one for each; `anew`: what comes now is for the next profile. */
	void (*tally)(void *self, struct tally *tallies, bool anew);
	/* Before a profile is taken: names, and what else only it knows. `all`: also what takes long. */
	void (*prepare)(void *self, bool all);
	/* Adds what is not in the recording yet to a copy of its profile. */
	void (*copy)(void *self, struct harvest *copy);
	/* Sampling ends, everywhere: takes what is on its way. */
	void (*stop)(void *self);
	/* Everything was taken, nobody is left: ends the processes, and lets nobody in any more. */
	void (*finish)(void *self);

	/* For drains; NULL: there are none. Before the profile is taken away, everything that came is put there. */
	void (*settle)(void *self, struct recording_counted *counted);
	/* The profile is another one from now on. */
	void (*restart)(void *self);

	/* What a sample costs a program beside what is measured in it, in ns. */
	uint64_t (*delivery)(void);
	bool delivery_at_end; /* that is measured when sampling has ended */

	bool in_ticks; /* what handlers took is in ticks (safe/ticks.h), not in ns */
	bool merges;   /* several samples of an event may come as one */
};

extern const struct sampler sampler_agents, sampler_kernel;
