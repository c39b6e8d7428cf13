/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions whose calls are counted and timed (`culprit probe`): where the probes go, and what they have counted. The
   caller of a session makes it and owns it. The kernel's sampler (collect/kernel/probes.c), or the agents'
   (collect/agents/patches.c), fills in the counts while the recording goes on. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harvest/measures.h"

struct err;

enum probe_kind { PROBE_BEGINS, PROBE_ENDS, PROBE_THROWS, PROBE_CATCHES };

struct probe_site {      /* a place in a file */
	uint64_t offset; /* in the file, in bytes */
	uint8_t kind;    /* enum probe_kind */
};

/* calls = returned + unwound + abandoned + untimed + those that have not ended. */
struct probe_sums {
	uint64_t calls, returned;
	uint64_t unwound;   /* left by an exception */
	uint64_t abandoned; /* left by longjmp, or it is not known how */
	uint64_t untimed;   /* only counted: their ends were not looked for */
	uint64_t ns, most;  /* of those that returned */
	uint64_t least;     /* UINT64_MAX: none has returned */
	uint64_t times[PROBE_TIMES];
};

enum probe_state {
	PROBE_ON,
	PROBE_COUNTING, /* calls are counted, but their ends are not seen; `reason` says why */
	PROBE_REFUSED,
};

#define PROBE_TARGETS 8u

struct probe_function {
	char *name;       /* for people */
	char *module;     /* path of its file, as the process sees it */
	char *file;       /* the same, as we can open it */
	uint64_t address; /* in the module */
	bool jumps;       /* it may end by a jump to a function that is not known */
	bool loops;       /* it jumps to its own first instruction */
	/* For the agent: bytes from the first instruction on that belong to it; where jumps of the function go to within
	   them; the agent has a function of this name; why the agent cannot probe it, or NULL. */
	uint32_t room;
	uint32_t targets[PROBE_TARGETS], target_count;
	bool wrapped;
	const char *unpatched;
	bool everywhere;          /* the probe is in all processes that have the file in memory */
	struct probe_site *sites; /* the beginning is the first */
	size_t site_count;
	uint8_t state; /* enum probe_state */
	char *reason;  /* or NULL */
	bool fresh;    /* it was added while the others were counted, and is not in place yet */
	bool removed;  /* it was taken away meanwhile: its counts stay */
	bool dropped;  /* it was on, and became too dear: its calls are only counted since then */
	uint64_t load_ns,
		judged_ns; /* that its probes have taken, all; of that, until it was judged */
	struct probe_sums sums;
	struct probe_measure *measures; /* one for each metric; NULL: none yet */
	struct probe_slow *slowest;     /* the slowest first */
	size_t slow_count;
};

struct probe_path {    /* the calls of a function by one path */
	uint32_t node; /* in the profile */
	uint32_t function;
	struct probe_sums sums;
	struct probe_measure *measures; /* as above */
};

struct probe_kept { /* of a function, before a look */
	struct probe_sums sums;
	struct probe_slow *slowest;
	size_t slow_count;
};

struct probe_marks { /* places in a file that tell of exceptions */
	char *file;
	bool everywhere;
	struct probe_site *sites;
	size_t site_count;
};

struct probes {
	struct probe_function *functions;
	size_t count, room;
	struct probe_marks *marks;
	size_t mark_count, mark_room;
	struct probe_path *paths; /* in no order */
	size_t path_count, path_room;
	uint32_t *path_of_node; /* by node: index + 1 in `paths`; 0: none */
	size_t node_room;
	bool patched; /* agents change the code of the functions; else the kernel stops threads there */
	/* As it was before a look: probes_lend. */
	bool lent;
	struct probe_kept *kept;
	struct probe_sums *kept_of_paths;
	size_t kept_count, kept_path_count;
	uint64_t kept_untimed;
	uint64_t untimed;    /* calls whose ends are not seen, because there was no room */
	uint64_t unmeasured; /* values that found no room */
	struct probe_metric metrics[PROBE_METRICS];
	size_t metric_count;
	bool only_calls;  /* nothing else is wanted: ends are not looked for */
	uint32_t slowest; /* calls of each function that are kept */
	double budget;    /* part of the program's time that probes may take; 0: any */
	double share;     /* that they took in the last second */
	uint64_t trap_ns; /* of that, what stopping a thread at a place takes; 0: not known */
	uint64_t stop_ns; /* how long the process stood still at most, while its code was changed */
};

void probes_free(struct probes *probes);
/* Forgets the functions from this one on, which were never in place. */
void probes_forget(struct probes *probes, size_t first);
/* Adds sums to others, which may be all zero. */
void probes_sum(struct probe_sums *to, const struct probe_sums *more);
/* Changes the state of a function for the worse. `reason` is copied. */
void probes_refuse(struct probe_function *function, enum probe_state state, const char *reason);
/* Adds to the sums of a function, and of the path that ends at this node; node 0: it is not known. */
struct err *probes_add(struct probes *probes, uint32_t function, uint32_t node,
		       const struct probe_sums *more);
/* Keeps a call if it is one of the slowest of its function (probes->slowest). */
void probes_keep_slow(struct probes *probes, uint32_t function, const struct probe_slow *call);
/* What is added from now on is only for a look at it: probes_return forgets it. */
struct err *probes_lend(struct probes *probes);
void probes_return(struct probes *probes);
/* Adds values of a metric to those of a function, and of the path that ends at this node. */
struct err *probes_measure(struct probes *probes, uint32_t function, uint32_t node, uint32_t metric,
			   uint32_t octave, const struct probe_octave *more);
/* Compares what the probes took since the last time with the time that has passed. If it is more than the budget, the
   function whose probes took most is only counted from now on, unless that would be of no use. Returns its number, from 1
   on; 0: none. */
uint32_t probes_judge(struct probes *probes, uint64_t passed_ns);
/* Whether its calls are timed, or were at first. */
bool probes_are_timed(const struct probe_function *function);
/* Returns how many calls have not ended, as far as ends are seen. */
uint64_t probes_active(const struct probe_sums *sums);
/* Returns the time that this part of the returned calls did not take longer than, in ns: within 1/16 of it. */
uint64_t probes_quantile(const struct probe_sums *sums, double part);
