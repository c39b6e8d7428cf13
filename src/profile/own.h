/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder know of a profile and nobody else does. */
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define PROFILE_LOST_NAME "(lost)" /* of what stands in for what was damaged */

struct string_block;

struct string_slot {
	const char *text; /* NULL: free */
	uint64_t hash;
};

struct node_slot {
	uint32_t tag;  /* of the hash, so that most misses need no look at the node */
	uint32_t node; /* 0: free (the root is nobody's child) */
};

struct profile_private {
	struct string_block *blocks; /* newest first */
	struct string_slot *strings; /* a power of two */
	size_t string_room, string_count;

	/* Allocated elements of the public arrays. */
	size_t module_room, metric_room, process_room, thread_room, node_room, value_room,
		span_room, wake_room, edge_room, counted_room, context_room, lost_room;

	/* Of the first `hashed` nodes. A profile that is only looked at needs none. */
	struct node_slot *slots; /* a power of two */
	size_t slot_room, hashed;

	size_t settled;          /* the first of the values that are in order, each key once */
	size_t ordered;          /* the same of the spans */
	size_t counted_settled;  /* so many functions with paths are in order, each once */
	uint64_t path_sum;       /* their paths, and those of contexts */
	size_t contexts_settled; /* so many contexts are there once */
};

/* `items` with room for one more than `count` elements, moved if need be; NULL without memory
   (`items` is unharmed). */
void *own_grow(void *items, size_t *room, size_t count, size_t size);

/* strings.c. The string, or NULL without memory; profile_string for the bytes [text, +size). */
const char *own_string(struct profile *p, const char *text, size_t size);
void own_strings_free(struct profile_private *own);
/* Puts the profile's own copy of each into its place: false without memory. */
bool own_keep(struct profile *p, const char **text);

/* Adds a node without looking for an equal one. */
struct err *own_append_node(struct profile *p, const struct profile_node *node);
/* timeline.c. Adds a span as it is. */
struct err *own_append_span(struct profile *p, const struct profile_span *span);
struct err *own_settle_spans(struct profile *p);
/* wakes.c. Adds a wake without looking at what it refers to. */
struct err *own_append_wake(struct profile *p, const struct profile_wake *wake);
void own_settle_wakes(struct profile *p);
/* edges.c. Adds an edge without looking at its modules. */
struct err *own_append_edge(struct profile *p, const struct profile_edge *edge);
void own_settle_edges(struct profile *p);
/* counted.c. Takes the function's graph and paths, also if there is no memory. */
struct err *own_append_counted(struct profile *p, struct profile_counted *function);
struct err *own_settle_counted(struct profile *p);
void own_free_counted(struct profile *p);
/* Both lists of paths become one, the first. Without memory, false, and both stay. */
bool own_join_paths(struct profile_path **into, size_t *into_count, const struct profile_path *from,
		    size_t from_count);
/* contexts.c. Takes the context's paths, also if there is no memory. */
struct err *own_append_context(struct profile *p, struct profile_context *context);
struct err *own_settle_contexts(struct profile *p);
void own_free_contexts(struct profile *p);
/* Adds a name to a module; the caller keeps them ascending. */
struct err *own_append_name(struct profile *p, uint32_t module, const struct profile_name *name);
/* Adds those of an equal module of another profile. */
struct err *own_merge_names(struct profile *p, struct profile_module *into,
			    const struct profile_module *from);

static inline uint64_t own_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}
