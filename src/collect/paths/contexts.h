/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The calling contexts that a program's threads and processes have made (safe/contexts.h), as one tree. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTING_OUTSIDE 0u /* who was called by nobody that is counted */
#define COUNTING_UNKNOWN 1u /* those whose context is not known: they are counted in the banks */

struct counting_word { /* of a record, that is not 0 */
	uint32_t node, word;
	uint64_t count;
};

struct counting_node {
	uint32_t parent;   /* less than its own index, but for the first two */
	uint32_t function; /* the number of its first counter */
	uint64_t from;     /* where the call returns to */
};

struct counting_contexts {
	struct counting_node *nodes;
	size_t count, room;
	uint32_t *index; /* of nodes: a table by hash; 0: empty */
	size_t index_size;
	struct counting_word *words; /* several may be of the same word */
	size_t word_count, word_room;
	uint64_t full, lost; /* as in struct context_arena */
};

struct counting_contexts *counting_contexts_new(void);           /* NULL: no memory */
void counting_contexts_free(struct counting_contexts *contexts); /* NULL is fine */
/* Adds what is in an arena, which was so many bytes behind its bank; what is damaged is left out. False: there is no
   memory. */
bool counting_contexts_add(struct counting_contexts *contexts, const uint8_t *arena, size_t size,
			   uint64_t bank_bytes);
/* The node of a function that is called so, which is added if it is not there; UINT32_MAX: no memory. */
uint32_t counting_contexts_node(struct counting_contexts *contexts, uint32_t parent, uint64_t from,
				uint32_t function);
