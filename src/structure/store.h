/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was found out about a module, in few bytes: in memory, and in the cache
 * directory. A file of the cache has the module's procedures, and for those
 * that somebody asked for, their structure; so a report finds again what the
 * last one needed. A file that is damaged, foreign or of another version is
 * ignored and made anew; each structure has its own checksum, and is looked at when used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "structure/keys.h"

struct extents;
struct structure_procedure;

#define STORE_KEY_SIZE 96

/* Where the structure of a procedure is stored. */
struct store_blob {
	uint64_t offset; /* in the file's blobs, or beyond these in memory */
	uint32_t size;   /* 0: not known */
	uint32_t checksum;
};

struct store {
	uint8_t *file; /* mapped; NULL: none */
	size_t file_size;
	const uint8_t *blobs; /* of the file */
	uint64_t blob_size;
	struct buf more; /* blobs that it does not have */
	struct store_blob *blob_of_procedure;
	size_t count;
	const char **texts; /* by number; 0 is NULL */
	size_t text_count, text_capacity;
	struct keys known; /* addresses of texts */
	bool changed;
};

/* Starts an empty one for a module of that many procedures. False: out of memory. */
bool store_start(struct store *store, size_t procedures);
/* Starts with what the file has that is in a directory of the cache (base/cachedir.h); false where there is no good one. The
   names in `extents` are owned by the store. */
bool store_load(struct store *store, int directory, const char *name,
		const uint8_t key[STORE_KEY_SIZE], struct extents *extents);
/* Writes everything to the file. One that cannot be written is no error. */
void store_save(struct store *store, int directory, const char *name,
		const uint8_t key[STORE_KEY_SIZE], const struct extents *extents);
void store_free(struct store *store);

/* Adds a procedure's structure; left out when there is no memory, or too much already. */
void store_put(struct store *store, uint32_t procedure,
	       const struct structure_procedure *structure);
/* The structure, the caller's; NULL where it is not there or damaged. Several threads may ask. */
struct structure_procedure *store_get(const struct store *store, uint32_t procedure);
