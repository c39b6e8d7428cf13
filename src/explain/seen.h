/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Edges that were seen by following the code at samples (struct profile_edge), made ready for estimates.
 *
 * Trails begin where time is spent. So of what comes after an instruction that waits long, there are more of them than
 * it ran often. A trail counts by how often its first instruction ran over how often trails began there:
 * then it is as if trails began at all executions alike, and so is every step of them. How often instructions ran
 * is not known before. So estimates are made, trails are weighed by these, and estimates are made again.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct frequency_insn;
struct frequency_observation;
struct frequency_result;
struct graph;
struct profile;
struct seen;

#define SEEN_ROUNDS 2 /* of estimates and weights */

/* All trails count alike at first. *out is NULL if the profile has none. */
struct err *seen_open(const struct profile *profile, struct seen **out);
void seen_close(struct seen *seen); /* NULL is fine */

/* Takes the frequencies of a procedure's instructions, as estimated. */
void seen_weigh(struct seen *seen, uint32_t module, const struct graph *graph,
		const struct frequency_insn *insns, size_t count,
		const struct frequency_result *result);
/* Weighs all trails by what was taken. */
void seen_settle(struct seen *seen);

/* The edges of a procedure, by the present weights. The caller frees the list. */
struct err *seen_list(const struct seen *seen, uint32_t module, const struct graph *graph,
		      struct frequency_observation **out, size_t *count);
