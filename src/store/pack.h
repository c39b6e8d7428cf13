/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The packed columns of the database. A row of counts takes two or three bytes
 * so, where a row of a table takes twenty. All of it is foreign when read:
 * every number is checked.
 *
 *    packed: one byte (1: as it is, 2: a zstd frame with a checksum; 3 and 4: the same with columns whose
 *            low bits stand apart), then the raw bytes
 *    raw:    numbers as in doc/format.md (LEB128), column after column
 */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/* Numbers of processes, images and events are those of the database. */
struct pack_count {
	uint64_t process, image, event, address, count;
};
struct pack_path {
	uint64_t node, process, event, count;
};
struct pack_node { /* of an epoch's tree; nodes count from 1, 0 is the root */
	uint32_t parent;
	uint32_t image : 30, kind : 2;
	uint64_t address;
};

#define PACK_ROWS_MAX (1u << 22)
#define PACK_IMAGE_MAX ((1u << 30) - 1)

/* Numbers of images are not larger than that (store/intern.c). */
static inline struct pack_node pack_node(uint32_t parent, uint64_t image, unsigned kind,
					 uint64_t address)
{
	return (struct pack_node){parent, image & PACK_IMAGE_MAX, kind & 3, address};
}

/* Puts rows in order (image, address, process, event; process, node, event) and adds up what is
   equal. Return how many are left; none has the count 0. */
size_t pack_settle_counts(struct pack_count *rows, size_t count);
size_t pack_settle_paths(struct pack_path *rows, size_t count);

/* Append the packed rows, nothing where there are none. Those of counts and paths must be settled; of nodes the first has the
   number `first`. `level` is zstd's. */
struct err *pack_counts(const struct pack_count *rows, size_t count, int level, struct buf *out);
struct err *pack_paths(const struct pack_path *rows, size_t count, int level, struct buf *out);
struct err *pack_nodes(const struct pack_node *rows, size_t count, uint32_t first, int level,
		       struct buf *out);

/* *rows is malloc'ed. No bytes at all are no rows. */
struct err *unpack_counts(const void *bytes, size_t size, struct pack_count **rows, size_t *count);
struct err *unpack_paths(const void *bytes, size_t size, struct pack_path **rows, size_t *count);
struct err *unpack_nodes(const void *bytes, size_t size, uint32_t first, struct pack_node **rows,
			 size_t *count);
