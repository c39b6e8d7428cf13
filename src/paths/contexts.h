/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calling contexts of functions, and how often each path was taken in them: a tree. A function that calls itself, by others or
 * not, is in the context that it was called in first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_OUTSIDE 0u        /* who was called by nobody that was counted */
#define PATH_ASTRAY 1u         /* who called is not known */
#define PATH_CONTEXTS_FIRST 2u /* the indices before are those */
#define PATH_NO_CONTEXT UINT32_MAX

struct path_caller { /* a function, also if it is no more in the result */
	char *name, *module;
	uint64_t address;
	uint32_t first,
		last; /* of its contexts with counts, once they are settled; 0: there are none */
};

struct path_taken {
	uint64_t path, count;
};

struct path_context {
	uint32_t parent; /* less than its own index */
	uint32_t place;
	uint64_t
		site; /* the address of the call in the caller; 0: code that is not counted called */
	uint64_t entries, unknown; /* as in struct path_function */
	struct path_taken *taken;  /* ascending, once they are settled */
	size_t taken_count, taken_room;
	uint32_t next; /* of the same function, that has counts; 0: none */
};

struct path_contexts { /* empty: contexts were not told apart */
	struct path_caller *places;
	size_t place_count, place_room;
	struct path_context *items;
	size_t count, room;
	/* Tables by hash; 0: empty. Of functions, with their index and 1 more. */
	uint32_t *index, *place_index;
	size_t index_size, place_index_size;
};

/* Each returns PATH_NO_CONTEXT, or false, if there is no memory. */
bool path_contexts_open(struct path_contexts *contexts); /* it may be open */
uint32_t path_contexts_place(struct path_contexts *contexts, const char *name, const char *module,
			     uint64_t address);
/* The context of a function that is called so, which is added if it is not there. */
uint32_t path_contexts_add(struct path_contexts *contexts, uint32_t parent, uint32_t place,
			   uint64_t site);
bool path_contexts_count(struct path_contexts *contexts, uint32_t context, uint64_t path,
			 uint64_t count);
/* To be called once all is counted. */
void path_contexts_settle(struct path_contexts *contexts);
void path_contexts_free(struct path_contexts *contexts);

/* How often a path was taken in a context; settled ones. */
uint64_t path_context_count(const struct path_context *context, uint64_t path);
/* The contexts of a function that something was counted in, settled ones: the first; `next` leads to the others. 0: none. */
uint32_t path_contexts_of(const struct path_contexts *contexts, const char *module,
			  uint64_t address);
