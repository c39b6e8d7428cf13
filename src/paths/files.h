/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files that functions are of, opened once each. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct graph_block;
struct image;
struct isa;
struct lines;
struct path_function;
struct path_result;
struct places;

struct path_file {
	const struct path_function *of; /* that it was asked for first */
	struct image *image;
	const struct isa *isa;
	struct places *places; /* NULL: there is no memory */
	struct lines *lines;   /* NULL: not known */
};

struct path_files { /* start with = {0} */
	struct path_file **files;
	size_t count, room;
};

/* The file that a function is in, owned by `files`; the function must outlive that. NULL: it cannot be read, or is another one
   by now. */
struct path_file *path_files_get(struct path_files *files, const struct path_function *function);
void path_files_free(struct path_files *files);

/* Appends a line for each file that functions of a result were counted in, but that is gone or another one by now. Functions of a file follow
   each other (path_result_join). */
void path_files_note(const struct path_result *result, struct buf *out);

/* How many instructions a block has. If they cannot be read, that is guessed from its size; `file` may be NULL. */
uint32_t path_block_length(const struct path_file *file, const struct graph_block *block);
