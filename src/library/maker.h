/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes unwind tables in another process. Making one takes memory in proportion to the code: more than a
 * gigabyte for the largest programs, which is too much for a daemon that must stay small. And the files are
 * foreign. So each table is made by a process of its own, of the same program, without privileges and with
 * limits for memory and time. later.c uses it.
 *
 *      daemon                                      PROGRAM make-table MODE NAME PARENT NAMES DEBUG
 *      maker_table --- the open file, or a copy -> MAKER_FILE
 *                  --- one for names of functions: MAKER_NAMES, if NAMES is 1
 *                                                  maker_main: makes it
 *                  <-- memory, or why not -------- MAKER_ANSWER
 *      puts it into the cache, maps that
 *
 * If the process dies, there is no table, but the daemon lives. Only that process reads the foreign bytes. If
 * they take it over, it can spoil the table of the file that they come from, and no other: the daemon decides
 * to which file the table belongs, and checks every row (recipes/cache.h).
 */
#include <stdbool.h>
#include <stdint.h>

#include "recipes/cache.h"

struct image;

#define MAKER_COMMAND "make-table"
#define MAKER_NICE 10     /* about a tenth of the CPU time that others get */
#define MAKER_ARGUMENTS 6 /* including the command */

struct maker {
	const char *program; /* the path of culprit itself */
	int stop;            /* a descriptor; readable: stop all work at once */
};

/* What it took, and why it failed. */
struct maker_report {
	uint64_t cpu_ns; /* CPU time of other processes */
	uint64_t memory; /* peak of one process, as far as it could tell */
	/* Why there is no table, or not the one that was wanted; the caller frees it. */
	char *reason;
	bool died; /* it did not answer: another try may succeed */
};

/* Gives the table of `image`, from the cache or newly made, as cache_table does. out->bytes is NULL if
   there is none. It waits for all of that; the other process ends with the calling thread. Tables of small
   files that are trusted (image/identity.h) are made in this process, because starting another takes
   longer; the image must have limits then (image_bound). If the whole analysis fails, the table is made
   from the file's own unwind information alone. `names`: a file to which the names of the functions are
   written, too (image/name_table.h); -1: none. */
void maker_table(const struct maker *maker, struct image *image, enum recipes_mode mode, int names,
		 struct module_table *out, struct maker_report *report);

/* The same, but only if the cache has it and that is known quickly: not if a large file would have to be
   read whole. */
bool maker_find_cached(struct image *image, enum recipes_mode mode, struct module_table *out);

/* The main function of the other process, with its arguments; returns its exit status. */
int maker_main(int argc, char **argv);
