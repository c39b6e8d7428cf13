/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions of an image, for when its file is gone: by address, in a file of
 * our own that has no name, of which only the pages are read that are asked for.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;

#define NAME_TABLE_MAX ((size_t)48 << 20) /* bytes of one: a program of 100 MB may have 30 */

struct name_table {
	const struct name_table_header *header; /* NULL: there is none */
	const struct name_table_entry *entries;
	const char *names;
	size_t size;
};

/* An empty file for one, in the cache directory, which takes no memory for long; in memory where there
   is none, which *in_memory says. -1: there cannot be one. It is gone when it is closed. */
int name_table_file(bool *in_memory);

/* Writes the functions of the image and of its debug file. An error where they take more than `most` bytes, and then
   the file is empty; it stays so where there are none. */
struct err *name_table_write(struct image *image, int file, size_t most);

/* Maps it; false where the file is none, or not whole. The file may be closed then. */
bool name_table_open(int file, struct name_table *out);
void name_table_close(struct name_table *table);

/* The function at this address, as the image names it (not demangled), with its start and size; NULL: none. */
const char *name_table_find(const struct name_table *table, uint64_t address, uint64_t *start,
			    uint64_t *size);
