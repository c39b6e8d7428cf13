/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a session needs of a sampler, as a table of functions. There are two samplers: agents inside the
   targets (agents/), and our program in the kernel (kernel/). session.c uses the table, and does not ask
   which one it is. A sampler adds what it finds to the recording. */
#include <stdbool.h>
#include <stddef.h>
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
	/* Prepares the sampler, adds its descriptors to the loop, and begins. The other functions get
	   `*self`. It must be closed even if this has failed, unless it is NULL. */
	struct err *(*open)(struct recording *r, struct loop *loop, void **self);
	/* Called before the recording is closed. Ends the processes that are left. */
	void (*close)(void *self);
	/* Returns the environment for the command: see session_environment. */
	char **(*environment)(void *self, char **environment);
	/* Called in the process of the command, before exec. */
	void (*join)(void *self);
	/* Begins to sample a running process. */
	struct err *(*attach)(void *self, pid_t pid);
	/* Puts probes into the process of the command, before its exec; NULL: the sampler has none. */
	struct err *(*probe)(void *self, pid_t pid);
	/* Puts more probes in place, or takes one away: see session_probe_more. NULL: as above. */
	struct err *(*probe_more)(void *self, size_t first);
	void (*probe_less)(void *self, uint32_t number);
	/* Called every SAMPLER_TICK_NS. */
	void (*tick)(void *self);
	/* Adds what has come, and what was lost, if it is not in the recording yet. */
	void (*status)(void *self, struct recording_state *out);
	/* Sets one tally for each event: what it has counted. `anew`: the next call counts from here. */
	void (*tally)(void *self, struct tally *tallies, bool anew);
	/* Called before a profile is taken: adds names, and what else only the sampler knows. `all`:
	   also what takes long. */
	void (*prepare)(void *self, bool all);
	/* Adds what is not in the recording yet to a copy of its profile. */
	void (*copy)(void *self, struct harvest *copy);
	/* Ends sampling everywhere, and takes what is on its way. */
	void (*stop)(void *self);
	/* Called when everything was taken: ends the processes, and lets nobody in any more. */
	void (*finish)(void *self);

	/* For drains; NULL: the sampler has none. Called before the profile is taken away: puts
	   everything into it that has come. */
	void (*take_all)(void *self, struct recording_counted *counted);
	/* A new profile begins. */
	void (*restart)(void *self);

	/* Returns what a sample costs a program, in ns, beside the time that is measured in it. */
	uint64_t (*delivery)(void);
	bool delivery_at_end; /* `delivery` is called when sampling has ended */

	bool in_ticks; /* times of handlers are in ticks (safe/ticks.h), not in ns */
	bool merges;   /* several samples of an event may come as one */
};

extern const struct sampler sampler_agents, sampler_kernel;
