/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All code of a recording: every module once, with its id and its unwind table; and the tables file, from
 * which targets read tables and lists. Both samplers (collect/), and the harvest (harvest/), use it.
 *
 * The tables file has its final size from the start, so that targets can map all of it, but it is sparse.
 * Tables and lists of modules (struct wire_list) are only ever appended. Processes with the same list share
 * it. So a program that loads and unloads the same libraries again and again needs room for them only once.
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
#include "script/python.h"
#include "unwind/walk.h"

struct err;
struct maps;
struct runtime;

#define LIBRARY_SIZE (256ull << 20) /* of the tables file */

struct library_module {
	struct library_module *chain; /* in the hash table */
	uint32_t id;                  /* 1 …; 0: there are too many modules */
	char *path;
	uint64_t device, inode, changed; /* changed: when the file was last written, in ns */
	uint64_t checked_ns;             /* when that was last checked (CLOCK_MONOTONIC) */
	struct image_segment *segments;
	size_t segment_count;
	uint64_t place, size; /* of the table in the tables file; size 0: none */
	struct table table;
	char build_id[2 * BUILD_ID_MAX + 1];
	char *problem; /* why there is no table, or NULL */
	enum library_state {
		LIBRARY_PENDING,
		LIBRARY_READY,  /* its table is made, or cannot be made */
		LIBRARY_DROPPED /* its table was freed because nobody used it */
	} state;
	struct module_table private_table; /* the table, if it is not in the tables file */
	/* Its path as we see it, if that is not `path`; NULL: the same, or it has none. */
	char *here;
	/* The file has no path for us, or may soon be gone: the names of its functions are read at once. */
	bool fleeting;
	/* File with these names (image/name_table.h); -1: they are not kept, or there are none. */
	int names;
	bool names_in_memory;
	uint64_t names_size, named; /* named: library.asked, when they were last asked for */
	bool used;                  /* see library_mark_module_used */
	/* The round since which nobody uses it; 0: it is in use. */
	unsigned idle;
	/* How often making its table failed for a reason that may be gone the next time. */
	unsigned tries;
	uint64_t again_ns;         /* when to try again; 0: never */
	bool agent;                /* it is the agent */
	bool go;                   /* made by Go's compiler */
	uint32_t returns;          /* WIRE_MODULE_…: see library_count_returns */
	struct python_file python; /* the interpreter in it; version 0: there is none */
};

/* A list: the modules that one or more processes have in memory. */
struct library_list {
	struct library_list *chain;
	uint64_t hash, place; /* place: of the struct wire_list in the tables file */
	uint32_t count;
	struct wire_module *modules;
	struct walk_module *walk;      /* the same for walks; NULL: not made yet */
	const struct runtime *runtime; /* which compiler makes code there */
	bool used;                     /* see library_mark_used */
	uint32_t given;                /* its place in collect/kernel/code.c, + 1 */
};

struct library;

/* `tables`: whether unwind tables are needed. `agent`: the path of the agent's library, or NULL. */
struct err *library_open(enum recipes_mode mode, bool tables, const char *agent,
			 struct library **out);
void library_close(struct library *library); /* NULL is fine */
/* Returns are counted, or changed for probes: lists say what modules do with return addresses (library/returns.h). Call it first. */
void library_count_returns(struct library *library);

/* The read-only descriptor of the tables file, for targets. */
int library_file(const struct library *library);

/* A look at the memory of a process: which modules it has where. New ones are opened. */
struct library_question {
	pid_t pid; /* the process; with `maps` also what process/backing.h says for one that is gone */
	/* Of the code that runs there (library/emulated.h); 0: the machine's own. */
	uint16_t machine;
	const struct maps *maps; /* its memory map, read or noted before; NULL: it is read now */
	bool executable;         /* also say which module the process was started from */
	bool unready_too;        /* give a list even if some of its tables are not ready */
};

struct library_look {
	enum library_look_state {
		LIBRARY_LOOK_READY,
		LIBRARY_LOOK_WAITING, /* in the background: some tables are still being made */
	} state;
	const struct library_list *list;         /* NULL while waiting */
	const struct library_module *executable; /* NULL: not asked for, or not known */
	/* While waiting: look again as soon as library_builds() is no longer this. */
	unsigned builds;
};

struct err *library_look(struct library *library, const struct library_question *question,
			 struct library_look *out);

/* For mappings that were noted, not read: whether all of them are files that are known already, by their
   numbers and names. If so, the mappings are cut to the part that is code. */
bool library_knows(const struct library *library, struct maps *maps);

/* library_look in two steps. library_view_open opens the modules, which must happen while the process is there.
   library_view_list makes the missing tables later. The list is NULL if memory ran out. */
struct library_view;
struct err *library_view_open(struct library *library, pid_t pid, uint16_t machine,
			      struct library_view **out);
const struct library_list *library_view_list(struct library *library, struct library_view *view);
bool library_view_is_same(const struct library_view *a, const struct library_view *b);
void library_view_free(struct library_view *view); /* NULL is fine */

/* A function that is called in library_look while tables are made; `what` is the module that will probably
   take longest. It returns true when the descriptor `until` is readable. It may return false if nobody
   wants to wait any longer: then modules that are not ready get no table, and no more tables are made. It
   must not call the library, except library_list and library_view_open. */
typedef bool library_meanwhile(void *context, int until, const char *what);
void library_set_meanwhile(struct library *library, library_meanwhile *meanwhile, void *context);
/* Whether that function is running. */
bool library_is_busy(const struct library *library);

/* From now on tables are made in the background, and nothing is put into the tables file. If not all
   tables of a list are ready, library_look gives no list (NULL, without an error); try again when
   library_builds has changed. Modules that are not in use any more can be forgotten. `patient`: work with
   low priority. `maker`: the path of the program that makes tables in processes of its own
   (library/maker.h); NULL: this process makes them. */
struct err *library_set_background(struct library *library, bool patient, const char *maker);
/* What other processes took to make tables, since the last call. */
struct library_account library_take_account(struct library *library);
/* A descriptor that is readable when library_builds has changed. */
int library_built_fd(const struct library *library);
/* Takes over finished tables. The number changes whenever there are any. */
unsigned library_builds(struct library *library);
bool library_is_building(const struct library *library);
/* Waits until one of the tables that are being made is ready, or until the time (CLOCK_MONOTONIC). When
   the time has come, modules that are not ready have no table. */
void library_wait(struct library *library, uint64_t until_ns);

/* Whether there are so many lists that unused ones should be forgotten. To forget them, call library_mark_used
   and library_mark_module_used for everything in use, and then library_forget_unused. It forgets all other
   lists. Modules that are in no list, and that library_mark_module_used was not called for, lose their tables. A
   few rounds later they are forgotten, too, and their ids are used again. */
bool library_has_many(const struct library *library);
/* Whether only few ids are left. */
bool library_is_short(const struct library *library);
void library_mark_used(const struct library_list *list); /* NULL is fine */
void library_mark_module_used(struct library *library, uint32_t id);
void library_forget_unused(struct library *library);
/* In the background: gives the memory of tables back to the kernel. It comes back when they are used. */
void library_release_memory(const struct library *library);
/* Ends a round. When a round ends, everything that carried a module's id at the end of the round before has
   been read. So after a few rounds, ids of unused modules can be used again. Without rounds they are not. */
void library_end_round(struct library *library, uint64_t now_ns);

/* The list at this offset of the tables file, or NULL. */
const struct library_list *library_list(const struct library *library, uint64_t place);
/* A list in the form for walks. Its modules have the id and flags of struct wire_module. Empty if out
   of memory. */
struct walk_space library_walk(struct library *library, const struct library_list *list);

/* NULL if there is no module with this id. */
const struct library_module *library_module(const struct library *library, uint32_t id);

/* The names of a module's functions, if its file may be gone when they are needed: a file with the names
   (image/name_table.h), which belongs to the library; or -1. If the module's file is still open because
   its table is being made, *image is that file; else NULL. */
int library_names(struct library *library, uint32_t id, struct image **image);
