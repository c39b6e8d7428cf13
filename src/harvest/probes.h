/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions whose calls are counted and timed (`culprit probe`): where the probes go, and what they have counted. The
   caller of a session makes it and owns it. The kernel's sampler (collect/kernel/probes.c) fills in the counts while the
   recording goes on. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define PROBE_TIMES 320u /* buckets of a histogram: eight from each power of two to the next */

enum probe_kind { PROBE_BEGINS, PROBE_ENDS, PROBE_THROWS, PROBE_CATCHES };

struct probe_site {      /* a place in a file */
	uint64_t offset; /* in the file, in bytes */
	uint8_t kind;    /* enum probe_kind */
};

/* calls = returned + unwound + abandoned + those that have not ended, if the ends are seen. */
struct probe_sums {
	uint64_t calls, returned;
	uint64_t unwound;   /* left by an exception */
	uint64_t abandoned; /* left by longjmp, or it is not known how */
	uint64_t ns, most;  /* of those that returned */
	uint64_t least;     /* UINT64_MAX: none has returned */
	uint64_t times[PROBE_TIMES];
};

enum probe_state {
	PROBE_ON,
	PROBE_COUNTING, /* calls are counted, but their ends are not seen; `reason` says why */
	PROBE_REFUSED,
};

struct probe_function {
	char *name;               /* for people */
	char *module;             /* path of its file, as the process sees it */
	char *file;               /* the same, as we can open it */
	uint64_t address;         /* in the module */
	bool jumps;               /* it may end by a jump to a function that is not known */
	bool loops;               /* it jumps to its own first instruction */
	bool everywhere;          /* the probe is in all processes that have the file in memory */
	struct probe_site *sites; /* the beginning is the first */
	size_t site_count;
	uint8_t state; /* enum probe_state */
	char *reason;  /* or NULL */
	struct probe_sums sums;
};

struct probe_path {    /* the calls of a function by one path */
	uint32_t node; /* in the profile */
	uint32_t function;
	struct probe_sums sums;
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
	uint64_t untimed; /* calls whose ends are not seen, because there was no room */
};

void probes_free(struct probes *probes);
/* Changes the state of a function for the worse. `reason` is copied. */
void probes_refuse(struct probe_function *function, enum probe_state state, const char *reason);
/* Adds to the sums of a function, and of the path that ends at this node; node 0: it is not known. */
struct err *probes_add(struct probes *probes, uint32_t function, uint32_t node,
		       const struct probe_sums *more);
/* Returns how many calls have not ended, as far as ends are seen. */
uint64_t probes_active(const struct probe_sums *sums);
/* Returns the time that this part of the returned calls did not take longer than, in ns: within 1/16 of it. */
uint64_t probes_quantile(const struct probe_sums *sums, double part);
/* Returns the bucket of a time, and where that begins. */
uint32_t probes_bucket(uint64_t ns);
uint64_t probes_bucket_start(uint32_t bucket);
