/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tables are built once per module and kept in the cache directory, named by what the
 * file is called there (image/identity.h), mode and version. A file that is damaged,
 * foreign or of another version is built anew.
 *
 * Who is trusted: this process says whose table it is, and puts it into the cache.
 * Another process that makes one has the file, or a private copy, and hands out bytes
 * that cannot change any more; whatever it does, they become that file's table only.
 */
#include <stdbool.h>
#include "recipes/build.h"
#include "unwind/table.h"

struct module_table {
	struct table table;
	void *bytes;
	size_t size;
	bool mapped; /* from the cache; else malloc'ed */
};

/* The table of `image`: from the cache, or built (with its debug file's .debug_frame where it
   has no other unwind information) and put there. A cache that cannot be written is no error. */
struct err *cache_table(struct image *image, enum recipes_mode mode, struct module_table *out);
/* The same only where the cache has it. `soon`: and where that is known soon. */
bool cache_find(struct image *image, enum recipes_mode mode, bool soon, struct module_table *out);

/* The same in steps, for a table that another process makes. */
struct cache_job;
enum cache_debug {
	CACHE_DEBUG_NONE,
	CACHE_DEBUG_BELIEVED,
	CACHE_DEBUG_ANY
}; /* files it is made of */

/* *out is the table where the cache has it; else out->bytes is NULL. The job is the caller's (cache_end), NULL with an error. */
struct err *cache_begin(struct image *image, enum recipes_mode mode, struct module_table *out,
			struct cache_job **job);
/* What is to be made: of this image, with these debug files. */
struct image *cache_image(const struct cache_job *job);
enum cache_debug cache_debug(const struct cache_job *job);
/* There: an open file that nobody can change any more. The caller closes it. */
struct err *cache_make(struct image *image, enum recipes_mode mode, enum cache_debug debug,
		       int *out);
/* Here: takes it, as cache_table would give it; false where it is no table of this job. */
bool cache_adopt(struct cache_job *job, int fd, struct module_table *out);
void cache_end(struct cache_job *job);

/* It is not needed for now: its memory, where it is a file's, comes again when it is. */
void module_table_rest(const struct module_table *table);
void module_table_free(struct module_table *table);
