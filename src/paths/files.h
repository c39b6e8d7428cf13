/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files that functions are of, opened once each. */
#include <stddef.h>
#include <stdint.h>

struct err;
struct graph_block;
struct image;
struct isa;
struct lines;
struct places;

struct path_file {
	const char *path; /* whoever asked for it owns that */
	struct image *image;
	const struct isa *isa;
	struct places *places; /* NULL: there is no memory */
	struct lines *lines;   /* NULL: not known */
};

struct path_files { /* start with = {0} */
	struct path_file **files;
	size_t count, room;
};

/* The file with this path, owned by `files`. NULL: it cannot be read. */
struct path_file *path_files_get(struct path_files *files, const char *path);
void path_files_free(struct path_files *files);

/* How many instructions a block has. If they cannot be read, that is guessed from its size; `file` may be NULL. */
uint32_t path_block_length(const struct path_file *file, const struct graph_block *block);
