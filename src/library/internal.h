/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What library.c, later.c and names.c share. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "library/library.h"
#include "library/maker.h"

#define BUCKETS 1024u
#define LIBRARY_AGAIN_NS (60 * 1000000000ull) /* until what could not be had is tried again */

/* What is made of one new module, in parallel with the others. */
struct fresh {
	struct library_module *module;
	struct image *image;
	struct module_table table;
	struct maker_report report;
	bool sought;   /* the cache does not have it */
	bool fleeting; /* names of its functions are wanted */
	int names;     /* they are there; -1: none */
	bool names_in_memory;
};
struct fresh_list {
	struct fresh *items;
	size_t count, room;
	enum recipes_mode mode;
	bool tables;               /* are to be made */
	const struct maker *maker; /* NULL: they are made here */
};

/* Tables that were made before do not wait for those that are made now. Large modules, of which one may take
   many seconds, do not keep the others waiting; and files that may soon be gone, or whose file system, do not
   wait for those that stay, nor the smallest of them for larger ones. */
enum {
	LIBRARY_SEEKING,
	LIBRARY_TINY,
	LIBRARY_FLEETING,
	LIBRARY_SMALL,
	LIBRARY_LARGE,
	LIBRARY_LANES
};

struct library {
	enum recipes_mode mode;
	bool tables;
	char *agent;
	uint64_t agent_device, agent_inode;
	uint64_t unasked_ns; /* so long an old file is not asked again whether it is the same */
	int file, shared;    /* the same; `shared` can only be read */
	const uint8_t *bytes;
	uint64_t used;
	struct library_module **modules; /* by id - 1; NULL: it was given back */
	uint32_t module_count, module_room, module_limit;
	uint32_t freed, cursor; /* ids that were given back; the last that was given again */
	uint32_t unswept;       /* modules that came since the last sweep */
	uint32_t names_count;   /* modules whose functions' names are kept */
	uint64_t names_size, memory_size; /* bytes of them on disk, in memory */
	uint64_t asked;                   /* how often names were asked for */
	unsigned turn;
	uint64_t turned_ns;
	struct library_module *by_file[BUCKETS];
	struct library_list *by_contents[BUCKETS];
	size_t list_count, list_limit; /* beyond the limit it is worth forgetting some */
	struct fresh_list pending;     /* modules whose tables are to be made */
	library_meanwhile *meanwhile;
	void *context;
	bool busy;
	bool given_up; /* nobody waits for tables any more */
	/* in the background */
	bool background, patient, hurried;
	struct library_lane { /* a thread of its own */
		struct library *library;
		struct fresh_list work;
		bool running;
		_Atomic bool done;
		pthread_t thread;
	} lanes[LIBRARY_LANES];
	int built; /* an eventfd: one of them has finished */
	unsigned builds;
	unsigned unready;   /* builds, when a table was not there */
	struct maker maker; /* its program is NULL: tables are made in this process */
	struct library_account account;
};

extern const struct table library_no_table;

/* Appends two pieces to the file, one behind the other; 0 where there is no room. */
uint64_t library_append(struct library *l, const void *head, size_t head_size, const void *bytes,
			size_t size);

void library_free_module(struct library_module *m); /* NULL is fine */
/* One more whose table is to be made; NULL where there is no memory. */
struct fresh *library_add_fresh(struct library *l, struct library_module *m);

/* Makes the tables of all modules that were opened until now. In the background: begins to, and
   false where one of `found` is not ready. */
bool later_build(struct library *l, struct library_module *const *found, size_t count);
/* Whether it is time to try once more to make its table. */
bool later_is_worth(const struct library_module *m);
/* Ends that; false where the library must stay, because something cannot be ended. */
bool later_close(struct library *l);

/* names.c: takes over the names that came with a table, if there are any; gives them up. */
void names_keep(struct library *l, const struct fresh *f);
void names_forget(struct library *l, struct library_module *m);
