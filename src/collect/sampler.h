/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who samples for a session. There are two: agents inside the programs (agents.c and what it names), and the kernel
 * (kernel.h). What differs between them stands in this table; the rest of a session does not ask which it is.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct session;
struct session_state;
struct tally;

struct sampler {
	/* Makes what it needs, watches its descriptors (session_watch), and begins. */
	struct err *(*open)(struct session *s);
	/* In the process of the command, before exec. */
	void (*join)(struct session *s);
	/* A process that is there already. */
	struct err *(*attach)(struct session *s, pid_t pid);
	/* Every SESSION_TICK_NS. */
	void (*tick)(struct session *s);
	/* Adds what came, and what was lost, that nobody else knows of. */
	void (*status)(const struct session *s, struct session_state *out);
	/* Adds what its events have counted, one for each; `anew`: what comes now is for the next profile. */
	void (*tally)(struct session *s, struct tally *tallies, bool anew);
	/* Gives names to what only it can name, before a profile is taken. */
	void (*name)(struct session *s);
	/* Sampling has ended: takes what is on its way, and names it. */
	void (*stop)(struct session *s);
	/* Before processes and their memory are given up. Also where open failed, or was not called. */
	void (*close)(struct session *s);
	/* What a sample costs a program beside what is measured in it, in ns; 0: that is known when it stops. */
	uint64_t (*delivery)(void);

	bool in_ticks; /* what handlers took is in ticks (safe/ticks.h), not in ns */
	bool merges;   /* several samples of an event may come as one */
};

extern const struct sampler sampler_agents, sampler_kernel;
