/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tables are built once per module and kept in the cache directory, named by
 * build-id (where there is none: by a hash of the code), mode and version. A
 * file that is damaged, foreign or of another version is built anew.
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
/* The same only where the cache has it. */
bool cache_find(struct image *image, enum recipes_mode mode, struct module_table *out);
/* The same as an open file, for another process: the cache's, or one in memory. The caller closes it. */
struct err *cache_file(struct image *image, enum recipes_mode mode, int *out);
/* Maps such a file; false where it is not a table of this image. */
bool cache_map(int fd, struct image *image, struct module_table *out);
/* It is not needed for now: its memory, where it is a file's, comes again when it is. */
void module_table_rest(const struct module_table *table);
void module_table_free(struct module_table *table);
