/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The data that library.c, later.c and names.c share. Nobody else includes this, except unit tests. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "library/library.h"
#include "library/maker.h"

#define BUCKETS 1024u
#define LIBRARY_AGAIN_NS (60 * 1000000000ull) /* pause before another try */

/* A new module, and the results of making its table. Several are made in parallel. */
struct fresh {
	struct library_module *module;
	struct image *image;
	struct module_table table;
	struct maker_report report;
	bool sought;   /* the cache was searched, and does not have it */
	bool fleeting; /* the names of its functions are wanted, too */
	int names;     /* file with the names; -1: none */
	bool names_in_memory;
};
struct fresh_list {
	struct fresh *items;
	size_t count, room;
	enum recipes_mode mode;
	bool tables;               /* tables are to be made */
	const struct maker *maker; /* NULL: this process makes them */
};

/* Lanes are threads that make tables in the background, so that no module waits for much slower ones.
   Tables that are in the cache do not wait for tables that must be made. Small modules do not wait for
   large ones, which may take many seconds. Files that may soon be gone (or their file system) do not wait
   for others, and the smallest of them do not wait for larger ones. */
enum {
	LIBRARY_SEEKING,  /* searches the cache */
	LIBRARY_TINY,     /* fleeting files, very small */
	LIBRARY_FLEETING, /* fleeting files, small */
	LIBRARY_SMALL,    /* other small modules */
	LIBRARY_LARGE,    /* large modules, also fleeting ones */
	LIBRARY_LANES
};

struct library {
	enum recipes_mode mode;
	bool tables, returns; /* returns: see library_count_returns */
	char *agent;
	uint64_t agent_device, agent_inode;
	/* For so long, a file is not checked again for changes (find_checked). */
	uint64_t unasked_ns;
	int file, shared; /* the tables file; `shared` is read-only */
	const uint8_t *bytes;
	uint64_t used;
	struct library_module **modules; /* by id - 1; NULL: the id was given back */
	uint32_t module_count, module_room, module_limit;
	/* freed: how many ids were given back; cursor: the last one that was used again. */
	uint32_t freed, cursor;
	uint32_t unswept;                 /* modules that came since the last sweep */
	uint32_t names_count;             /* modules that have their functions' names kept */
	uint64_t names_size, memory_size; /* bytes of these names: on disk, in memory */
	uint64_t asked;                   /* how often names were asked for */
	/* See library_end_round. */
	unsigned round;
	uint64_t turned_ns;
	struct library_module *by_file[BUCKETS];
	struct library_list *by_contents[BUCKETS];
	size_t list_count, list_limit; /* beyond the limit, unused lists are forgotten */
	struct fresh_list pending;     /* modules whose tables are to be made */
	library_meanwhile *meanwhile;
	void *context;
	bool busy;
	bool given_up; /* nobody waits for tables any more: none are made */
	/* only if tables are made in the background */
	bool background, patient, hurried;
	struct library_lane { /* one thread */
		struct library *library;
		struct fresh_list work;
		bool running;
		_Atomic bool done;
		pthread_t thread;
	} lanes[LIBRARY_LANES];
	int built; /* an eventfd: a lane has finished */
	unsigned builds;
	struct maker maker; /* if its program is NULL, this process makes tables */
	struct library_account account;
};

extern const struct table library_no_table;

/* Appends two pieces to the tables file, one behind the other. Returns their offset; 0 if there is
   no room. */
uint64_t library_append(struct library *l, const void *head, size_t head_size, const void *bytes,
			size_t size);

void library_free_module(struct library_module *m); /* NULL is fine */
/* Adds a module to those whose tables are to be made; NULL if out of memory. */
struct fresh *library_add_fresh(struct library *l, struct library_module *m);

/* Makes the tables of all modules that are pending. In the background: starts that, and returns false if
   one of `found` is not ready. */
bool later_build(struct library *l, struct library_module *const *found, size_t count,
		 bool unready_too);
/* Whether it is time for another try to make its table. */
bool later_is_due(const struct library_module *m);
/* Ends all work on tables. False if some work cannot be stopped: then the library must not be freed. */
bool later_close(struct library *l);

/* names.c: keeps the names that came with a table, if there are any; and drops them. */
void names_keep(struct library *l, const struct fresh *f);
void names_forget(struct library *l, struct library_module *m);
