/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All code that is met in a recording: every module once, with its number and
 * its unwind table, and the tables file from which targets read both. The file
 * is as large as targets map it from the start, sparse, and only ever appended
 * to: tables, and lists of what a process has where (struct wire_space).
 * Processes with the same list share it, so a program that loads and unloads
 * the same libraries for ever needs room once.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/image.h"
#include "library/account.h"
#include "recipes/build.h"
#include "recipes/cache.h"
#include "safe/wire.h"
#include "unwind/walk.h"

struct err;
struct maps;
struct runtime;

#define LIBRARY_SIZE (256ull << 20) /* of the tables file */

struct library_module {
	struct library_module *chain; /* in the hash */
	uint32_t id;                  /* 1 …; 0: there were too many */
	char *path;
	uint64_t device, inode, changed; /* changed: when the file was last written to, ns */
	uint64_t checked_ns;             /* when that was last asked, CLOCK_MONOTONIC */
	struct image_segment *segments;
	size_t segment_count;
	uint64_t place, size; /* of the table in the file; size 0: none */
	struct table table;
	char build_id[2 * BUILD_ID_MAX + 1];
	char *problem; /* why there is no table, or NULL */
	enum library_state {
		LIBRARY_PENDING,
		LIBRARY_READY,  /* its table is made, or there is none */
		LIBRARY_DROPPED /* its table was given back */
	} state;
	struct module_table own; /* the table, where it is not in the file */
	char *here; /* its path as we see it, where that is another one; NULL: the same, or none */
	bool fleeting; /* the file has no name for us, or may soon have none: its functions are learned at once */
	int names; /* they are there (image/name_table.h); -1: not kept, or there are none */
	bool names_in_memory;
	uint64_t names_size, named; /* named: when somebody asked for them last */
	bool used;                  /* see library_use_module */
	unsigned idle;              /* the turn since which nobody uses it; 0: somebody does */
	unsigned tries;    /* to make its table, that failed in a way that may not fail again */
	uint64_t again_ns; /* when it is worth another one; 0: it is not */
	bool agent;        /* our own library */
	bool go;           /* made by Go's compiler */
};

struct library_list { /* what one or more processes have in memory */
	struct library_list *chain;
	uint64_t hash, place; /* place: of the struct wire_space in the file */
	uint32_t count;
	struct wire_module *modules;
	struct walk_module *walk;      /* the same for walking; NULL: not asked for yet */
	const struct runtime *runtime; /* who makes code there */
	bool used;                     /* see library_use */
	uint32_t given;                /* where collect/kernel/code.c has it, + 1 */
};

struct library;

/* `tables` is false where nothing shall be unwound with them. `agent`: path of our own library. */
struct err *library_open(enum recipes_mode mode, bool tables, const char *agent,
			 struct library **out);
void library_close(struct library *library); /* NULL is fine */

/* The read-only descriptor of the tables file, for targets. */
int library_file(const struct library *library);

/* Looks at a process's memory map and opens what is new. *executable (may be NULL) is set to the
   module that it was started from, or NULL. `machine` is that of the code that runs there: see
   library/emulated.h where it is not ours. */
struct err *library_look(struct library *library, pid_t pid, uint16_t machine,
			 const struct library_list **out, const struct library_module **executable);

/* The same for a memory map that was read or noted before; files are opened as process `task` sees
   them, or as process/backing.h says for one that is gone. */
struct err *library_look_at(struct library *library, pid_t task, const struct maps *maps,
			    const struct library_list **out,
			    const struct library_module **executable);

/* Whether all mappings, which were noted, are of files that were looked at before, by their numbers and
   names; then what is not code of theirs is cut off. */
bool library_knows(const struct library *library, struct maps *maps);

/* The same in two steps: first the modules are opened, as long as the process is there; later, when
   there is time, what is missing is made. The list is NULL where memory ran out. */
struct library_view;
struct err *library_see(struct library *library, pid_t pid, uint16_t machine,
			struct library_view **out);
const struct library_list *library_settle(struct library *library, struct library_view *view);
bool library_view_is_same(const struct library_view *a, const struct library_view *b);
void library_view_free(struct library_view *view); /* NULL is fine */

/* What to do while tables are made, that of module `what` last: called in library_look, it returns when the
   descriptor `until` is readable; or false, when nobody wants to wait any longer: from then on what is
   not ready has no table, and none are made. It must not come back to the library but for library_list and
   library_see. */
typedef bool library_meanwhile(void *context, int until, const char *what);
void library_set_meanwhile(struct library *library, library_meanwhile *meanwhile, void *context);
/* Whether that is being called. */
bool library_is_busy(const struct library *library);

/* From now on tables are made in the background, and nothing is put into the file. To look gives no
   list (NULL, without an error) where tables of it are not ready: it is worth another look when
   library_builds has changed. What is not in use any more can be forgotten. `patient`: others go first.
   `maker`: path of the program that makes them in a process of its own (library/maker.h); NULL: this one. */
struct err *library_set_background(struct library *library, bool patient, const char *maker);
/* What other processes took for tables since this was asked last. */
struct library_account library_take_account(struct library *library);
/* Readable when library_builds has changed. */
int library_built_fd(const struct library *library);
unsigned library_builds(struct library *library);
/* What library_builds was at the last such look since this was asked last; 0: there was none. */
unsigned library_was_unready(struct library *library);
bool library_is_unready(const struct library *library);
bool library_is_building(const struct library *library);
/* From now on, or no longer: looks give lists whose tables are not all there. Returns how it was. */
bool library_hurry(struct library *library, bool hurried);
/* Until something of what is being made now is ready, or the time (CLOCK_MONOTONIC) has come. From
   then on what is not ready has no table. */
void library_wait(struct library *library, uint64_t until_ns);

/* Whether there are so many lists that it is worth to forget those that nobody uses: all that
   library_use was not called for. Modules that are in no list, and that library_use_module was not
   called for, lose their tables, and a few turns later they are forgotten, too: their ids will be others'. */
bool library_has_many(const struct library *library);
/* Whether there are few ids left. */
bool library_is_short(const struct library *library);
void library_use(const struct library_list *list); /* NULL is fine */
void library_use_module(struct library *library, uint32_t id);
void library_forget_unused(struct library *library);
/* In the background: gives the memory of tables back until they are needed again. */
void library_rest(const struct library *library);
/* A turn is over: whatever named a module by its id when the one before ended has been heard. Without,
   ids are never given again. */
void library_end_turn(struct library *library, uint64_t now_ns);

/* The list at this place of the file, or NULL. */
const struct library_list *library_list(const struct library *library, uint64_t place);
/* A list to walk with. Walking modules have the id and the flags of struct wire_module. Empty
   where memory runs out. */
struct walk_space library_walk(struct library *library, const struct library_list *list);

/* NULL: nobody has this id. */
const struct library_module *library_module(const struct library *library, uint32_t id);

/* Names of the functions of a file that may be gone when they are asked for: a file of them, which stays
   the library's, or -1. No file of a program is kept open for that, but *image is set where the file is being
   read: NULL where not. */
int library_names(struct library *library, uint32_t id, struct image **image);
