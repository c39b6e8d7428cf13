/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind tables that another process makes. What that takes goes with the size
 * of the code: more than a gigabyte for the largest programs, too much for a daemon
 * that is to stay small, and the files are foreign. So there is a process for each
 * table, of the same program, without privileges and with bounds in memory and time:
 *
 *      daemon                                      PROGRAM make-table MODE NAME PARENT NAMES DEBUG
 *      maker_table --- the open file, or a copy -> MAKER_FILE
 *                  --- one for names of functions: MAKER_NAMES, where NAMES is 1
 *                                                  maker_main: makes it
 *                  <-- memory, or why not -------- MAKER_ANSWER
 *      puts it into the cache, maps that
 *
 * Where it dies, the daemon has no table, and lives. Foreign bytes are read by the other process. Where they took it
 * over, it can spoil the table of the file that they come from, and no other: the daemon says whose table it is, and
 * looks at every row (recipes/cache.h).
 */
#include <stdbool.h>
#include <stdint.h>

#include "recipes/cache.h"

struct err;
struct image;

#define MAKER_COMMAND "make-table"
#define MAKER_NICE 10     /* a tenth of what others get */
#define MAKER_ARGUMENTS 6 /* the command is one of them */

struct maker {
	const char *program; /* the path of culprit itself */
	int stop;            /* readable when it is to end at once */
};

/* What became of it. */
struct maker_report {
	uint64_t cpu_ns; /* of other processes */
	uint64_t memory; /* that one of them had at most, as far as it could tell */
	char *reason;    /* why there is no table, or not the one that was wanted; the caller's */
	bool died;       /* and that it did not answer: another attempt may go better */
};

/* The table of `image`, from the cache or made, as cache_table gives it; none where out->bytes is NULL.
   Small ones of files that are believed (image/identity.h) are made here: to start a process takes longer; the image is to
   be bounded then (image_bound). Where the whole work fails, the table is made of what the file says of itself. Waits for all that, and the process ends with the thread.
   `names`: a file that is given the names of its functions, too (image/name_table.h); -1: none. */
void maker_table(const struct maker *maker, struct image *image, enum recipes_mode mode, int names,
		 struct module_table *out, struct maker_report *report);

/* The same only where the cache has it, and that is known soon: not where one would have to read all of a large file. */
bool maker_find(struct image *image, enum recipes_mode mode, struct module_table *out);

/* The life of the other process, with its arguments; returns its exit status. */
int maker_main(int argc, char **argv);
